//! A misbehaving plugin fails its own call and nothing else.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_platform::values::money::{Minor, Money};
use tollhouse_plugins::{CheckoutOrder, Credentials};

use crate::{
    app::{Engine, NOW, Reply, TestApp, postgres, reply},
    sprout::{self, repack},
};

pub const SECRET: &str = "sk_unruly_that_no_sandbox_may_see";

/// An upstream that stores the requests it receives.
#[derive(Clone, Default)]
pub struct RecordingUpstream {
    pub url: String,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl RecordingUpstream {
    pub async fn start() -> RecordingUpstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let upstream = RecordingUpstream { url, ..RecordingUpstream::default() };
        let router = Router::new().fallback(respond).with_state(upstream.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        upstream
    }

    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }

    /// Removes and returns the stored requests.
    fn take(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

async fn respond(
    State(upstream): State<RecordingUpstream>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let echo = format!("{headers:?} {body}");
    let path = uri.path().to_owned();
    upstream.received.lock().unwrap().push(ReceivedRequest { path, headers, body });
    match uri.path() {
        "/echo" => echo.into_response(),
        "/slow" => std::future::pending().await,
        "/huge" => "x".repeat(9 << 20).into_response(),
        "/moved" => (StatusCode::FOUND, [("location", "/elsewhere")]).into_response(),
        "/nul/echo" => "before\0after".into_response(),
        _ => "{}".into_response(),
    }
}

/// Installs the plugin and sets up a service account. Returns its upstream.
pub async fn install_unruly(app: &TestApp) -> RecordingUpstream {
    let upstream = RecordingUpstream::start().await;
    app.install(artifacts::UNRULY).await;
    set_account(app, "/providers/unruly", &upstream.url).await;
    upstream
}

/// Installs a version with these secrets and a second URL setting.
async fn bind(app: &TestApp, patch: usize, secrets: Value) {
    let wasm = repack(artifacts::UNRULY, |manifest| {
        manifest["version"] = json!(format!("1.1.{patch}"));
        manifest["secrets"] = secrets;
        manifest["settings"]["other_url"] = json!({ "kind": "url" });
    });
    app.install(&wasm).await;
}

/// Sets up an account with both URLs.
async fn set_account_at(app: &TestApp, upstream: &RecordingUpstream, other: &RecordingUpstream) {
    let credentials =
        json!({ "secret_key": SECRET, "base_url": upstream.url, "other_url": other.url });
    let set = json!({ "credentials": credentials });
    app.operator(Method::PUT, "/providers/unruly", set).await.data();
}

/// The encoding of basic authentication with a secret as user name and password.
fn basic_auth(secret: &str) -> String {
    BASE64.encode(format!("{secret}:{secret}"))
}

/// Sets up an account. Returns its webhook URL.
pub async fn set_account(app: &TestApp, path: &str, base_url: &str) -> String {
    let set = json!({ "credentials": { "secret_key": SECRET, "base_url": base_url } });
    let account = app.operator(Method::PUT, path, set).await.data().clone();
    account["notification_url"].as_str().unwrap().to_owned()
}

/// Initializes a payment; its narration is a command to the plugin.
pub async fn initialize_with_narration(app: &TestApp, reference: &str, narration: &str) -> Reply {
    let mut order = app.order(reference);
    order["payment_service"] = json!("unruly");
    order["narration"] = json!(narration);
    app.post("/payment/initialize", order).await
}

const UNAVAILABLE: (u16, &str) = (502, "unruly is unavailable, please try again later");
const TOO_LATE: (u16, &str) = (504, "unruly did not respond in time, please try again later");

/// Checks that a call fails with this error only, the payment is kept, and other calls succeed.
async fn check_contained(app: &TestApp, reference: &str, narration: &str, expected: (u16, &str)) {
    let refused = initialize_with_narration(app, reference, narration).await;
    assert_eq!(refused.failure(), expected, "{narration}");
    let members: Vec<&String> = refused.body.as_object().unwrap().keys().collect();
    assert_eq!(members, ["error", "message"], "{narration}");
    let found = app.fetch(reference).await;
    assert_eq!(found["status"], "pending", "{narration}");
    assert_eq!(found["checkout"]["url"], Value::Null, "{narration}");
    assert_eq!((&found["payment_response"], &found["message"]), (&json!(""), &json!("")));
    let other = app.initialize(&format!("beside-{reference}")).await;
    assert!(other["checkout"]["url"].is_string(), "after {narration}");
}

// ---- limits -------------------------------------------------------------------------------------

both! {
    async fn a_plugin_that_exceeds_a_limit_fails_only_its_own_call(app: TestApp) {
        let upstream = install_unruly(app).await;
        let huge = format!("fetch {}/huge", upstream.url);
        let excesses = [
            ("loop", 0),
            ("grow", 0),
            ("recurse", 0),
            ("panic", 0),
            ("big 100000000", 0),
            ("big 12000000", 0), // fits into its memory, but exceeds the size of a result
            ("many 17", 16),
            ("headers 100000", 0),
            ("headers 40000", 0), // within the byte limit of a request
            ("host-random 65537", 0),
            ("leak 2000", 0),
            (&*huge, 1),
        ];
        for (n, (narration, requests)) in excesses.into_iter().enumerate() {
            let before = upstream.received().len();
            check_contained(app, &format!("order-{n}"), narration, UNAVAILABLE).await;
            assert_eq!(upstream.received().len() - before, requests, "{narration}");
        }
        let pending = 2.0 * excesses.len() as f64 * 2500.5;
        assert_eq!(app.wallet().await["pending"].as_f64(), Some(pending));

        for (n, (narration, raw)) in [("many 16", "16"), ("headers 50", "50"), ("host-random 65536", "65536"), ("leak 500", "500"), ("sleep 1", "{}"), ("print 1000", "{}"), ("big 12", "\"aaaaaaaaaa\"")].into_iter().enumerate() {
            let payment = initialize_with_narration(app, &format!("modest-{n}"), narration).await.data().clone();
            assert_eq!(payment["payment_response"], raw, "{narration}");
            assert_eq!(payment["checkout"]["url"], format!("{}/ok", upstream.url));
        }
    }

    async fn a_payment_that_failed_in_a_plugin_resumes_with_its_next_version(app: TestApp) {
        install_unruly(app).await;
        assert_eq!(initialize_with_narration(app, "order-1", "panic").await.failure(), UNAVAILABLE);
        let broken = app.fetch("order-1").await;
        let mended = repack(artifacts::SPROUT, |manifest| {
            manifest["name"] = json!("unruly");
            manifest["version"] = json!("1.0.1");
        });
        app.install(&mended).await;
        // The version needs a secret that the account does not have.
        assert_eq!(initialize_with_narration(app, "order-1", "panic").await.failure(), UNAVAILABLE);

        let upstream = sprout::SproutUpstream::start().await;
        let set = json!({ "credentials": { "token": sprout::TOKEN, "base_url": upstream.url } });
        app.operator(Method::PUT, "/providers/unruly", set).await.data();
        let resumed = initialize_with_narration(app, "order-1", "panic").await.data().clone();
        assert_eq!(resumed["id"], broken["id"]);
        assert_eq!(resumed["checkout"]["url"], format!("{}/pay/order-1", upstream.url));
        upstream.set_status("order-1", "paid");
        app.advance(60).await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.get("/payment/list").await.data()["total"], 1);
        assert_eq!(app.wallet().await["balance"], json!(2500.5));
    }
}

/// Returns why the host ended a call with this narration.
pub async fn failure_reason(app: &TestApp, narration: &str) -> String {
    reason_at(app, "http://127.0.0.1:1", narration).await
}

/// Like [`failure_reason`], with an account at this upstream.
async fn reason_at(app: &TestApp, base_url: &str, narration: &str) -> String {
    let plugin = app.app.plugins.provider("unruly", &app.company.id).expect("an active plugin");
    let (credentials, order) = arguments(base_url, narration);
    let ended = plugin.start_checkout(&credentials, &order).await;
    ended.expect_err("an ended call").fault.message
}

/// Returns an account at this upstream, and an order with this narration.
pub fn arguments(base_url: &str, narration: &str) -> (Credentials, CheckoutOrder) {
    let values = [("secret_key", SECRET), ("base_url", base_url)];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let credentials = Credentials { id: "an account".to_owned(), values: values.into() };
    let order = CheckoutOrder {
        service_ref: "order-1".to_owned(),
        amount: Money { minor: Minor(500), currency: "NGN".into() },
        email: "ada@example.com".to_owned(),
        phone: None,
        customer_name: None,
        narration: narration.to_owned(),
        channels: Vec::new(),
        success_url: "https://acme.example/".to_owned(),
        cancel_url: None,
        notification_url: String::new(),
        metadata: "{}".to_owned(),
        save_instrument: false,
    };
    (credentials, order)
}

/// Uses limits so small that they are reached quickly.
async fn under_small_limits(engine: Engine) {
    let flags = [
        "--plugin-call-timeout-s=1", "--plugin-cpu-ms=50", "--plugin-requests=6",
        "--plugin-instances=2",
    ];
    let app = TestApp::start_with(engine, &flags).await;
    install_unruly(&app).await;
    check_contained(&app, "waits", "wait", TOO_LATE).await;
    check_contained(&app, "sleeps", "sleep 60000", TOO_LATE).await;
    check_contained(&app, "asks", "many 7", UNAVAILABLE).await;

    // More hostile calls than instances, and other payments at the same time.
    let hostile = join_all((0..40).map(|n| {
        let app = &app;
        async move {
            initialize_with_narration(app, &format!("hostile-{n}"), "loop").await.status.as_u16()
        }
    }));
    let honest = join_all((0..5).map(|n| {
        let app = &app;
        async move { app.post("/payment/initialize", app.order(&format!("honest-{n}"))).await }
    }));
    let (hostile, honest) = tokio::join!(hostile, honest);
    // 504 if waiting for an instance exceeded the call timeout; finally the plugin is not called.
    assert!(hostile.iter().all(|status| [502, 503, 504].contains(status)), "{hostile:?}");
    assert!(hostile.contains(&503), "{hostile:?}");
    assert!(honest.iter().all(|reply| [200, 504].contains(&reply.status.as_u16())), "{honest:?}");
    assert!(app.initialize("afterwards").await["checkout"]["url"].is_string());
    app.finish().await;
}

#[tokio::test]
async fn plugin_limits_are_settings_on_sqlite() {
    under_small_limits(Engine::Sqlite).await;
}

#[tokio::test]
async fn plugin_limits_are_settings_on_postgres() {
    let Some(server) = postgres() else { return };
    under_small_limits(Engine::Postgres(server)).await;
}

// ---- reach --------------------------------------------------------------------------------------

both! {
    async fn a_plugin_reaches_nothing_that_was_not_granted(app: TestApp) {
        let (upstream, foreign) = (install_unruly(app).await, RecordingUpstream::start().await);
        let port = upstream.url.rsplit(':').next().unwrap();
        let urls = [
            foreign.url.clone(), // another port of this machine
            format!("{}/", app.internal),
            "http://169.254.169.254/latest/meta-data".to_owned(),
            "http://[::1]/".to_owned(),
            "https://example.com/".to_owned(),
            format!("https://127.0.0.1:{port}/"), // another scheme is another origin
            format!("http://localhost:{port}/"),
            format!("http://127.0.0.1:{port}@example.com/"),
            format!("http://user:password@127.0.0.1:{port}/"),
            format!("{}.example.com/", upstream.url),
            "file:///etc/passwd".to_owned(),
            "data:text/plain,x".to_owned(),
            "no url".to_owned(),
        ];
        for (n, url) in urls.iter().enumerate() {
            check_contained(app, &format!("order-{n}"), &format!("fetch {url}"), UNAVAILABLE).await;
        }
        assert!(foreign.received().is_empty() && upstream.received().is_empty());

        // A granted origin is reached, and its redirect is not followed.
        let payment = initialize_with_narration(app, "order-moved", &format!("fetch {}/moved", upstream.url)).await.data().clone();
        let raw = payment["payment_response"].as_str().expect("a text");
        let response: Value = serde_json::from_str(raw).expect("JSON");
        assert_eq!(response, json!({ "status": 302, "body": "" }));
        let paths: Vec<String> = upstream.received().into_iter().map(|got| got.path).collect();
        assert_eq!(paths, ["/moved"]);
    }

    async fn a_secret_is_sent_only_where_its_binding_allows(app: TestApp) {
        let (upstream, elsewhere) = (install_unruly(app).await, RecordingUpstream::start().await);
        let header = json!({ "to": ["base_url"], "in": ["header:x-key"] });
        let body = json!({ "to": ["base_url"], "in": ["body"] });
        let in_url = ["path", "query", "encoded-query", "method", "header-name"];
        let in_body = ["body", "success_url", "metadata", "form", "basic-body"];
        let in_header = ["x-other", "authorization", "cookie"];
        for (n, (binding, refused, sent)) in [
            (header, [&["x-other", "elsewhere"], &in_body[..]].concat(), &["x-key", "X-Key"][..]),
            (body, [&["elsewhere"], &in_header[..]].concat(), &in_body),
            (json!({}), vec!["x-key", "body", "elsewhere"], &[]),
        ].into_iter().enumerate() {
            bind(app, n, json!({ "secret_key": binding })).await;
            set_account_at(app, &upstream, &elsewhere).await;
            for place in in_url.iter().chain(&refused) {
                let reference = format!("order-{n}-{place}");
                check_contained(app, &reference, &format!("send-secret {place}"), UNAVAILABLE).await;
                let got = [upstream.received(), elsewhere.received()];
                assert!(got.iter().all(Vec::is_empty), "{binding}: {place}: {got:?}");
            }
            for place in sent {
                let reference = format!("sent-{n}-{place}");
                initialize_with_narration(app, &reference, &format!("send-secret {place}")).await.data();
                let got = upstream.take();
                let there = format!("{:?} {}", got[0].headers, got[0].body);
                let value = if *place == "basic-body" { basic_auth(SECRET) } else { SECRET.to_owned() };
                assert!(got.len() == 1 && there.contains(&value), "{binding}: {place}: {there}");
            }
        }
        let page = crate::telemetry::scrape(app).await;
        let broke: f64 = page
            .lines()
            .filter(|line| line.starts_with("tollhouse_plugin_calls_total{"))
            .filter(|line| line.contains("plugin=\"unruly\"") && line.contains("outcome=\"other\""))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum();
        assert_eq!(broke, 12.0 + 9.0 + 8.0, "{page}");
    }

    async fn a_binding_follows_the_setting_of_the_account(app: TestApp) {
        let (upstream, other) = (install_unruly(app).await, RecordingUpstream::start().await);
        bind(app, 0, json!({ "secret_key": { "to": ["base_url"], "in": ["header:x-key"] } })).await;
        set_account_at(app, &upstream, &other).await;
        initialize_with_narration(app, "order-1", "send-secret x-key").await.data();
        set_account_at(app, &other, &upstream).await;
        initialize_with_narration(app, "order-2", "send-secret x-key").await.data();
        assert_eq!(initialize_with_narration(app, "order-3", "send-secret elsewhere").await.failure(), UNAVAILABLE);
        for upstream in [upstream, other] {
            let got = upstream.received();
            assert!(got.len() == 1 && got[0].headers["x-key"] == SECRET, "{got:?}");
        }
    }

    async fn an_unbound_secret_is_sent_in_headers_and_bodies_only(app: TestApp) {
        let (upstream, elsewhere) = (install_unruly(app).await, RecordingUpstream::start().await);
        bind(app, 0, json!(["secret_key"])).await;
        set_account_at(app, &upstream, &elsewhere).await;
        for place in ["path", "query", "encoded-query", "method", "header-name"] {
            check_contained(app, place, &format!("send-secret {place}"), UNAVAILABLE).await;
        }
        assert!(upstream.received().is_empty() && elsewhere.received().is_empty());
        for place in ["x-key", "body", "elsewhere"] {
            initialize_with_narration(app, place, &format!("send-secret {place}")).await.data();
        }
        assert_eq!((upstream.received().len(), elsewhere.received().len()), (2, 1));
    }

    async fn a_grant_does_not_permit_forbidden_addresses(app: TestApp) {
        install_unruly(app).await;
        for (n, base_url) in ["http://169.254.169.254", "https://10.0.0.1", "https://[fd00::1]", "http://example.com"].into_iter().enumerate() {
            let account = json!({ "credentials": { "secret_key": SECRET, "base_url": base_url } });
            let refused = app.operator(Method::PUT, "/providers/unruly", account).await;
            assert_eq!(refused.status, 400, "{base_url}: {}", refused.body);
            let ended = reason_at(app, base_url, "many 1").await;
            assert!(ended.starts_with("the request is not permitted: "), "{base_url}: {ended}");
            check_contained(app, &format!("order-{n}"), &format!("fetch {base_url}"), UNAVAILABLE).await;
        }
    }

    async fn a_plugin_sees_nothing_of_the_machine(app: TestApp) {
        install_unruly(app).await;
        let payment = initialize_with_narration(app, "order-1", "env").await.data().clone();
        let around: Value = serde_json::from_str(payment["payment_response"].as_str().unwrap()).unwrap();
        let nothing = json!({
            "env": [], "arguments": 0, "read_dir": false, "read_file": false, "write_file": false,
            "connect": false, "listen": false, "resolve": false,
        });
        assert_eq!(around, nothing);
    }
}

// ---- one call and the next ----------------------------------------------------------------------

both! {
    async fn runs_of_a_call_are_identical_and_no_two_calls_are(app: TestApp) {
        let upstream = install_unruly(app).await;
        let mut random = Vec::new();
        for n in 0..3 {
            // The call runs twice: until its request, and with the response. Another request in the
            // second run would fail it.
            let payment = initialize_with_narration(app, &format!("order-{n}"), "random-request").await.data().clone();
            let url = payment["checkout"]["url"].as_str().unwrap().to_owned();
            let requested = upstream.received()[n].path.clone();
            let parts: Vec<&str> = requested.split('/').skip(1).collect();
            let (clock, drawn, calls_before) = (parts[0], parts[1], parts[2]);
            assert_eq!(url, format!("https://x/{clock}/{drawn}"));
            let began = format!("{}000000-", NOW.0); // nanoseconds; the other clock has not moved since
            assert_eq!(clock.trim_end_matches('0'), began, "{clock}");
            assert_eq!(calls_before, "0"); // a fresh instance
            random.push(drawn.to_owned());
        }
        assert_eq!(upstream.received().len(), 3);
        random.sort();
        random.dedup();
        assert_eq!(random.len(), 3, "randomness that repeats: {random:?}");
    }

    async fn only_the_cache_outlives_a_call_and_each_account_has_its_own(app: TestApp) {
        let upstream = install_unruly(app).await;
        let mut n = 0;
        let mut before = async || {
            n += 1;
            let payment = initialize_with_narration(app, &format!("order-{n}"), "cached").await.data().clone();
            payment["payment_response"].as_str().unwrap().to_owned()
        };
        assert_eq!([before().await, before().await], ["null", "\"put earlier\""]);

        let own = format!("/companies/{}/providers/unruly", app.company.id);
        set_account(app, &own, &upstream.url).await;
        assert_eq!([before().await, before().await], ["null", "\"put earlier\""]);

        app.install(&repack(artifacts::UNRULY, |manifest| manifest["version"] = json!("1.1.0"))).await;
        assert_eq!([before().await, before().await], ["null", "\"put earlier\""]);

        app.advance(59).await;
        assert_eq!(before().await, "\"put earlier\"");
        app.advance(60).await;
        assert_eq!(before().await, "null"); // it was put for a minute
    }
}

// ---- results of a plugin ------------------------------------------------------------------------

both! {
    async fn a_plugin_that_accepts_every_webhook_changes_no_status(app: TestApp) {
        let upstream = install_unruly(app).await;
        let url = set_account(app, "/providers/unruly", &upstream.url).await;
        initialize_with_narration(app, "order-1", "").await.data();
        app.initialize("order-2").await;
        let before = app.simulators.paystack().requests().len();
        for body in ["order-1", "order-2", "nothing that anybody knows", ""] {
            let notified = reply(app.client.post(&url).body(body)).await;
            assert_eq!(notified.status, 200, "{body}");
        }
        app.run_until_idle().await;
        let paths: Vec<String> = upstream.received().into_iter().map(|got| got.path).collect();
        assert_eq!(paths, ["/verify/order-1"]);
        assert_eq!(app.simulators.paystack().requests().len(), before); // another account's payment
        assert_eq!(app.fetch("order-1").await["status"], "pending");
        assert_eq!(app.fetch("order-2").await["status"], "pending");
        assert!(app.events().is_empty());
    }

    async fn nul_characters_of_a_plugin_fail_no_payment(app: TestApp) {
        let upstream = install_unruly(app).await;
        let url = set_account(app, "/providers/unruly", &format!("{}/nul", upstream.url)).await;
        let payment = initialize_with_narration(app, "order-1", "say it").await.data().clone();
        assert_eq!(payment["payment_response"], "beforeafter");
        let notified = reply(app.client.post(&url).body("order-\0-1")).await;
        assert_eq!(notified.status, 200, "{}", notified.body);
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "pending");
    }
}
