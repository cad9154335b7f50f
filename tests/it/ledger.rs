//! Guards in the schema: hostile or faulty SQL on the ledger and the audit log is rejected.

use std::{path::Path, time::Duration};

use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, migrate::Migrator};
use sqlx_postgres::PgConnection;
use sqlx_sqlite::{SqliteConnectOptions, SqliteConnection};
use tollhouse_app::tenants::wallet::{self, LedgerAccount, LedgerTransaction, Overdraft};
use tollhouse_platform::{
    error,
    random::Random,
    store::{self, Store, StoreLimits},
    values::money::{Minor, Money},
};

use crate::app::{Database, Engine, TestApp, postgres};

const BELOW_ZERO: &str = "below zero";
const NOT_COVERED: &str = "insufficient balance, please top up your wallet.";
/// The first migration under test.
const FIRST_MIGRATION: i64 = 21;

/// A database connection of another program, without the host's settings.
pub enum ForeignConnection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl ForeignConnection {
    pub async fn connect(url: &str) -> ForeignConnection {
        if url.starts_with("postgres") {
            return ForeignConnection::Postgres(
                PgConnection::connect(url).await.expect("the server"),
            );
        }
        let options: SqliteConnectOptions = url.parse().expect("a URL");
        let options = options.foreign_keys(false).create_if_missing(true);
        ForeignConnection::Sqlite(options.connect().await.expect("the file"))
    }

    /// Runs statements. An error is the text of the database.
    pub async fn run(&mut self, sql: &str) -> Result<u64, String> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let rows = match self {
            ForeignConnection::Sqlite(connection) => {
                sql.execute(connection).await.map(|done| done.rows_affected())
            }
            ForeignConnection::Postgres(connection) => {
                sql.execute(connection).await.map(|done| done.rows_affected())
            }
        };
        rows.map_err(|error| error.to_string())
    }

    /// Returns the number that a query selects.
    pub async fn select(&mut self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        let selected = match self {
            ForeignConnection::Sqlite(connection) => {
                sqlx::query_scalar(sql).fetch_one(connection).await
            }
            ForeignConnection::Postgres(connection) => {
                sqlx::query_scalar(sql).fetch_one(connection).await
            }
        };
        selected.expect("a number")
    }
}

/// Runs statements in one transaction, as another program.
async fn run_as_foreign(app: &TestApp, sql: &str) -> Result<u64, String> {
    let mut foreign = ForeignConnection::connect(&app.database.url).await;
    foreign.run(&format!("BEGIN; {sql}; COMMIT")).await
}

/// Runs a statement as the host.
pub async fn run_as_host(app: &TestApp, sql: &str) -> Result<u64, String> {
    let sql: &'static str = String::leak(sql.to_owned());
    let done = app.app.store.write(async move |tx| tx.sql(sql).run().await).await;
    done.map_err(|error: store::Error| error.to_string())
}

pub fn is_sqlite(app: &TestApp) -> bool {
    app.database.url.starts_with("sqlite")
}

/// All rows of the audit log and the ledger.
async fn rows(app: &TestApp) -> Vec<(String,)> {
    let read = async |tx: &mut store::Tx| -> store::Result<_> {
        let mut all: Vec<(String,)> = Vec::new();
        for sql in [
            "SELECT company_id || id || actor || action || CAST(detail AS TEXT) FROM audit_log ORDER BY 1",
            "SELECT company_id || id || key || kind FROM ledger_transactions ORDER BY 1",
            "SELECT company_id || transaction_id || line || account || currency || amount_minor
             FROM ledger_entries ORDER BY 1",
            "SELECT company_id || account || currency || amount_minor FROM ledger_account_balances ORDER BY 1",
        ] {
            all.extend(tx.sql(sql).all::<(String,)>().await?);
        }
        Ok(all)
    };
    app.app.store.read(read).await.expect("the rows")
}

