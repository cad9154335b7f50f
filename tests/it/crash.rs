//! `kill -9` at any moment loses no answered request and no event, and credits nothing twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse::{clock::Clock, random::Random};
use tollhouse_sandbox::Standins;

use crate::app::{Database, Engine, MASTER_KEY, OPERATOR_TOKEN, PAYSTACK_KEY, postgres, reply};

const ROUNDS: usize = 6;
const CLIENTS: usize = 4;

/// A host in a process of its own.
struct Process(Child);

impl Process {
    async fn start(lab: &Lab) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
        command
            .arg("serve")
            .env("TOLLHOUSE_DATABASE", &lab.database.url)
            .arg(format!("--listen={}", lab.api))
            .arg(format!("--internal-listen={}", lab.internal))
            .arg(format!("--plugin-cache={}/plugin-cache", env!("CARGO_TARGET_TMPDIR")))
            .arg("--plugin-instances=20")
            .arg("--rate-per-s=0")
            .arg("--development")
            .env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN)
            .env("TOLLHOUSE_MASTER_KEY", MASTER_KEY)
            .env("RUST_LOG", "off")
            .stdin(Stdio::null());
        let process = Process(command.spawn().expect("the program starts"));
        for _ in 0..600 {
            let live = lab.client.get(format!("http://{}/health/live", lab.api)).send().await;
            if live.is_ok_and(|answer| answer.status().is_success()) {
                return process;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the host does not come up");
    }

    fn kill(mut self) {
        self.0.kill().expect("SIGKILL");
        self.0.wait().expect("it is gone");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

struct Lab {
    database: Database,
    standins: Standins,
    client: Client,
    api: String,
    internal: String,
}

impl Lab {
    async fn build(engine: Engine) -> Lab {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (api, internal) = (bind().await, bind().await);
        let address = |listener: &TcpListener| listener.local_addr().expect("bound").to_string();
        let standins = Standins::start_seeded(bind().await, bind().await, Clock::system(), 1);
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build();
        Lab {
            database: Database::create(engine).await,
            standins,
            client: client.expect("a client"),
            api: address(&api),
            internal: address(&internal),
        }
    }

    async fn operator(&self, method: Method, path: &str, body: Value) -> Value {
        let url = format!("http://{}/internal/v1{path}", self.internal);
        let request = self.client.request(method, url).bearer_auth(OPERATOR_TOKEN);
        reply(request.json(&body)).await.data().clone()
    }

    /// Answers id and key of a company.
    async fn set_up(&self) -> (String, String) {
        let install = self.client.post(format!("http://{}/internal/v1/plugins", self.internal));
        let install = install.bearer_auth(OPERATOR_TOKEN).body(artifacts::PROVIDER_A);
        reply(install).await.data();
        let base_url = format!("{}/paystack", self.standins.url());
        let set = json!({ "credentials": { "secret_key": PAYSTACK_KEY, "base_url": base_url } });
        let account = self.operator(Method::PUT, "/providers/provider_a", set).await;
        let webhook = account["notification_url"].as_str().expect("a URL");
        self.standins.paystack().set_webhook(PAYSTACK_KEY, webhook);
        let company = json!({
            "name": "Acme", "server": "test", "event_url": format!("{}/events", self.standins.url()),
        });
        let company = self.operator(Method::POST, "/companies", company).await;
        let text = |name: &str| company[name].as_str().expect("a text").to_owned();
        (text("id"), text("api_key"))
    }

    fn order(&self, reference: &str) -> Value {
        json!({
            "email": "ada@example.com", "amount": 100, "currency": "NGN", "reference": reference,
            "checkout": { "success_url": "https://lender.example/paid" },
        })
    }

    /// `None` when the host was killed before it answered.
    async fn initialize(&self, key: &str, reference: &str) -> Option<Value> {
        let request = self.client.post(format!("http://{}/api/v1/payment/initialize", self.api));
        let answer = request.bearer_auth(key).json(&self.order(reference)).send().await.ok()?;
        let ok = answer.status().is_success();
        let mut body: Value = answer.json().await.ok()?;
        ok.then(|| body["data"].take())
    }

    async fn pay(&self, payment: &Value) {
        let url = payment["checkout"]["url"].as_str().expect("a checkout URL");
        let complete = self.client.post(format!("{url}/complete"));
        let paid = complete.json(&json!({ "outcome": "success" })).send().await;
        assert!(paid.expect("the stand-in lives").status().is_success());
    }
}

/// By reference: the id that was answered, or `None` when no answer came.
type Asked = Arc<Mutex<BTreeMap<String, Option<String>>>>;

async fn be_a_client(lab: Arc<Lab>, key: String, name: String, asked: Asked) {
    for n in 0.. {
        let reference = format!("{name}-{n}");
        asked.lock().unwrap().insert(reference.clone(), None);
        let Some(payment) = lab.initialize(&key, &reference).await else { return };
        let id = payment["id"].as_str().expect("an id").to_owned();
        asked.lock().unwrap().insert(reference, Some(id));
        lab.pay(&payment).await;
    }
}

async fn kill_again_and_again(engine: Engine) {
    let lab = Arc::new(Lab::build(engine).await);
    let random = Random::system();
    let asked = Asked::default();
    let mut process = Process::start(&lab).await;
    let (company, key) = lab.set_up().await;
    for round in 0..ROUNDS {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let name = format!("r{round}-c{client}");
                tokio::spawn(be_a_client(lab.clone(), key.clone(), name, asked.clone()))
            })
            .collect();
        let alive_ms = 50 + u64::try_from(random.up_to(400)).unwrap();
        tokio::time::sleep(Duration::from_millis(alive_ms)).await;
        process.kill();
        for client in clients {
            client.await.expect("a client that ends");
        }
        process = Process::start(&lab).await;
    }

    // What was not answered can be asked for again, and all of it is paid in the end.
    let asked = asked.lock().unwrap().clone();
    let answered = asked.values().flatten().count();
    println!("{} payments asked for, {answered} answered before a kill", asked.len());
    for reference in asked.iter().filter(|(_, id)| id.is_none()).map(|(reference, _)| reference) {
        // Whoever was killed at the provider is left alone for a while.
        lab.operator(Method::POST, "/clock/advance", json!({ "seconds": 120 })).await;
        let payment = lab.initialize(&key, reference).await.expect("a payment that resumes");
        lab.pay(&payment).await;
    }
    lab.operator(Method::POST, "/clock/advance", json!({ "seconds": 4 * 3600 })).await;
    check(&lab, &company, &key, &asked).await;
    process.kill();
    lab.database.drop_schema().await;
}

