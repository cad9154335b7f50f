//! The test harness: a complete host on real listeners, with real plugin components, simulators of
//! the upstreams, its own database, and a clock that is frozen until a test advances it. `both!`
//! runs a test on both engines.
//!
//! Background work runs only when a test calls [`TestApp::settle`] or [`TestApp::advance`].
//! [`TestApp::finish`] checks that no job is due, that every company's ledger balances and that the totals
//! of lists are exact.

mod database;

use std::time::Duration;

use clap::Parser;
use futures::FutureExt;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tollhouse_app::{
    operations::audit::{Actor, ActorParts},
    routes,
    state::{App, config::Config},
    tenants::wallet,
    wiring,
};
use tollhouse_http as http;
use tollhouse_platform::{
    background::jobs,
    clock::{Clock, Timestamp},
    crypto::{seal::Sealer, tls},
    random::Random,
    store::{self, Tx},
    values::id::CompanyId,
};
use tollhouse_plugins::CodeCache;
use tollhouse_sandbox::Simulators;

pub use self::database::{Database, Engine, postgres, run_sql};
use crate::{contract, totals};

pub const OPERATOR_TOKEN: &str = "op_test_0123456789abcdef0123456789abcdef";
pub const MASTER_KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";
/// Secret key of the service account at the Paystack simulator.
pub const PAYSTACK_KEY: &str = "sk_test_the_services_own_account";
/// 2026-11-21T09:00:00Z, a Saturday.
pub const NOW: Timestamp = Timestamp(1_795_251_600_000);

/// Runs each test on both engines, as `name::sqlite` and `name::postgres`. The literals after its
/// parameter are flags of the host.
macro_rules! both {
    ($(async fn $name:ident($app:ident: TestApp $(, $flag:literal)*) $body:block)*) => {$(
        async fn $name($app: &crate::app::TestApp) $body

        mod $name {
            #[tokio::test]
            async fn sqlite() {
                let engine = crate::app::Engine::Sqlite;
                let app = crate::app::TestApp::start_with(engine, &[$($flag),*]).await;
                super::$name(&app).await;
                app.finish().await;
            }

            #[tokio::test]
            async fn postgres() {
                let Some(server) = crate::app::postgres() else { return };
                let engine = crate::app::Engine::Postgres(server);
                let app = crate::app::TestApp::start_with(engine, &[$($flag),*]).await;
                super::$name(&app).await;
                app.finish().await;
            }
        }
    )*};
}

pub struct TestApp {
    pub app: App,
    pub simulators: Simulators,
    pub api: String,
    pub internal: String,
    pub client: Client,
    pub company: Company,
    pub database: Database,
}

/// A company with its API key and event secret.
#[derive(Clone, Debug)]
pub struct Company {
    pub id: CompanyId,
    pub key: String,
    pub event_secret: String,
}

/// Returns an actor for code that a test calls without a request.
pub fn test_actor() -> Actor {
    ActorParts { name: "test".to_owned(), ..ActorParts::default() }.into()
}

/// A response with a JSON body.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub body: Value,
    pub headers: reqwest::header::HeaderMap,
}

impl Reply {
    /// Asserts success and returns `data`.
    #[track_caller]
    pub fn data(&self) -> &Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.body);
        assert_eq!(self.body["error"], false, "{}", self.body);
        &self.body["data"]
    }

    /// Asserts an error and returns its status and message.
    #[track_caller]
    pub fn failure(&self) -> (u16, &str) {
        assert_eq!(self.body["error"], true, "{}", self.body);
        (self.status.as_u16(), self.body["message"].as_str().expect("a message"))
    }
}

/// The code cache of all tests: each component is compiled once.
const PLUGIN_CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/plugin-cache");

/// Opens [`PLUGIN_CACHE`] without a host.
pub fn code_cache() -> CodeCache {
    let sealer = Sealer::new(MASTER_KEY, Random::system()).expect("a key");
    CodeCache::new(PLUGIN_CACHE.into(), sealer)
}

