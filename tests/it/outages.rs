//! Outages of the database, as clients, jobs and operators who read the log see them.

use std::{
    io::{self, Write},
    process::Command,
    sync::{Arc, Mutex},
};

use futures::future::join_all;
use reqwest::StatusCode;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use sqlx::Connection;
use sqlx_sqlite::SqliteConnection;
use tollhouse_platform::background::jobs;
use tracing::subscriber::DefaultGuard;

use crate::{
    app::{Database, Engine, OPERATOR_TOKEN, Reply, TestApp, postgres, reply},
    lending::create_user,
    process::Process,
    proxy::{Lost, Proxy},
    telemetry::{metric_value, scrape},
};

const CANNOT_WORK: (u16, &str) = (503, "the database is unavailable, try again later");
const UNKNOWN: (u16, &str) = (500, "outcome unknown: check the current state before you retry");

#[track_caller]
fn check_unavailable(response: &Reply) {
    assert_eq!(response.failure(), CANNOT_WORK);
    assert_eq!(response.headers["retry-after"], "5");
}

/// Captures the log of this test's thread until it is dropped.
struct Log {
    bytes: Arc<Mutex<Vec<u8>>>,
    _guard: DefaultGuard,
}

struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn start() -> Log {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let sink = bytes.clone();
        let lines = tracing_subscriber::fmt().with_ansi(false);
        let lines = lines.with_writer(move || Sink(sink.clone())).finish();
        Log { bytes, _guard: tracing::subscriber::set_default(lines) }
    }

    /// Lines of failed requests, at least one.
    #[track_caller]
    fn failures(&self) -> Vec<String> {
        let all = String::from_utf8(self.bytes.lock().unwrap().clone()).expect("text");
        let lines = all.lines().filter(|line| line.contains("request failed"));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        assert!(!lines.is_empty(), "{all}");
        lines
    }
}

// ---- PostgreSQL ---------------------------------------------------------------------------------

/// A host whose connections to the database can be cut.
async fn start_behind_proxy(flags: &[&str]) -> Option<(TestApp, Proxy)> {
    let mut database = Database::create(Engine::Postgres(postgres()?)).await;
    let proxy = Proxy::start(&database.url).await;
    database.url = proxy.url.clone();
    Some((TestApp::start_on(database, flags).await, proxy))
}

