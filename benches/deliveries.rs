//! Events delivered per second by one host: a backlog of one company, of several, and of several of
//! which half have endpoints that never respond.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::{Router, routing::post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_app::{
    routes,
    state::App,
    webhooks::outgoing::{self, Event},
};
use tollhouse_platform::{
    background::jobs, clock::Clock, error::Result, random::Random, store::Tx, values::id::CompanyId,
};
use tollhouse_sandbox::Simulators;

use crate::{
    Bench,
    database::{self, Database},
    http::{OPERATOR_TOKEN, config},
};

/// Variable with the number of events. Without it, this slow benchmark is skipped.
const EVENTS_VARIABLE: &str = "TOLLHOUSE_BENCH_EVENTS";
const COMPANIES: usize = 8;
const EVENTS_PER_TRANSACTION: usize = 500;

pub fn measure(bench: &Bench) {
    let count = std::env::var(EVENTS_VARIABLE).ok().and_then(|count| count.parse().ok());
    let Some(count): Option<usize> = count else { return };
    for (name, healthy, hanging) in [
        ("one company", 1, 0),
        ("eight companies", COMPANIES, 0),
        ("eight companies, half of the endpoints hanging", COMPANIES / 2, COMPANIES / 2),
    ] {
        for database in database::create_for_each_engine(&bench.runtime) {
            let took = bench.runtime.block_on(async {
                let host = Host::start(&database).await;
                let emitted = host.emit(count, healthy, hanging).await;
                database.vacuum().await;
                (host.deliver(&emitted).await, emitted.count)
            });
            let (took, delivered) = took;
            let (engine, rate) = (database.engine, delivered as f64 / took.as_secs_f64());
            println!("deliveries/{engine}/{name}: {delivered} events, {rate:.0} a second");
            database.drop_schema(&bench.runtime);
        }
    }
}

struct Host {
    app: App,
    internal: String,
    client: reqwest::Client,
    _simulators: Simulators,
}

/// Events to endpoints that respond.
struct Emitted {
    count: usize,
    received: Arc<AtomicUsize>,
}

impl Host {
    async fn start(database: &Database) -> Host {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let simulators = Simulators::start(bind().await, bind().await, Clock::system());
        let mut config = config(database, &simulators);
        config.listeners.public_url = Some("http://127.0.0.1:1".to_owned());
        let app = App::open(&config, Clock::system(), Random::system(), None).await;
        let app = app.expect("a host that starts");
        let listener = bind().await;
        let internal = format!("http://{}", listener.local_addr().expect("a bound listener"));
        let router = routes::router(&app, routes::internal_routes());
        tokio::spawn(axum::serve(listener, router).into_future());
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        Host { app, internal, client, _simulators: simulators }
    }

    /// Emits `count` events for each group of companies, to an endpoint per company.
    async fn emit(&self, count: usize, healthy: usize, hanging: usize) -> Emitted {
        let received = Arc::new(AtomicUsize::new(0));
        for (companies, responds) in [(hanging, false), (healthy, true)] {
            for n in 0..companies {
                let url = start_endpoint(received.clone(), responds).await;
                let company = self.create_company(&url).await;
                let mut left = count / companies + usize::from(n < count % companies);
                while left > 0 {
                    let size = left.min(EVENTS_PER_TRANSACTION);
                    let (app, company) = (self.app.clone(), company.clone());
                    let emit = async move |tx: &mut Tx| emit(tx, &app, &company, size).await;
                    self.app.store.write(emit).await.expect("events");
                    left -= size;
                }
            }
        }
        Emitted { count, received }
    }

    async fn create_company(&self, event_url: &str) -> CompanyId {
        let company = json!({ "name": "Lender", "server": "test", "event_url": event_url });
        let request = self.client.post(format!("{}/internal/v1/companies", self.internal));
        let response = request.bearer_auth(OPERATOR_TOKEN).json(&company).send().await;
        let body: Value = response.expect("a response").json().await.expect("JSON");
        CompanyId::from(body["data"]["id"].as_str().expect("an id"))
    }

    /// Returns the time until all endpoints that respond have received their events.
    async fn deliver(&self, emitted: &Emitted) -> Duration {
        let began = Instant::now();
        let work = tokio::spawn(jobs::run_workers(self.app.clone()));
        while emitted.received.load(Relaxed) < emitted.count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let took = began.elapsed();
        work.abort();
        took
    }
}

async fn emit(tx: &mut Tx, app: &App, company: &CompanyId, count: usize) -> Result<()> {
    for n in 0..count {
        let (subject_id, data) =
            (format!("payment-{n}"), json!({ "amount": 2_500.5, "number": n }));
        let event = Event { kind: "payment.success", subject_id, data, callback_url: None };
        outgoing::emit(tx, app, company, event).await?;
    }
    Ok(())
}

/// Starts an endpoint that counts requests and responds, or does neither. Returns its URL.
async fn start_endpoint(received: Arc<AtomicUsize>, responds: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/hook", listener.local_addr().expect("a bound listener"));
    let hook = async move || {
        if !responds {
            pending::<()>().await;
        }
        received.fetch_add(1, Relaxed);
    };
    let router = Router::new().route("/hook", post(hook));
    tokio::spawn(axum::serve(listener, router).into_future());
    url
}
