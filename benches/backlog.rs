//! Installments that fall due together, collected by several hosts on one database.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures::future::join_all;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tollhouse_app::{routes, state::App, wiring};
use tollhouse_http as http;
use tollhouse_platform::{
    background::jobs,
    clock::{Clock, Timestamp},
    crypto::tls,
    random::Random,
    store::{Result, Tx},
};
use tollhouse_sandbox::Simulators;

use crate::{
    Bench,
    database::{self, Database},
    http::{OPERATOR_TOKEN, config},
};

/// Variable with the number of installments. Without it, this slow benchmark is skipped.
const INSTALLMENTS_VARIABLE: &str = "TOLLHOUSE_BENCH_INSTALLMENTS";
const COMPANIES: usize = 10;
const CONNECTIONS: usize = 16;
/// Interval between counts, each of which reads all loans.
const POLL: Duration = Duration::from_secs(1);
const PROVIDER_KEY: &str = "sk_test_bench";
const CARD: &str = "4084084084084081";
/// 2026-11-21T09:00:00Z, when loans are created; they are due two days later.
const NOW: Timestamp = Timestamp(1_795_251_600_000);
const DUE: &str = "2026-11-23";

pub fn measure(bench: &mut Bench) {
    let Some(count) =
        std::env::var(INSTALLMENTS_VARIABLE).ok().and_then(|count| count.parse().ok())
    else {
        return;
    };
    for database in database::create_for_each_engine(&bench.runtime) {
        // Hosts share a SQLite file only on one machine, and one writer at a time.
        let hosts = if database.engine == "sqlite" { 1 } else { 3 };
        let took = bench.runtime.block_on(async {
            let fleet = Fleet::start(&database, hosts).await;
            fleet.create_loans(count).await;
            database.vacuum().await;
            fleet.collect(count).await
        });
        let (engine, seconds) = (database.engine, took.as_secs_f64());
        println!(
            "backlog/{engine}: {count} installments by {hosts} hosts in {seconds:.1} s, {:.0} a second",
            count as f64 / seconds
        );
        database.drop_schema(&bench.runtime);
    }
}

/// Hosts that share a database and a clock, and the simulator of their provider.
struct Fleet {
    hosts: Vec<App>,
    clock: Clock,
    simulators: Simulators,
    client: Client,
    internal: SocketAddr,
    public: SocketAddr,
}

impl Fleet {
    async fn start(database: &Database, hosts: usize) -> Fleet {
        tls::install_provider();
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = |listener: &TcpListener| listener.local_addr().expect("a bound listener");
        let (public, internal) = (bind().await, bind().await);
        let addresses = (address(&public), address(&internal));
        let clock = Clock::frozen_at(NOW);
        let simulators = Simulators::start(bind().await, bind().await, clock.clone());
        let mut config = config(database, &simulators);
        config.listeners.public_url = Some(format!("http://{}", addresses.0));
        let mut apps = Vec::new();
        for _ in 0..hosts {
            let app = App::open(&config, clock.clone(), Random::system(), None).await;
            apps.push(app.expect("a host that starts"));
        }
        for (tcp, routes) in
            [(public, routes::public_routes()), (internal, routes::internal_routes())]
        {
            let (app, (_, never)) = (apps[0].clone(), watch::channel(false));
            tokio::spawn(async move {
                wiring::listen(&app, http::Listener::plain(tcp), routes, never).await;
            });
        }
        let client = Client::builder().no_proxy().build().expect("a client");
        let (public, internal) = addresses;
        Fleet { hosts: apps, clock, simulators, client, internal, public }
    }

    async fn operator(&self, method: Method, path: &str, body: Vec<u8>) -> Value {
        let url = format!("http://{}/internal/v1{path}", self.internal);
        self.send(method, &url, OPERATOR_TOKEN, body).await
    }

    async fn send(&self, method: Method, url: &str, token: &str, body: Vec<u8>) -> Value {
        let request = self.client.request(method, url).bearer_auth(token);
        let request = request.header("content-type", "application/json").body(body);
        let response = request.send().await.expect("a response");
        let status = response.status();
        let mut body: Value = response.json().await.expect("JSON");
        assert!(status.is_success(), "{url}: {body}");
        body["data"].take()
    }