async fn check(lab: &Lab, company: &str, key: &str, asked: &BTreeMap<String, Option<String>>) {
    assert!(asked.values().any(Option::is_some), "no request was answered");
    let mut paid = BTreeSet::new();
    for (reference, id) in asked {
        let url = format!("http://{}/api/v1/payment/fetch/reference/{reference}", lab.api);
        let payment = reply(lab.client.get(url).bearer_auth(key)).await.data().clone();
        assert_eq!(payment["status"], "success", "{reference}");
        if let Some(id) = id {
            assert_eq!(payment["id"], id.as_str(), "{reference}");
        }
        paid.insert(payment["id"].as_str().expect("an id").to_owned());
    }
    // One event for each, whatever was delivered twice.
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in lab.standins.events() {
        let body: Value = serde_json::from_str(&event.body).expect("JSON");
        let payment = body["data"]["id"].as_str().expect("an id").to_owned();
        assert_eq!(event.event, "payment.success");
        told.entry(payment).or_default().insert(event.id);
    }
    assert_eq!(told.keys().cloned().collect::<BTreeSet<_>>(), paid);
    assert!(told.values().all(|ids| ids.len() == 1), "{told:?}");
    let wallet =
        lab.operator(Method::GET, &format!("/companies/{company}/wallet"), json!({})).await;
    let proceeds = paid.len() * 9_850; // 100 NGN less 1.5 %
    let balance = wallet["balance"].as_f64().expect("a number") * 100.0;
    assert_eq!((balance.round() as usize, &wallet["pending"]), (proceeds, &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_loses_nothing_on_sqlite() {
    kill_again_and_again(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_loses_nothing_on_postgres() {
    let Some(server) = postgres() else { return };
    kill_again_and_again(Engine::Postgres(server)).await;
}
