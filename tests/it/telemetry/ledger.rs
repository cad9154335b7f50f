//! The check of the ledger in the background.

use reqwest::Method;
use serde_json::json;
use tollhouse_app::{operations::monitor::Monitor, state::App};
use tollhouse_platform::{
    clock::Timestamp,
    random::{Random, id_lower_bound},
    store,
};

use super::{meddle, value};
use crate::app::{NOW, TestApp, config};

/// Beyond what a sweep takes for too young to be read for good.
const LATER: i64 = 300;
const ENTRIES: &str = "ledger_entries";
/// Where entries are while [`HINDER`] is in force.
const HIDDEN: &str = "ledger_rows";

/// To add up all entries of a book takes for ever, to read them page by page does not.
const HINDER: [&str; 2] = [
    "ALTER TABLE ledger_entries RENAME TO ledger_rows",
    "CREATE VIEW ledger_entries AS
     SELECT company_id, transaction_id, line, account, currency, amount_minor FROM ledger_rows
     UNION ALL SELECT c.id, '', 1, 'wallet', 'NGN', endless.i FROM companies c CROSS JOIN
         (WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i FROM n) SELECT i FROM n) endless",
];
const LET_GO: [&str; 2] =
    ["DROP VIEW ledger_entries", "ALTER TABLE ledger_rows RENAME TO ledger_entries"];

/// What a host has seen of the ledger.
#[derive(Debug, PartialEq)]
struct Seen {
    imbalance: Option<f64>,
    unbalanced: Option<f64>,
    wrong: Option<f64>,
    suspected: Option<f64>,
}

const GOOD: Seen =
    Seen { imbalance: Some(0.0), unbalanced: Some(0.0), wrong: Some(0.0), suspected: Some(0.0) };

/// Another host on the database of a test, and where its looks have got to.
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
        assert_eq!(value(&page, "tollhouse_store_up"), Some(1.0));
        let found = |name: &str| value(&page, &format!("tollhouse_ledger_{name}"));
        Seen {
            imbalance: found(r#"imbalance_minor{currency="NGN"}"#),
            unbalanced: found("unbalanced_transactions"),
            wrong: found("wrong_balances"),
            suspected: found("suspected_books"),
        }
    }

    /// When a sweep last reached the end, in seconds since the epoch.
    fn swept(&self) -> f64 {
        let page = self.app.server.telemetry.scrape();
        value(&page, "tollhouse_ledger_swept_timestamp_seconds").expect("a time")
    }
}

/// Moves 1 kobo from the operator to the wallet, again and again, under ids that begin with those of a second.
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
    posted.await.expect("movements that are posted");
}

/// A book of more entries than one look reads.
async fn large_book(app: &TestApp, second: Timestamp, movements: i64) {
    credit(app, &app.company.id).await;
    post(app, ENTRIES, second, movements).await;
}

async fn credit(app: &TestApp, company: &str) {
    let credit = json!({ "amount": 10, "key": "k" });
    app.operator(Method::POST, &format!("/companies/{company}/wallet/credit"), credit).await.data();
}

both! {
    async fn a_ledger_out_of_balance_is_seen(app: TestApp) {
        app.paid("order-1").await;
        credit(app, &app.new_company("Beta Loans").await.id).await;
        app.advance(LATER).await;
        let mut host = Host::start(app, &[]).await;
        assert_eq!(host.look().await, GOOD);
        meddle(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 7 WHERE account = 'wallet'").await;
        assert_eq!(host.look().await, Seen { imbalance: Some(14.0), wrong: Some(2.0), ..GOOD });
        meddle(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 7 WHERE account = 'wallet'").await;
        meddle(app, "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
                     SELECT company_id, transaction_id, 3, account, currency, 5 FROM ledger_entries
                     WHERE account = 'operator'").await;
        assert_eq!(host.look().await, Seen { unbalanced: Some(1.0), wrong: Some(1.0), ..GOOD });
        // Entries stay for ever; what puts them right is another one.
        meddle(app, "INSERT INTO ledger_entries (company_id, transaction_id, line, account, currency, amount_minor)
                     SELECT company_id, transaction_id, 4, account, currency, -5 FROM ledger_entries
                     WHERE account = 'operator' AND line = 3").await;
        assert_eq!(host.look().await, GOOD);
    }

    async fn a_balance_is_compared_with_what_was_posted_a_moment_ago(app: TestApp) {
        credit(app, &app.company.id).await;
        let mut host = Host::start(app, &[]).await;
        assert_eq!(host.look().await, GOOD);
        meddle(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 7 WHERE account = 'wallet'").await;
        assert_eq!(host.look().await, Seen { imbalance: Some(7.0), wrong: Some(1.0), ..GOOD });
        meddle(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 7 WHERE account = 'wallet'").await;
    }

    async fn a_book_that_is_too_large_to_be_summed_up_is_suspected_and_holds_up_no_other(app: TestApp) {
        large_book(app, Timestamp(1), 3_000).await;
        let other = app.new_company("Beta Loans").await;
        credit(app, &other.id).await;
        meddle(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 7 WHERE account = 'wallet'").await;
        let mut host = Host::start(app, &["--database-deadline-ms=1000"]).await;
        host.look().await;
        let summed = Seen { imbalance: Some(14.0), wrong: Some(2.0), ..GOOD };
        assert_eq!(host.look().await, summed);
        for hinder in HINDER {
            meddle(app, hinder).await;
        }
        let mut host = Host::start(app, &["--database-deadline-ms=1000"]).await;
        host.look().await;
        assert_eq!(host.swept(), 0.0);
        // The other book is small.
        let suspected = Seen { wrong: Some(1.0), suspected: Some(1.0), ..summed };
        assert_eq!(host.look().await, suspected);
        assert!(host.swept() > 0.0);
        for let_go in LET_GO {
            meddle(app, let_go).await;
        }
        meddle(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 7 WHERE account = 'wallet'").await;
        host.look().await;
        assert_eq!(host.look().await, GOOD);
    }

    async fn a_book_that_grows_while_it_is_read_is_not_suspected(app: TestApp) {
        large_book(app, Timestamp(1), 2_400).await;
        post(app, ENTRIES, NOW, 600).await;
        for hinder in HINDER {
            meddle(app, hinder).await;
        }
        let mut host = Host::start(app, &["--database-deadline-ms=1000"]).await;
        host.look().await;
        // Its ids sort before some that could have been read.
        meddle(app, "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at)
                     SELECT company_id, '6b015d90', '6b015d90', kind, created_at FROM ledger_transactions
                     WHERE id = '6b015d90000001'").await;
        meddle(app, "INSERT INTO ledger_rows (company_id, transaction_id, line, account, currency, amount_minor)
                     SELECT company_id, '6b015d90', line, account, currency, amount_minor FROM ledger_rows
                     WHERE transaction_id = '6b015d90000001'").await;
        meddle(app, "UPDATE ledger_balances SET amount_minor = amount_minor + 1 WHERE account = 'wallet'").await;
        meddle(app, "UPDATE ledger_balances SET amount_minor = amount_minor - 1 WHERE account = 'operator'").await;
        assert_eq!(host.look().await, GOOD);
        app.advance(LATER).await;
        host.look().await;
        post(app, HIDDEN, app.app.clock.now(), 100).await;
        assert_eq!(host.look().await, GOOD);
        assert_eq!(host.swept(), (NOW.unix_seconds() + LATER) as f64);
        for let_go in LET_GO {
            meddle(app, let_go).await;
        }
    }
}
