//! Requests through the real listener, compared with a bare server that returns the same bytes.

mod users;

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use axum::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use clap::Parser;
use futures::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper::{
    client::conn::http1::{SendRequest, handshake},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, watch},
};
use tollhouse_app::{
    state::{App, config::Config},
    wiring,
};
use tollhouse_http as http;
use tollhouse_platform::{clock::Clock, random::Random};
use tollhouse_sandbox::Simulators;

use crate::{
    Bench,
    database::{self, Database},
    divide,
};

/// Number of concurrent connections.
const CONNECTIONS: usize = 32;
/// Number of companies whose requests are compared with those of one.
const COMPANIES: usize = 32;
/// Rounds of a comparison; each sends [`REQUESTS_PER_ROUND`] requests.
const ROUNDS: usize = 25;
const REQUESTS_PER_ROUND: u64 = 2_000;
/// The code of every one-time password.
const CODE: &str = "123456";
pub const OPERATOR_TOKEN: &str = "op_bench_0123456789abcdef0123456789abcdef";
const MASTER_KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

pub fn measure(bench: &mut Bench) {
    for database in database::create_for_each_engine(&bench.runtime) {
        let host = bench.runtime.block_on(Host::start(&database));
        let engine = database.engine;
        let fetch = host.fetch();
        let body = bench.runtime.block_on(fetch.send_once());
        let bare = bench.runtime.block_on(start_bare_server(body, fetch.clone()));
        if engine == "sqlite" {
            measure_load(bench, "http/bare", &bare);
        }
        let name = format!("http/fetch/{engine}");
        measure_load(bench, &name, &fetch);
        if bench.median(&name).is_some() {
            bench.ratios.push((name, ratio(bench, &fetch, &bare)));
        }
        for (name, prefix, companies) in [("", "one", 1), ("-32-companies", "many", COMPANIES)] {
            let companies = &host.companies[..companies];
            let initialize = host.initialize(companies);
            measure_load(bench, &format!("http/initialize{name}/{engine}"), &initialize);
            let send = host.send_code(prefix, companies);
            measure_load(bench, &format!("http/otp-send{name}/{engine}"), &send);
            bench.runtime.block_on(host.wait_until_delivered());
        }
        measure_verify(bench, &format!("http/otp-verify/{engine}"), &host);
        measure_load(bench, &format!("http/lookup/{engine}"), &host.look_up());
        bench.runtime.block_on(users::measure(&host, &database));
        bench.runtime.block_on(host.stop());
        database.drop_schema(&bench.runtime);
    }
}

pub fn compare(bench: &Bench) {
    for (name, ratio) in &bench.ratios {
        println!("{name}: {ratio:.2} times http/bare, alternating");
    }
    for engine in ["sqlite", "postgres"] {
        // A fetch contains two of these: for the key and for the payment.
        bench.print_ratio(&format!("store/select/{engine}/32"), "http/bare");
        // The cost of contention within one company.
        for name in ["http/initialize", "http/otp-send"] {
            let base = format!("{name}-32-companies/{engine}");
            bench.print_ratio(&format!("{name}/{engine}"), &base);
        }
    }
}

fn measure_load(bench: &mut Bench, name: &str, load: &Load) {
    let connections = bench.runtime.block_on(load.connect());
    bench.measure(name, async |iterations| {
        divide(iterations, connections.iter(), |connection, own| {
            load.clone().send_repeatedly(connection.clone(), own)
        })
        .await
    });
}

/// Verifies codes that were sent before; only the verification is measured.
fn measure_verify(bench: &mut Bench, name: &str, host: &Host) {
    let (send, verify) =
        (host.send_code("verify", &host.companies[..1]), host.verify_code("verify"));
    let connections = bench.runtime.block_on(send.connect());
    let send_all = async |load: &Load, times: u64| {
        divide(times, connections.iter(), |connection, own| {
            load.clone().send_repeatedly(connection.clone(), own)
        })
        .await
    };
    bench.measure(name, async |iterations| {
        send_all(&send, iterations).await;
        host.wait_until_delivered().await;
        send_all(&verify, iterations).await
    });
}

