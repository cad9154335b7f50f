//! The listeners: what a client may take, and how a host stops.

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

/// Longer than anything here takes, so that what hangs fails.
const PATIENCE: Duration = Duration::from_secs(30);

async fn app(flags: &[&str]) -> TestApp {
    TestApp::start_with(Engine::Sqlite, flags).await
}

/// A client that sends what a test wants, when it wants it.
struct Raw(TcpStream);

impl Raw {
    async fn connect(url: &str) -> Raw {
        let address = url.strip_prefix("http://").expect("a URL of the harness");
        Raw(TcpStream::connect(address).await.expect("a connection"))
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("bytes that are sent");
    }

    /// All that comes until the host closes.
    async fn rest(&mut self) -> String {
        let mut text = String::new();
        let read = timeout(PATIENCE, self.0.read_to_string(&mut text)).await;
        read.expect("a connection that is closed").expect("an answer in UTF-8");
        text
    }

    /// The next answer, which is known to end with `end`.
    async fn answer(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        let read = async {
            while !bytes.ends_with(end.as_bytes()) {
                bytes.push(self.0.read_u8().await.expect("more of an answer"));
            }
        };
        timeout(PATIENCE, read).await.expect("an answer in time");
        String::from_utf8(bytes).expect("an answer in UTF-8")
    }

    /// Sends a letter at a time until the host says something.
    async fn dribble(&mut self) {
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        let dribble = async {
            while self.0.peek(&mut [0]).now_or_never().is_none() {
                let _ = self.0.try_write(b"x");
                pace.tick().await;
            }
        };
        timeout(PATIENCE, dribble).await.expect("a host that had enough");
    }
}

/// Status line and body of a failure in the envelope.
#[track_caller]
fn is_failure(text: &str, status: &str, message: &str) {
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

/// A payment whose provider takes its time; resolves once the host waits for it.
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
    let answer = tokio::spawn(reply(request));
    let begun =
        async { while app.get("/payment/fetch/reference/slow").await.status != StatusCode::OK {} };
    timeout(PATIENCE, begun).await.expect("a payment that is begun");
    answer
}

const UNKNOWN: (u16, &str) = (500, "outcome unknown: check the current state before you retry");

// ---- time ---------------------------------------------------------------------------------------

#[tokio::test]
async fn headers_that_dribble_in_are_408_while_others_are_served() {
    let app = app(&["--header-timeout-s=1"]).await;
    let mut slow = Raw::connect(&app.api).await;
    slow.send("GET /health/live HTTP/1.1\r\nhost: ").await;
    let mut again = Raw::connect(&app.api).await; // a second request is bounded like the first
    again.send(LIVE).await;
    assert!(again.answer(ALIVE).await.starts_with("HTTP/1.1 200 OK\r\n"));
    again.send("G").await;
    for client in [&mut slow, &mut again] {
        client.dribble().await;
        is_alive(&app).await;
        is_failure(
            &client.rest().await,
            "408 Request Timeout",
            "the request was not received in time",
        );
    }
    app.finish().await;
}