/// Returns the configuration of a host under test. `flags` override the defaults.
pub fn config(database: &Database, flags: &[&str]) -> Config {
    #[derive(Parser)]
    #[command(args_override_self = true)]
    struct Flags {
        #[command(flatten)]
        config: Config,
    }
    let file = |name: &str, text: &str| {
        let file = database.dir.path().join(name);
        std::fs::write(&file, text).expect("a file in a temporary folder");
        file.display().to_string()
    };
    let own = [
        "test".to_owned(),
        format!("--database={}", database.url),
        "--database-connections=8".to_owned(),
        format!("--operator-token-file={}", file("operator-token", OPERATOR_TOKEN)),
        format!("--master-key-file={}", file("master-key", MASTER_KEY)),
        // Entries are keyed by digest, so stale ones are never used.
        format!("--plugin-cache={PLUGIN_CACHE}"),
        format!("--plugin-compiler={}", env!("CARGO_BIN_EXE_tollhouse")),
        "--plugin-unsigned".to_owned(),
        "--plugin-instances=20".to_owned(),
        format!("--files={}", database.dir.path().join("files").display()),
        // The clock is frozen, so token buckets would never refill.
        "--rate-per-s=0".to_owned(),
        "--development".to_owned(),
        "--portal".to_owned(),
    ];
    let flags = own.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned()));
    Flags::parse_from(flags).config
}

/// Flags for sending e-mail to the SMTP simulator.
pub fn smtp_flags(simulators: &Simulators) -> [String; 4] {
    let address = simulators.smtp_addr();
    [
        format!("--smtp-host={}", address.ip()),
        format!("--smtp-port={}", address.port()),
        "--smtp-security=none".to_owned(),
        "--email-from=no-reply@tollhouse.example".to_owned(),
    ]
}

impl TestApp {
    pub async fn start(engine: Engine) -> TestApp {
        TestApp::start_with(engine, &[]).await
    }

    /// Starts a host with additional flags.
    pub async fn start_with(engine: Engine, flags: &[&str]) -> TestApp {
        TestApp::start_on(Database::create_for_host(engine).await, flags).await
    }

    /// Starts a host on an existing database.
    pub async fn start_on(database: Database, flags: &[&str]) -> TestApp {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (public, internal) = (bind().await, bind().await);
        let url = |listener: &TcpListener| {
            format!("http://{}", listener.local_addr().expect("a bound listener"))
        };
        let (api, internal_url) = (url(&public), url(&internal));
        let clock = Clock::frozen_at(NOW);
        let simulators = Simulators::start_seeded(bind().await, bind().await, clock.clone(), 1);
        let settle = simulators.clone();
        let companion = Box::new(move || {
            let simulators = settle.clone();
            async move { simulators.run_until_idle().await }.boxed()
        });
        let smtp = smtp_flags(&simulators);
        let flags: Vec<&str> =
            smtp.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        let mut config = config(&database, &flags);
        config.listeners.public_url = Some(api.clone());
        let app = App::open(&config, clock, Random::system(), Some(companion)).await;
        let app = app.expect("a host that starts");
        let (_, never) = watch::channel(false);
        for (tcp, routes) in
            [(public, routes::public_routes()), (internal, routes::internal_routes())]
        {
            let (app, never) = (app.clone(), never.clone());
            tokio::spawn(async move {
                wiring::listen(&app, http::Listener::plain(tcp), routes, never).await;
            });
        }
        let company =
            Company { id: CompanyId::default(), key: String::new(), event_secret: String::new() };
        let mut test = TestApp {
            app,
            simulators,
            api,
            internal: internal_url,
            client: client(),
            company,
            database,
        };
        test.install(artifacts::PROVIDER_A).await;
        test.use_paystack("/providers/provider_a", PAYSTACK_KEY).await;
        test.company = test.new_company("Acme Lending").await;
        test
    }

