//! `kill -9` at any moment: no acknowledged request and no event is lost, and no money moves twice.

mod charges;
mod payments;
mod repayments;

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, time::timeout};
use tollhouse_platform::{clock::Clock, random::Random};
use tollhouse_sandbox::Simulators;

use crate::{
    app::{Company, Database, Engine, MASTER_KEY, OPERATOR_TOKEN, PAYSTACK_KEY, reply},
    ports,
    simulation::minor,
};

const ROUNDS: usize = 6;
const CLIENTS: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum number of responses of a host before it is killed.
const MAX_RESPONSES: i64 = 30;

/// A host in its own process.
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
            .args(["--plugin-instances=20", "--plugin-unsigned"])
            .arg("--rate-per-s=0")
            .arg("--development")
            .env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN)
            .env("TOLLHOUSE_MASTER_KEY", MASTER_KEY)
            .env("RUST_LOG", "off")
            .stdin(Stdio::null());
        let process = Process(command.spawn().expect("the program starts"));
        for _ in 0..600 {
            let live = lab.client.get(format!("http://{}/health/live", lab.api)).send().await;
            if live.is_ok_and(|response| response.status().is_success()) {
                return process;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the host does not start");
    }

    fn kill(mut self) {
        self.0.kill().expect("SIGKILL");
        self.0.wait().expect("an exited process");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// The environment of the host, which outlives it.
struct Lab {
    database: Database,
    simulators: Simulators,
    client: Client,
    api: String,
    internal: String,
    /// Number of responses that clients have received.
    response_count: watch::Sender<usize>,
}

/// Requests by name: the id in the response, or `None` if no response arrived.
type RequestLog = Arc<Mutex<BTreeMap<String, Option<String>>>>;

impl Lab {
    async fn build(engine: Engine) -> Lab {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let simulators = Simulators::start_seeded(bind().await, bind().await, Clock::system(), 1);
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build();
        Lab {
            database: Database::create(engine).await,
            simulators,
            client: client.expect("a client"),
            api: ports::reserve_address().to_string(),
            internal: ports::reserve_address().to_string(),
            response_count: watch::Sender::new(0),
        }
    }

    fn to_operator(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}/internal/v1{path}", self.internal);
        self.client.request(method, url).bearer_auth(OPERATOR_TOKEN)
    }

    async fn operator(&self, method: Method, path: &str, body: Value) -> Value {
        reply(self.to_operator(method, path).json(&body)).await.data().clone()
    }

    fn to_api(&self, company: &Company, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}/api/v1{path}", self.api);
        self.client.request(method, url).bearer_auth(&company.key)
    }

    async fn set_up(&self) -> Company {
        let install =
            self.to_operator(Method::POST, "/plugins?grant=true").body(artifacts::PROVIDER_A);
        reply(install).await.data();
        let base_url = format!("{}/paystack", self.simulators.url());
        let set = json!({ "credentials": { "secret_key": PAYSTACK_KEY, "base_url": base_url } });
        let account = self.operator(Method::PUT, "/providers/provider_a", set).await;
        let webhook = account["notification_url"].as_str().expect("a URL");
        self.simulators.paystack().set_webhook(PAYSTACK_KEY, webhook);
        let company = json!({
            "name": "Acme", "server": "test", "event_url": format!("{}/events", self.simulators.url()),
        });
        let company = self.operator(Method::POST, "/companies", company).await;
        let text = |name: &str| company[name].as_str().expect("a text").to_owned();
        Company { id: text("id").into(), key: text("api_key"), event_secret: text("event_secret") }
    }

    /// Returns the data of a successful response; `None` if the host was killed first.
    async fn try_send(&self, request: RequestBuilder) -> Option<Value> {
        let response = request.send().await.ok()?;
        let ok = response.status().is_success();
        let mut body: Value = response.json().await.ok()?;
        assert!(ok, "{body}");
        self.response_count.send_modify(|count| *count += 1);
        Some(body["data"].take())
    }

    /// Completes a checkout page of the simulator.
    async fn pay(&self, begun: &Value) {
        let url = begun["checkout"]["url"].as_str().expect("a checkout URL");
        let complete = self.client.post(format!("{url}/complete"));
        let paid = complete.json(&json!({ "outcome": "success" })).send().await;
        assert!(paid.expect("a response of the simulator").status().is_success());
    }

    async fn advance(&self, seconds: i64) {
        self.operator(Method::POST, "/clock/advance", json!({ "seconds": seconds })).await;
    }

    /// Returns the ids of received events by record; repeated deliveries count once. All events of
    /// this noun must be of `kind`.
    fn event_ids(&self, kind: &str) -> BTreeMap<String, BTreeSet<String>> {
        let noun = kind.split_once('.').expect("a noun and a verb").0;
        let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for event in self.simulators.events() {
            if event.event.split('.').next() == Some(noun) {
                assert_eq!(event.event, kind);
                let body: Value = serde_json::from_str(&event.body).expect("JSON");
                ids.entry(id(&body["data"])).or_default().insert(event.id);
            }
        }
        ids
    }

    /// Returns the ids of the records that the provider has charged, sorted: one per charge.
    async fn charged(&self) -> Vec<String> {
        let url = format!("{}/paystack/transaction?perPage=10000", self.simulators.url());
        let listed = self.client.get(url).bearer_auth(PAYSTACK_KEY).send().await;
        let listed: Value = listed.expect("a response").json().await.expect("JSON");
        let listed = listed["data"].as_array().expect("a list").iter();
        let ours =
            |charge: &Value| charge["metadata"]["tollhouse_payment"].as_str().map(str::to_owned);
        let mut charged: Vec<String> =
            listed.filter(|one| one["status"] != "abandoned").filter_map(ours).collect();
        charged.sort();
        charged
    }

    /// Returns the available balance in minor units. Asserts that nothing is pending.
    async fn balance(&self, company: &Company) -> i64 {
        let path = format!("/companies/{}/wallet", company.id);
        let wallet = self.operator(Method::GET, &path, json!({})).await;
        assert_eq!(wallet["pending"], 0);
        minor(&wallet["balance"])
    }
}

fn id(record: &Value) -> String {
    record["id"].as_str().expect("an id").to_owned()
}

/// Kills the host repeatedly while clients run. Each client must end when its host is gone.
/// Returns a running host.
async fn kill_repeatedly<F>(
    lab: &Lab,
    mut process: Process,
    client: impl Fn(String) -> F,
) -> Process
where
    F: Future<Output = ()> + Send + 'static,
{
    let random = Random::system();
    for round in 0..ROUNDS {
        let clients: Vec<_> =
            (0..CLIENTS).map(|n| tokio::spawn(client(format!("r{round}-c{n}")))).collect();
        // Waits for a number of responses, so that slow machines make progress too.
        let goal =
            *lab.response_count.borrow() + usize::try_from(random.up_to(MAX_RESPONSES)).unwrap();
        let mut response_count = lab.response_count.subscribe();
        let reached = timeout(TIMEOUT, response_count.wait_for(|count| *count >= goal)).await;
        reached.expect("a host that responds").expect("a lab");
        let more_ms = u64::try_from(random.up_to(50)).unwrap();
        tokio::time::sleep(Duration::from_millis(more_ms)).await;
        process.kill();
        for client in clients {
            client.await.expect("a client that ends");
        }
        process = Process::start(lab).await;
    }
    process
}
