//! A database that a host of the previous version wrote, with what changed the simulators until then.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sqlx::{
    AssertSqlSafe, Connection,
    migrate::{MigrateError, Migrator},
};
use sqlx_postgres::PgConnection;
use sqlx_sqlite::SqliteConnection;
use tollhouse_platform::{
    clock::Timestamp,
    store::{self, Tx},
};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::app::{Company, Database, PAYSTACK_KEY, TestApp};

/// Written at commit 2e643a3 by the host and the simulators of that version. It cannot be written
/// again by this one.
const PREVIOUS: &str = include_str!("previous_version.json");
/// The last migration of that version.
const LAST_MIGRATION: i64 = 24;
/// The key of the second company's own account.
const OWN_KEY: &str = "sk_test_the_companys_own";
/// The URL of the events' receiver in the fixture.
const RECEIVER: &str = "https://receiver.example/events";

static COMMON: Migrator = sqlx::migrate!("./migrations");
static SQLITE: Migrator = sqlx::migrate!("./migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("./migrations/postgres");

#[derive(Deserialize)]
pub struct Fixture {
    /// When the host of the previous version stopped.
    now: i64,
    companies: BTreeMap<String, FixtureCompany>,
    /// Names of records without a reference of their own, by id.
    pub names: BTreeMap<String, String>,
    /// The wallet as companies saw it.
    pub wallet: Value,
    /// What changed the simulators, in its order.
    upstream: Vec<Change>,
    /// The ids that the simulators then gave to transactions, by reference.
    transactions: BTreeMap<String, u64>,
    /// Rows by table, in the order of their references.
    tables: Vec<(String, Vec<Map<String, Value>>)>,
}

#[derive(Deserialize)]
struct FixtureCompany {
    id: String,
    key: String,
    event_secret: String,
}

/// A request to the simulators, or a new account with a webhook.
#[derive(Deserialize)]
struct Change {
    at: i64,
    /// The key of an account.
    webhook: Option<String>,
    method: Option<String>,
    path: Option<String>,
    key: Option<String>,
    #[serde(default)]
    body: Value,
    /// The fault that decided the outcome of a charge.
    fault: Option<FaultKind>,
}

impl Fixture {
    pub fn read() -> Fixture {
        serde_json::from_str(PREVIOUS).expect("the fixture")
    }

    pub fn company(&self, name: &str) -> Company {
        let FixtureCompany { id, key, event_secret } = &self.companies[name];
        Company { id: id.into(), key: key.clone(), event_secret: event_secret.clone() }
    }

    /// The rows of a table.
    pub fn rows(&self, table: &str) -> &[Map<String, Value>] {
        let found = self.tables.iter().find(|(name, _)| name == table);
        &found.unwrap_or_else(|| panic!("no rows of {table}")).1
    }

    /// Creates the tables of the previous version, with its rows.
    pub async fn load(&self, database: &Database) {
        let inserts: Vec<String> = self
            .tables
            .iter()
            .flat_map(|(table, rows)| rows.iter().map(|row| insert(table, row)))
            .collect();
        let script = inserts.concat();
        if database.url.starts_with("postgres") {
            let connected = PgConnection::connect(&database.url).await;
            let mut connection = connected.expect("a connection");
            migrate_with(&POSTGRES, async |schema| {
                schema.run_to(LAST_MIGRATION, &mut connection).await
            })
            .await;
            let loaded = sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut connection).await;
            loaded.expect("rows of the previous version");
            connection.close().await.expect("a connection");
        } else {
            let url = format!("{}?mode=rwc", database.url);
            let mut connection = SqliteConnection::connect(&url).await.expect("a file");
            migrate_with(&SQLITE, async |schema| {
                schema.run_to(LAST_MIGRATION, &mut connection).await
            })
            .await;
            let loaded = sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut connection).await;
            loaded.expect("rows of the previous version");
            connection.close().await.expect("a connection");
        }
    }

    /// Repeats at the new simulators what changed the former ones: they have the same seed, so ids
    /// and codes are the same. Returns the pages that they opened, by reference.
    pub async fn replay(&self, app: &TestApp) -> BTreeMap<String, String> {
        let faults = app.simulators.faults();
        // The host of the previous version received these webhooks.
        faults.push(Fault::new("notification", FaultKind::Cut).times(100_000));
        let mut pages = BTreeMap::new();
        for change in &self.upstream {
            self.advance_to(app, change.at).await;
            if let Some(key) = &change.webhook {
                app.simulators.paystack().set_webhook(key, "https://host.example/");
                continue;
            }
            let data = change.send(app).await["data"].clone();
            let page = data["authorization_url"].as_str().map(str::to_owned);
            if let (Some(reference), Some(page)) = (data["reference"].as_str(), page) {
                pages.insert(reference.to_owned(), page);
            }
        }
        self.advance_to(app, self.now).await;
        faults.clear();
        let mut transactions = transactions(app, PAYSTACK_KEY).await;
        transactions.append(&mut self::transactions(app, OWN_KEY).await);
        assert_eq!(transactions, self.transactions, "the simulators are in another state");
        let own = format!("/companies/{}/providers/provider_a", self.company("beta").id);
        app.use_paystack("/providers/provider_a", PAYSTACK_KEY).await;
        app.use_paystack(&own, OWN_KEY).await;
        self.redirect_events(app).await;
        pages
    }

    async fn advance_to(&self, app: &TestApp, at: i64) {
        app.app.clock.advance_to(Timestamp(at));
        app.simulators.run_until_idle().await;
    }

    /// Sends the companies' events to the new receiver.
    async fn redirect_events(&self, app: &TestApp) {
        for company in self.companies.values() {
            app.simulators.set_event_secret(&company.id, &company.event_secret);
        }
        let url = format!("{}/events", app.simulators.url());
        let redirect = async move |tx: &mut Tx| -> store::Result<u64> {
            let sql = "UPDATE companies SET event_url = $1 WHERE event_url = $2";
            tx.sql(sql).bind(&url).bind(RECEIVER).run().await?;
            let sql = "UPDATE event_deliveries SET url = $1 WHERE url = $2";
            tx.sql(sql).bind(&url).bind(RECEIVER).run().await
        };
        app.app.store.write(redirect).await.expect("the URLs of events");
    }
}