/// Statements that change or delete rows, on either engine.
const CHANGES: [&str; 10] = [
    "UPDATE audit_log SET actor = 'nobody'",
    "DELETE FROM audit_log",
    "INSERT INTO audit_log SELECT * FROM audit_log WHERE TRUE
     ON CONFLICT (company_id, id) DO UPDATE SET actor = 'nobody'",
    "UPDATE ledger_transactions SET amount_minor = amount_minor + 1",
    "UPDATE ledger_transactions SET kind = 'none'",
    "DELETE FROM ledger_transactions",
    "INSERT INTO ledger_transactions SELECT * FROM ledger_transactions WHERE TRUE
     ON CONFLICT (company_id, key) DO UPDATE SET kind = 'none'",
    "DELETE FROM ledger_balances",
    "UPDATE ledger_balances SET currency = 'USD'",
    "UPDATE ledger_balances SET account = 'wallet' WHERE account = 'pending'",
];

/// Statements on PostgreSQL only.
const TRUNCATES: [&str; 5] = [
    "TRUNCATE audit_log",
    "TRUNCATE ledger_transactions CASCADE",
    "TRUNCATE ledger_balances",
    "TRUNCATE ledger_deltas",
    "UPDATE ledger_deltas SET amount_minor = amount_minor + 1",
];

const REPLACES: [&str; 8] = [
    "INSERT OR REPLACE INTO audit_log SELECT * FROM audit_log",
    "INSERT OR REPLACE INTO audit_log (rowid, company_id, id, actor, action, detail, created_at)
     SELECT rowid, company_id, 'other', actor, action, detail, created_at FROM audit_log",
    "INSERT OR REPLACE INTO ledger_transactions (company_id, id, key, kind, created_at)
     SELECT company_id, id, 'other', kind, created_at FROM ledger_transactions LIMIT 1",
    "INSERT OR REPLACE INTO ledger_transactions (company_id, id, key, kind, created_at)
     SELECT company_id, 'other', key, kind, created_at FROM ledger_transactions LIMIT 1",
    "INSERT OR REPLACE INTO ledger_transactions (rowid, company_id, id, key, kind, created_at)
     SELECT rowid, company_id, 'other', 'other', kind, created_at FROM ledger_transactions LIMIT 1",
    "UPDATE OR REPLACE ledger_transactions SET key = 'other'",
    "UPDATE OR REPLACE ledger_balances SET rowid = 1 WHERE rowid = (SELECT MAX(rowid) FROM ledger_balances)",
    "INSERT OR REPLACE INTO ledger_balances (company_id, account, currency, amount_minor)
     SELECT company_id, account, currency, 1 FROM ledger_balances",
];

async fn credit(app: &TestApp, amount: i64, key: &str) {
    let path = format!("/companies/{}/wallet/credit", app.company.id);
    app.operator(Method::POST, &path, json!({ "amount": amount, "key": key })).await.data();
}

/// Posts a debit of the wallet.
async fn debit(app: &TestApp, minor: i64, cover: Overdraft) -> error::Result<wallet::PostOutcome> {
    let (host, company) = (app.app.clone(), app.company.id.clone());
    let movement = LedgerTransaction {
        key: format!("test:{}", app.app.new_id()),
        kind: "test".into(),
        from: LedgerAccount::Wallet,
        to: LedgerAccount::Operator,
        money: Money { minor: Minor(minor), currency: "NGN".into() },
    };
    let store = app.app.store.clone();
    store.write(async move |tx| wallet::post(tx, &host, &company, &movement, cover).await).await
}

/// A statement that inserts a ledger transaction from the wallet. `allowed` is `TRUE`, `FALSE` or
/// `NULL`.
fn insert_transaction(app: &TestApp, id: &str, allowed: &str, minor: i64) -> String {
    let company = &app.company.id;
    format!(
        "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at, overdraft_allowed,
             debit, credit, currency, amount_minor)
         VALUES ('{company}', '{id}', '{id}', 'test', 0, {allowed}, 'wallet', 'operator', 'NGN', {minor})"
    )
}

/// A statement that lowers the wallet's balance and names a ledger transaction as the cause.
fn lower_balance(id: &str, minor: i64) -> String {
    format!(
        "UPDATE ledger_balances SET amount_minor = amount_minor - {minor}, transaction_id = '{id}'
         WHERE account = 'wallet'"
    )
}

