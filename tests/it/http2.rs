//! HTTP/2: limits, timeouts and shutdown, tested with hand-made frames (RFC 9113, 4.1).

use std::time::Duration;

use futures::future::join_all;
use reqwest::Client;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tollhouse_app::wiring;
use tollhouse_http::Listener;

use crate::app::{Engine, TestApp, reply};

const TIMEOUT: Duration = Duration::from_secs(30);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const MAX_CONCURRENT_STREAMS: u16 = 3;
const NO_ERROR: u32 = 0;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

/// A frame from the host.
#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    /// Returns the error code of a RST_STREAM or GOAWAY frame.
    fn code(&self) -> u32 {
        let at = if self.kind == GO_AWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes"))
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes a literal field by the index of its name in HPACK's static table (RFC 7541, appendix A).
fn field(number: u8, value: &str) -> Vec<u8> {
    let name = if number < 15 { vec![number] } else { vec![15, number - 15] };
    let length = u8::try_from(value.len()).expect("a short value");
    [&*name, &[length], value.as_bytes()].concat()
}

/// Encodes the header fields of a request.
fn request(method: &str, path: &str, key: &str) -> Vec<u8> {
    const SCHEME_HTTP: u8 = 0x86;
    let named = [field(2, method), field(4, path), field(1, "x")].concat(); // the authority is `x`
    let authorization = field(23, &format!("Bearer {key}"));
    [vec![SCHEME_HTTP], named, authorization].concat()
}

struct RawConnection(TcpStream);

impl RawConnection {
    /// Connects, and sends the preface and the settings.
    async fn connect(url: &str) -> RawConnection {
        let address = url.strip_prefix("http://").expect("a URL of the harness");
        let mut raw = RawConnection(TcpStream::connect(address).await.expect("a connection"));
        raw.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await;
        raw
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("bytes that are sent");
    }

    /// Reads a frame. `None`: the host has closed the connection.
    async fn frame(&mut self) -> Option<Frame> {
        let read = async {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut payload = vec![0; length.try_into().expect("a length")];
            self.0.read_exact(&mut payload).await.ok()?;
            Some(Frame { kind: head[3], flags: head[4], stream, payload })
        };
        timeout(TIMEOUT, read).await.expect("a frame in time")
    }

    /// Reads the next frame of this kind; skips others.
    async fn next(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.frame().await.expect("another frame");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Reads the body of the response on a stream.
    async fn read_response(&mut self, stream: u32) -> Value {
        let mut body = Vec::new();
        loop {
            let data = self.next(DATA).await;
            if data.stream == stream {
                body.extend(data.payload);
                if data.flags & END_STREAM != 0 {
                    return serde_json::from_slice(&body).expect("JSON");
                }
            }
        }
    }
}

async fn app(flags: &[&str]) -> TestApp {
    TestApp::start_with(Engine::Sqlite, flags).await
}

async fn assert_alive(app: &TestApp) {
    let request = app.client.get(format!("{}/health/live", app.api));
    assert_eq!(reply(request).await.status, 200);
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused_and_open_ones_continue() {
    let app = app(&["--http2-streams=3"]).await;
    let mut raw = RawConnection::connect(&app.api).await;
    let settings = raw.next(SETTINGS).await.payload;
    let limit = settings.chunks(6).find(|s| s[..2] == MAX_CONCURRENT_STREAMS.to_be_bytes());
    assert_eq!(limit.map(|setting| &setting[2..]), Some(&3_u32.to_be_bytes()[..]));

    // Requests whose bodies follow later.
    let create = request("POST", "/api/v1/user/create", &app.company.key);
    for stream in [1, 3, 5, 7] {
        raw.send(&frame(HEADERS, END_HEADERS, stream, &create)).await;
    }
    let refused = raw.next(RESET).await;
    assert_eq!((refused.stream, refused.code()), (7, REFUSED_STREAM));
    assert_alive(&app).await;

    for stream in [3, 1] {
        raw.send(&frame(DATA, END_STREAM, stream, b"{}")).await;
        assert_eq!(raw.read_response(stream).await["error"], true);
    }
    let live = request("GET", "/health/live", "");
    raw.send(&frame(HEADERS, END_HEADERS | END_STREAM, 9, &live)).await;
    assert_eq!(raw.read_response(9).await["message"], "alive");
    app.finish().await;
}

#[tokio::test]
async fn a_client_within_the_stream_limit_is_served() {
    let app = app(&["--http2-streams=2"]).await;
    let client = Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let list = || {
        let request = client.get(format!("{}/api/v1/payment/list", app.api));
        reply(request.bearer_auth(&app.company.key))
    };
    for response in join_all((0..20).map(|_| list())).await {
        response.data();
    }
    app.finish().await;
}

#[tokio::test]
async fn a_flood_of_stream_resets_closes_its_own_connection_only() {
    let app = app(&["--http2-resets=5"]).await;
    let mut raw = RawConnection::connect(&app.api).await;
    let list = request("GET", "/api/v1/payment/list", &app.company.key);
    let storm: Vec<u8> = (0..1_000)
        .flat_map(|n| {
            let stream = 2 * n + 1;
            let open = frame(HEADERS, END_HEADERS | END_STREAM, stream, &list);
            [open, frame(RESET, 0, stream, &CANCEL.to_be_bytes())].concat()
        })
        .collect();
    let _ = raw.0.write_all(&storm).await; // the host may close the connection early
    let mut last = None;
    while let Some(frame) = raw.frame().await {
        last = Some(frame);
    }
    let last = last.expect("a GOAWAY frame");
    assert_eq!((last.kind, last.code()), (GO_AWAY, ENHANCE_YOUR_CALM));
    assert_alive(&app).await;
    app.get("/payment/list").await.data();
    app.finish().await;
}

#[tokio::test]
async fn an_incomplete_preface_times_out_without_an_http1_response() {
    let app = app(&["--header-timeout-s=1"]).await;
    let mut raw =
        RawConnection(TcpStream::connect(&app.api["http://".len()..]).await.expect("a connection"));
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    for byte in &PREFACE[..PREFACE.len() - 1] {
        raw.send(&[*byte]).await;
        pace.tick().await;
    }
    let mut received = Vec::new();
    timeout(TIMEOUT, raw.0.read_to_end(&mut received)).await.expect("an end").expect("no error");
    assert_eq!(String::from_utf8_lossy(&received), "");
    assert_alive(&app).await;
    app.finish().await;
}

#[tokio::test]
async fn a_preface_sent_in_pieces_opens_a_connection() {
    let app = app(&["--header-timeout-s=1"]).await;
    let mut raw =
        RawConnection(TcpStream::connect(&app.api["http://".len()..]).await.expect("a connection"));
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    for byte in [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat() {
        raw.send(&[byte]).await;
        pace.tick().await;
    }
    // No request for longer than the header timeout.
    for _ in 0..6 {
        raw.send(&frame(PING, 0, 0, b"are you?")).await;
        assert_eq!(raw.next(PING).await.payload, b"are you?");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let live = request("GET", "/health/live", "");
    raw.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &live)).await;
    assert_eq!(raw.read_response(1).await["message"], "alive");
    app.finish().await;
}

#[tokio::test]
async fn shutdown_sends_goaway_and_completes_requests_in_flight() {
    let app = app(&["--shutdown-s=60"]).await;
    let bind =
        async || Listener::plain(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
    let (public, internal) = (bind().await, bind().await);
    let api = format!("http://{}", public.address().expect("bound"));
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
    let mut raw = RawConnection::connect(&api).await;
    let create = request("POST", "/api/v1/user/create", &app.company.key);
    raw.send(&frame(HEADERS, END_HEADERS, 1, &create)).await; // the body follows later
    raw.send(&frame(PING, 0, 0, b"read it?")).await;
    raw.next(PING).await;
    stop.send_replace(true);
    assert_eq!(raw.next(GO_AWAY).await.code(), NO_ERROR);
    // The host waits for a PING acknowledgement before it refuses new streams (RFC 9113, 6.8).
    let ping = raw.next(PING).await.payload;
    raw.send(&frame(PING, ACK, 0, &ping)).await;
    raw.send(&frame(DATA, END_STREAM, 1, b"{}")).await;
    assert_eq!(raw.read_response(1).await["error"], true);
    timeout(TIMEOUT, serving).await.expect("an end").expect("no panic");
}
