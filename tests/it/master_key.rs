//! The master key is exchanged while hosts serve, and nothing that is sealed is forgotten.

use std::collections::BTreeSet;

use axum::Router;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tollhouse::{
    app::{App, SEALED},
    http,
    random::Random,
    seal::{Sealer, new_master_key},
};

use crate::{
    app::{Company, MASTER_KEY, OPERATOR_TOKEN, TestApp, config, reply},
    command_line::{Ended, run_at},
};

/// Another host on the same database, with these master keys.
struct Host {
    api: String,
    internal: String,
    app: App,
}

impl Host {
    async fn start(app: &TestApp, master_keys: &str) -> Host {
        let file = app.database.dir.path().join(Random::system().token("keys"));
        std::fs::write(&file, master_keys).unwrap();
        let mut config = config(&app.database, &[]);
        config.master_key.master_key_file = Some(file);
        config.listeners.public_url = Some(app.api.clone());
        let (clock, random) = (app.app.clock.clone(), Random::system());
        let host = App::open(&config, clock, random, None).await.expect("a host that starts");
        let serve = async |router: Router| {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            tokio::spawn(axum::serve(listener, router).into_future());
            url
        };
        Host {
            api: serve(http::router(&host, http::public_routes())).await,
            internal: serve(http::router(&host, http::internal_routes())).await,
            app: host,
        }
    }

    /// Begins a payment, which opens the credentials of an account.
    async fn pay(&self, app: &TestApp, company: &Company, reference: &str) -> u16 {
        let request = app.client.post(format!("{}/api/v1/payment/initialize", self.api));
        let order = app.order(reference);
        reply(request.bearer_auth(&company.key).json(&order)).await.status.as_u16()
    }

    async fn command(&self, arguments: &[&str]) -> Ended {
        run_at(&self.internal, OPERATOR_TOKEN, &[&["master-key"], arguments].concat()).await
    }

    /// The keys under which anything is sealed.
    async fn keys_in_use(&self) -> BTreeSet<String> {
        let standing = self.command(&["status", "--json"]).await.json();
        let rows = standing["sealed"].as_array().unwrap().iter();
        rows.map(|row| row["key"].as_str().unwrap().to_owned()).collect()
    }
}

fn key_id(master_key: &str) -> String {
    Sealer::new(master_key, Random::seeded(1)).unwrap().key_id().to_owned()
}

fn set_of(key: &str) -> BTreeSet<String> {
    BTreeSet::from([key_id(key)])
}

/// Leaves something in every column that is sealed.
async fn fill(app: &TestApp) {
    let path = format!("/companies/{}", app.company.id);
    app.use_paystack(&format!("{path}/providers/provider_a"), "sk_test_own").await;
    let rotate = format!("{path}/event-secret/rotate");
    let secret =
        app.operator(Method::POST, &rotate, json!({})).await.data()["event_secret"].clone();
    app.standins.set_event_secret(&app.company.id, secret.as_str().unwrap());
    let request = app.client.post(format!("{}/api/v1/payment/initialize", app.api));
    let request = request.bearer_auth(&app.company.key).header("Idempotency-Key", "once");
    reply(request.json(&app.order("once"))).await.data();
}

both! {
    async fn the_key_is_exchanged_while_hosts_serve(app: TestApp) {
        fill(app).await;
        let other = app.new_company("Beta Lending").await;
        let new = new_master_key(&Random::system());
        let opens = Host::start(app, &format!("{MASTER_KEY}\n{new}\n")).await;
        let seals = Host::start(app, &format!("{new}\n{MASTER_KEY}\n")).await;
        assert_eq!(seals.keys_in_use().await, set_of(MASTER_KEY));
        let status = seals.command(&["status"]).await;
        assert!(status.said().contains("companies.event_secret"), "{}", status.out);
        assert!(status.out.contains(&format!("The key {} seals; former keys: {}.", key_id(&new), key_id(MASTER_KEY))));

        // One that does not have the new key yet goes on sealing under the old one.
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
        assert_eq!(rotated, json!({ "resealed": 7, "unreadable": 0 }));
        assert_eq!(seals.keys_in_use().await, set_of(&new));
        let again = seals.command(&["rotate", "--json"]).await.json();
        assert_eq!(again, json!({ "resealed": 0, "unreadable": 0 }));
        let log = app.operator(Method::GET, "/audit", Value::Null).await.data()["docs"].clone();
        let noted = log.as_array().unwrap().iter().filter(|entry| entry["action"] == "master_key.rotate");
        assert_eq!(noted.count(), 2);

        // The old key may go: credentials and event secrets open without it.
        let alone = Host::start(app, &new).await;
        assert_eq!(alone.pay(app, &app.company, "after").await, 200);
        assert_eq!(alone.pay(app, &other, "after").await, 200);
        let secrets = |host: &App| {
            let (host, id) = (host.clone(), app.company.id.clone());
            async move { tollhouse::companies::find(&host, &id).await.unwrap().event_secrets(&host).unwrap() }
        };
        assert_eq!(secrets(&alone.app).await, secrets(&opens.app).await);
        assert_eq!(secrets(&alone.app).await.len(), 2);
        assert_eq!(app.post("/payment/initialize", app.order("before")).await.status, 500);
    }

    async fn many_rows_are_sealed_anew_and_damaged_ones_are_told(app: TestApp) {
        const ROWS: usize = 1_200;
        let sealer = app.app.sealer.clone();
        app.app.store.write(async move |tx| -> tollhouse::store::Result<()> {
            for n in 0..ROWS {
                // One was moved here from another row.
                let context = format!("provider_accounts/{}/credentials", if n == 700 { 0 } else { n });
                tx.sql("INSERT INTO provider_accounts (company_id, provider, id, credentials, active, created_at, updated_at)
                        VALUES ($1, 'p', $1, $2, TRUE, 0, 0)")
                    .bind(n.to_string())
                    .bind(sealer.seal(&context, "{}"))
                    .run()
                    .await?;
            }
            Ok(())
        })
        .await
        .unwrap();
        let new = new_master_key(&Random::system());
        let host = Host::start(app, &format!("{new} {MASTER_KEY}")).await;
        let rotated = host.command(&["rotate"]).await;
        assert_eq!((rotated.code, &*rotated.out), (1, &*format!("rows sealed anew: {}\n", ROWS - 1 + 2)));
        assert!(rotated.err.starts_with("tollhouse: 1 rows do not open"), "{}", rotated.err);
        assert_eq!(host.keys_in_use().await, BTreeSet::from([key_id(&new), key_id(MASTER_KEY)]));
    }

    async fn every_column_with_a_sealed_text_is_known(app: TestApp) {
        fill(app).await;
        app.paid("order-1").await;
        let sqlite = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'";
        let postgres = "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) FROM information_schema.columns
                        WHERE table_schema = current_schema()";
        let list = if app.database.url.starts_with("sqlite") { sqlite } else { postgres };
        let found = app.app.store.read(async |tx| -> tollhouse::store::Result<BTreeSet<String>> {
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
    }
}

#[tokio::test]
async fn a_new_key_is_one_that_a_host_takes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    let file = file.to_str().unwrap();
    let shown = run_at("", "", &["master-key", "new"]).await;
    key_id(shown.said());
    run_at("", "", &["master-key", "new", "--out", file]).await.said();
    let kept = std::fs::read_to_string(file).unwrap();
    assert_ne!(key_id(&kept), key_id(&shown.out));
    assert_eq!(run_at("", "", &["master-key", "new", "--out", file]).await.failure().0, 1);
    assert_eq!(std::fs::read_to_string(file).unwrap(), kept);
}
