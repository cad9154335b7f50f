//! The ledger scan in the background.

use reqwest::Method;
use serde_json::json;
use tollhouse_app::{operations::monitor::Monitor, state::App, tenants::wallet};
use tollhouse_platform::{
    clock::Timestamp,
    random::{Random, id_lower_bound},
    store,
};

use super::{execute_sql, metric_value};
use crate::app::{NOW, TestApp, config};

/// Seconds after which a scan no longer rereads entries.
const LATER: i64 = 300;
/// More ledger transactions than one poll reads.
const MANY: i64 = 6_000;

const ENTRIES: &str = "CREATE VIEW ledger_entries AS
     SELECT company_id, id AS transaction_id, 1 AS line, debit AS account, currency, -amount_minor AS amount_minor
     FROM ledger_transactions WHERE amount_minor > 0
     UNION ALL SELECT company_id, id, 2, credit, currency, amount_minor
     FROM ledger_transactions WHERE amount_minor > 0";

/// Makes sums of all entries of a company run forever, but not sums from an id on.
async fn block_sums(app: &TestApp) {
    let endless = "UNION ALL SELECT c.id, '', 1, 'wallet', 'NGN', endless.i FROM companies c CROSS JOIN
         (WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i FROM n) SELECT i FROM n) endless";
    execute_sql(app, "DROP VIEW ledger_entries").await;
    execute_sql(app, String::leak(format!("{ENTRIES} {endless}"))).await;
}

async fn unblock_sums(app: &TestApp) {
    execute_sql(app, "DROP VIEW ledger_entries").await;
    execute_sql(app, ENTRIES).await;
}

/// Metrics of a host's ledger scan.
#[derive(Debug, PartialEq)]
struct Seen {
    imbalance: Option<f64>,
    wrong: Option<f64>,
    suspected: Option<f64>,
}

const GOOD: Seen = Seen { imbalance: Some(0.0), wrong: Some(0.0), suspected: Some(0.0) };

/// Another host on the database of a test, with the state of its monitor.
struct Host {
    app: App,
    watch: Monitor,
}

impl Host {
    async fn start(app: &TestApp, flags: &[&str]) -> Host {
        let (config, clock) = (config(&app.database, flags), app.app.clock.clone());
        let app = App::open(&config, clock, Random::system(), None).await;
        Host { app: app.expect("a host that starts"), watch: Monitor::default() }
    }

    async fn look(&mut self) -> Seen {
        self.watch.poll(&self.app).await;
        let page = self.app.server.telemetry.scrape();
        assert_eq!(metric_value(&page, "tollhouse_store_up"), Some(1.0));
        let found = |name: &str| metric_value(&page, &format!("tollhouse_ledger_{name}"));
        Seen {
            imbalance: found(r#"imbalance_minor{currency="NGN"}"#),
            wrong: found("wrong_balances"),
            suspected: found("suspect_companies"),
        }
    }

    /// Time of the last complete scan, in Unix seconds.
    fn swept(&self) -> f64 {
        let page = self.app.server.telemetry.scrape();
        metric_value(&page, "tollhouse_ledger_scan_timestamp_seconds").expect("a time")
    }
}

/// Posts ledger transactions of 1 kobo, with ids of this second.
async fn post(app: &TestApp, second: Timestamp, transactions: i64) {
    let (company, first) = (app.company.id.clone(), id_lower_bound(second));
    let posted = app.app.store.write(async move |tx| -> store::Result<u64> {
        let insert = "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at, debit, credit, currency, amount_minor)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $3)
             SELECT $1, $2 || substr(CAST(1000000 + i AS TEXT), 2), $2 || substr(CAST(1000000 + i AS TEXT), 2), 'test', 0,
                 'billing', 'wallet', 'NGN', 1
             FROM n";
        tx.sql(insert).bind(&*company).bind(&*first).bind(transactions).run().await
    });
    assert_eq!(posted.await.expect("posted transactions"), transactions as u64);
}

async fn large_ledger(app: &TestApp, second: Timestamp, transactions: i64) {
    credit(app, &app.company.id).await;
    post(app, second, transactions).await;
}

async fn credit(app: &TestApp, company: &str) {
    let credit = json!({ "amount": 10, "key": "k" });
    app.operator(Method::POST, &format!("/companies/{company}/wallet/credit"), credit).await.data();
}

both! {
    async fn an_unbalanced_ledger_is_reported(app: TestApp) {
        app.paid_payment("order-1").await;
        wallet::fold(&app.app).await.expect("folded balances");
        credit(app, &app.new_company("Beta Loans").await.id).await;
        app.advance(LATER).await;
        let mut host = Host::start(app, &[]).await;
        assert_eq!(host.look().await, GOOD);
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 7 WHERE account = 'wallet'").await;
        assert_eq!(host.look().await, Seen { imbalance: Some(14.0), wrong: Some(2.0), ..GOOD });
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 7 WHERE account = 'wallet'").await;
        assert_eq!(host.look().await, GOOD);
    }

    async fn a_balance_is_compared_with_recent_entries(app: TestApp) {
        credit(app, &app.company.id).await;
        let mut host = Host::start(app, &[]).await;
        assert_eq!(host.look().await, GOOD);
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 7 WHERE account = 'wallet'").await;
        assert_eq!(host.look().await, Seen { imbalance: Some(7.0), wrong: Some(1.0), ..GOOD });
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 7 WHERE account = 'wallet'").await;
    }

    async fn a_ledger_too_large_to_be_summed_up_is_suspect_and_delays_no_other(app: TestApp) {
        large_ledger(app, Timestamp(1), MANY).await;
        let other = app.new_company("Beta Loans").await;
        credit(app, &other.id).await;
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 7 WHERE account = 'wallet'").await;
        let mut host = Host::start(app, &["--database-transaction-timeout-ms=1000"]).await;
        host.look().await;
        let summed = Seen { imbalance: Some(14.0), wrong: Some(2.0), ..GOOD };
        assert_eq!(host.look().await, summed);
        block_sums(app).await;
        let mut host = Host::start(app, &["--database-transaction-timeout-ms=1000"]).await;
        host.look().await;
        assert_eq!(host.swept(), 0.0);
        // The other company's ledger is small.
        let suspected = Seen { wrong: Some(1.0), suspected: Some(1.0), ..summed };
        assert_eq!(host.look().await, suspected);
        assert!(host.swept() > 0.0);
        unblock_sums(app).await;
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 7 WHERE account = 'wallet'").await;
        host.look().await;
        assert_eq!(host.look().await, GOOD);
    }

    async fn a_ledger_that_grows_while_it_is_read_is_not_suspect(app: TestApp) {
        large_ledger(app, Timestamp(1), MANY - 1_200).await;
        post(app, NOW, 1_200).await;
        block_sums(app).await;
        let mut host = Host::start(app, &["--database-transaction-timeout-ms=1000"]).await;
        host.look().await;
        // These ids sort before some that may have been read.
        execute_sql(app, "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at, debit, credit, currency, amount_minor)
                     SELECT company_id, '6b015d90', '6b015d90', kind, created_at, debit, credit, currency, amount_minor
                     FROM ledger_transactions WHERE id = '6b015d90000001'").await;
        assert_eq!(host.look().await, GOOD);
        app.advance(LATER).await;
        host.look().await;
        post(app, app.app.clock.now(), 100).await;
        assert_eq!(host.look().await, GOOD);
        assert_eq!(host.swept(), (NOW.unix_seconds() + LATER) as f64);
        unblock_sums(app).await;
    }
}
