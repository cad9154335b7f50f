//! Bulkheads, circuit breakers and quarantine: a failing plugin affects no other plugin, and its
//! callers receive `Retry-After`.

use futures::future::join_all;
use reqwest::{Method, header::RETRY_AFTER};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_platform::clock::Timestamp;
use tollhouse_plugins::Credentials;

use crate::{
    app::{Company, Engine, Reply, TestApp, postgres},
    fleet::another_host,
    plugins::try_install,
    ports,
    sprout::repack,
    telemetry::scrape,
    unruly::{
        RecordingUpstream, failure_reason, initialize_with_narration, install_unruly, set_account,
    },
};

const BUSY: (u16, &str) = (503, "unruly is unavailable, please try again later");
const BROKEN: (u16, &str) = (502, "unruly is unavailable, please try again later");

/// Returns the value of `Retry-After`.
fn retry_after(reply: &Reply) -> Option<&str> {
    Some(reply.headers.get(RETRY_AFTER)?.to_str().expect("a number"))
}

/// Initializes `times` payments, which must all have the same result; returns the last response.
pub async fn initialize_repeatedly(
    app: &TestApp,
    name: &str,
    times: usize,
    narration: &str,
) -> Reply {
    initialize_repeatedly_as(app, &app.company, name, times, narration).await
}

async fn initialize_repeatedly_as(
    app: &TestApp,
    company: &Company,
    name: &str,
    times: usize,
    narration: &str,
) -> Reply {
    let mut last: Option<Reply> = None;
    for n in 0..times {
        let mut order = app.order(&format!("{name}-{n}"));
        (order["payment_service"], order["narration"]) = (json!("unruly"), json!(narration));
        let reply = app.request(company, Method::POST, "/payment/initialize", Some(order)).await;
        if let Some(last) = last {
            assert_eq!((reply.status, &reply.body["error"]), (last.status, &last.body["error"]));
        }
        last = Some(reply);
    }
    last.expect("called at least once")
}

async fn versions(app: &TestApp) -> Vec<Value> {
    let versions = app.operator(Method::GET, "/plugins/unruly", Value::Null).await;
    versions.data().as_array().expect("a list").clone()
}

/// Advances the clock without running jobs.
fn advance_clock(app: &TestApp, ms: i64) {
    app.app.clock.advance_to(Timestamp(app.app.clock.now().0 + ms));
}

/// A URL that refuses connections.
pub fn unreachable_url() -> String {
    format!("http://{}", ports::reserve_address())
}

async fn on_both(flags: &[&str], test: impl AsyncFn(&TestApp)) {
    let engines = [Some(Engine::Sqlite), postgres().map(Engine::Postgres)];
    for engine in engines.into_iter().flatten() {
        let app = TestApp::start_with(engine, flags).await;
        test(&app).await;
        app.finish().await;
    }
}

