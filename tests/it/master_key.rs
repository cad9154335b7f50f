//! Rotation of the master key while hosts serve, over every sealed column.

use std::collections::BTreeSet;

use axum::Router;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse_app::{routes, state::App, tenants::companies, wiring::SEALED};
use tollhouse_platform::{
    background::jobs,
    clock::Clock,
    crypto::seal::{Sealer, new_master_key},
    error,
    random::Random,
    store::{self, DynamicStatement},
};

use crate::{
    app::{Company, MASTER_KEY, OPERATOR_TOKEN, Reply, TestApp, config, reply},
    codes::{email_request, merged},
    command_line::{ProgramOutput, run_against},
    conformance::sessions::pay_by_phone,
    event_endpoints, identity, lending, mandates, sign_in,
};

/// Another host on the same database, with its own master keys.
pub struct Host {
    pub api: String,
    internal: String,
    app: App,
}

impl Host {
    async fn start(app: &TestApp, master_keys: &str) -> Host {
        Host::start_with(app, master_keys, app.app.clock.clone(), &[]).await
    }

    pub async fn start_with(
        app: &TestApp,
        master_keys: &str,
        clock: Clock,
        flags: &[&str],
    ) -> Host {
        let file = app.database.dir.path().join(Random::system().token("keys"));
        std::fs::write(&file, master_keys).unwrap();
        let mut config = config(&app.database, flags);
        config.master_key.master_key_file = Some(file);
        config.listeners.public_url = Some(app.api.clone());
        let host = App::open(&config, clock, Random::system(), None).await.expect("a host");
        let serve = async |router: Router| {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            tokio::spawn(axum::serve(listener, router).into_future());
            url
        };
        Host {
            api: serve(routes::router(&host, routes::public_routes())).await,
            internal: serve(routes::router(&host, routes::internal_routes())).await,
            app: host,
        }
    }

    pub async fn run_due(&self) {
        jobs::run_due(&self.app).await.expect("jobs that run");
    }

    /// Initializes a payment, which opens the credentials of an account.
    async fn pay(&self, app: &TestApp, company: &Company, reference: &str) -> u16 {
        let request = app.client.post(format!("{}/api/v1/payment/initialize", self.api));
        let order = app.order(reference);
        reply(request.bearer_auth(&company.key).json(&order)).await.status.as_u16()
    }

    async fn command(&self, arguments: &[&str]) -> ProgramOutput {
        run_against(&self.internal, OPERATOR_TOKEN, &[&["master-key"], arguments].concat()).await
    }

    /// Reseals one page of rows.
    async fn step(&self, app: &TestApp, cursor: &Value) -> Reply {
        let url = format!("{}/internal/v1/master-key/rotate", self.internal);
        let request = app.client.post(url).bearer_auth(OPERATOR_TOKEN);
        reply(request.json(&json!({ "cursor": cursor }))).await
    }

    /// Reseals all rows. Returns the response of each step.
    async fn walk(&self, app: &TestApp) -> Vec<Value> {
        let mut steps = vec![self.step(app, &Value::Null).await.data().clone()];
        while let Some(last) = steps.last().filter(|last| last["done"] == false) {
            assert!(steps.len() < 50, "rotation does not end: {last}");
            steps.push(self.step(app, &last["cursor"]).await.data().clone());
        }
        steps
    }

    /// The ids of the keys under which rows are sealed.
    async fn keys_in_use(&self) -> BTreeSet<String> {
        let report = self.command(&["status", "--json"]).await.json();
        let rows = report["sealed"].as_array().unwrap().iter();
        rows.map(|row| row["key"].as_str().unwrap().to_owned()).collect()
    }
}

fn key_id(master_key: &str) -> String {
    Sealer::new(master_key, Random::seeded(1)).unwrap().key_id().to_owned()
}

fn set_of(key: &str) -> BTreeSet<String> {
    BTreeSet::from([key_id(key)])
}