    pub async fn install(&self, wasm: &[u8]) -> Value {
        let url = format!("{}/internal/v1/plugins?grant=true", self.internal);
        let request = self.client.post(url).bearer_auth(OPERATOR_TOKEN).body(wasm.to_vec());
        reply(request).await.data().clone()
    }

    /// Sets up an account of the service or of a company at the Paystack simulator. Returns its
    /// notification URL.
    pub async fn use_paystack(&self, path: &str, key: &str) -> String {
        let credentials =
            json!({ "secret_key": key, "base_url": format!("{}/paystack", self.simulators.url()) });
        let set = json!({ "credentials": credentials, "active": true });
        let account = self.operator(Method::PUT, path, set).await.data().clone();
        let url = account["notification_url"].as_str().expect("a URL").to_owned();
        self.simulators.paystack().set_webhook(key, &url);
        url
    }

    /// Creates a company whose events are sent to the simulators' receiver.
    pub async fn new_company(&self, name: &str) -> Company {
        let event_url = format!("{}/events", self.simulators.url());
        let body = json!({ "name": name, "server": "test", "event_url": event_url });
        let made = self.operator(Method::POST, "/companies", body).await.data().clone();
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        let company = Company {
            id: text("id").into(),
            key: text("api_key"),
            event_secret: text("event_secret"),
        };
        self.simulators.set_event_secret(&company.id, &company.event_secret);
        company
    }

    // ---- requests -------------------------------------------------------------------------------