both! {
    async fn the_ledger_and_the_audit_log_are_append_only(app: TestApp) {
        app.paid_payment("order-1").await;
        wallet::fold(&app.app).await.expect("folded balances");
        app.paid_payment("order-2").await;
        let before = rows(app).await;
        assert!(before.len() > 10, "{before:?}");
        let own: &[&str] = if is_sqlite(app) { &REPLACES } else { &TRUNCATES };
        for statement in CHANGES.iter().chain(own) {
            for done in [run_as_host(app, statement).await, run_as_foreign(app, statement).await] {
                let refused = done.expect_err(statement);
                let reason = ["append-only", "ledger_balances keeps"];
                assert!(reason.iter().any(|reason| refused.contains(reason)), "{statement}: {refused}");
            }
        }
        assert_eq!(rows(app).await, before);
    }

    async fn every_transaction_sums_to_zero_and_changes_its_balances(app: TestApp) {
        credit(app, 100, "top-up").await;
        let before = rows(app).await;
        let insert = |debit: &str, credit: &str, currency: &str, minor: i64| format!(
            "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at, debit, credit, currency, amount_minor)
             VALUES ('{}', 'id', 'key', 'test', 0, {debit}, {credit}, {currency}, {minor})", app.company.id
        );
        for (debit, credit, currency, minor) in [
            ("'wallet'", "NULL", "'NGN'", 5),
            ("NULL", "'wallet'", "'NGN'", 5),
            ("'operator'", "'wallet'", "NULL", 5),
            ("'wallet'", "'wallet'", "'NGN'", 5),
            ("'operator'", "'wallet'", "'NGN'", -5),
            ("'operator'", "'wallet'", "'NGN'", 0),
        ] {
            let statement = insert(debit, credit, currency, minor);
            for done in [run_as_host(app, &statement).await, run_as_foreign(app, &statement).await] {
                let refused = done.expect_err(&statement);
                assert!(refused.contains("ledger_transactions_are_complete"), "{statement}: {refused}");
            }
        }
        let entry = format!(
            "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
             SELECT '{0}', id, 1, 'pending', 'NGN', 5 FROM ledger_transactions;
             INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
             SELECT '{0}', id, 2, 'wallet', 'NGN', -5 FROM ledger_transactions", app.company.id
        );
        let refused = run_as_foreign(app, &entry).await.expect_err("an entry");
        assert!(refused.contains("ledger_entries"), "{refused}");
        assert_eq!(rows(app).await, before);
        let statement = insert("'billing'", "'wallet'", "'NGN'", 150);
        run_as_foreign(app, &statement).await.expect("a ledger transaction");
        assert_eq!(app.wallet().await["balance"], 101.5);
    }

    async fn no_statement_overdraws_a_wallet_unless_its_transaction_allows_it(app: TestApp) {
        credit(app, 100, "top-up").await;
        let before = rows(app).await;
        let company = &app.company.id;
        let upsert = |verb: &str, currency: &str, minor: i64, then: &str| format!(
            "{verb} INTO ledger_balances (company_id, account, currency, amount_minor)
             VALUES ('{company}', 'wallet', '{currency}', {minor}) {then}"
        );
        let add = "ON CONFLICT (company_id, account, currency)
                   DO UPDATE SET amount_minor = ledger_balances.amount_minor + excluded.amount_minor";
        let mut statements = vec![
            "UPDATE ledger_balances SET amount_minor = -1 WHERE account = 'wallet'".to_owned(),
            upsert("INSERT", "USD", -1, ""),
            upsert("INSERT", "NGN", -10_001, add),
            lower_balance("none", 10_001),
            insert_transaction(app, "forbidden", "FALSE", 10_001),
            insert_transaction(app, "silent", "NULL", 10_001),
            format!("{}; {}", insert_transaction(app, "less", "TRUE", 5), lower_balance("less", 9_996)),
        ];
        if is_sqlite(app) {
            statements.push(upsert("INSERT OR REPLACE", "USD", -1, ""));
        }
        // SQLite runs the insert trigger before it resolves the conflict.
        let reasons = [BELOW_ZERO, "does not cover", "ledger_balances keeps"];
        let is_refused = |statement: &str, done: Result<u64, String>| {
            let refused = done.expect_err(statement);
            assert!(reasons.iter().any(|reason| refused.contains(reason)), "{statement}: {refused}");
        };
        for statement in &statements {
            is_refused(statement, run_as_foreign(app, statement).await);
            if !statement.contains(';') {
                is_refused(statement, run_as_host(app, statement).await);
            }
        }
        assert_eq!(rows(app).await, before);
        // A debit down to zero needs no permission.
        debit(app, 10_000, Overdraft::Forbidden).await.expect("a covered debit");
        let refused = debit(app, 1, Overdraft::Forbidden).await.expect_err("an overdraft");
        assert_eq!(refused.to_string(), NOT_COVERED);
        assert_eq!(app.wallet().await["balance"], 0);
    }

    async fn an_allowed_overdraft_covers_one_transaction_only(app: TestApp) {
        credit(app, 100, "top-up").await;
        debit(app, 15_000, Overdraft::Allowed).await.expect("an allowed overdraft");
        assert_eq!(app.wallet().await["balance"], -50);
        let again = "UPDATE ledger_balances SET amount_minor = amount_minor - 15000 WHERE account = 'wallet'";
        for done in [run_as_host(app, again).await, run_as_foreign(app, again).await] {
            let refused = done.expect_err(again);
            assert!(refused.contains(BELOW_ZERO), "{refused}");
        }
        let refused = debit(app, 1, Overdraft::Forbidden).await.expect_err("an overdraft");
        assert_eq!(refused.to_string(), NOT_COVERED);
        // A credit needs no permission, even if the balance stays negative.
        credit(app, 20, "part").await;
        assert_eq!(app.wallet().await["balance"], -30);
        debit(app, 100, Overdraft::Allowed).await.expect("another allowed overdraft");
        credit(app, 31, "rest").await;
        assert_eq!(app.wallet().await["balance"], 0);
    }

    async fn only_a_forced_refund_is_stored_as_an_allowed_overdraft(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        let spent = json!({ "amount": 2000, "key": "spent" });
        let company = format!("/companies/{}", app.company.id);
        app.operator(Method::POST, &format!("{company}/wallet/debit"), spent).await.data();
        let refund = format!("{company}/payments/{}/refund", payment["id"].as_str().expect("an id"));
        app.operator(Method::POST, &refund, json!({ "force": true })).await.data();
        let allowed = async |tx: &mut store::Tx| {
            tx.sql("SELECT kind FROM ledger_transactions WHERE overdraft_allowed").all().await
        };
        let allowed: store::Result<Vec<(String,)>> = app.app.store.select(allowed).await;
        assert_eq!(allowed.expect("kinds"), [("payment.refund".to_owned(),)]);
        assert!(app.wallet().await["balance"].as_f64().is_some_and(|balance| balance < 0.0));
        app.run_until_idle().await;
    }

    async fn sqlite_connections_of_the_host_enable_recursive_triggers(app: TestApp) {
        if is_sqlite(app) {
            let shown = async |tx: &mut store::Tx| tx.sql("PRAGMA recursive_triggers").one().await;
            let shown: store::Result<(i64,)> = app.app.store.write(shown).await;
            assert_eq!(shown.expect("a setting").0, 1);
        }
    }
}

