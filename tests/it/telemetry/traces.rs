//! Traces that a collector receives from a host in a process of its own.

use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, any_value::Value as Any},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_platform::clock::Clock;
use tollhouse_sandbox::{Fault, FaultKind, Simulators};

use crate::{
    app::{Database, Engine, OPERATOR_TOKEN, PAYSTACK_KEY, reply},
    process::Process,
    unruly::{RecordingUpstream, SECRET},
};

/// A collector that stores the traces it receives.
#[derive(Clone, Default)]
pub struct Collector {
    pub url: String,
    received: Arc<Mutex<Vec<Bytes>>>,
}

impl Collector {
    pub async fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let collector = Collector { url, ..Collector::default() };
        let keep = async |State(collector): State<Collector>, body: Bytes| {
            collector.received.lock().unwrap().push(body);
        };
        let router = Router::new().route("/v1/traces", post(keep)).with_state(collector.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        collector
    }

    /// All received data, undecoded.
    pub fn text(&self) -> String {
        let got = self.received.lock().unwrap();
        got.iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
    }

    /// Waits for a span of that name.
    pub async fn wait_for_span(&self, name: &str) {
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        let here = async {
            while !self.spans().iter().any(|span| span.name == name) {
                looks.tick().await;
            }
        };
        let here = tokio::time::timeout(Duration::from_secs(30), here).await;
        here.unwrap_or_else(|_| panic!("no span {name} has arrived"));
    }

    fn spans(&self) -> Vec<Span> {
        let got = self.received.lock().unwrap();
        let requests =
            got.iter().map(|body| ExportTraceServiceRequest::decode(body.clone()).unwrap());
        let resources = requests.flat_map(|request| request.resource_spans);
        let resources = resources.inspect(|resource| {
            let attributes = &resource.resource.as_ref().expect("a resource").attributes;
            let name = attributes.iter().find(|attribute| attribute.key == "service.name");
            assert_eq!(text(name.and_then(|name| name.value.as_ref())), "tollhouse");
        });
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    text(found.and_then(|attribute| attribute.value.as_ref()))
}

/// Returns the only child of `parent` with this name.
#[track_caller]
fn child<'s>(spans: &'s [Span], parent: &Span, name: &str) -> &'s Span {
    let found: Vec<&Span> = spans
        .iter()
        .filter(|span| span.parent_span_id == parent.span_id && span.name == name)
        .collect();
    let names: Vec<&str> = spans
        .iter()
        .filter(|span| span.parent_span_id == parent.span_id)
        .map(|span| &*span.name)
        .collect();
    assert_eq!(found.len(), 1, "{name} below {}, which has {names:?}", parent.name);
    assert_eq!(found[0].trace_id, parent.trace_id);
    found[0]
}

#[track_caller]
fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}"))
}

/// A host in a process of its own, whose spans go to `otlp`.
struct Host {
    process: Process,
    _database: Database,
    simulators: Simulators,
}

impl Host {
    async fn start(otlp: &str, flags: &[&str]) -> Host {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let database = Database::create(Engine::Sqlite).await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
        command.env("TOLLHOUSE_OTLP_ENDPOINT", otlp).env("RUST_LOG", "off"); // affects log lines, not spans
        let cache = format!("--plugin-cache={}/plugin-cache", env!("CARGO_TARGET_TMPDIR"));
        let own = [&*cache, "--plugin-instances=20", "--plugin-unsigned", "--development"];
        let process = Process::serve(command, &database, &[&own, flags].concat()).await;
        let simulators = Simulators::start_seeded(bind().await, bind().await, Clock::system(), 1);
        Host { process, _database: database, simulators }
    }