    pub async fn get(&self, path: &str) -> Reply {
        self.request(&self.company, Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.request(&self.company, Method::POST, path, Some(body)).await
    }

    pub async fn request(
        &self,
        company: &Company,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Reply {
        let request = self.client.request(method, format!("{}/api/v1{path}", self.api));
        let request = request.bearer_auth(&company.key);
        match body {
            Some(body) => reply(request.json(&body)).await,
            None => reply(request).await,
        }
    }

    pub async fn operator(&self, method: Method, path: &str, body: Value) -> Reply {
        let request = self.client.request(method, format!("{}/internal/v1{path}", self.internal));
        let request = request.bearer_auth(OPERATOR_TOKEN);
        match body {
            Value::Null => reply(request).await,
            body => reply(request.json(&body)).await,
        }
    }

    /// Returns every route of both listeners, with its listener's URL and a valid credential.
    pub fn routes(&self) -> Vec<(&str, &str, routes::Route)> {
        let public = routes::public_routes().into_iter();
        let internal = routes::internal_routes().into_iter();
        public
            .map(|route| (&*self.api, &*self.company.key, route))
            .chain(internal.map(|route| (&*self.internal, OPERATOR_TOKEN, route)))
            .collect()
    }

    // ---- payments -------------------------------------------------------------------------------

    /// A request to initialize a payment of 2,500.50 NGN under `reference`.
    pub fn order(&self, reference: &str) -> Value {
        json!({
            "email": "ada@example.com",
            "amount": 2500.5,
            "currency": "NGN",
            "reference": reference,
            "checkout": { "success_url": "https://lender.example/paid" },
        })
    }

    pub async fn initialize(&self, reference: &str) -> Value {
        self.post("/payment/initialize", self.order(reference)).await.data().clone()
    }

    /// Initializes a payment and completes it successfully.
    pub async fn paid_payment(&self, reference: &str) -> Value {
        let payment = self.initialize(reference).await;
        self.complete(&payment, "success").await;
        self.run_until_idle().await;
        self.fetch(reference).await
    }

    /// Completes the checkout page of a payment with `outcome`.
    pub async fn complete(&self, payment: &Value, outcome: &str) {
        let url = payment["checkout"]["url"].as_str().expect("a checkout URL");
        let request = self.client.post(format!("{url}/complete"));
        let response =
            request.json(&json!({ "outcome": outcome })).send().await.expect("a response");
        assert_eq!(response.status(), StatusCode::OK);
    }

    pub async fn fetch(&self, reference: &str) -> Value {
        self.get(&format!("/payment/fetch/reference/{reference}")).await.data().clone()
    }

    pub async fn wallet(&self) -> Value {
        let path = format!("/companies/{}/wallet", self.company.id);
        self.operator(Method::GET, &path, Value::Null).await.data().clone()
    }

    /// Returns the names of all received events, oldest first. Checks their signatures and bodies.
    pub fn events(&self) -> Vec<String> {
        let mut events = self.simulators.events();
        events.reverse();
        let valid = |e: &tollhouse_sandbox::ReceivedEvent| {
            assert_eq!(
                e.signature,
                tollhouse_sandbox::events::SignatureStatus::Valid,
                "{}",
                e.body
            );
        };
        events.iter().for_each(|event| contract::check_event(&event.event, &event.body));
        events.iter().inspect(|event| valid(event)).map(|event| event.event.clone()).collect()
    }

    // ---- time and work --------------------------------------------------------------------------

    /// Runs all due jobs, including those that they enqueue.
    pub async fn run_until_idle(&self) {
        self.advance(0).await;
    }

    pub async fn advance(&self, seconds: i64) {
        jobs::advance(&self.app, seconds).await.expect("jobs that run");
    }

    /// Checks what must hold after every test, and drops the database.
    pub async fn finish(self) {
        self.check_ledger().await;
        self.check_charges().await;
        totals::check(&self.app).await;
        let now = self.app.clock.now();
        let due: Vec<(String, String)> = self
            .app
            .store
            .read(async |tx| {
                // A sweep enqueues the daily jobs of accounts.
                let due = "SELECT kind, subject FROM jobs WHERE run_at <= $1 AND kind NOT IN ('account.disputes', 'account.settlements')";
                tx.sql(due).bind(now).all().await
            })
            .await
            .expect("the jobs");
        assert!(due.is_empty(), "jobs are due at the end of the test: {due:?}");
        self.database.drop().await;
    }

    /// Checks that every charge without an outcome and of the last 72 hours has a job, and that
    /// charges and ledger agree.
    pub async fn check_charges(&self) {
        let checked_since = self.app.clock.now().plus_seconds(-72 * 3_600);
        type Rows = Vec<(String, String)>;
        let read = async |tx: &mut Tx| -> store::Result<(Rows, Rows)> {
            let left = tx.sql(WITHOUT_JOB).bind(checked_since).all().await?;
            Ok((left, tx.sql(UNEXPLAINED_BALANCES).all().await?))
        };
        let (left, differing) = self.app.store.read(read).await.expect("the charges");
        assert!(left.is_empty(), "charges without a job: {left:?}");
        assert!(differing.is_empty(), "balances that charges do not explain: {differing:?}");
    }

    /// Checks that every balance is the sum of its entries, before and after folding.
    pub async fn check_ledger(&self) {
        for _ in 0..2 {
            let wrong = async |tx: &mut store::Tx| tx.sql(WRONG_BALANCES).all().await;
            let wrong: store::Result<Vec<(String, String, Option<i64>)>> =
                self.app.store.read(wrong).await;
            let wrong = wrong.expect("the ledger");
            assert!(wrong.is_empty(), "balances that are not the sum of their entries: {wrong:?}");
            wallet::fold(&self.app).await.expect("folded balances");
        }
    }
}

/// Balances that differ from their entries.
const WRONG_BALANCES: &str = "SELECT company_id, account, CAST(SUM(amount_minor) AS BIGINT) FROM (
        SELECT company_id, account, currency, amount_minor FROM ledger_account_balances
        UNION ALL SELECT company_id, account, currency, -amount_minor FROM ledger_entries) parts
    GROUP BY company_id, account, currency HAVING SUM(amount_minor) <> 0";
/// Charges whose outcome is unknown, that no job will verify or request, and that no exception names.
const WITHOUT_JOB: &str = "SELECT c.owner_kind, c.id FROM charges c
    WHERE c.state IN ('requested', 'open') AND c.requested_at > $1 AND NOT EXISTS (
            SELECT 1 FROM jobs j WHERE j.company_id = c.company_id AND j.kind = 'charge.reconcile' AND j.subject = c.id)
            AND NOT EXISTS (SELECT 1 FROM exceptions e WHERE e.company_id = c.company_id AND e.charge_id = c.id)
        OR c.state = 'queued' AND c.lane IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM jobs j WHERE j.company_id = c.company_id AND j.kind = 'charge.request' AND j.subject = c.lane)
            AND NOT EXISTS (
            SELECT 1 FROM charges h WHERE h.company_id = c.company_id AND h.lane = c.lane AND h.holds_lane AND h.id <> c.id)";