#[tokio::test]
async fn a_body_that_dribbles_in_is_408_while_others_are_served() {
    let app = app(&["--body-timeout-s=1"]).await;
    let head = |key: &str| {
        format!(
            "POST /api/v1/user/create HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: 100000\r\n\r\n{{"
        )
    };
    let mut slow = Raw::connect(&app.api).await;
    slow.send(&head(&app.company.key)).await;
    let mut stranger = Raw::connect(&app.api).await;
    stranger.send(&head("sk_test_nobody")).await;
    // Nobody waits for a stranger's body.
    is_failure(&stranger.rest().await, "401 Unauthorized", "the API key is not valid");
    slow.dribble().await;
    is_alive(&app).await;
    let answer = slow.rest().await;
    assert!(answer.contains("\r\nx-request-id: "), "{answer}");
    is_failure(&answer, "408 Request Timeout", "the request was not received in time");
    app.finish().await;
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_without_a_word() {
    let app = app(&["--keep-alive-s=1"]).await;
    let mut silent = Raw::connect(&app.api).await;
    let mut done = Raw::connect(&app.api).await;
    done.send(LIVE).await;
    done.answer(ALIVE).await;
    assert_eq!(silent.rest().await, "");
    assert_eq!(done.rest().await, "");
    app.finish().await;
}

#[tokio::test]
async fn what_stands_of_a_request_that_takes_too_long_is_unknown() {
    let app = app(&["--request-timeout-s=1"]).await;
    let answer =
        begin_slow_payment(&app, &app.client, &app.api, 20_000).await.await.expect("an answer");
    assert_eq!(answer.failure(), UNKNOWN);
    assert!(!answer.headers.contains_key("retry-after"));
    assert_eq!(app.get("/payment/fetch/reference/slow").await.data()["status"], "pending");
    app.finish().await;
}

#[tokio::test]
async fn a_request_under_a_key_that_takes_too_long_goes_on_and_its_answer_is_kept() {
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
async fn a_client_that_does_not_take_its_answers_is_cut() {
    let flags = ["--body-timeout-s=1", "--request-timeout-s=1", "--answer-timeout-s=1"];
    let app = app(&flags).await;
    let mut greedy = Raw::connect(&app.api).await;
    // More than the system keeps for a client.
    let ask = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: x\r\n\r\n".repeat(50);
    greedy.send(&ask).await;
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    let cut = async {
        loop {
            match greedy.0.try_write(b"x") {
                Err(error) if error.kind() != ErrorKind::WouldBlock => break,
                _ => drop(pace.tick().await),
            }
        }
    };
    timeout(PATIENCE, cut).await.expect("a connection that is cut");
    is_alive(&app).await;
    app.finish().await;
}

// ---- size and number ----------------------------------------------------------------------------

#[tokio::test]
async fn headers_that_are_too_many_or_too_long_are_431() {
    let app = app(&[]).await;
    let http2 = Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    for (client, version) in [(&app.client, Version::HTTP_11), (&http2, Version::HTTP_2)] {
        let send = async |count: usize, bytes: usize| {
            let mut request = client.get(format!("{}/health/live", app.api));
            for n in 0..count {
                request = request.header(format!("x-{n}"), "y".repeat(bytes));
            }
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.version(), version);
            (
                answer.status().as_u16(),
                answer.json::<Value>().await.expect("JSON")["message"].clone(),
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
    // Beyond what is read at all.
    for head in [format!("x: {}\r\n", "y".repeat(200 << 10)), "x: y\r\n".repeat(200)] {
        let mut raw = Raw::connect(&app.api).await;
        let _ =
            raw.0.write_all(format!("GET / HTTP/1.1\r\nhost: x\r\n{head}\r\n").as_bytes()).await;
        assert!(raw.answer("\r\n").await.starts_with("HTTP/1.1 431 "));
    }
    app.finish().await;
}

#[tokio::test]
async fn more_connections_than_there_may_be_wait_for_their_turn() {
    let app = app(&["--max-connections=3"]).await;
    let mut one = Raw::connect(&app.internal).await; // beside the harness's own
    one.send(LIVE).await;
    one.answer(ALIVE).await;
    let mut two = Raw::connect(&app.internal).await;
    two.send(LIVE).await;
    two.answer(ALIVE).await;
    let mut three = Raw::connect(&app.internal).await;
    three.send(LIVE).await;
    for _ in 0..50 {
        one.send(LIVE).await;
        one.answer(ALIVE).await;
        assert!(three.0.try_read(&mut [0]).is_err(), "there was room for one more");
    }
    drop(two);
    three.answer(ALIVE).await;
    app.finish().await;
}

#[tokio::test]
async fn more_requests_than_there_may_be_are_503_but_health_is_told() {
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
        tokio::join!(slow, timeout(PATIENCE, meanwhile).map(|done| done.expect("a refusal")));
    done.data();
    app.get("/payment/list").await.data();
    app.finish().await;
}

#[tokio::test]
async fn strangers_cannot_take_the_room_of_those_who_have_a_key() {
    let app = app(&["--max-requests=1"]).await;
    let notify = "POST /api/v1/notifications/provider_a/nobody HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n";
    let mut slow = Raw::connect(&app.api).await;
    slow.send(notify).await;
    let full = async {
        loop {
            let mut next = Raw::connect(&app.api).await;
            next.send(&format!("{notify}{{\"a\": 1 }}")).await;
            if next.answer("}").await.contains("HTTP/1.1 503") {
                break;
            }
        }
    };
    timeout(PATIENCE, full).await.expect("a stranger who is refused");
    app.get("/payment/list").await.data();
    app.finish().await;
}

#[tokio::test]
async fn bodies_that_are_larger_than_usual_have_little_room() {
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
                if let Ok(answer) = timeout(Duration::from_millis(200), next.answer("}")).await {
                    break answer;
                }
            }
        };
        let refused = timeout(PATIENCE, full).await.expect("a refusal");
        is_failure(&refused, "503 Service Unavailable", "the host is overloaded");
    }
    let nobody = app.post("/user/bulk/create", json!({ "users": [] })).await;
    assert_eq!(nobody.failure(), (400, "the users field is required"));
    slow.send(&" ".repeat(2_000_000)).await;
    assert!(slow.answer("}").await.starts_with("HTTP/1.1 400"));
    let mut next = Raw::connect(&app.api).await;
    next.send(&format!("{announced}{}", " ".repeat(2_000_000))).await;
    assert!(next.answer("}").await.starts_with("HTTP/1.1 400"));
    app.finish().await;
}

#[tokio::test]
async fn one_company_cannot_take_the_room_of_the_others() {
    let app = app(&["--max-requests=2"]).await;
    let other = app.new_company("Beta Lending").await;
    let list = |key: String| {
        reply(app.client.get(format!("{}/api/v1/payment/list", app.api)).bearer_auth(key))
    };
    // The host knows both keys from here on: they need no room in which unknown ones are looked up.
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
            let answer = list(app.company.key.clone()).await;
            if answer.status != StatusCode::OK {
                break answer;
            }
        }
    };
    let refused = timeout(PATIENCE, refused).await.expect("a refusal");
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
async fn a_host_that_stops_finishes_what_is_in_flight() {
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
        assert_eq!(slow.await.expect("an answer").data()["status"], "pending");
        let refused = async { while TcpStream::connect(address).await.is_ok() {} };
        timeout(PATIENCE, refused).await.expect("a listener that is gone");
        // The client keeps its connection, but the host does not wait for it.
        timeout(PATIENCE, serving).await.expect("an end").expect("no panic");
    }
}

