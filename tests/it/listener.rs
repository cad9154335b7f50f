//! The listeners: limits on clients, and graceful shutdown.

use std::{io::ErrorKind, time::Duration};

use futures::FutureExt;
use reqwest::{Client, StatusCode, Version};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tollhouse_app::wiring;
use tollhouse_http::Listener;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::app::{Engine, Reply, TestApp, reply};

/// Longer than any step here takes, so that a hanging step fails.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

async fn app(flags: &[&str]) -> TestApp {
    TestApp::start_with(Engine::Sqlite, flags).await
}

/// A client that sends raw bytes.
struct Raw(TcpStream);

impl Raw {
    async fn connect(url: &str) -> Raw {
        let address = url.strip_prefix("http://").expect("a URL of the harness");
        Raw(TcpStream::connect(address).await.expect("a connection"))
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("bytes that are sent");
    }

    /// Reads until the host closes the connection.
    async fn rest(&mut self) -> String {
        let mut text = String::new();
        let read = timeout(STEP_TIMEOUT, self.0.read_to_string(&mut text)).await;
        read.expect("a connection that is closed").expect("a response in UTF-8");
        text
    }

    /// Reads the next response, which ends with `end`.
    async fn read_response(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        let read = async {
            while !bytes.ends_with(end.as_bytes()) {
                bytes.push(self.0.read_u8().await.expect("more of a response"));
            }
        };
        timeout(STEP_TIMEOUT, read).await.expect("a response in time");
        String::from_utf8(bytes).expect("a response in UTF-8")
    }

    /// Sends one byte at a time until the host responds.
    async fn dribble(&mut self) {
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        let dribble = async {
            while self.0.peek(&mut [0]).now_or_never().is_none() {
                let _ = self.0.try_write(b"x");
                pace.tick().await;
            }
        };
        timeout(STEP_TIMEOUT, dribble).await.expect("a response to slow input");
    }
}

/// Checks status line and body of a failure.
#[track_caller]
fn check_failure(text: &str, status: &str, message: &str) {
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body, json!({ "error": true, "message": message }));
}

const LIVE: &str = "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n";
const ALIVE: &str = "\"alive\"}";

async fn is_alive(app: &TestApp) {
    let request = app.client.get(format!("{}/health/live", app.api));
    assert_eq!(reply(request).await.status, StatusCode::OK);
}

/// Initializes a payment at a slow provider. Returns once the host waits for the provider.
async fn begin_slow_payment(
    app: &TestApp,
    client: &Client,
    base: &str,
    ms: u64,
) -> JoinHandle<Reply> {
    let slow = Fault::new("initialize", FaultKind::Slow).delay_ms(ms);
    app.simulators.faults().push(slow);
    let request = client.post(format!("{base}/api/v1/payment/initialize"));
    let request = request.bearer_auth(&app.company.key).json(&app.order("slow"));
    let response = tokio::spawn(reply(request));
    let begun =
        async { while app.get("/payment/fetch/reference/slow").await.status != StatusCode::OK {} };
    timeout(STEP_TIMEOUT, begun).await.expect("a payment that is begun");
    response
}

const UNKNOWN: (u16, &str) = (500, "outcome unknown: check the current state before you retry");

// ---- time ---------------------------------------------------------------------------------------

#[tokio::test]
async fn slowly_sent_headers_get_408_while_other_clients_are_served() {
    let app = app(&["--header-timeout-s=1"]).await;
    let mut slow = Raw::connect(&app.api).await;
    slow.send("GET /health/live HTTP/1.1\r\nhost: ").await;
    let mut again = Raw::connect(&app.api).await; // a second request is bounded like the first
    again.send(LIVE).await;
    assert!(again.read_response(ALIVE).await.starts_with("HTTP/1.1 200 OK\r\n"));
    again.send("G").await;
    for client in [&mut slow, &mut again] {
        client.dribble().await;
        is_alive(&app).await;
        check_failure(
            &client.rest().await,
            "408 Request Timeout",
            "the request was not received in time",
        );
    }
    app.finish().await;
}

