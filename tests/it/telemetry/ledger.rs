//! The ledger scan in the background.

use reqwest::Method;
use serde_json::json;
use tollhouse_app::{operations::monitor::Monitor, state::App};
use tollhouse_platform::{
    clock::Timestamp,
    random::{Random, id_lower_bound},
    store,
};

use super::{execute_sql, metric_value};
use crate::app::{NOW, TestApp, config};

/// Seconds after which a scan no longer rereads entries.
const LATER: i64 = 300;
const ENTRIES: &str = "ledger_entries";
/// The table of the entries while [`BLOCK_SUMS`] is in effect.
const HIDDEN: &str = "ledger_rows";

/// Makes summing up all entries of a company endless, but not reading them in pages.
const BLOCK_SUMS: [&str; 2] = [
    "ALTER TABLE ledger_entries RENAME TO ledger_rows",
    "CREATE VIEW ledger_entries AS
     SELECT company_id, transaction_id, line, account, currency, amount_minor FROM ledger_rows
     UNION ALL SELECT c.id, '', 1, 'wallet', 'NGN', endless.i FROM companies c CROSS JOIN
         (WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i FROM n) SELECT i FROM n) endless",
];
const UNBLOCK_SUMS: [&str; 2] =
    ["DROP VIEW ledger_entries", "ALTER TABLE ledger_rows RENAME TO ledger_entries"];

/// Metrics of a host's ledger scan.
#[derive(Debug, PartialEq)]
struct Seen {
    imbalance: Option<f64>,
    unbalanced: Option<f64>,
    wrong: Option<f64>,
    suspected: Option<f64>,
}

const GOOD: Seen =
    Seen { imbalance: Some(0.0), unbalanced: Some(0.0), wrong: Some(0.0), suspected: Some(0.0) };

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
            unbalanced: found("unbalanced_transactions"),
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

/// Posts transactions of 1 kobo from the operator to the wallet, with ids of this second.
async fn post(app: &TestApp, table: &str, second: Timestamp, movements: i64) {
    let (company, first) = (app.company.id.clone(), id_lower_bound(second));
    let insert: &str = String::leak(format!(
        "INSERT INTO {table} (company_id, transaction_id, line, account, currency, amount_minor)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $3)
         SELECT $1, $2 || substr(CAST(1000000 + i AS TEXT), 2), leg.line, leg.account, 'NGN', leg.amount
         FROM n CROSS JOIN (SELECT 1 AS line, 'operator' AS account, -1 AS amount UNION ALL SELECT 2, 'wallet', 1) leg"
    ));
    let posted = app.app.store.write(async move |tx| -> store::Result<()> {
        let transactions = "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $3)
             SELECT $1, $2 || substr(CAST(1000000 + i AS TEXT), 2), $2 || substr(CAST(1000000 + i AS TEXT), 2), 'test', 0
             FROM n";
        tx.sql(transactions).bind(&*company).bind(&*first).bind(movements).run().await?;
        tx.sql(insert).bind(&*company).bind(&*first).bind(movements).run().await?;
        let balance = "UPDATE ledger_balances SET amount_minor = amount_minor + $3
                       WHERE company_id = $1 AND account = $2";
        for (account, change) in [("wallet", movements), ("operator", -movements)] {
            tx.sql(balance).bind(&*company).bind(account).bind(change).run().await?;
        }
        Ok(())
    });
    posted.await.expect("posted transactions");
}

/// A ledger with more entries than one poll reads.
async fn large_ledger(app: &TestApp, second: Timestamp, movements: i64) {
    credit(app, &app.company.id).await;
    post(app, ENTRIES, second, movements).await;
}

async fn credit(app: &TestApp, company: &str) {
    let credit = json!({ "amount": 10, "key": "k" });
    app.operator(Method::POST, &format!("/companies/{company}/wallet/credit"), credit).await.data();
}

both! {
    async fn an_unbalanced_ledger_is_reported(app: TestApp) {
        app.paid_payment("order-1").await;
        credit(app, &app.new_company("Beta Loans").await.id).await;
        app.advance(LATER).await;
        let mut host = Host::start(app, &[]).await;
        assert_eq!(host.look().await, GOOD);
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 7 WHERE account = 'wallet'").await;
        assert_eq!(host.look().await, Seen { imbalance: Some(14.0), wrong: Some(2.0), ..GOOD });
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 7 WHERE account = 'wallet'").await;
        execute_sql(app, "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
                     SELECT company_id, transaction_id, 3, account, currency, 5 FROM ledger_entries
                     WHERE account = 'operator'").await;
        assert_eq!(host.look().await, Seen { unbalanced: Some(1.0), wrong: Some(1.0), ..GOOD });
        // Entries are never changed: another entry corrects them.
        execute_sql(app, "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
                     SELECT company_id, transaction_id, 4, account, currency, -5 FROM ledger_entries
                     WHERE account = 'operator' AND line = 3").await;
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
        large_ledger(app, Timestamp(1), 3_000).await;
        let other = app.new_company("Beta Loans").await;
        credit(app, &other.id).await;
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 7 WHERE account = 'wallet'").await;
        let mut host = Host::start(app, &["--database-transaction-timeout-ms=1000"]).await;
        host.look().await;
        let summed = Seen { imbalance: Some(14.0), wrong: Some(2.0), ..GOOD };
        assert_eq!(host.look().await, summed);
        for block in BLOCK_SUMS {
            execute_sql(app, block).await;
        }
        let mut host = Host::start(app, &["--database-transaction-timeout-ms=1000"]).await;
        host.look().await;
        assert_eq!(host.swept(), 0.0);
        // The other company's ledger is small.
        let suspected = Seen { wrong: Some(1.0), suspected: Some(1.0), ..summed };
        assert_eq!(host.look().await, suspected);
        assert!(host.swept() > 0.0);
        for unblock in UNBLOCK_SUMS {
            execute_sql(app, unblock).await;
        }
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 7 WHERE account = 'wallet'").await;
        host.look().await;
        assert_eq!(host.look().await, GOOD);
    }

    async fn a_ledger_that_grows_while_it_is_read_is_not_suspect(app: TestApp) {
        large_ledger(app, Timestamp(1), 2_400).await;
        post(app, ENTRIES, NOW, 600).await;
        for block in BLOCK_SUMS {
            execute_sql(app, block).await;
        }
        let mut host = Host::start(app, &["--database-transaction-timeout-ms=1000"]).await;
        host.look().await;
        // These ids sort before some that may have been read.
        execute_sql(app, "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at)
                     SELECT company_id, '6b015d90', '6b015d90', kind, created_at FROM ledger_transactions
                     WHERE id = '6b015d90000001'").await;
        execute_sql(app, "INSERT INTO ledger_rows (company_id, transaction_id, line, account, currency, amount_minor)
                     SELECT company_id, '6b015d90', line, account, currency, amount_minor FROM ledger_rows
                     WHERE transaction_id = '6b015d90000001'").await;
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 1 WHERE account = 'wallet'").await;
        execute_sql(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 1 WHERE account = 'operator'").await;
        assert_eq!(host.look().await, GOOD);
        app.advance(LATER).await;
        host.look().await;
        post(app, HIDDEN, app.app.clock.now(), 100).await;
        assert_eq!(host.look().await, GOOD);
        assert_eq!(host.swept(), (NOW.unix_seconds() + LATER) as f64);
        for unblock in UNBLOCK_SUMS {
            execute_sql(app, unblock).await;
        }
    }
}