/// On a connection that would be kept. Returns once the host waits for the provider, which takes its time.
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
async fn the_last_answer_of_a_kept_connection_says_that_it_is_closed() {
    let app = app(&["--shutdown-s=60"]).await;
    let (public, internal) = (bind().await, bind().await);
    let api = format!("http://{}", public.address().expect("bound"));
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
    let mut raw = Raw::connect(&api).await;
    raw.send(LIVE).await;
    let before = raw.answer(ALIVE).await;
    assert!(!before.contains("connection: close"), "{before}");
    let mut raw = send_slow_payment(&app, &api, 1_000).await;
    stop.send_replace(true);
    let answer = raw.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    timeout(PATIENCE, serving).await.expect("an end").expect("no panic");
}

#[tokio::test]
async fn what_does_not_end_is_cut_after_a_while() {
    let app = app(&["--shutdown-s=1"]).await;
    let (public, internal) = (bind().await, bind().await);
    let api = format!("http://{}", public.address().expect("bound"));
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
    let mut raw = send_slow_payment(&app, &api, 20_000).await;
    stop.send_replace(true);
    assert_eq!(raw.rest().await, "");
    timeout(PATIENCE, serving).await.expect("an end").expect("no panic");
}

#[tokio::test]
async fn readiness_ends_before_the_host_does() {
    let app = app(&["--drain-s=2"]).await;
    let (public, internal) = (bind().await, bind().await);
    let api = format!("http://{}", public.address().expect("bound"));
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
    let ask = async |path: &str| reply(app.client.get(format!("{api}/health/{path}"))).await;
    assert_eq!(ask("ready").await.status, StatusCode::OK);
    stop.send_replace(true);
    let refused = async {
        loop {
            let answer = ask("ready").await;
            if answer.status != StatusCode::OK {
                break answer;
            }
        }
    };
    let refused = timeout(PATIENCE, refused).await.expect("an answer in time");
    assert_eq!(refused.failure(), (503, "the host is shutting down"));
    assert_eq!(ask("live").await.status, StatusCode::OK); // and new connections are taken
    timeout(PATIENCE, serving).await.expect("an end").expect("no panic");
}

async fn bind() -> Listener {
    Listener::plain(TcpListener::bind("127.0.0.1:0").await.expect("a free port"))
}