    /// Stops it with SIGTERM, and waits until it has exited.
    async fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a process");
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        let gone = async {
            loop {
                looks.tick().await;
                if let Some(status) = self.process.child.try_wait().expect("our own process") {
                    return status;
                }
            }
        };
        let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
        assert!(gone.expect("it ends").success());
    }

    async fn operator(&self, method: Method, path: &str, body: Value) -> Value {
        let request = self
            .process
            .client
            .request(method, format!("{}/internal/v1{path}", self.process.internal));
        reply(request.bearer_auth(OPERATOR_TOKEN).json(&body)).await.data().clone()
    }

    async fn install(&self, wasm: &'static [u8], name: &str, credentials: Value) -> Value {
        let request = self
            .process
            .client
            .post(format!("{}/internal/v1/plugins?grant=true", self.process.internal));
        reply(request.bearer_auth(OPERATOR_TOKEN).body(wasm)).await.data();
        let set = json!({ "credentials": credentials });
        self.operator(Method::PUT, &format!("/providers/{name}"), set).await
    }

    /// Sets up plugins, accounts and a company. Returns the created company.
    async fn set_up(&self, upstream: &RecordingUpstream) -> Value {
        let unruly = json!({ "secret_key": SECRET, "base_url": upstream.url });
        self.install(artifacts::UNRULY, "unruly", unruly).await;
        let base_url = format!("{}/paystack", self.simulators.url());
        let paystack = json!({ "secret_key": PAYSTACK_KEY, "base_url": base_url });
        let account = self.install(artifacts::PROVIDER_A, "provider_a", paystack).await;
        let webhook = account["notification_url"].as_str().expect("a URL");
        self.simulators.paystack().set_webhook(PAYSTACK_KEY, webhook);
        let event_url = format!("{}/events", self.simulators.url());
        let company = json!({ "name": "Acme", "server": "test", "event_url": event_url });
        self.operator(Method::POST, "/companies", company).await
    }

    fn initialize(&self, key: &Value, provider: &str, reference: &str) -> reqwest::RequestBuilder {
        let order = json!({
            "email": "ada@example.com", "amount": 100, "currency": "NGN", "reference": reference,
            "payment_service": provider, "narration": "echo-secret",
            "checkout": { "success_url": "https://lender.example/paid" },
        });
        let request =
            self.process.client.post(format!("{}/api/v1/payment/initialize", self.process.api));
        request.bearer_auth(key.as_str().expect("a key")).json(&order)
    }

    async fn settle(&self) {
        self.simulators.run_until_idle().await;
        self.operator(Method::POST, "/clock/advance", json!({ "seconds": 0 })).await;
    }
}