#[tokio::test]
async fn a_slowly_sent_body_gets_408_while_other_clients_are_served() {
    let app = app(&["--body-timeout-s=1"]).await;
    let head = |key: &str| {
        format!(
            "POST /api/v1/user/create HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: 100000\r\n\r\n{{"
        )
    };
    let mut slow = Raw::connect(&app.api).await;
    slow.send(&head(&app.company.key)).await;
    let mut unauthenticated = Raw::connect(&app.api).await;
    unauthenticated.send(&head("sk_test_nobody")).await;
    // The host does not wait for the body of an unauthenticated request.
    check_failure(&unauthenticated.rest().await, "401 Unauthorized", "the API key is not valid");
    slow.dribble().await;
    is_alive(&app).await;
    let response = slow.rest().await;
    assert!(response.contains("\r\nx-request-id: "), "{response}");
    check_failure(&response, "408 Request Timeout", "the request was not received in time");
    app.finish().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_response() {
    let app = app(&["--idle-timeout-s=1"]).await;
    let mut silent = Raw::connect(&app.api).await;
    let mut done = Raw::connect(&app.api).await;
    done.send(LIVE).await;
    done.read_response(ALIVE).await;
    assert_eq!(silent.rest().await, "");
    assert_eq!(done.rest().await, "");
    app.finish().await;
}

#[tokio::test]
async fn a_request_that_times_out_reports_an_unknown_outcome() {
    let app = app(&["--request-timeout-s=1"]).await;
    let response =
        begin_slow_payment(&app, &app.client, &app.api, 20_000).await.await.expect("a response");
    assert_eq!(response.failure(), UNKNOWN);
    assert!(!response.headers.contains_key("retry-after"));
    assert_eq!(app.get("/payment/fetch/reference/slow").await.data()["status"], "pending");
    app.finish().await;
}

#[tokio::test]
async fn a_request_with_an_idempotency_key_that_times_out_completes_and_is_replayed() {
    let app = app(&["--request-timeout-s=1"]).await;
    let mut order = app.order("");
    order.as_object_mut().expect("an object").remove("reference");
    let send = || {
        let request = app.client.post(format!("{}/api/v1/payment/initialize", app.api));
        reply(request.bearer_auth(&app.company.key).header("idempotency-key", "k").json(&order))
    };
    app.simulators.faults().push(Fault::new("initialize", FaultKind::Slow).delay_ms(2_000));
    let late = send().await;
    assert_eq!(late.failure(), UNKNOWN);
    assert!(!late.headers.contains_key("retry-after"));
    let under_way = "the request with this Idempotency-Key is in progress";
    assert_eq!(send().await.failure(), (409, under_way));
    app.app.tasks.wait_until_idle().await;
    let again = send().await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert!(again.data()["checkout"]["url"].is_string());
    app.finish().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_its_responses_is_disconnected() {
    let flags = ["--body-timeout-s=1", "--request-timeout-s=1", "--write-timeout-s=1"];
    let app = app(&flags).await;
    let mut greedy = Raw::connect(&app.api).await;
    // More than the socket buffers hold.
    let requests = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: x\r\n\r\n".repeat(50);
    greedy.send(&requests).await;
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    let cut = async {
        loop {
            match greedy.0.try_write(b"x") {
                Err(error) if error.kind() != ErrorKind::WouldBlock => break,
                _ => drop(pace.tick().await),
            }
        }
    };
    timeout(STEP_TIMEOUT, cut).await.expect("a connection that is cut");
    is_alive(&app).await;
    app.finish().await;
}

// ---- size and number ----------------------------------------------------------------------------

#[tokio::test]
async fn too_many_or_too_long_headers_get_431() {
    let app = app(&[]).await;
    let http2 = Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    for (client, version) in [(&app.client, Version::HTTP_11), (&http2, Version::HTTP_2)] {
        let send = async |count: usize, bytes: usize| {
            let mut request = client.get(format!("{}/health/live", app.api));
            for n in 0..count {
                request = request.header(format!("x-{n}"), "y".repeat(bytes));
            }
            let response = request.send().await.expect("a response");
            assert_eq!(response.version(), version);
            (
                response.status().as_u16(),
                response.json::<Value>().await.expect("JSON")["message"].clone(),
            )
        };
        assert_eq!(send(50, 100).await, (200, json!("alive")));
        for (count, bytes) in [(70, 1), (1, 17 << 10), (10, 2 << 10)] {
            assert_eq!(
                send(count, bytes).await,
                (431, json!("the headers are too large")),
                "{count}"
            );
        }
    }
    // Headers beyond what the HTTP parser accepts.
    for head in [format!("x: {}\r\n", "y".repeat(200 << 10)), "x: y\r\n".repeat(200)] {
        let mut raw = Raw::connect(&app.api).await;
        let _ =
            raw.0.write_all(format!("GET / HTTP/1.1\r\nhost: x\r\n{head}\r\n").as_bytes()).await;
        assert!(raw.read_response("\r\n").await.starts_with("HTTP/1.1 431 "));
    }
    app.finish().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_to_be_accepted() {
    let app = app(&["--max-connections=3"]).await;
    let mut one = Raw::connect(&app.internal).await; // in addition to the harness's connection
    one.send(LIVE).await;
    one.read_response(ALIVE).await;
    let mut two = Raw::connect(&app.internal).await;
    two.send(LIVE).await;
    two.read_response(ALIVE).await;
    let mut three = Raw::connect(&app.internal).await;
    three.send(LIVE).await;
    for _ in 0..50 {
        one.send(LIVE).await;
        one.read_response(ALIVE).await;
        assert!(three.0.try_read(&mut [0]).is_err(), "a connection beyond the limit was accepted");
    }
    drop(two);
    three.read_response(ALIVE).await;
    app.finish().await;
}

#[tokio::test]
async fn requests_beyond_the_limit_get_503_but_health_checks_do_not() {
    let app = app(&["--max-requests=1"]).await;
    let slow = Fault::new("initialize", FaultKind::Slow).delay_ms(2_000);
    app.simulators.faults().push(slow);
    let order = app.order("slow");
    let slow = app.post("/payment/initialize", order);
    let refused = async {
        loop {
            let other = app.get("/payment/list").await;
            if other.status != StatusCode::OK {
                break other;
            }
        }
    };
    let meanwhile = async {
        let refused = refused.await;
        assert_eq!(refused.failure(), (503, "the host is overloaded"));
        assert_eq!(refused.headers["retry-after"], "5");
        is_alive(&app).await;
    };
    let (done, ()) =
        tokio::join!(slow, timeout(STEP_TIMEOUT, meanwhile).map(|done| done.expect("a refusal")));
    done.data();
    app.get("/payment/list").await.data();
    app.finish().await;
}

#[tokio::test]
async fn unauthenticated_requests_do_not_use_up_the_limit_of_authenticated_ones() {
    let app = app(&["--max-requests=1"]).await;
    let notify = "POST /api/v1/notifications/provider_a/nobody HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n";
    let mut slow = Raw::connect(&app.api).await;
    slow.send(notify).await;
    let full = async {
        loop {
            let mut next = Raw::connect(&app.api).await;
            next.send(&format!("{notify}{{\"a\": 1 }}")).await;
            if next.read_response("}").await.contains("HTTP/1.1 503") {
                break;
            }
        }
    };
    timeout(STEP_TIMEOUT, full).await.expect("a rejected request");
    app.get("/payment/list").await.data();
    app.finish().await;
}

#[tokio::test]
async fn large_bodies_have_a_lower_concurrency_limit() {
    let app = app(&["--max-requests=64"]).await;
    let head = format!(
        "POST /api/v1/user/bulk/create HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\n",
        app.company.key
    );
    let announced = format!("{head}content-length: 2000000\r\n\r\n");
    let in_a_chunk =
        format!("{head}transfer-encoding: chunked\r\n\r\n100001\r\n{}\r\n", " ".repeat(0x10_0001));
    let mut slow = Raw::connect(&app.api).await;
    slow.send(&announced).await;
    for large in [&announced, &in_a_chunk] {
        let full = async {
            loop {
                let mut next = Raw::connect(&app.api).await;
                next.send(large).await;
                if let Ok(response) =
                    timeout(Duration::from_millis(200), next.read_response("}")).await
                {
                    break response;
                }
            }
        };
        let refused = timeout(STEP_TIMEOUT, full).await.expect("a refusal");
        check_failure(&refused, "503 Service Unavailable", "the host is overloaded");
    }
    let empty = app.post("/user/bulk/create", json!({ "users": [] })).await;
    assert_eq!(empty.failure(), (400, "the users field is required"));
    slow.send(&" ".repeat(2_000_000)).await;
    assert!(slow.read_response("}").await.starts_with("HTTP/1.1 400"));
    let mut next = Raw::connect(&app.api).await;
    next.send(&format!("{announced}{}", " ".repeat(2_000_000))).await;
    assert!(next.read_response("}").await.starts_with("HTTP/1.1 400"));
    app.finish().await;
}

#[tokio::test]
async fn one_company_cannot_use_up_the_concurrency_limit_of_others() {
    let app = app(&["--max-requests=2"]).await;
    let other = app.new_company("Beta Lending").await;
    let list = |key: String| {
        reply(app.client.get(format!("{}/api/v1/payment/list", app.api)).bearer_auth(key))
    };
    // The host accepts both keys once: from here on their requests need no permit for unknown keys.
    for key in [&app.company.key, &other.key] {
        list(key.clone()).await.data();
    }
    let mut slow = Raw::connect(&app.api).await;
    slow.send(&format!(
        "POST /api/v1/user/create HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100000\r\n\r\n{{",
        app.company.key
    ))
    .await;
    let refused = async {
        loop {
            let response = list(app.company.key.clone()).await;
            if response.status != StatusCode::OK {
                break response;
            }
        }
    };
    let refused = timeout(STEP_TIMEOUT, refused).await.expect("a refusal");
    assert_eq!(refused.failure(), (429, "too many requests, try again in 1 seconds"));
    assert_eq!(refused.headers["retry-after"], "1");
    for _ in 0..5 {
        list(other.key.clone()).await.data();
    }
    drop(slow);
    app.finish().await;
}

// ---- stopping -----------------------------------------------------------------------------------

#[tokio::test]
async fn a_stopping_host_finishes_requests_in_flight() {
    let plain = || Client::builder().no_proxy();
    for client in [plain(), plain().http2_prior_knowledge()] {
        let client = client.build().expect("a client");
        let app = app(&["--shutdown-s=60"]).await;
        let (public, internal) = (bind().await, bind().await);
        let address = public.address().expect("bound");
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
        let slow = begin_slow_payment(&app, &client, &format!("http://{address}"), 1_000).await;
        stop.send_replace(true);
        assert_eq!(slow.await.expect("a response").data()["status"], "pending");
        let refused = async { while TcpStream::connect(address).await.is_ok() {} };
        timeout(STEP_TIMEOUT, refused).await.expect("a closed listener");
        // The client keeps its connection, but the host does not wait for it.
        timeout(STEP_TIMEOUT, serving).await.expect("an end").expect("no panic");
    }
}

/// Initializes a payment at a slow provider, on a keep-alive connection. Returns once it is stored.
async fn send_slow_payment(app: &TestApp, api: &str, ms: u64) -> Raw {
    app.simulators.faults().push(Fault::new("initialize", FaultKind::Slow).delay_ms(ms));
    let mut raw = Raw::connect(api).await;
    let body = app.order("slow").to_string();
    let (key, length) = (&app.company.key, body.len());
    raw.send(&format!(
        "POST /api/v1/payment/initialize HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
    .await;
    while app.get("/payment/fetch/reference/slow").await.status != StatusCode::OK {}
    raw
}

#[tokio::test]
async fn the_last_response_on_a_keep_alive_connection_announces_its_end() {
    let app = app(&["--shutdown-s=60"]).await;
    let (public, internal) = (bind().await, bind().await);
    let api = format!("http://{}", public.address().expect("bound"));
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
    let mut raw = Raw::connect(&api).await;
    raw.send(LIVE).await;
    let before = raw.read_response(ALIVE).await;
    assert!(!before.contains("connection: close"), "{before}");
    let mut raw = send_slow_payment(&app, &api, 1_000).await;
    stop.send_replace(true);
    let response = raw.rest().await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
    timeout(STEP_TIMEOUT, serving).await.expect("an end").expect("no panic");
}

#[tokio::test]
async fn requests_that_outlast_the_shutdown_timeout_are_cut() {
    let app = app(&["--shutdown-s=1"]).await;
    let (public, internal) = (bind().await, bind().await);
    let api = format!("http://{}", public.address().expect("bound"));
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
    let mut raw = send_slow_payment(&app, &api, 20_000).await;
    stop.send_replace(true);
    assert_eq!(raw.rest().await, "");
    timeout(STEP_TIMEOUT, serving).await.expect("an end").expect("no panic");
}

#[tokio::test]
async fn readiness_ends_before_the_host_stops() {
    let app = app(&["--drain-s=2"]).await;
    let (public, internal) = (bind().await, bind().await);
    let api = format!("http://{}", public.address().expect("bound"));
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
    let health = async |path: &str| reply(app.client.get(format!("{api}/health/{path}"))).await;
    assert_eq!(health("ready").await.status, StatusCode::OK);
    stop.send_replace(true);
    let refused = async {
        loop {
            let response = health("ready").await;
            if response.status != StatusCode::OK {
                break response;
            }
        }
    };
    let refused = timeout(STEP_TIMEOUT, refused).await.expect("a response in time");
    assert_eq!(refused.failure(), (503, "the host is shutting down"));
    assert_eq!(health("live").await.status, StatusCode::OK); // and new connections are accepted
    timeout(STEP_TIMEOUT, serving).await.expect("an end").expect("no panic");
}

async fn bind() -> Listener {
    Listener::plain(TcpListener::bind("127.0.0.1:0").await.expect("a free port"))
}
