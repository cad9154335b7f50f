//! Jobs that fail each time, or stop their host: listed for operators, parked where that is safe,
//! and retried by operators.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::{operations::monitor::Monitor, webhooks::outgoing};
use tollhouse_platform::{
    background::jobs,
    store::{self, Tx},
    values::id::CompanyId,
};

use crate::{
    app::TestApp,
    fairness::{Host, KIND, MONEY_KIND, POISON, delete_jobs},
    telemetry::metric_value,
};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

async fn enqueue(app: &TestApp, kind: &'static str, subject: &'static str) {
    let (company, now) = (CompanyId::from("acme"), app.app.clock.now());
    let enqueued = app.app.store.write(async move |tx| -> store::Result<()> {
        jobs::enqueue(tx, &company, kind, subject, now).await
    });
    enqueued.await.expect("an enqueued job");
}

/// Returns the failing jobs, as operators see them.
async fn failing(app: &TestApp) -> Vec<Value> {
    let list = app.operator(Method::GET, "/jobs", Value::Null).await;
    list.data()["docs"].as_array().expect("a list").clone()
}

async fn retry(app: &TestApp, body: Value) -> Value {
    app.operator(Method::POST, "/jobs/retry", body).await.data()["jobs"].clone()
}

async fn gauge(app: &TestApp, name: &str, kind: &str) -> Option<f64> {
    Monitor::default().poll(&app.app).await;
    let page = app.app.server.telemetry.scrape();
    metric_value(&page, &format!("tollhouse_{name}{{kind=\"{kind}\"}}"))
}

/// Ends the leases of a job, as if its host had stopped.
async fn stop_host(app: &TestApp, kind: &'static str) {
    let now = app.app.clock.now();
    let stop = async move |tx: &mut Tx| -> store::Result<u64> {
        let sql = "UPDATE jobs SET lease = 'of a host that died', run_at = $1 WHERE kind = $2";
        tx.sql(sql).bind(now).bind(kind).run().await
    };
    assert_eq!(app.app.store.write(stop).await.expect("a statement"), 1);
}

both! {
    async fn a_job_that_fails_for_a_day_is_listed_and_parked_only_if_its_kind_permits(app: TestApp) {
        let host = Host::new(app);
        for kind in [KIND, MONEY_KIND] {
            enqueue(app, kind, POISON).await;
        }
        jobs::advance(&host, 60).await.expect("jobs that run");
        assert!(failing(app).await.is_empty());
        jobs::advance(&host, 2 * HOUR).await.expect("jobs that run");
        let listed = failing(app).await;
        assert_eq!(listed.len(), 2);
        for job in listed {
            assert_eq!((&job["company"], &job["subject"]), (&json!("acme"), &json!(POISON)));
            assert_eq!((&job["parked_at"], &job["error"]), (&Value::Null, &json!("internal error: bad data")));
            assert!(job["next_run_at"].is_string() && job["failures"].as_i64() >= Some(10), "{job}");
        }
        jobs::advance(&host, 2 * DAY).await.expect("jobs that run");
        host.take_runs();
        // Enqueueing it again does not release it.
        enqueue(app, KIND, POISON).await;
        jobs::advance(&host, DAY).await.expect("jobs that run");
        assert_eq!(host.take_runs(), 48); // of the kind that is never parked, every 30 minutes
        let of_kind = async |kind: &str| failing(app).await.into_iter().find(|job| job["kind"] == kind).expect("a job");
        let parked = of_kind(KIND).await;
        assert_eq!((&parked["failures"], &parked["next_run_at"]), (&json!(50), &Value::Null));
        assert!(parked["parked_at"].is_string());
        assert_eq!(of_kind(MONEY_KIND).await["parked_at"], Value::Null);

        assert_eq!(retry(app, json!({ "kind": KIND })).await, 1);
        jobs::advance(&host, 0).await.expect("jobs that run");
        assert_eq!((host.take_runs(), &of_kind(KIND).await["failures"]), (1, &json!(51)));
        for kind in [KIND, MONEY_KIND] {
            delete_jobs(app, kind).await;
        }
    }

    async fn a_job_during_whose_runs_the_host_stops_is_parked_whatever_its_kind(app: TestApp) {
        let host = Host::new(app);
        for kind in [KIND, MONEY_KIND] {
            enqueue(app, kind, "job").await;
            for _ in 0..5 {
                assert_eq!(host.start().await.len(), 1);
                stop_host(app, kind).await;
                host.end().await;
            }
            assert_eq!(host.start().await.len(), 0);
            jobs::wait_until_idle(&host).await;
            enqueue(app, kind, "job").await;
            assert_eq!(host.start().await.len(), 0);
            let listed = failing(app).await;
            assert_eq!((listed.len(), &listed[0]["kind"]), (1, &json!(kind)));
            assert!(listed[0]["parked_at"].is_string(), "{listed:?}");

            let (other, this) = (json!({ "subject": "other" }), json!({ "company": "acme", "kind": kind, "subject": "job" }));
            assert_eq!((retry(app, other).await, retry(app, this).await), (json!(0), json!(1)));
            assert_eq!(host.start().await.len(), 1);
            host.end().await;
            // It was enqueued again while it was parked.
            assert!(failing(app).await.is_empty());
            delete_jobs(app, kind).await;
        }
    }

    async fn a_parked_delivery_is_reported_and_sent_when_an_operator_retries_it(app: TestApp) {
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        let read = async |tx: &mut Tx| tx.sql("SELECT event_secret FROM companies").value().await;
        let secret: store::Result<String> = app.app.store.read(read).await;
        set_event_secret(app, "damaged".to_owned()).await;
        app.advance(2 * DAY).await;
        assert!(app.events().is_empty());
        let kind = outgoing::DELIVER_JOB;
        assert_eq!(gauge(app, "jobs_failing", kind).await, Some(1.0));
        assert_eq!(gauge(app, "jobs_parked", kind).await, Some(1.0));
        set_event_secret(app, secret.expect("a secret")).await;
        app.advance(DAY).await;
        assert!(app.events().is_empty());
        assert_eq!(retry(app, json!({})).await, 1);
        app.run_until_idle().await;
        assert_eq!(app.events(), ["payment.success"]);
        assert_eq!(gauge(app, "jobs_parked", kind).await, Some(0.0));
        assert_eq!(failing(app).await, [Value::Null; 0]);
    }
}

async fn set_event_secret(app: &TestApp, sealed: String) {
    let set = async move |tx: &mut Tx| -> store::Result<()> {
        tx.sql("UPDATE companies SET event_secret = $1").bind(sealed).execute().await
    };
    app.app.store.write(set).await.expect("a statement");
}