    /// Creates loans of one installment each, for borrowers with a saved card.
    async fn create_loans(&self, count: usize) {
        self.operator(Method::POST, "/plugins?grant=true", artifacts::PROVIDER_A.to_vec()).await;
        let base_url = format!("{}/paystack", self.simulators.url());
        let credentials = json!({ "secret_key": PROVIDER_KEY, "base_url": base_url });
        let account = json!({ "credentials": credentials, "active": true });
        let account = account.to_string().into();
        let account = self.operator(Method::PUT, "/providers/provider_a", account).await;
        let webhook = account["notification_url"].as_str().expect("a URL");
        self.simulators.paystack().set_webhook(PROVIDER_KEY, webhook);
        let companies = join_all((0..COMPANIES).map(|n| self.create_company(n))).await;
        let loan = json!({
            "user_id": "ada", "amount": 100, "currency": "NGN", "disbursed": true,
            "schedule": [{ "due_date": DUE, "amount": 100 }],
        });
        let loan = loan.to_string().into_bytes();
        let lend = async |worker: usize| {
            for n in (worker..count).step_by(CONNECTIONS) {
                let path = format!("/companies/{}/loans/loan-{n}", companies[n % COMPANIES]);
                self.operator(Method::PUT, &path, loan.clone()).await;
            }
        };
        join_all((0..CONNECTIONS).map(lend)).await;
    }

    /// Creates a company that pays for collections, and its borrower. Returns the company's id.
    async fn create_company(&self, n: usize) -> String {
        let company = json!({ "name": format!("Lender {n}"), "server": "test" }).to_string();
        let company = self.operator(Method::POST, "/companies", company.into()).await;
        let text = |name: &str| company[name].as_str().expect("a text").to_owned();
        let (id, key) = (text("id"), text("api_key"));
        let prices = json!({ "recollection.card": 20 }).to_string().into();
        self.operator(Method::PATCH, &format!("/companies/{id}/prices"), prices).await;
        let credit = json!({ "amount": 1_000_000_000, "key": "bench" }).to_string().into();
        self.operator(Method::POST, &format!("/companies/{id}/wallet/credit"), credit).await;
        let api = async |path: &str, body: Value| {
            let url = format!("http://{}/api/v1{path}", self.public);
            self.send(Method::POST, &url, &key, body.to_string().into()).await
        };
        let user = json!({
            "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com",
        });
        api("/user/create", user).await;
        let card = json!({
            "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://lender.example/" },
        });
        let card = api("/card/create", card).await;
        let page = card["checkout"]["url"].as_str().expect("a page");
        let paid = json!({ "outcome": "success", "card": CARD });
        let paid = self.client.post(format!("{page}/complete")).json(&paid).send().await;
        assert!(paid.expect("a response").status().is_success());
        let id_of_card = card["id"].as_str().expect("an id");
        api(&format!("/card/verify/{id_of_card}"), json!({})).await;
        id
    }

    /// Returns the time from the due date until everything is repaid.
    async fn collect(&self, count: usize) -> Duration {
        let store = &self.hosts[0].store;
        for host in &self.hosts {
            host.plugins.sync_once(store).await.expect("the plugins that serve");
        }
        self.clock.advance_to(NOW.plus_seconds(2 * 24 * 3_600));
        let began = Instant::now();
        let work: Vec<JoinHandle<()>> =
            self.hosts.iter().map(|host| tokio::spawn(jobs::run_workers(host.clone()))).collect();
        while store.select(count_repaid_loans).await.expect("a count") < count {
            tokio::time::sleep(POLL).await;
        }
        let took = began.elapsed();
        work.iter().for_each(JoinHandle::abort);
        let collected = store.select(count_recollections).await.expect("a count");
        assert_eq!(collected, count, "each installment is collected once");
        took
    }
}

async fn count_repaid_loans(tx: &mut Tx) -> Result<usize> {
    let count = tx.sql("SELECT COUNT(*) FROM loans WHERE amount_paid_minor = amount_minor");
    let (count,): (i64,) = count.one().await?;
    Ok(usize::try_from(count).expect("a count"))
}

async fn count_recollections(tx: &mut Tx) -> Result<usize> {
    let (count,): (i64,) = tx.sql("SELECT COUNT(*) FROM recollections").one().await?;
    Ok(usize::try_from(count).expect("a count"))
}