/// Traces payments to a collector. Returns the secrets that the traces must not contain.
async fn trace_a_payment(collector: &Collector) -> Vec<(&'static str, String)> {
    let upstream = RecordingUpstream::start().await;
    let mut host = Host::start(&collector.url, &[]).await;
    let company = host.set_up(&upstream).await;
    let key = &company["api_key"];
    let begun = host
        .initialize(key, "provider_a", "order-in-a-trace")
        .header("x-request-id", "the-callers-id")
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    let payment = reply(begun).await.data().clone();
    let url = payment["checkout"]["url"].as_str().expect("a checkout URL");
    let paid =
        host.process.client.post(format!("{url}/complete")).json(&json!({ "outcome": "success" }));
    assert!(paid.send().await.expect("a response").status().is_success());
    host.settle().await;
    reply(host.initialize(key, "unruly", "order-at-unruly")).await.data();
    host.simulators.faults().push(Fault::new("initialize", FaultKind::Error500).times(1));
    let failed = reply(host.initialize(key, "provider_a", "order-that-fails")).await;
    assert_eq!(failed.failure().0, 502);
    assert_eq!(host.simulators.events().len(), 1);
    for event in host.simulators.events() {
        assert!(!format!("{:?}", event.headers).contains("traceparent"), "{:?}", event.headers);
    }
    for request in upstream.received() {
        assert_eq!(request.headers.get("traceparent"), None);
    }
    assert_eq!(upstream.received().len(), 1);
    host.stop().await;
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    vec![
        ("an API key", text(key)),
        ("an event secret", text(&company["event_secret"])),
        ("the operator token", OPERATOR_TOKEN.to_owned()),
        ("a provider's key", PAYSTACK_KEY.to_owned()),
        ("another provider's key", SECRET.to_owned()),
        ("an e-mail address", "ada@example.com".to_owned()),
        ("a reference", "order-in-a-trace".to_owned()),
        ("a path at the provider", "/transaction/".to_owned()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_one_trace_from_its_request_to_the_provider() {
    let collector = Collector::start().await;
    let secrets = trace_a_payment(&collector).await;
    let spans = collector.spans();

    let caller = hex::decode("0af7651916cd43dd8448eb211c80319c").unwrap();
    let request =
        spans.iter().find(|span| span.trace_id == caller && span.kind() == SpanKind::Server);
    let request = request.expect("the request continues the trace of its client");
    assert_eq!(request.name, "POST /api/v1/payment/initialize");
    assert_eq!(hex::encode(&request.parent_span_id), "b7ad6b7169203331");
    assert_eq!(attribute(request, "request.id"), "the-callers-id");
    assert_eq!(attribute(request, "http.route"), "/api/v1/payment/initialize");
    assert_eq!(attribute(request, "http.response.status_code"), "200");

    let slice = child(&spans, request, "payments.initialize");
    let call = child(&spans, slice, "provider_a checkout.start");
    for (key, value) in [
        ("plugin.name", "provider_a"),
        ("plugin.version", "1.0.0"),
        ("plugin.function", "checkout.start"),
        ("plugin.outcome", "ok"),
        ("plugin.runs", "2"),
        ("plugin.requests", "1"),
    ] {
        assert_eq!(attribute(call, key), value, "{key}");
    }
    assert_eq!(attribute(call, "plugin.digest").len(), 64);
    let egress = child(&spans, call, "POST");
    assert_eq!(egress.kind(), SpanKind::Client);
    assert_eq!(attribute(egress, "server.address"), "127.0.0.1");
    assert_eq!(attribute(egress, "http.response.status_code"), "200");
    assert_eq!(attribute(egress, "egress.sender"), "provider_a");

    let failed = |span: &&Span| {
        let status = span.status.as_ref().map(|status| status.code());
        status == Some(StatusCode::Error)
    };
    let failures: Vec<&Span> = spans.iter().filter(failed).collect();
    let refused = failures.iter().find(|span| span.kind() == SpanKind::Server);
    let refused = refused.expect("an error of ours");
    assert_eq!(attribute(refused, "http.response.status_code"), "502");
    assert!(failures.iter().all(|span| span.trace_id == refused.trace_id), "one request failed");

    let job = named(&spans, "charge.reconcile");
    assert_eq!(
        (attribute(job, "job.kind"), attribute(job, "job.failures")),
        ("charge.reconcile".into(), "0".into())
    );
    let verified = child(&spans, job, "charges.verify");
    child(&spans, child(&spans, verified, "provider_a verification.verify"), "GET");
    let delivery = child(&spans, named(&spans, "event.deliver"), "events.deliver");
    assert_eq!(attribute(child(&spans, delivery, "POST"), "egress.sender"), "events");

    let all = collector.text();
    for (what, secret) in secrets {
        assert!(!all.contains(&secret), "{what} is in the traces");
    }
    assert!(spans.iter().all(|span| span.events.is_empty()), "log lines stay in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_is_not_sampled_is_not_sent() {
    let collector = Collector::start().await;
    let mut host = Host::start(&collector.url, &["--otlp-sample-ratio=0"]).await;
    let company = json!({ "name": "Acme", "server": "test" });
    host.operator(Method::POST, "/companies", company).await;
    host.stop().await;
    assert_eq!(collector.spans().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_responds_delays_neither_requests_nor_shutdown() {
    // The system accepts connections, and nothing reads them.
    let deaf = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", deaf.local_addr().expect("bound"));
    let upstream = RecordingUpstream::start().await;
    let mut host = Host::start(&url, &[]).await;
    let company = host.set_up(&upstream).await;
    for n in 0..20 {
        let begun = host.initialize(&company["api_key"], "provider_a", &format!("order-{n}"));
        reply(begun).await.data();
    }
    host.stop().await;
    let (connection, _) = deaf.accept().await.expect("a connection of the host");
    drop(connection);
}