/// Fills the sealed columns, except those of lending, identity and messages.
async fn fill(app: &TestApp) {
    let path = format!("/companies/{}", app.company.id);
    app.use_paystack(&format!("{path}/providers/provider_a"), "sk_test_own").await;
    let rotate = format!("{path}/event-secret/rotate");
    let secret =
        app.operator(Method::POST, &rotate, json!({})).await.data()["event_secret"].clone();
    app.simulators.set_event_secret(&app.company.id, secret.as_str().unwrap());
    let request = app.client.post(format!("{}/api/v1/payment/initialize", app.api));
    let request = request.bearer_auth(&app.company.key).header("Idempotency-Key", "once");
    reply(request.json(&app.order("once"))).await.data();
    tokio::join!(add_recording(app), event_endpoints::create_rotated(app));
    sign_in::enrol(app, "ada", "support-read").await;
}

/// Inserts the recording of a plugin call.
async fn add_recording(app: &TestApp) {
    let sealed = app.app.sealer.seal(&format!("plugin_recordings/{}/r", app.company.id), "{}");
    let company = app.company.id.clone();
    let added = app.app.store.write(async move |tx| {
        let recording = tx.sql(
            "INSERT INTO plugin_recordings
                 (company_id, id, plugin, version, digest, function, outcome, faithful, began_at, keep_until, recording)
             VALUES ($1, 'r', 'p', '1.0.0', '', '', 'ok', TRUE, 0, 0, $2)",
        );
        recording.bind(company).bind(sealed).run().await
    });
    added.await.unwrap();
}

/// Fills the sealed columns of cards, direct debits and charges.
async fn lend(app: &TestApp) {
    lending::create_user(app, "lender").await;
    lending::saved_card(app, "lender", lending::SUCCESS_CARD).await;
    app.post("/direct-debit/create", mandates::order("lender")).await.data();
    pay_by_phone(app).await;
}

/// Inserts accounts of other companies. The credentials of row `n` are sealed for row `text_of(n)`.
async fn add_accounts(app: &TestApp, accounts: usize, text_of: fn(usize) -> usize) {
    let sealer = app.app.sealer.clone();
    let added = app.app.store.write(async move |tx| -> store::Result<()> {
        for n in 0..accounts {
            let context = format!("provider_accounts/{}/credentials", text_of(n));
            let account = tx.sql(
                "INSERT INTO provider_accounts (company_id, provider, id, credentials, active, created_at, updated_at)
                 VALUES ($1, 'p', $1, $2, TRUE, 0, 0)",
            );
            account.bind(n.to_string()).bind(sealer.seal(&context, "{}")).run().await?;
        }
        Ok(())
    });
    added.await.unwrap();
}

/// Inserts companies whose secrets do not open.
async fn add_damaged_companies(app: &TestApp, companies: usize) {
    let sealer = app.app.sealer.clone();
    let added = app.app.store.write(async move |tx| -> store::Result<()> {
        for n in 0..companies {
            let company = tx.sql(
                "INSERT INTO companies (id, name, server, active, event_secret, subscription_active, created_at, updated_at)
                 VALUES ($1, 'Damaged', 'test', TRUE, $2, TRUE, 0, 0)",
            );
            let moved = sealer.seal("another row", "whsec_");
            company.bind(format!("{n:06}")).bind(moved).run().await?;
        }
        Ok(())
    });
    added.await.unwrap();
}

/// The secrets that sign the company's events, if they open.
async fn event_secrets(app: &TestApp) -> error::Result<Vec<String>> {
    companies::find(&app.app, &app.company.id).await?.event_secrets(&app.app)
}

const SWAP: &str = "event_secret = previous_event_secret, previous_event_secret = event_secret";

/// Swaps the provider accounts of two companies.
async fn swap_accounts(app: &TestApp, one: &Company, other: &Company) {
    let (one, other) = (one.id.clone(), other.id.clone());
    let swapped = app.app.store.write(async move |tx| -> store::Result<()> {
        for (from, to) in [(&*one, "nobody"), (&*other, &*one), ("nobody", &*other)] {
            let account =
                tx.sql("UPDATE provider_accounts SET company_id = $2 WHERE company_id = $1");
            assert_eq!(account.bind(from).bind(to).run().await?, 1);
        }
        Ok(())
    });
    swapped.await.unwrap();
}

