//! A host in a process of its own, whose every response and log line is kept.

use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_platform::clock::Clock;
use tollhouse_sandbox::Simulators;

use crate::{
    app::{Database, Engine, MASTER_KEY, OPERATOR_TOKEN, client, reply, smtp_flags},
    ports,
    telemetry::traces::Collector,
    unruly,
};

pub struct Lab {
    pub(super) database: Database,
    pub(super) simulators: Simulators,
    /// The clock of the simulators.
    pub(super) clock: Clock,
    pub(super) upstream: unruly::RecordingUpstream,
    pub(super) collector: Collector,
    pub(super) client: Client,
    pub(super) api: String,
    pub(super) internal: String,
    pub(super) process: Child,
    /// Values of the parameters in the paths of routes.
    pub(super) names: Mutex<BTreeMap<&'static str, String>>,
    /// Contents of the database while messages were queued.
    pub(super) at_rest: Mutex<Vec<String>>,
    /// Personal data that registers returned.
    pub(super) personal: Mutex<Vec<String>>,
    /// Routes, and their responses with headers.
    pub(super) responses: Mutex<Vec<(String, String)>>,
    /// The ids of all completed requests.
    pub(super) requests: Mutex<Vec<String>>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Lab {
    pub(super) async fn start(engine: Engine, log_format: &str) -> Lab {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (api, internal) =
            (ports::reserve_address().to_string(), ports::reserve_address().to_string());
        let database = Database::create(engine).await;
        let clock = Clock::system();
        let simulators = Simulators::start_seeded(bind().await, bind().await, clock.clone(), 1);
        let collector = Collector::start().await;
        let log = std::fs::File::create(database.dir.path().join("log")).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
        command
            .arg("serve")
            .env("TOLLHOUSE_DATABASE", &database.url)
            .arg(format!("--listen={api}"))
            .arg(format!("--internal-listen={internal}"))
            .arg(format!("--plugin-cache={}/plugin-cache", env!("CARGO_TARGET_TMPDIR")))
            .arg(format!("--files={}", database.dir.path().join("files").display()))
            .args([
                "--plugin-instances=20",
                "--plugin-call-timeout-s=2",
                "--plugin-unsigned",
                "--plugin-recording-retention-hours=100",
                "--api-log-days=3",
                "--development",
                "--portal",
            ])
            .arg(format!("--log-format={log_format}"))
            .args(smtp_flags(&simulators))
            .env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN)
            .env("TOLLHOUSE_MASTER_KEY", MASTER_KEY)
            .env("RUST_LOG", "debug,tollhouse=trace")
            .env("TOLLHOUSE_OTLP_ENDPOINT", &collector.url)
            .env("OTEL_BSP_SCHEDULE_DELAY", "100") // ms
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stderr(log);
        let mut lab = Lab {
            database,
            simulators,
            clock,
            upstream: unruly::RecordingUpstream::start().await,
            collector,
            client: client(),
            api: format!("http://{api}"),
            internal: format!("http://{internal}"),
            process: command.spawn().expect("the program starts"),
            names: Mutex::default(),
            at_rest: Mutex::default(),
            personal: Mutex::default(),
            responses: Mutex::default(),
            requests: Mutex::default(),
        };
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        let up = async {
            while lab.client.get(format!("{}/health/live", lab.api)).send().await.is_err() {
                // Another program may have used one of its ports briefly.
                if lab.process.try_wait().expect("a process of ours").is_some() {
                    lab.process = command.spawn().expect("the program starts");
                }
                looks.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), up).await.expect("a host that comes up");
        lab
    }

    pub(super) fn name(&self, name: &'static str, value: &Value) {
        let value = value.as_str().expect("a text").to_owned();
        self.names.lock().unwrap().insert(name, value);
    }

    pub(super) fn named(&self, name: &str) -> String {
        self.names.lock().unwrap()[name].clone()
    }

    /// Calls a route (`POST /api/v1/…/{name}`) with the required key, and keeps the response.
    pub(super) async fn send(&self, route: &str, body: impl Into<reqwest::Body>) -> Value {
        let (method, template) = route.split_once(' ').expect("a method and a path");
        let is_internal = template.starts_with("/internal");
        let names = self.names.lock().unwrap().clone();
        let fill = |path: String, (name, value): (&&str, &String)| {
            path.replace(&format!("{{{name}}}"), value)
        };
        let mut path = names.iter().fold(template.to_owned(), fill);
        if path == "/internal/v1/plugins" && method == "POST" {
            path.push_str("?grant=true");
        }
        let base = if is_internal { &self.internal } else { &self.api };
        let key =
            if is_internal { OPERATOR_TOKEN } else { names.get("api_key").map_or("", |key| key) };
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = self.client.request(method, format!("{base}{path}")).bearer_auth(key);
        // With an idempotency key, a request outlives its connection.
        let request = request.header("idempotency-key", self.client_key());
        let body = body.into();
        let request = match body.as_bytes() {
            Some([]) => request,
            Some([b'{', ..]) => request.header("content-type", "application/json").body(body),
            _ => request.body(body),
        };
        self.keep(route, request).await
    }

    /// Returns a new idempotency key.
    pub(super) fn client_key(&self) -> String {
        format!("request-{}", self.requests.lock().unwrap().len())
    }

    pub(super) async fn keep(&self, route: &str, request: reqwest::RequestBuilder) -> Value {
        let response = reply(request).await;
        let text = format!("{} {:?} {}", response.status, response.headers, response.body);
        let id = response.headers["x-request-id"].to_str().expect("a text").to_owned();
        self.requests.lock().unwrap().push(id);
        self.responses.lock().unwrap().push((route.to_owned(), text));
        response.body
    }

    pub(super) async fn call(&self, route: &str, body: Value) -> Value {
        let response = self.send(route, body.to_string()).await;
        assert_eq!(response["error"], false, "{route}: {response}");
        response["data"].clone()
    }

    /// Initializes a payment, which may fail.
    pub(super) async fn begin(&self, provider: &str, reference: &str, narration: &str) -> Value {
        let order = json!({
            "email": "ada.obi@example.com", "amount": 2500.5, "currency": "NGN", "reference": reference,
            "narration": narration, "payment_service": provider,
            "checkout": { "success_url": "https://lender.example/paid" },
        });
        self.send("POST /api/v1/payment/initialize", order.to_string()).await["data"].clone()
    }

    pub(super) async fn pay(&self, reference: &str) -> Value {
        let payment = self.begin("provider_a", reference, "").await;
        let url = payment["checkout"]["url"].as_str().expect("a checkout URL");
        let paid =
            self.client.post(format!("{url}/complete")).json(&json!({ "outcome": "success" }));
        assert!(paid.send().await.expect("a response").status().is_success());
        payment
    }

    pub(super) async fn settle(&self) {
        self.simulators.run_until_idle().await;
        self.call("POST /internal/v1/clock/advance", json!({ "seconds": 61 })).await;
    }
}