#[tokio::test]
async fn an_unreachable_server_causes_503_and_a_log_line_that_says_what_to_check() {
    let flags = ["--database-acquire-timeout-ms=500"];
    let Some((app, proxy)) = start_behind_proxy(&flags).await else { return };
    app.get("/payment/list").await.data();
    let log = Log::start();
    proxy.set_available(false);
    // More than the pool has connections.
    for response in join_all((0..20).map(|_| app.get("/payment/list"))).await {
        check_unavailable(&response);
    }
    check_unavailable(&app.post("/payment/initialize", app.order("order-1")).await);
    for line in log.failures() {
        assert!(line.contains("check that it is running"), "{line}");
        assert!(line.contains("alarm=\"database\""), "{line}");
    }
    let ready = reply(app.client.get(format!("{}/health/ready", app.api))).await;
    assert_eq!(ready.failure(), (503, "the database does not respond"));
    let page = scrape(&app).await;
    let errors = metric_value(&page, r#"tollhouse_store_errors_total{operation="read"}"#);
    assert_eq!(errors, Some(22.0), "reads of these requests and of the readiness check");

    proxy.set_available(true);
    assert_eq!(app.get("/payment/list").await.data()["total"], 0);
    let retries = async || {
        let page = scrape(&app).await;
        metric_value(&page, r#"tollhouse_store_retries_total{operation="write"}"#).expect("a count")
    };
    let before = retries().await; // the update of the key's last use may have been in progress
    proxy.cut_next("BEGIN\0");
    create_user(&app, "ada").await;
    assert_eq!(retries().await - before, 1.0);
    // Deferred statements are a transaction of their own, which may have been committed.
    proxy.cut_next("INSERT INTO payments");
    let lost = app.post("/payment/initialize", app.order("order-1")).await;
    assert_eq!(lost.failure(), UNKNOWN);
    app.initialize("order-1").await;
    app.finish().await;
}

#[tokio::test]
async fn a_job_whose_commit_got_no_response_is_neither_lost_nor_run_twice() {
    let Some((app, proxy)) = start_behind_proxy(&[]).await else { return };
    let mut paid = 0;
    for lost in [Lost::Request, Lost::Response] {
        for passes in 0.. {
            let reference = format!("order-{lost:?}-{passes}");
            let payment = app.initialize(&reference).await;
            app.complete(&payment, "success").await;
            app.simulators.run_until_idle().await; // the webhook has arrived, and no job runs yet
            let cuts = proxy.cuts();
            proxy.cut("COMMIT\0", passes, lost);
            let _ = jobs::run_due(&app.app).await; // its error is only logged
            let was_cut = proxy.cuts() > cuts;
            proxy.cancel_cut();
            // Until leases have expired and failures have been retried.
            app.advance(150).await;
            paid += 1;
            assert_eq!(app.fetch(&reference).await["status"], "success", "{reference}");
            let balance = app.wallet().await["balance"].as_f64().expect("an amount");
            assert_eq!((balance * 100.0).round(), 236_299.0 * f64::from(paid), "{reference}");
            let events = app.events();
            assert!(
                events.iter().all(|event| event == "payment.success"),
                "{reference}: {events:?}"
            );
            assert_eq!(stored_events(&app).await, paid, "{reference}");
            if !was_cut {
                assert!(passes >= 3, "the claim, the verification and the end of the job");
                break;
            }
        }
    }
    app.finish().await;
}

async fn stored_events(app: &TestApp) -> i32 {
    let path = format!("/companies/{}/events", app.company.id);
    let events = app.operator(reqwest::Method::GET, &path, Value::Null).await;
    events.data()["total"].to_string().parse().expect("a number")
}

// ---- SQLite -------------------------------------------------------------------------------------

#[tokio::test]
async fn a_file_locked_by_another_process_causes_503_and_a_log_line_that_says_so() {
    let app = TestApp::start_with(Engine::Sqlite, &["--database-acquire-timeout-ms=300"]).await;
    app.get("/payment/list").await.data();
    app.app.tasks.wait_until_idle().await;
    let log = Log::start();
    let mut other = SqliteConnection::connect(&app.database.url).await.expect("a connection");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock");
    let orders = (0..5).map(|n| app.order(&format!("order-{n}")));
    for response in join_all(orders.map(|order| app.post("/payment/initialize", order))).await {
        check_unavailable(&response);
    }
    let lines = log.failures();
    assert!(lines.iter().all(|line| line.contains("another process")), "{lines:?}");
    assert_eq!(app.get("/payment/list").await.data()["total"], 0); // reads still work

    let groups = async |app: &TestApp| {
        let page = scrape(app).await;
        let counted = |name: &str| metric_value(&page, &format!("tollhouse_store_{name}"));
        (counted("group_size_count"), counted("errors_total{operation=\"write\"}"))
    };
    let (before, failed) = groups(&app).await;
    assert_eq!(failed, Some(5.0));
    sqlx::query("ROLLBACK").execute(&mut other).await.expect("no lock");
    app.initialize("order-1").await;
    assert!(groups(&app).await.0 > before);
    assert_eq!(app.get("/payment/list").await.data()["total"], 1);
    app.finish().await;
}

/// A host in a process of its own, whose file size can be limited.
struct Host {
    process: Process,
    database: Database,
}

impl Host {
    async fn start() -> Host {
        let database = Database::create(Engine::Sqlite).await;
        let log = std::fs::File::create(database.dir.path().join("log")).expect("a file");
        // So that a write beyond the limit is an error instead of a signal.
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_tollhouse")])
            .stderr(log);
        Host { process: Process::serve(command, &database, &[]).await, database }
    }

    /// Limits the size of the host's files in bytes; `None` removes the limit.
    fn limit_files(&self, most: Option<u64>) {
        let limit = Rlimit { current: most, maximum: None };
        prlimit(Some(Pid::from_child(&self.process.child)), Resource::Fsize, limit)
            .expect("our process");
    }

    async fn create_company(&self, name: &str) -> Reply {
        let Process { client, internal, .. } = &self.process;
        let request = client.post(format!("{internal}/internal/v1/companies"));
        let body = json!({ "name": name, "server": "test" });
        reply(request.bearer_auth(OPERATOR_TOKEN).json(&body)).await
    }

    async fn companies(&self) -> Vec<Value> {
        let Process { client, internal, .. } = &self.process;
        let request = client.get(format!("{internal}/internal/v1/companies"));
        let response = reply(request.bearer_auth(OPERATOR_TOKEN)).await;
        let companies = response.data()["docs"].as_array().expect("a list").iter();
        companies.map(|company| company["name"].clone()).collect()
    }
}

#[tokio::test]
async fn a_commit_that_fails_on_disk_is_reported_as_unknown_and_the_host_keeps_working() {
    let host = Host::start().await;
    host.create_company("before").await.data();
    // Less than the pages of one transaction, and more than the size of the log.
    host.limit_files(Some(8_192));
    let unknown = host.create_company("meanwhile").await;
    assert_eq!(unknown.failure(), UNKNOWN);
    assert!(!unknown.headers.contains_key("retry-after"), "a blind retry must not be suggested");
    assert_eq!(unknown.status, StatusCode::INTERNAL_SERVER_ERROR);
    let log = std::fs::read_to_string(host.database.dir.path().join("log")).expect("the log");
    let line = log.lines().find(|line| line.contains("the response to COMMIT is missing"));
    assert!(line.is_some_and(|line| line.contains("alarm=\"database\"")), "{log}");

    host.limit_files(None);
    host.create_company("after").await.data();
    let companies = host.companies().await;
    let here = |name: &str| companies.iter().any(|company| company == name);
    assert!(here("before") && here("after"), "{companies:?}");
    host.database.drop().await;
}