impl Change {
    async fn send(&self, app: &TestApp) -> Value {
        if let Some(kind) = self.fault {
            app.simulators.faults().push(Fault::new("charge", kind));
        }
        let method: Method = self.method.as_deref().unwrap_or("POST").parse().expect("a method");
        let path = self.path.as_deref().unwrap_or_default();
        let request = app.client.request(method, format!("{}{path}", app.simulators.url()));
        let request = request.bearer_auth(self.key.as_deref().unwrap_or_default());
        let response = request.json(&self.body).send().await.expect("a response");
        response.json().await.unwrap_or_default()
    }
}

async fn migrate_with(
    own: &Migrator,
    run: impl AsyncFnOnce(&Migrator) -> Result<(), MigrateError>,
) {
    let all = COMMON.iter().chain(own.iter()).cloned().collect();
    run(&Migrator::with_migrations(all)).await.expect("the schema of the previous version");
}

fn insert(table: &str, row: &Map<String, Value>) -> String {
    let columns: Vec<&str> = row.keys().map(String::as_str).collect();
    let values: Vec<String> = row.values().map(literal).collect();
    format!("INSERT INTO {table} ({}) VALUES ({});\n", columns.join(", "), values.join(", "))
}

/// A literal of both engines.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => literal(&json!(value.to_string())),
    }
}

async fn transactions(app: &TestApp, key: &str) -> BTreeMap<String, u64> {
    let url = format!("{}/paystack/transaction?perPage=1000", app.simulators.url());
    let listed = app.client.get(url).bearer_auth(key).send().await.expect("a response");
    let listed: Value = listed.json().await.expect("JSON");
    let all = listed["data"].as_array().expect("a list");
    let of = |one: &Value| Some((one["reference"].as_str()?.to_owned(), one["id"].as_u64()?));
    all.iter().map(|one| of(one).expect("a transaction")).collect()
}