// ---- hosts and rows of the previous version -----------------------------------------------------

/// Statements by which a host of the previous version debits a wallet.
fn debit_by_previous_version(app: &TestApp, id: &str, kind: &str, minor: i64) -> String {
    let company = &app.company.id;
    let entry = |line: i64, account: &str, minor: i64| {
        format!(
        "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
         VALUES ('{company}', '{id}', {line}, '{account}', 'NGN', {minor});
         INSERT INTO ledger_balances (company_id, account, currency, amount_minor)
         VALUES ('{company}', '{account}', 'NGN', {minor})
         ON CONFLICT (company_id, account, currency)
         DO UPDATE SET amount_minor = ledger_balances.amount_minor + excluded.amount_minor"
    )
    };
    format!(
        "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at)
         VALUES ('{company}', '{id}', '{id}', '{kind}', 0) ON CONFLICT (company_id, key) DO NOTHING;
         {}; {}",
        entry(2, "operator", minor),
        entry(1, "wallet", -minor),
    )
}

#[tokio::test]
async fn a_host_of_the_previous_version_keeps_working_and_overdraws_by_refunds_only() {
    let Some(server) = postgres() else { return };
    let app = TestApp::start(Engine::Postgres(server)).await;
    credit(&app, 100, "top-up").await;
    let older = async |id: &str, kind: &str, minor: i64| {
        run_as_foreign(&app, &debit_by_previous_version(&app, id, kind, minor)).await
    };
    older("a", "otp.sms", 6_000).await.expect("a covered debit");
    let refused = older("b", "otp.sms", 4_001).await.expect_err("an overdraft");
    assert!(refused.contains(BELOW_ZERO), "{refused}");
    older("c", "payment.refund", 5_000).await.expect("a forced refund");
    assert_eq!(app.wallet().await["balance"], -10);
    let refused = older("d", "otp.sms", 1).await.expect_err("an overdraft");
    assert!(refused.contains(BELOW_ZERO), "{refused}");
    credit(&app, 10, "rest").await;
    app.finish().await;
}

