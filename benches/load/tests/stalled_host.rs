//! The load generator against a host that stalls.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::{
    convert::Infallible,
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use clap::Parser;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::RwLock};
use tollhouse_load::Options;

/// The fetch that begins the stall.
const STALLED_FETCH: u64 = 200;
const STALL: Duration = Duration::from_millis(400);

/// A minimal host, which can only fetch payments.
#[derive(Default)]
struct Host {
    fetches: AtomicU64,
    /// Held for writing during the stall.
    stall: RwLock<()>,
    stalled: Mutex<Duration>,
}

impl Host {
    /// Starts the host. Returns a folder with its `sandbox.json`.
    async fn start(self: Arc<Host>, name: &str) -> PathBuf {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let host = self.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let host = host.clone();
                    async move {
                        let data = host.respond(request.uri().path()).await;
                        let body = json!({ "error": false, "data": data }).to_string();
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
                    }
                });
                let io = TokioIo::new(stream);
                tokio::spawn(http1::Builder::new().serve_connection(io, service));
            }
        });
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&dir).unwrap();
        let info = json!({ "api": url, "internal": url, "sandbox": url, "operator_token": "op" });
        fs::write(dir.join("sandbox.json"), info.to_string()).unwrap();
        dir
    }

    async fn respond(&self, path: &str) -> Value {
        match path.strip_prefix("/api/v1/payment/fetch/reference/") {
            Some(reference) => {
                if self.fetches.fetch_add(1, SeqCst) + 1 == STALLED_FETCH {
                    let _stall = self.stall.write().await;
                    let began = Instant::now();
                    tokio::time::sleep(STALL).await;
                    *self.stalled.lock().unwrap() = began.elapsed();
                }
                let _wait = self.stall.read().await;
                json!({ "reference": reference })
            }
            None => json!({ "id": "1", "api_key": "key", "checkout": { "url": "" } }),
        }
    }
}

/// Of 800 requests, the stall delays 160. A client that waits for each response before it sends the
/// next request would see one slow response, beyond p99.
#[tokio::test(flavor = "multi_thread")]
async fn a_stall_shows_in_the_percentiles_of_all_requests_that_it_delays() {
    let host = Arc::new(Host::default());
    let dir = host.clone().start("stalled").await;
    let dir = format!("--sandbox={}", dir.display());
    let flags = ["load", &dir, "--only=fetch", "--rate=400", "--duration-s=2", "--warm-up-s=0"];
    let options = Options::parse_from(flags.iter().chain(&["--arrivals=constant"]));
    let report = tollhouse_load::run(&options).await.unwrap();
    let text = report.text();
    assert_eq!(report.errors(), 0, "{text}");
    assert_eq!(host.fetches.load(SeqCst), 800, "{text}");
    let [phase] = &report.phases[..] else { panic!("{text}") };
    let [step] = &phase.steps[..] else { panic!("{text}") };
    assert_eq!((step.name, step.correct), ("payment fetch", 800));
    let stalled_ms = host.stalled.lock().unwrap().as_secs_f64() * 1e3;
    assert!(step.latency.p99_ms > 0.9 * stalled_ms, "stalled {stalled_ms} ms\n{text}");
    assert!(step.latency.p50_ms < 0.5 * step.latency.p99_ms, "{text}");

    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["phases"][0]["steps"][0]["correct"], 800);
    assert_eq!(report.plot().matches("<polyline").count(), 3);
}

/// Operations beyond the limit are neither sent later nor left out of the report.
#[tokio::test(flavor = "multi_thread")]
async fn operations_beyond_those_in_flight_are_errors() {
    let host = Arc::new(Host::default());
    let dir = host.clone().start("narrow").await;
    let dir = format!("--sandbox={}", dir.display());
    let flags = ["load", &dir, "--only=fetch", "--rate=400", "--duration-s=2", "--warm-up-s=0"];
    let options = Options::parse_from(flags.iter().chain(&["--in-flight=20"]));
    let report = tollhouse_load::run(&options).await.unwrap();
    let [step] = &report.phases[0].steps[..] else { panic!("{}", report.text()) };
    let dropped = step.errors["dropped"].count;
    assert_eq!(report.errors(), dropped, "{}", report.text());
    assert_eq!(host.fetches.load(SeqCst), step.correct);
    assert!(dropped > 20, "{}", report.text());
}