/// Seals the credentials of the company's account as earlier versions did: bound to its id only.
async fn seal_as_earlier_version(app: &TestApp, company: &Company, key: &str) {
    let path = format!("/companies/{}/providers", company.id);
    let account = app.operator(Method::GET, &path, Value::Null).await.data()[0]["account"].clone();
    let account = account.as_str().unwrap().to_owned();
    let base_url = format!("{}/paystack", app.simulators.url());
    let credentials = json!({ "secret_key": key, "base_url": base_url }).to_string();
    let context = format!("provider_accounts/{account}/credentials");
    let sealed = app.app.sealer.seal(&context, &credentials);
    let update = app.app.store.write(async move |tx| {
        let update = tx.sql("UPDATE provider_accounts SET credentials = $2 WHERE id = $1");
        update.bind(&account).bind(&sealed).run().await
    });
    assert_eq!(update.await.unwrap(), 1);
}

/// Initializes a payment. Returns the HTTP status.
async fn pay_at(app: &TestApp, company: &Company, reference: &str) -> u16 {
    let order = Some(app.order(reference));
    let begun = app.request(company, Method::POST, "/payment/initialize", order).await;
    begun.status.as_u16()
}

/// Updates the company as an attacker with write access to the database.
async fn update_company(app: &TestApp, set: DynamicStatement) {
    let update = set.append(" WHERE id = ").bind(&*app.company.id);
    let updated = app.app.store.write(async move |tx| tx.dynamic(&update).run().await);
    assert_eq!(updated.await.unwrap(), 1);
}

fn set(text: &'static str) -> DynamicStatement {
    DynamicStatement::default().append("UPDATE companies SET ").append(text)
}

/// Seals both event secrets of the company as earlier versions did: in the same context.
fn set_in_same_context(app: &TestApp, current: &str, previous: &str) -> DynamicStatement {
    let context = format!("companies/{}/event_secret", app.company.id);
    let seal = |secret: &str| app.app.sealer.seal(&context, secret);
    let until = app.app.clock.now().plus_seconds(3_600);
    set("event_secret = ")
        .bind(seal(current))
        .append(", previous_event_secret = ")
        .bind(seal(previous))
        .append(", previous_event_secret_until = ")
        .bind(until)
}

fn sum(steps: &[Value], what: &str) -> u64 {
    steps.iter().map(|step| step[what].as_u64().unwrap()).sum()
}