/// Returns the ratio of the times per request of `load` and `base`. They alternate: the speed of a
/// bare server varies by a factor of two, depending on the threads that serve its connections.
fn ratio(bench: &Bench, load: &Load, base: &Load) -> f64 {
    let connect = |load: &Load| bench.runtime.block_on(load.connect());
    let (loaded, bare) = (connect(load), connect(base));
    let time_per_request = |load: &Load, connections: &[Connection], times: u64| {
        let requests = divide(times, connections.iter(), |connection, own| {
            load.clone().send_repeatedly(connection.clone(), own)
        });
        bench.runtime.block_on(requests).as_secs_f64() / times as f64
    };
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            time_per_request(load, &loaded, REQUESTS_PER_ROUND)
                / time_per_request(base, &bare, 10 * REQUESTS_PER_ROUND)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

type Connection = Arc<Mutex<SendRequest<Full<Bytes>>>>;

/// A repeated request.
#[derive(Clone)]
struct Load {
    to: SocketAddr,
    request: Arc<dyn Fn() -> Request<Full<Bytes>> + Send + Sync>,
}

impl Load {
    async fn connect(&self) -> Vec<Connection> {
        join_all((0..CONNECTIONS).map(|_| connect(self.to))).await
    }

    async fn send_repeatedly(self, connection: Connection, times: u64) {
        let mut connection = connection.lock().await;
        for _ in 0..times {
            send(&mut connection, (self.request)()).await;
        }
    }

    async fn send_once(&self) -> Bytes {
        let connection = connect(self.to).await;
        let mut connection = connection.lock().await;
        send(&mut connection, (self.request)()).await
    }
}

async fn connect(to: SocketAddr) -> Connection {
    let stream = TcpStream::connect(to).await.expect("a server");
    stream.set_nodelay(true).expect("a TCP socket");
    let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    Arc::new(Mutex::new(sender))
}

async fn send(connection: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> Bytes {
    let response = connection.send_request(request).await.expect("a response");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a complete response").to_bytes();
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    body
}

/// Starts a server without anything behind it, and returns the load for it.
async fn start_bare_server(body: Bytes, load: Load) -> Load {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let to = listener.local_addr().expect("a bound listener");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a TCP socket");
            let body = body.clone();
            let service = service_fn(move |_| {
                let response = Response::new(Full::new(body.clone()));
                async { Ok::<_, Infallible>(response) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Load { to, ..load }
}

/// A complete host with companies, a payment of the first one, and simulators without delay.
struct Host {
    public: SocketAddr,
    internal: SocketAddr,
    companies: Vec<Company>,
    reference: &'static str,
    stop: watch::Sender<bool>,
    served: tokio::task::JoinHandle<()>,
}

impl Host {
    async fn start(database: &Database) -> Host {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (public, internal) = (bind().await, bind().await);
        let address = |listener: &TcpListener| listener.local_addr().expect("a bound listener");
        let addresses = (address(&public), address(&internal));
        let clock = Clock::system();
        let simulators = Simulators::start(bind().await, bind().await, clock.clone());
        let app = App::open(&config(database, &simulators), clock, Random::system(), None).await;
        let app = app.expect("a host that starts");
        let (stop, stopped) = watch::channel(false);
        let (public, internal) = (http::Listener::plain(public), http::Listener::plain(internal));
        let served = tokio::spawn(wiring::serve(app, public, internal, stopped));
        let mut host = Host {
            public: addresses.0,
            internal: addresses.1,
            companies: Vec::new(),
            reference: "bench-fetch",
            stop,
            served,
        };
        host.set_up(&simulators).await;
        host
    }

    async fn set_up(&mut self, simulators: &Simulators) {
        self.operator(Method::POST, "/plugins?grant=true", artifacts::PROVIDER_A.into()).await;
        let base_url = format!("{}/paystack", simulators.url());
        let credentials = json!({ "secret_key": "sk_test_bench", "base_url": base_url });
        let account = json!({ "credentials": credentials, "active": true });
        self.operator(Method::PUT, "/providers/provider_a", account.to_string().into()).await;
        self.operator(Method::POST, "/plugins?grant=true", artifacts::NIGERIA.into()).await;
        let url = format!("{}/prembly", simulators.url());
        let credentials = json!({ "prembly_key": "bench", "prembly_url": url });
        let account = json!({ "credentials": credentials, "active": true });
        self.operator(Method::PUT, "/providers/nigeria", account.to_string().into()).await;
        for _ in 0..COMPANIES {
            let company = self.create_company().await;
            self.companies.push(company);
        }
        let reference = Arc::from(self.reference);
        self.initialize_as(reference).send_once().await;
    }

    async fn create_company(&self) -> Company {
        let company = json!({ "name": "Bench", "server": "test" }).to_string();
        let company = self.operator(Method::POST, "/companies", company.into()).await;
        let api_key = company["api_key"].as_str().expect("a key").to_owned();
        let path = format!("/companies/{}", company["id"].as_str().expect("an id"));
        let edit = json!({ "fixed_otp": CODE }).to_string();
        self.operator(Method::PATCH, &path, edit.into()).await;
        let prices = json!({ "otp.email": 2.5 }).to_string();
        self.operator(Method::PATCH, &format!("{path}/prices"), prices.into()).await;
        let credit = json!({ "amount": 1_000_000_000, "key": "bench" }).to_string();
        self.operator(Method::POST, &format!("{path}/wallet/credit"), credit.into()).await;
        Company { path, api_key }
    }

    async fn operator(&self, method: Method, path: &str, body: Bytes) -> Value {
        let path = format!("/internal/v1{path}");
        let request = request(method, &path, OPERATOR_TOKEN, body);
        let load = Load { to: self.internal, request: Arc::new(move || request.clone()) };
        let mut envelope: Value = serde_json::from_slice(&load.send_once().await).expect("JSON");
        envelope["data"].take()
    }

    fn fetch(&self) -> Load {
        let path = format!("/api/v1/payment/fetch/reference/{}", self.reference);
        let request = request(Method::GET, &path, &self.companies[0].api_key, Bytes::new());
        Load { to: self.public, request: Arc::new(move || request.clone()) }
    }

    /// Each request has its own reference. The companies take turns.
    fn initialize(&self, companies: &[Company]) -> Load {
        let (count, companies) = (AtomicU64::new(0), companies.to_vec());
        let run = Random::system().token("");
        let make = move || {
            let count = count.fetch_add(1, Relaxed);
            initialize(key_for(&companies, count), &format!("{run}-{count}"))
        };
        Load { to: self.public, request: Arc::new(make) }
    }

    fn initialize_as(&self, reference: Arc<str>) -> Load {
        let request = initialize(&self.companies[0].api_key, &reference);
        Load { to: self.public, request: Arc::new(move || request.clone()) }
    }

    /// Each request has its own identifier; delivery is by e-mail. The companies take turns.
    fn send_code(&self, prefix: &'static str, companies: &[Company]) -> Load {
        let body = |identifier: String| {
            let email = format!("{identifier}@example.com");
            json!({ "identifier": identifier, "channels": ["email"], "email": email })
        };
        self.numbered_load("/api/v1/otp/send", prefix, companies, body)
    }

    /// The identifiers are those of [`Host::send_code`], in the same order.
    fn verify_code(&self, prefix: &'static str) -> Load {
        let body = |identifier: String| json!({ "identifier": identifier, "token": CODE });
        self.numbered_load("/api/v1/otp/verify", prefix, &self.companies[..1], body)
    }

    /// Each request is for another person, invented by the simulator.
    fn look_up(&self) -> Load {
        let (count, key) = (AtomicU64::new(0), self.companies[0].api_key.clone());
        let make = move || {
            let body =
                json!({ "bvn": format!("{:06}12345", count.fetch_add(1, Relaxed) % 1_000_000) });
            let body = body.to_string().into();
            request(Method::POST, "/api/v1/kyc/nigeria/bvn/lookup", &key, body)
        };
        Load { to: self.public, request: Arc::new(make) }
    }

    fn numbered_load(
        &self,
        path: &'static str,
        prefix: &'static str,
        companies: &[Company],
        body: impl Fn(String) -> Value + Send + Sync + 'static,
    ) -> Load {
        let (count, companies) = (AtomicU64::new(0), companies.to_vec());
        let make = move || {
            let count = count.fetch_add(1, Relaxed);
            let body = body(format!("{prefix}-{count}")).to_string();
            request(Method::POST, path, key_for(&companies, count), body.into())
        };
        Load { to: self.public, request: Arc::new(make) }
    }

    /// Waits for all deliveries, which would slow down what is measured next.
    async fn wait_until_delivered(&self) {
        for company in &self.companies {
            let path = format!("{}/messages?state=pending&limit=1", company.path);
            while self.operator(Method::GET, &path, Bytes::new()).await["total"] != 0 {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }

    async fn stop(self) {
        self.stop.send(true).expect("a server that listens");
        self.served.await.expect("a graceful shutdown");
    }
}

#[derive(Clone)]
struct Company {
    /// In the operator API.
    path: String,
    api_key: String,
}

/// Returns the API key for a numbered request.
fn key_for(companies: &[Company], number: u64) -> &str {
    &companies[number as usize % companies.len()].api_key
}

fn initialize(key: &str, reference: &str) -> Request<Full<Bytes>> {
    let body = json!({
        "email": "ada@example.com",
        "amount": 5000,
        "currency": "NGN",
        "reference": reference,
        "checkout": { "success_url": "https://shop.example/done" },
    });
    request(Method::POST, "/api/v1/payment/initialize", key, body.to_string().into())
}

fn request(method: Method, path: &str, token: &str, body: Bytes) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Full::new(body))
        .expect("a request")
}

pub fn config(database: &Database, simulators: &Simulators) -> Config {
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        config: Config,
    }
    let file = |name: &str, text: &str| {
        let file = database.dir.path().join(name);
        std::fs::write(&file, text).expect("a file in a temporary folder");
        file.display().to_string()
    };
    let flags = [
        "bench".to_owned(),
        format!("--database={}", database.url),
        format!("--operator-token-file={}", file("operator-token", OPERATOR_TOKEN)),
        format!("--master-key-file={}", file("master-key", MASTER_KEY)),
        format!("--files={}", database.dir.path().join("files").display()),
        "--rate-per-s=0".to_owned(),
        "--otp-company-sends-per-hour=0".to_owned(),
        "--smtp-host=127.0.0.1".to_owned(),
        format!("--smtp-port={}", simulators.smtp_addr().port()),
        "--smtp-security=none".to_owned(),
        "--email-from=no-reply@tollhouse.example".to_owned(),
        "--development".to_owned(),
        "--plugin-unsigned".to_owned(),
    ];
    Flags::parse_from(flags).config
}