/// Returns the number of the plugin's calls in flight, from the metrics.
async fn calls_in_flight(app: &TestApp) -> f64 {
    let page = scrape(app).await;
    let series = "tollhouse_plugin_calls_in_flight{plugin=\"unruly\"";
    let line = page.lines().find(|line| line.starts_with(series)).expect("a series");
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

// ---- bulkheads ----------------------------------------------------------------------------------

#[tokio::test]
async fn calls_beyond_the_half_of_a_company_get_503_and_others_are_unaffected() {
    on_both(&["--plugin-max-calls=5", "--plugin-call-timeout-s=2"], async |app| {
        let upstream = install_unruly(app).await;
        let neighbour = app.new_company("Beta Lending").await;
        let slow = join_all(
            (0..10)
                .map(async |n| initialize_with_narration(app, &format!("slow-{n}"), "wait").await),
        );
        let other = async {
            while upstream.received().len() < 3 {
                tokio::task::yield_now().await;
            }
            assert_eq!(calls_in_flight(app).await, 3.0);
            initialize_repeatedly_as(app, &neighbour, "neighbour", 1, "").await.data();
            app.initialize("beside").await
        };
        let (slow, other) = tokio::join!(slow, other);
        assert!(other["checkout"]["url"].is_string());
        assert_eq!(calls_in_flight(app).await, 0.0);
        let (busy, late): (Vec<_>, Vec<_>) = slow.iter().partition(|reply| reply.status == 503);
        assert_eq!((busy.len(), late.len(), upstream.received().len()), (7, 3, 3));
        for reply in busy {
            assert_eq!((reply.failure(), retry_after(reply)), (BUSY, Some("1")));
        }
        assert_eq!(initialize_with_narration(app, "afterwards", "").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn versions_of_one_plugin_share_its_call_limit() {
    on_both(&["--plugin-max-calls=3", "--plugin-call-timeout-s=5"], async |app| {
        install_unruly(app).await;
        let next = repack(artifacts::UNRULY, |manifest| manifest["version"] = json!("1.1.0"));
        let next = try_install(app, next, "activate=false").await.data()["digest"].clone();
        let half = json!({ "digest": next, "companies": [app.company.id] });
        app.operator(Method::POST, "/plugins/unruly/canary", half).await.data();
        let other = app.new_company("Beta Lending").await;
        let slow = (0..5)
            .map(async |n| initialize_with_narration(app, &format!("canary-{n}"), "wait").await);
        let more = (0..5).map(async |n| {
            initialize_repeatedly_as(app, &other, &format!("active-{n}"), 1, "wait").await
        });
        let (slow, more) = tokio::join!(join_all(slow), join_all(more));
        let busy = slow.iter().chain(&more).filter(|reply| reply.failure() == BUSY).count();
        assert_eq!(busy, 7, "both versions share three calls in flight");
    })
    .await;
}

#[tokio::test]
async fn call_queued_too_long_for_an_instance_gets_503_with_retry_after() {
    let flags = ["--plugin-instances=2", "--plugin-cpu-ms=1500", "--plugin-call-timeout-s=2"];
    on_both(&flags, async |app| {
        install_unruly(app).await;
        let loops = join_all(
            (0..12)
                .map(async |n| initialize_with_narration(app, &format!("loop-{n}"), "loop").await),
        );
        let loops = loops.await;
        // One call at a time uses up its CPU budget; the others wait for half of the call timeout.
        let busy = |reply: &&Reply| reply.failure() == BUSY && retry_after(reply) == Some("1");
        assert!(loops.iter().filter(busy).count() > 0, "{loops:?}");
    })
    .await;
}

#[tokio::test]
async fn instances_of_one_plugin_share_its_memory_budget() {
    on_both(&["--plugin-memory-mib=64", "--plugin-total-memory-mib=16"], async |app| {
        install_unruly(app).await;
        let greedy =
            join_all((0..8).map(async |n| {
                initialize_with_narration(app, &format!("greedy-{n}"), "grow").await
            }));
        let (greedy, other) = tokio::join!(greedy, app.initialize("beside"));
        // A call that needs more than the whole budget fails; the others find too little left.
        let starved = |reply: &&Reply| reply.failure() == BUSY && retry_after(reply) == Some("1");
        let broken = greedy.iter().filter(|reply| reply.failure() == BROKEN).count();
        assert_eq!(greedy.iter().filter(starved).count() + broken, 8, "{greedy:?}");
        assert!(other["checkout"]["url"].is_string());
        assert_eq!(
            initialize_with_narration(app, "afterwards", "").await.status,
            200,
            "all memory was released"
        );
    })
    .await;
}

#[tokio::test]
async fn a_call_that_finds_the_memory_budget_exhausted_causes_no_quarantine() {
    on_both(&["--plugin-memory-mib=64", "--plugin-total-memory-mib=40"], async |app| {
        let upstream = install_unruly(app).await;
        for round in 0..5 {
            let many = (0..8).map(async |n| {
                initialize_with_narration(app, &format!("r{round}-{n}"), "hold 12").await
            });
            let many = join_all(many).await;
            let ended = |reply: &Reply| reply.status == 200 || reply.failure() == BUSY;
            assert!(many.iter().all(ended), "{many:?}");
            assert!(many.iter().any(|reply| reply.status == 200), "{many:?}");
        }
        assert_eq!(
            initialize_with_narration(app, "afterwards", "").await.status,
            200,
            "the plugin is not in quarantine"
        );
        assert!(!upstream.received().is_empty());
    })
    .await;
}

// ---- upstreams ----------------------------------------------------------------------------------

both! {
    async fn a_circuit_of_an_unresponsive_upstream_opens_for_one_account_only(app: TestApp) {
        let upstream = install_unruly(app).await;
        let own = format!("/companies/{}/providers/unruly", app.company.id);
        set_account(app, &own, &unreachable_url()).await;
        assert_eq!(initialize_repeatedly(app, "down", 16, "many 1").await.failure(), BROKEN);
        let refused = initialize_with_narration(app, "left-alone", "many 1").await;
        assert_eq!((refused.failure(), retry_after(&refused)), (BUSY, Some("5")));
        let other = app.new_company("Beta Lending").await;
        initialize_repeatedly_as(app, &other, "other", 1, "many 1").await.data();
        assert_eq!(upstream.received().len(), 1, "the service account is unaffected");

        advance_clock(app, 5_000);
        assert_eq!(initialize_with_narration(app, "probe", "many 1").await.failure(), BROKEN);
        let refused = initialize_with_narration(app, "left-alone-again", "many 1").await;
        assert_eq!((refused.failure(), retry_after(&refused)), (BUSY, Some("10")));
        set_account(app, &own, &upstream.url).await;
        assert_eq!(initialize_with_narration(app, "another-upstream", "many 1").await.status, 200);
    }

    async fn a_circuit_closes_when_the_upstream_responds_again(app: TestApp) {
        let address = ports::reserve_address();
        install_unruly(app).await;
        set_account(app, "/providers/unruly", &format!("http://{address}")).await;
        initialize_repeatedly(app, "down", 16, "many 1").await;
        assert_eq!(initialize_with_narration(app, "left-alone", "many 1").await.failure(), BUSY);
        let up = axum::Router::new().fallback(async || "{}");
        let listener = TcpListener::bind(address).await.expect("a reserved port");
        tokio::spawn(axum::serve(listener, up).into_future());
        assert_eq!(initialize_with_narration(app, "still-left-alone", "many 1").await.failure(), BUSY);
        advance_clock(app, 5_000);
        assert_eq!(initialize_repeatedly(app, "up", 3, "many 1").await.status, 200);
    }

// ---- quarantine ---------------------------------------------------------------------------------

    async fn a_plugin_that_fails_repeatedly_for_two_companies_is_quarantined(app: TestApp) {
        install_unruly(app).await;
        let (host, _, stop) = another_host(app).await;
        assert_eq!(initialize_repeatedly(app, "panic", 15, "panic").await.failure(), BROKEN);
        assert_eq!(initialize_with_narration(app, "well", "").await.status, 200);
        assert_eq!(initialize_with_narration(app, "panic", "panic").await.failure(), BROKEN);
        let other = app.new_company("Beta Lending").await;
        assert_eq!(initialize_repeatedly_as(app, &other, "well", 1, "").await.status, 200, "one company causes no quarantine");
        assert_eq!(initialize_repeatedly_as(app, &other, "panic", 16, "panic").await.failure(), BROKEN);
        let refused = initialize_with_narration(app, "quarantined", "").await;
        assert_eq!((refused.failure(), retry_after(&refused)), (BUSY, Some("60")));
        assert!(app.initialize("beside").await["checkout"]["url"].is_string());

        app.app.plugins.sync_once(&app.app.store).await.unwrap();
        let [version] = &versions(app).await[..] else { panic!("one version") };
        assert!(version["quarantined_at"].is_string() && version["state"] == "active", "{version}");
        host.plugins.sync_once(&host.store).await.unwrap();
        let there = host.plugins.provider("unruly", &app.company.id).unwrap();
        let error = there.verify(&Credentials::default(), "x").await.unwrap_err();
        assert_eq!(error.fault.code, "quarantined");
        stop.send_replace(true);

        app.operator(Method::POST, "/plugins/unruly/activate", json!({ "digest": version["digest"] })).await.data();
        assert_eq!(versions(app).await[0]["quarantined_at"], Value::Null);
        assert_eq!(initialize_with_narration(app, "again", "").await.status, 200);
    }

    async fn failures_of_one_company_do_not_block_a_plugin_for_others(app: TestApp) {
        let upstream = install_unruly(app).await;
        let other = app.new_company("Beta Lending").await;
        initialize_repeatedly(app, "panic", 16, "panic").await;
        let refused = initialize_with_narration(app, "well", "").await;
        assert_eq!((refused.failure(), retry_after(&refused)), (BUSY, Some("5")));
        assert_eq!(initialize_repeatedly_as(app, &other, "well", 1, "").await.status, 200);
        advance_clock(app, 5_000);
        assert_eq!(initialize_repeatedly(app, "probe", 2, "").await.status, 200);
        drop(upstream);
    }

    async fn failures_of_unauthenticated_webhooks_do_not_block_a_plugin(app: TestApp) {
        let upstream = RecordingUpstream::start().await;
        app.install(artifacts::UNRULY).await;
        // The company's own account, so that failures would count for the company.
        let own = format!("/companies/{}/providers/unruly", app.company.id);
        let url = set_account(app, &own, &upstream.url).await;
        for _ in 0..40 {
            app.client.post(&url).body("panic").send().await.unwrap();
        }
        assert_eq!(initialize_with_narration(app, "well", "").await.status, 200);
    }

    async fn calls_of_a_quarantined_canary_go_to_the_active_version(app: TestApp) {
        install_unruly(app).await;
        let next = repack(artifacts::UNRULY, |manifest| manifest["version"] = json!("1.1.0"));
        let next = try_install(app, next, "activate=false").await.data()["digest"].clone();
        let all = json!({ "digest": next, "percent": 100 });
        app.operator(Method::POST, "/plugins/unruly/canary", all).await.data();
        initialize_repeatedly(app, "panic", 16, "panic").await;
        assert_eq!(initialize_with_narration(app, "well", "").await.status, 200);
        let other = app.new_company("Beta Lending").await;
        initialize_repeatedly_as(app, &other, "panic", 16, "panic").await;
        app.app.plugins.sync_once(&app.app.store).await.unwrap();
        let quarantined = versions(app).await.into_iter().filter(|v| v["quarantined_at"].is_string());
        let quarantined: Vec<_> = quarantined.map(|v| v["digest"].clone()).collect();
        assert_eq!(quarantined, [next]);
        assert_eq!(initialize_with_narration(app, "well-again", "").await.status, 200);
    }

    async fn upstream_failures_do_not_quarantine_a_plugin(app: TestApp) {
        install_unruly(app).await;
        set_account(app, "/providers/unruly", &unreachable_url()).await;
        assert_eq!(initialize_repeatedly(app, "down", 16, "many 1").await.failure(), BROKEN);
        assert_eq!(initialize_repeatedly(app, "still-down", 24, "many 1").await.failure(), BUSY);
        assert_eq!(initialize_with_narration(app, "needs-no-upstream", "").await.status, 200);
    }

    async fn the_backtrace_of_a_trap_is_shown_to_operators_and_not_to_callers(app: TestApp) {
        install_unruly(app).await;
        let reason = failure_reason(app, "panic").await;
        assert!(reason.starts_with("the plugin trapped: wasm trap: "), "{reason}");
        assert!(reason.contains(" in ") && reason.contains("unruly::"), "names of functions: {reason}");
        assert_eq!(initialize_with_narration(app, "panic", "panic").await.failure(), BROKEN);
    }
}