/// Balances that differ from the sum of the charges, exceptions, disputes or refunds behind them.
const UNEXPLAINED_BALANCES: &str = "SELECT b.company_id, b.account FROM ledger_account_balances b
    WHERE b.account IN ('suspense', 'verification') AND b.amount_minor <> (
        SELECT CAST(COALESCE(SUM(c.credited_minor), 0) AS BIGINT) FROM charges c
        WHERE c.company_id = b.company_id AND c.credited_to = b.account AND c.taken_currency = b.currency) + (
        SELECT CAST(COALESCE(SUM(e.suspense_minor), 0) AS BIGINT) FROM exceptions e
        WHERE e.company_id = b.company_id AND e.currency = b.currency AND b.account = 'suspense')
    UNION ALL SELECT b.company_id, b.account FROM ledger_account_balances b
    WHERE b.account = 'disputed' AND b.amount_minor <> (
        SELECT CAST(COALESCE(SUM(d.held_minor), 0) AS BIGINT) FROM disputes d
        WHERE d.company_id = b.company_id AND d.currency = b.currency)
    UNION ALL SELECT b.company_id, b.account FROM ledger_account_balances b
    WHERE b.account = 'fees' AND -b.amount_minor <> (
        SELECT CAST(COALESCE(SUM(r.fee_minor), 0) AS BIGINT) FROM charge_refunds r
        WHERE r.company_id = b.company_id AND r.currency = b.currency AND r.fee_bearer = 'service') - (
        SELECT CAST(COALESCE(SUM(l.amount_minor), 0) AS BIGINT) FROM ledger_entries l
        JOIN ledger_transactions t ON t.company_id = l.company_id AND t.id = l.transaction_id
        WHERE l.company_id = b.company_id AND l.currency = b.currency AND l.account = 'fees'
            AND (t.kind = 'difference' OR t.kind LIKE '%.dispute.fee' OR t.kind LIKE '%.reversed.fee'))
    UNION ALL SELECT company_id, 'disputes.fee_minor' FROM (
        SELECT company_id, currency, fee_minor FROM disputes
        UNION ALL SELECT l.company_id, l.currency, -l.amount_minor FROM ledger_entries l
        JOIN ledger_transactions t ON t.company_id = l.company_id AND t.id = l.transaction_id
        WHERE t.kind LIKE '%.dispute.fee' AND l.amount_minor > 0) fees
    GROUP BY company_id, currency HAVING SUM(fee_minor) <> 0";

/// An HTTP client that ignores proxy settings.
pub fn client() -> Client {
    let client = tls::http_client().timeout(Duration::from_secs(60)).build();
    client.expect("a client")
}

/// Returns whether a route belongs to neither API: health, metrics or documentation.
pub fn is_on_both_listeners(path: &str) -> bool {
    !path.starts_with("/api/") && !path.starts_with("/internal/")
}

/// Sends a request, and checks the response against the OpenAPI documents.
pub async fn reply(request: reqwest::RequestBuilder) -> Reply {
    let (client, request) = request.build_split();
    let request = request.expect("a request that can be sent");
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let response = client.execute(request).await.expect("a response");
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.json().await.expect("a response in JSON");
    let reply = Reply { status, body, headers };
    contract::check(&method, &path, &reply);
    reply
}
