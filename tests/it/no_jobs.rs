//! `--no-jobs`: a host on a restored copy of the database runs no due job and sends nothing.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle, time::timeout};
use tollhouse_app::{state::App, wiring};
use tollhouse_http as http;
use tollhouse_platform::{background::jobs, random::Random, store};

use crate::{
    app::{OPERATOR_TOKEN, Reply, TestApp, config, reply, smtp_flags},
    codes::{EMAIL, PHONE, use_gateways},
    identity::{self, BVN},
    lending::{SUCCESS_CARD, create_loan, create_user, saved_card},
    telemetry::metric_value,
};

const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A host with `--no-jobs` on the database of `app`, with its background tasks.
struct Copy {
    host: App,
    api: String,
    internal: String,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Copy {
    async fn of(app: &TestApp) -> Copy {
        let smtp = smtp_flags(&app.simulators);
        let flags: Vec<&str> = smtp.iter().map(String::as_str).chain(["--no-jobs"]).collect();
        let config = config(&app.database, &flags);
        let host = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
        let host = host.expect("a host that starts");
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (public, internal) = (bind().await, bind().await);
        let url = |tcp: &TcpListener| format!("http://{}", tcp.local_addr().expect("bound"));
        let (api, internal_url) = (url(&public), url(&internal));
        let (public, internal) = (http::Listener::plain(public), http::Listener::plain(internal));
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(wiring::serve(host.clone(), public, internal, stopped));
        Copy { host, api, internal: internal_url, stop, serving }
    }

    async fn request(&self, app: &TestApp, method: Method, path: &str, body: Value) -> Reply {
        let request = app.client.request(method, format!("{}/api/v1{path}", self.api));
        let request = request.bearer_auth(&app.company.key);
        if body.is_null() { reply(request).await } else { reply(request.json(&body)).await }
    }

    async fn metrics(&self, app: &TestApp) -> String {
        let page = app.client.get(format!("{}/metrics", self.internal)).send().await;
        page.expect("a response").text().await.expect("text")
    }

    /// Waits until its monitor has polled the database. Returns the metrics.
    async fn wait_for_poll(&self, app: &TestApp) -> String {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        let polled = async {
            loop {
                let page = self.metrics(app).await;
                if metric_value(&page, "tollhouse_store_polled_timestamp_seconds") > Some(0.0) {
                    return page;
                }
                looks.tick().await;
            }
        };
        timeout(STEP_TIMEOUT, polled).await.expect("a poll of the monitor")
    }

    async fn end(self) {
        self.stop.send_replace(true);
        timeout(STEP_TIMEOUT, self.serving).await.expect("an end").expect("no panic");
    }
}

/// Kind, subject and time of every job, and whether it is leased.
async fn all_jobs(app: &TestApp) -> Vec<(String, String, i64, bool)> {
    let all = app.app.store.read(async |tx| -> store::Result<_> {
        let sql =
            "SELECT kind, subject, run_at, lease IS NOT NULL FROM jobs ORDER BY kind, subject";
        tx.sql(sql).all().await
    });
    all.await.expect("the jobs")
}

/// Numbers of provider requests, events and messages that hosts have sent.
fn sent_counts(app: &TestApp) -> [usize; 3] {
    let requests = app.simulators.paystack().requests().len();
    [requests, app.simulators.events().len(), app.simulators.mailbox().list(None).len()]
}

fn charges(app: &TestApp) -> usize {
    let requests = app.simulators.paystack().requests();
    requests.iter().filter(|(_, path)| path == "/transaction/charge_authorization").count()
}

/// Creates due work: an event, an e-mail, an SMS, a charge and the check of a payment.
async fn create_due_work(app: &TestApp) {
    use_gateways(app, &["termii"]).await;
    create_user(app, "ada").await;
    saved_card(app, "ada", SUCCESS_CARD).await;
    create_loan(app, "loan-1", "ada", &[(1, 100.0), (40, 50.0)]).await;
    let paid = app.initialize("order-1").await;
    app.initialize("order-2").await;
    app.complete(&paid, "success").await;
    app.simulators.run_until_idle().await;
    app.post("/payment/verify/order-1", Value::Null).await.data();
    app.app.clock.advance_to(app.app.clock.now().plus_seconds(86_400));
    app.simulators.run_until_idle().await; // by now the provider has refunded the card and sent its webhook
    let code = json!({ "identifier": "ada", "channels": ["email", "sms"], "email": EMAIL, "phone": PHONE });
    assert_eq!(app.post("/otp/send", code).await.status, StatusCode::OK);
}

both! {
    async fn a_host_without_jobs_runs_no_due_job_and_sends_nothing(app: TestApp) {
        create_due_work(app).await;
        let (due, before) = (all_jobs(app).await, sent_counts(app));
        let kinds = ["charge.reconcile", "event.deliver", "loan.collect", "message.email", "message.sms"];
        for kind in kinds {
            let now = app.app.clock.now().0;
            assert!(due.iter().any(|(of, _, at, _)| of == kind && *at <= now), "{kind} in {due:?}");
        }

        let copy = Copy::of(app).await;
        let page = copy.wait_for_poll(app).await;
        assert_eq!(metric_value(&page, "tollhouse_jobs_enabled"), Some(0.0));
        assert_eq!(metric_value(&page, r#"tollhouse_jobs_due{kind="loan.collect"}"#), Some(1.0));
        let task = |name: &str| metric_value(&page, &format!("tollhouse_task_panics_total{{task=\"{name}\"}}"));
        assert_eq!([task("jobs"), task("sweeps")], [None, None], "a task that sends or deletes was started");
        assert_eq!(task("monitor"), Some(0.0));
        jobs::start_due(&copy.host).await.expect("no error");
        assert_eq!(jobs::run_due(&copy.host).await.expect("no error"), 0);
        let forward = app.client.post(format!("{}/internal/v1/clock/advance", copy.internal));
        let forward = reply(forward.bearer_auth(OPERATOR_TOKEN).json(&json!({ "seconds": 60 }))).await;
        assert_eq!(forward.failure(), (403, "a host with no_jobs cannot advance the clock"));
        copy.end().await;
        assert_eq!((all_jobs(app).await, sent_counts(app)), (due, before));

        // A host with jobs runs all of it.
        app.run_until_idle().await;
        let [requests, events, messages] = sent_counts(app);
        assert!(requests > before[0] && events > before[1], "{before:?}");
        assert_eq!((messages, charges(app)), (before[2] + 2, 1));
    }

    async fn a_host_without_jobs_serves_reads_and_queues_jobs_for_other_hosts(app: TestApp) {
        identity::set_up(app).await;
        create_due_work(app).await;
        let (before, copy) = (sent_counts(app), Copy::of(app).await);
        let ready = reply(app.client.get(format!("{}/health/ready", copy.api))).await;
        assert_eq!((ready.status, &ready.body["message"]), (StatusCode::OK, &json!("ready, without jobs")));
        let shown = copy.request(app, Method::GET, "/payment/fetch/reference/order-1", Value::Null).await;
        assert_eq!(shown.data()["status"], "success");

        let refused = (503, "this host runs with no_jobs and contacts no provider: use another host");
        let begun = copy.request(app, Method::POST, "/payment/initialize", app.order("order-3")).await;
        assert_eq!(begun.failure(), refused);
        let verified = copy.request(app, Method::POST, "/payment/verify/order-2", Value::Null).await;
        assert_eq!(verified.failure(), refused);
        let exported = copy.request(app, Method::GET, "/user/export", Value::Null).await;
        assert_eq!(exported.failure(), (503, "this host runs with no_jobs and cannot export users: use another host"));
        copy.request(app, Method::GET, "/user/sample-csv", Value::Null).await.data();
        let charge = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "card", "amount": 10 });
        copy.request(app, Method::POST, "/recollection/create", charge).await;
        let code = json!({ "identifier": "eve", "channels": ["email"], "email": EMAIL });
        let sent = copy.request(app, Method::POST, "/otp/send", code).await;
        assert_eq!(sent.status, StatusCode::OK, "{}", sent.body);
        let image = format!("{}/images/match-{BVN}.jpg", app.simulators.url());
        let face = json!({ "bvn": BVN, "image": image });
        let compared = copy.request(app, Method::POST, "/kyc/nigeria/bvn/lookup/with-face", face).await;
        assert_eq!(compared.failure(), (503, "this host runs with no_jobs and cannot fetch images: use another host"));
        copy.end().await;
        assert_eq!(sent_counts(app), before);

        app.run_until_idle().await;
        assert_eq!(sent_counts(app)[2], before[2] + 3);
        assert!(charges(app) > 0);
    }
}