both! {
    async fn the_master_key_is_rotated_while_hosts_serve(app: TestApp) {
        fill(app).await;
        let other = app.new_company("Beta Lending").await;
        let new = new_master_key(&Random::system());
        let opens = Host::start(app, &format!("{MASTER_KEY}\n{new}\n")).await;
        let seals = Host::start(app, &format!("{new}\n{MASTER_KEY}\n")).await;
        assert_eq!(seals.keys_in_use().await, set_of(MASTER_KEY));
        let status = seals.command(&["status"]).await;
        assert!(status.success_output().contains("companies.event_secret"), "{}", status.out);
        assert!(status.out.contains(&format!("Current key: {}; former keys: {}.", key_id(&new), key_id(MASTER_KEY))));

        // A host that still seals under the old key keeps serving.
        let serving = async {
            let mut statuses = Vec::new();
            for n in 0..20 {
                statuses.push(opens.pay(app, &app.company, &format!("while-{n}")).await);
                statuses.push(opens.pay(app, &other, &format!("other-{n}")).await);
            }
            statuses
        };
        let rotating = async { seals.command(&["rotate", "--json"]).await.json() };
        let (statuses, rotated) = tokio::join!(serving, rotating);
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
        assert_eq!(rotated, json!({ "resealed": 11, "unreadable": 0 }));
        assert_eq!(seals.keys_in_use().await, set_of(&new));
        let again = seals.command(&["rotate", "--json"]).await.json();
        assert_eq!(again, json!({ "resealed": 0, "unreadable": 0 }));
        let log = app.operator(Method::GET, "/audit", Value::Null).await.data()["docs"].clone();
        let noted = log.as_array().unwrap().iter().filter(|entry| entry["action"] == "master_key.rotate");
        assert_eq!(noted.count(), 2);

        // The old key can be removed: credentials and event secrets open without it.
        let alone = Host::start(app, &new).await;
        assert_eq!(alone.pay(app, &app.company, "after").await, 200);
        assert_eq!(alone.pay(app, &other, "after").await, 200);
        let secrets = |host: &App| {
            let (host, id) = (host.clone(), app.company.id.clone());
            async move { companies::find(&host, &id).await.unwrap().event_secrets(&host).unwrap() }
        };
        assert_eq!(secrets(&alone.app).await, secrets(&opens.app).await);
        assert_eq!(secrets(&alone.app).await.len(), 2);
        assert_eq!(app.post("/payment/initialize", app.order("before")).await.status, 500);
    }

    async fn swapped_event_secrets_do_not_open(app: TestApp) {
        let rotate = format!("/companies/{}/event-secret/rotate", app.company.id);
        let first = app.company.event_secret.clone();
        let second = app.operator(Method::POST, &rotate, json!({})).await.data()["event_secret"].clone();
        let second = second.as_str().unwrap().to_owned();
        assert_eq!(event_secrets(app).await.unwrap(), [second.clone(), first.clone()]);
        update_company(app, set(SWAP)).await;
        assert!(event_secrets(app).await.is_err());
        update_company(app, set(SWAP)).await;
        assert_eq!(event_secrets(app).await.unwrap(), [second.clone(), first]);
        // The current secret signs alone when the previous one does not open.
        update_company(app, set("previous_event_secret = event_secret")).await;
        assert_eq!(event_secrets(app).await.unwrap(), [second]);
    }

    async fn credentials_do_not_open_in_another_companys_row(app: TestApp) {
        let beta = app.new_company("Beta Lending").await;
        for (company, key) in [(&app.company, "sk_test_acme"), (&beta, "sk_test_beta")] {
            app.use_paystack(&format!("/companies/{}/providers/provider_a", company.id), key).await;
        }
        swap_accounts(app, &app.company, &beta).await;
        assert_eq!(pay_at(app, &app.company, "swapped").await, 500);
        assert_eq!(pay_at(app, &beta, "swapped").await, 500);
        swap_accounts(app, &app.company, &beta).await;
        assert_eq!(pay_at(app, &app.company, "in-place").await, 200);
        assert_eq!(pay_at(app, &beta, "in-place").await, 200);
    }

    async fn values_sealed_in_a_former_context_open_and_are_resealed_under_the_same_key(app: TestApp) {
        let beta = app.new_company("Beta Lending").await;
        for (company, key) in [(&app.company, "sk_test_acme"), (&beta, "sk_test_beta")] {
            app.use_paystack(&format!("/companies/{}/providers/provider_a", company.id), key).await;
            seal_as_earlier_version(app, company, key).await;
        }
        update_company(app, set_in_same_context(app, "whsec_2", "whsec_1")).await;
        assert_eq!(pay_at(app, &app.company, "former").await, 200);
        assert_eq!(event_secrets(app).await.unwrap(), ["whsec_2", "whsec_1"]);

        let host = Host::start(app, MASTER_KEY).await;
        let rotated = host.command(&["rotate", "--json"]).await.json();
        assert_eq!(rotated, json!({ "resealed": 4, "unreadable": 0 }));
        let again = host.command(&["rotate", "--json"]).await.json();
        assert_eq!(again, json!({ "resealed": 0, "unreadable": 0 }));
        assert_eq!(pay_at(app, &app.company, "anew").await, 200);
        swap_accounts(app, &app.company, &beta).await;
        assert_eq!(pay_at(app, &app.company, "swapped").await, 500);
        update_company(app, set(SWAP)).await;
        assert!(event_secrets(app).await.is_err());
    }

    async fn event_secrets_sealed_in_the_same_context_open_and_are_resealed_apart(app: TestApp) {
        update_company(app, set_in_same_context(app, "whsec_2", "whsec_1")).await;
        assert_eq!(event_secrets(app).await.unwrap(), ["whsec_2", "whsec_1"]);

        // Rotating the master key reseals each secret in its own context.
        let new = new_master_key(&Random::system());
        let host = Host::start(app, &format!("{new} {MASTER_KEY}")).await;
        host.command(&["rotate"]).await.success_output();
        let secrets = async || {
            let company = companies::find(&host.app, &app.company.id).await.unwrap();
            company.event_secrets(&host.app)
        };
        assert_eq!(secrets().await.unwrap(), ["whsec_2", "whsec_1"]);
        update_company(app, set(SWAP)).await;
        assert!(secrets().await.is_err());

        // Rotating the event secret reseals the former one as the previous one.
        update_company(app, set_in_same_context(app, "whsec_2", "whsec_1")).await;
        let rotate = format!("/companies/{}/event-secret/rotate", app.company.id);
        let third = app.operator(Method::POST, &rotate, json!({})).await.data()["event_secret"].clone();
        assert_eq!(event_secrets(app).await.unwrap(), [third.as_str().unwrap(), "whsec_2"]);
        update_company(app, set("event_secret = previous_event_secret")).await;
        assert!(event_secrets(app).await.is_err());
    }

    async fn a_uid_record_is_found_and_opens_during_and_after_rotation(app: TestApp) {
        identity::set_up(app).await;
        app.post("/user/create", json!({ "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com" })).await.data();
        let body = json!({ "bvn": identity::BVN, "user_id": "ada" });
        let before = app.post("/kyc/nigeria/bvn/lookup", body.clone()).await.data().clone();
        let new = new_master_key(&Random::system());
        let both = Host::start(app, &format!("{new} {MASTER_KEY}")).await;
        let request = |host: &Host, method, path: &str| {
            app.client.request(method, format!("{}/api/v1/kyc/{path}", host.api)).bearer_auth(&app.company.key)
        };
        let again = reply(request(&both, Method::POST, "nigeria/bvn/lookup").json(&body)).await.data().clone();
        assert_eq!(again, before);
        both.command(&["rotate"]).await.success_output();
        let alone = Host::start(app, &new).await;
        let listed = reply(request(&alone, Method::GET, "uid/list/ada")).await.data().clone();
        let of_list = merged(before, json!({ "otp_sent": null, "otp_error": null }));
        assert_eq!(listed, json!([of_list]));
        assert_eq!(identity::count_uids(app).await, 1);
    }

    async fn rotation_reseals_many_rows_and_reports_unreadable_ones(app: TestApp) {
        const ROWS: usize = 1_200;
        // Row 700 has the credentials of row 0.
        add_accounts(app, ROWS, |n| if n == 700 { 0 } else { n }).await;
        let new = new_master_key(&Random::system());
        // The command exceeds the rate limit of this host, and has to continue.
        let flags = ["--rate-per-s=5", "--rate-burst=1"];
        let host = Host::start_with(app, &format!("{new} {MASTER_KEY}"), Clock::system(), &flags).await;
        let rotated = host.command(&["rotate"]).await;
        assert_eq!((rotated.code, &*rotated.out), (1, &*format!("resealed rows: {}\n", ROWS - 1 + 2)));
        assert!(rotated.err.starts_with("tollhouse: rows that cannot be opened with their key: 1;"), "{}", rotated.err);
        let host = Host::start(app, &format!("{new} {MASTER_KEY}")).await;
        assert_eq!(host.keys_in_use().await, BTreeSet::from([key_id(&new), key_id(MASTER_KEY)]));
    }

    async fn rotation_reads_each_row_once_even_if_rows_are_damaged(app: TestApp) {
        const ACCOUNTS: u64 = 1_500;
        const DAMAGED: u64 = 600;
        add_damaged_companies(app, 600).await;
        add_accounts(app, 1_500, |n| n).await;
        let new = new_master_key(&Random::system());
        let host = Host::start(app, &format!("{new} {MASTER_KEY}")).await;
        let steps = host.walk(app).await;
        assert_eq!((sum(&steps, "resealed"), sum(&steps, "unreadable")), (ACCOUNTS + 2, DAMAGED));
        // Two columns of each company, one of each account; 100 rows per step.
        let rows = 2 * (DAMAGED + 1) + ACCOUNTS + 1;
        assert_eq!(steps.len() as u64, rows.div_ceil(100));
        assert!(steps.iter().all(|step| step["done"] == step["cursor"].is_null()), "{steps:?}");
        let left = host.command(&["status", "--json"]).await.json()["sealed"].clone();
        let former = left.as_array().unwrap().iter().filter(|rows| rows["key"] == key_id(MASTER_KEY));
        let former: Vec<(&Value, &Value)> = former.map(|rows| (&rows["column"], &rows["rows"])).collect();
        assert_eq!(former, [(&json!("companies.event_secret"), &json!(DAMAGED))]);

        // A step whose response was lost can be repeated.
        let again = host.step(app, &steps[0]["cursor"]).await.data().clone();
        assert_eq!(again["resealed"], 0);
        assert_eq!(again["done"], steps[1]["done"]);
        assert_eq!(sum(&host.walk(app).await, "resealed"), 0);
    }

    async fn a_cursor_that_no_response_contained_is_rejected(app: TestApp) {
        let new = new_master_key(&Random::system());
        let host = Host::start(app, &format!("{new} {MASTER_KEY}")).await;
        let made = |column: &str, context: &str| {
            let place = json!({ "column": column, "company_id": "", "id": "" });
            json!(host.app.sealer.seal(context, &place.to_string()))
        };
        let known = "companies.event_secret";
        let another = made(known, "another context");
        for wrong in [json!("companies.event_secret"), another, made("no.column", "master_key.cursor")] {
            let response = host.step(app, &wrong).await;
            assert_eq!(response.failure(), (400, "the cursor field must be the cursor of the previous response"));
        }
        assert_eq!(host.step(app, &json!(7)).await.failure(), (400, "the cursor field must be a string"));
        host.step(app, &made(known, "master_key.cursor")).await.data();
    }

    async fn a_value_that_changed_while_it_was_resealed_is_not_overwritten(app: TestApp) {
        fill(app).await;
        lend(app).await;
        identity::set_up(app).await;
        app.post("/kyc/nigeria/bvn/lookup", json!({ "bvn": identity::BVN })).await.data();
        app.post("/otp/send", email_request(json!({}))).await;
        for column in SEALED.iter().flat_map(|columns| columns.iter()) {
            let replaced = app.app.store.write(async move |tx| -> store::Result<(u64, u64)> {
                let rows: Vec<(String, String, Option<String>)> =
                    tx.sql(column.page).bind("").bind("").bind(9_i64).all().await?;
                let (company, id, text) = rows.into_iter().find(|row| row.2.is_some()).expect("a text");
                let text = text.expect("not null");
                let mut replaced = [0, 0];
                for (former, replaced) in [&*text, "another"].into_iter().zip(&mut replaced) {
                    let replace = tx.sql(column.replace).bind(&*company).bind(&*id);
                    *replaced = replace.bind(former).bind(&*text).run().await?;
                }
                Ok(replaced.into())
            });
            assert_eq!(replaced.await.unwrap(), (1, 0), "{}", column.name);
        }
        app.run_until_idle().await;
    }

    async fn every_column_with_sealed_values_is_declared(app: TestApp) {
        fill(app).await;
        lend(app).await;
        identity::set_up(app).await;
        app.post("/kyc/nigeria/bvn/lookup", json!({ "bvn": identity::BVN })).await.data();
        app.paid_payment("order-1").await;
        app.post("/otp/send", email_request(json!({}))).await;
        let sqlite = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'";
        let postgres = "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) FROM information_schema.columns
                        WHERE table_schema = current_schema()";
        let list = if app.database.url.starts_with("sqlite") { sqlite } else { postgres };
        let found = app.app.store.read(async |tx| -> store::Result<BTreeSet<String>> {
            let columns: Vec<(String, String)> = tx.sql(list).all().await?;
            assert!(columns.len() > 100, "only {} columns were found", columns.len());
            let mut found = BTreeSet::new();
            for (table, column) in columns {
                let sql = format!("SELECT COUNT(*) FROM {table} WHERE CAST({column} AS TEXT) LIKE 'v1.________.%'");
                let (rows,): (i64,) = tx.sql(String::leak(sql)).one().await?;
                if rows > 0 {
                    found.insert(format!("{table}.{column}"));
                }
            }
            Ok(found)
        });
        let known: BTreeSet<String> = SEALED.iter().flat_map(|columns| columns.iter()).map(|column| column.name.to_owned()).collect();
        assert_eq!(found.await.unwrap(), known);
        app.run_until_idle().await;
    }
}

#[tokio::test]
async fn a_generated_master_key_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    let file = file.to_str().unwrap();
    let shown = run_against("", "", &["master-key", "new"]).await;
    key_id(shown.success_output());
    run_against("", "", &["master-key", "new", "--out", file]).await.success_output();
    let kept = std::fs::read_to_string(file).unwrap();
    assert_ne!(key_id(&kept), key_id(&shown.out));
    assert_eq!(run_against("", "", &["master-key", "new", "--out", file]).await.failure().0, 1);
    assert_eq!(std::fs::read_to_string(file).unwrap(), kept);
}