/// A database as the previous version left it, with a wallet below zero.
async fn database_of_previous_version(engine: Engine) -> Database {
    let database = Database::create(engine).await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let own = if database.url.starts_with("sqlite") { "sqlite" } else { "postgres" };
    let mut all = Vec::new();
    for folder in [root.clone(), root.join(own)] {
        let found = Migrator::new(folder).await.expect("migrations");
        all.extend(found.iter().filter(|migration| migration.version < FIRST_MIGRATION).cloned());
    }
    let before = Migrator::with_migrations(all);
    let mut foreign = ForeignConnection::connect(&database.url).await;
    let migrated = match &mut foreign {
        ForeignConnection::Sqlite(connection) => before.run(connection).await,
        ForeignConnection::Postgres(connection) => before.run(connection).await,
    };
    migrated.expect("the previous schema");
    let ledger = "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at)
        VALUES ('c', 't', 'k', 'payment.refund', 0), ('c', 'u', 'free', 'otp.sms', 0);
        INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
        VALUES ('c', 't', 1, 'wallet', 'NGN', -500), ('c', 't', 2, 'operator', 'NGN', 500);
        INSERT INTO ledger_balances (company_id, account, currency, amount_minor)
        VALUES ('c', 'wallet', 'NGN', -500), ('c', 'operator', 'NGN', 500)";
    foreign.run(ledger).await.expect("the previous ledger");
    database
}

async fn open(database: &Database) -> Result<Store, store::Error> {
    let limits =
        StoreLimits { acquire_timeout: Duration::from_millis(200), ..StoreLimits::default() };
    Store::open(&database.url, limits, Random::seeded(1)).await
}

#[tokio::test]
async fn a_ledger_of_the_previous_version_is_migrated_unless_an_entry_is_not_one_of_two() {
    for engine in [Some(Engine::Sqlite), postgres().map(Engine::Postgres)].into_iter().flatten() {
        let database = database_of_previous_version(engine.clone()).await;
        let store = open(&database).await.expect("a migrated ledger");
        let mut other = ForeignConnection::connect(&database.url).await;
        let update = "UPDATE ledger_balances SET amount_minor = amount_minor";
        other.run(&format!("{update} + 100 WHERE account = 'wallet'")).await.expect("a credit");
        let refused = other.run(&format!("{update} - 1 WHERE account = 'wallet'")).await;
        assert!(refused.as_ref().is_err_and(|text| text.contains(BELOW_ZERO)), "{refused:?}");
        for (count, sql) in [
            (2, "SELECT COUNT(*) FROM ledger_transactions"),
            (2, "SELECT COUNT(*) FROM ledger_entries"),
            (
                -500,
                "SELECT amount_minor FROM ledger_entries WHERE transaction_id = 't' AND account = 'wallet' AND line = 1",
            ),
            (
                500,
                "SELECT amount_minor FROM ledger_entries WHERE transaction_id = 't' AND account = 'operator' AND line = 2",
            ),
            (-400, "SELECT amount_minor FROM ledger_account_balances WHERE account = 'wallet'"),
        ] {
            assert_eq!(other.select(sql).await, count, "{sql}");
        }
        drop(store);
        database.drop().await;

        for (transaction, line) in [("none", 1), ("t", 3)] {
            let database = database_of_previous_version(engine.clone()).await;
            let entry = format!(
                "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
                 VALUES ('c', '{transaction}', {line}, 'wallet', 'NGN', 1)"
            );
            let mut foreign = ForeignConnection::connect(&database.url).await;
            foreign.run(&entry).await.expect("a single entry");
            let refused = open(&database).await.err().expect("a refusal").to_string();
            assert!(refused.contains("ledger_entries"), "{refused}");
            database.drop().await;
        }
    }
}
