//! `/metrics`.

use std::time::Duration;

use serde_json::json;
use tollhouse_app::operations::monitor::Monitor;
use tollhouse_sandbox::{Fault, FaultKind};

use super::{execute_sql, metric_value, scrape};
use crate::{
    app::TestApp,
    lending::{SUCCESS_CARD, create_loan, create_recollection, create_user, saved_card},
    unruly::{initialize_with_narration, install_unruly},
};

pub async fn poll_and_scrape(app: &TestApp) -> String {
    Monitor::default().poll(&app.app).await;
    scrape(app).await
}

both! {
    async fn requests_are_counted_by_route_and_never_by_path(app: TestApp) {
        app.initialize("order-1").await;
        app.fetch("order-1").await;
        app.get("/payment/fetch/nobody-knows-it").await;
        app.get("/nowhere/ada@example.com").await;
        let page = scrape(app).await;
        let request_count = |listener: &str, method: &str, route: &str, status: u16| {
            let labels = format!("listener=\"{listener}\",method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            metric_value(&page, &format!("tollhouse_http_requests_total{{{labels}}}"))
        };
        assert_eq!(request_count("public", "POST", "/api/v1/payment/initialize", 200), Some(1.0));
        assert_eq!(request_count("public", "GET", "/api/v1/payment/fetch/reference/{reference}", 200), Some(1.0));
        assert_eq!(request_count("public", "GET", "/api/v1/payment/fetch/{id}", 404), Some(1.0));
        assert_eq!(request_count("public", "GET", "", 404), Some(1.0));
        assert_eq!(request_count("internal", "POST", "/internal/v1/companies", 200), Some(1.0));
        let series = r#"listener="public",method="POST",route="/api/v1/payment/initialize""#;
        assert_eq!(metric_value(&page, &format!("tollhouse_http_request_duration_seconds_count{{{series}}}")), Some(1.0));
        // The scrape itself.
        assert_eq!(metric_value(&page, r#"tollhouse_http_requests_in_flight{listener="internal"}"#), Some(1.0));
        assert_eq!(metric_value(&page, r#"tollhouse_http_requests_in_flight{listener="public"}"#), Some(0.0));
        for hidden in ["order-1", "ada@example.com", "nobody-knows-it", &app.company.id] {
            assert!(!page.contains(hidden), "{hidden} is in the metrics");
        }
    }

    async fn an_unknown_method_is_counted_as_other(app: TestApp) {
        let method = reqwest::Method::from_bytes(b"MADEUP").unwrap();
        app.client.request(method, format!("{}/nowhere", app.api)).send().await.unwrap();
        let page = scrape(app).await;
        let labels = r#"{listener="public",method="other",route="",status="404"}"#;
        assert_eq!(metric_value(&page, &format!("tollhouse_http_requests_total{labels}")), Some(1.0));
        assert!(!page.contains("MADEUP"));
    }

    async fn plugin_calls_are_measured_by_version_and_function(app: TestApp) {
        install_unruly(app).await;
        initialize_with_narration(app, "order-1", "").await.data();
        initialize_with_narration(app, "order-2", "panic").await;
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter).times(1));
        app.post("/payment/initialize", app.order("order-3")).await;
        let page = scrape(app).await;
        let of = |plugin: &str| {
            let digest = app.app.plugins.get(plugin).expect("a plugin").digest()[..8].to_owned();
            format!("plugin=\"{plugin}\",version=\"1.0.0\",digest=\"{digest}\",function=\"checkout.start\"")
        };
        let counted = |name: &str, labels: &str| metric_value(&page, &format!("tollhouse_plugin_{name}{{{labels}}}"));
        let ended = |plugin: &str, outcome: &str| counted("calls_total", &format!("{},outcome=\"{outcome}\"", of(plugin)));
        assert_eq!((ended("unruly", "ok"), ended("unruly", "other")), (Some(1.0), Some(1.0)));
        assert_eq!(ended("provider_a", "unavailable"), Some(1.0));
        // The provider may have received the request, so the outcome is unknown.
        assert_eq!(counted("calls_unknown_total", &of("provider_a")), Some(1.0));
        assert_eq!(counted("calls_unknown_total", &of("unruly")), Some(0.0));
        let started = of("provider_a");
        assert_eq!(counted("call_duration_seconds_count", &started), Some(1.0));
        let cpu = counted("call_cpu_seconds_sum", &started).unwrap();
        assert!(cpu > 0.0 && cpu < counted("call_duration_seconds_sum", &started).unwrap(), "{cpu}");
        assert!(counted("call_memory_bytes_sum", &started).unwrap() >= 65_536.0);
        assert_eq!(counted("runs_total", &started), Some(2.0)); // one until the request, one with its response
        assert_eq!(counted("instances_in_use", ""), None);
        assert_eq!(metric_value(&page, "tollhouse_plugin_instances_in_use"), Some(0.0));
        assert_eq!(metric_value(&page, "tollhouse_plugin_instances_limit"), Some(20.0));
        let serving = "tollhouse_plugin_serving{plugin=\"unruly\",version=\"1.0.0\",digest=\"";
        assert!(page.lines().any(|line| line.starts_with(serving)), "{page}");
    }

    async fn outgoing_requests_and_jobs_are_counted(app: TestApp) {
        app.paid_payment("order-1").await;
        let page = scrape(app).await;
        let sent = |sender: &str, outcome: &str| {
            metric_value(&page, &format!("tollhouse_egress_requests_total{{sender=\"{sender}\",outcome=\"{outcome}\"}}"))
        };
        assert_eq!((sent("provider_a", "2xx"), sent("events", "2xx")), (Some(2.0), Some(1.0)));
        let runs = |kind: &str, outcome: &str| {
            metric_value(&page, &format!("tollhouse_job_runs_total{{kind=\"{kind}\",outcome=\"{outcome}\"}}"))
        };
        assert_eq!((runs("charge.reconcile", "again"), runs("event.deliver", "done")), (Some(1.0), Some(1.0)));
        assert_eq!(metric_value(&page, r#"tollhouse_charge_checks_total{owner="payment",outcome="settled"}"#), Some(1.0));
        assert_eq!(metric_value(&page, r#"tollhouse_jobs_running{kind="charge.reconcile"}"#), Some(0.0));
    }

    async fn cache_lookups_of_plugins_are_counted_by_result(app: TestApp) {
        install_unruly(app).await;
        for n in 0..3 {
            initialize_with_narration(app, &format!("order-{n}"), "cached").await.data();
        }
        let page = scrape(app).await;
        let found = |result: &str| metric_value(&page, &format!("tollhouse_plugin_cache_lookups_total{{result=\"{result}\"}}"));
        assert_eq!((found("miss"), found("hit")), (Some(1.0), Some(2.0)));
    }

    async fn a_client_that_disconnects_is_counted_with_status_499(app: TestApp) {
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Slow).times(1).delay_ms(500));
        let begun = async { while app.get("/payment/list").await.data()["total"] != 1 {} };
        tokio::select! {
            _ = app.post("/payment/initialize", app.order("order-1")) => panic!("a response before the provider's"),
            () = begun => {}
        }
        let labels = r#"listener="public",method="POST",route="/api/v1/payment/initialize",status="499""#;
        let counted = async { while metric_value(&scrape(app).await, &format!("tollhouse_http_requests_total{{{labels}}}")) != Some(1.0) {} };
        tokio::time::timeout(Duration::from_secs(30), counted).await.expect("a request without a response");
    }

    async fn the_delay_of_a_job_is_measured(app: TestApp) {
        app.initialize("order-1").await;
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(100)); // it was due after 60
        app.run_until_idle().await;
        let page = poll_and_scrape(app).await;
        let of = |name: &str| metric_value(&page, &format!("tollhouse_job_{name}{{kind=\"charge.reconcile\"}}"));
        assert_eq!((of("lag_seconds_count"), of("lag_seconds_sum")), (Some(1.0), Some(40.0)));
        assert_eq!(of("duration_seconds_count"), Some(1.0));
        let again = r#"tollhouse_job_runs_total{kind="charge.reconcile",outcome="again"}"#;
        assert_eq!(metric_value(&page, again), Some(1.0));
        let now = app.app.clock.now().unix_seconds() as f64;
        assert_eq!(metric_value(&page, "tollhouse_store_polled_timestamp_seconds"), Some(now));
    }

    async fn backlogs_are_reported_with_their_age(app: TestApp) {
        app.initialize("order-1").await;
        app.advance(600).await;
        let payment = app.initialize("order-2").await;
        app.complete(&payment, "success").await;
        app.simulators.run_until_idle().await; // the webhook has arrived, and no job runs yet
        let page = poll_and_scrape(app).await;
        assert_eq!(metric_value(&page, "tollhouse_store_up"), Some(1.0));
        let due = |what: &str, label: &str| metric_value(&page, &format!("tollhouse_{what}{{{label}}}"));
        assert_eq!(due("jobs_due", r#"kind="charge.reconcile""#), Some(1.0));
        assert_eq!(due("jobs_due", r#"kind="event.deliver""#), Some(0.0));
        assert_eq!(due("payments_pending", r#"age="5m""#), Some(1.0));
        assert_eq!(due("payments_pending", r#"age="1h""#), Some(1.0));
        assert_eq!(due("payments_pending_oldest_seconds", r#"age="1h""#), Some(600.0));
        assert_eq!(due("payments_pending_oldest_seconds", r#"age="24h""#), Some(0.0));
        app.run_until_idle().await;
    }

    async fn charges_with_unknown_outcome_are_reported_with_their_age(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        create_loan(app, "loan-1", "ada", &[(2, 100.0)]).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "card" })).await.data();
        app.advance(600).await;
        let page = poll_and_scrape(app).await;
        let pending = |what: &str| metric_value(&page, &format!("tollhouse_charges_pending{what}"));
        assert_eq!(pending(r#"{channel="card"}"#), Some(1.0));
        assert_eq!(pending(r#"_oldest_seconds{channel="card"}"#), Some(600.0));
        assert_eq!(pending(r#"{channel="direct_debit"}"#), Some(0.0));
    }

    async fn a_failed_delivery_is_pending_as_attempted(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        app.simulators.faults().push(Fault::new("events", FaultKind::Error500).times(1));
        app.run_until_idle().await;
        let page = poll_and_scrape(app).await;
        let waits = |what: &str, attempted: &str| {
            metric_value(&page, &format!("tollhouse_event_deliveries_pending{what}{{attempted=\"{attempted}\"}}"))
        };
        assert_eq!((waits("", "no"), waits("", "yes")), (Some(0.0), Some(1.0)));
        app.advance(60).await;
        let page = poll_and_scrape(app).await;
        assert_eq!(metric_value(&page, r#"tollhouse_event_deliveries_pending{attempted="yes"}"#), Some(0.0));
        assert_eq!(metric_value(&page, r#"tollhouse_egress_requests_total{sender="events",outcome="5xx"}"#), Some(1.0));
    }

    async fn a_scrape_works_without_the_database(app: TestApp) {
        app.initialize("order-1").await;
        let page = poll_and_scrape(app).await;
        assert_eq!(metric_value(&page, "tollhouse_store_up"), Some(1.0));
        execute_sql(app, "ALTER TABLE event_deliveries RENAME TO elsewhere").await;
        let page = poll_and_scrape(app).await;
        assert_eq!(metric_value(&page, "tollhouse_store_up"), Some(0.0));
        assert_eq!(metric_value(&page, r#"tollhouse_payments_pending{age="5m"}"#), Some(1.0), "the last values stay");
        execute_sql(app, "ALTER TABLE elsewhere RENAME TO event_deliveries").await;
        let page = poll_and_scrape(app).await;
        assert_eq!(metric_value(&page, "tollhouse_store_up"), Some(1.0));
    }

    async fn alarms_are_counted(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        assert!(app.simulators.paystack().tamper("order-1", 100, "NGN"));
        app.run_until_idle().await;
        let page = scrape(app).await;
        assert_eq!(metric_value(&page, r#"tollhouse_alarms_total{alarm="amount mismatch"}"#), Some(1.0));
        assert_eq!(metric_value(&page, r#"tollhouse_charge_checks_total{owner="payment",outcome="mismatch"}"#), Some(1.0));
    }

    async fn the_metrics_are_on_the_internal_listener_only(app: TestApp) {
        let response = crate::app::reply(app.client.get(format!("{}/metrics", app.api))).await;
        assert_eq!(response.failure(), (404, "path not found"));
        let page = scrape(app).await;
        assert!(page.ends_with("# EOF\n"));
        assert_eq!(metric_value(&page, "process_start_time_seconds"), Some(1_795_251_600.0));
        assert_eq!(page.lines().filter(|line| line.starts_with("tollhouse_build_info{")).count(), 1);
    }
}

#[tokio::test]
async fn hosts_in_one_process_have_separate_metrics() {
    let one = TestApp::start(crate::app::Engine::Sqlite).await;
    let other = TestApp::start(crate::app::Engine::Sqlite).await;
    one.initialize("order-1").await;
    let calls = |page: String| {
        page.lines().filter(|l| l.starts_with("tollhouse_plugin_calls_total")).count()
    };
    assert_eq!((calls(scrape(&other).await), calls(scrape(&one).await) > 0), (0, true));
    one.finish().await;
    other.finish().await;
}
