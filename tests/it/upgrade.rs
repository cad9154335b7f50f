//! Upgrade of a database of the previous version, which holds records in every state: companies see
//! them unchanged, and each runs to its end. `records` names every one of them.

mod fixture;
mod records;

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::money::{cards, charges};
use tollhouse_platform::store::{self, FromRow, Tx};
use tollhouse_sandbox::Outcome;

use self::{
    fixture::Fixture,
    records::{
        CARD_REFUNDS, CARDS, EXCEPTIONS, Expected, PAYMENT_REFUNDS, PAYMENTS, RECOLLECTIONS,
    },
};
use crate::{
    app::{Company, Database, Engine, PAYSTACK_KEY, Reply, TestApp, reply},
    charges::{by_checkout, refunds},
    lending::{SUCCESS_CARD, charge_instrument},
};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

const OWNERS: [(&str, &[Expected]); 3] =
    [("payments", &PAYMENTS), ("cards", &CARDS), ("recollections", &RECOLLECTIONS)];

#[derive(FromRow)]
struct Record {
    id: String,
    name: String,
    status: String,
    service_ref: String,
}

const STATUSES: [(&str, &str); 3] = [
    ("payments", "SELECT id, reference AS name, status, service_ref FROM payments"),
    (
        "cards",
        "SELECT id, id AS name, service_ref,
             status || CASE WHEN removed_at IS NULL THEN '' ELSE ' removed' END AS status
         FROM cards",
    ),
    ("recollections", "SELECT id, reference AS name, status, service_ref FROM recollections"),
];

/// A host of this version on the database of the fixture, with the former state of the simulators.
struct Upgrade {
    app: TestApp,
    fixture: Fixture,
    beta: Company,
    /// The pages that were opened before, by reference at the provider.
    pages: BTreeMap<String, String>,
}

impl Upgrade {
    async fn start(engine: Engine) -> Upgrade {
        let (fixture, database) = (Fixture::read(), Database::create(engine).await);
        fixture.load(&database).await;
        let mut app = TestApp::start_on(database, &[]).await;
        let pages = fixture.replay(&app).await;
        app.company = fixture.company("acme");
        Upgrade { beta: fixture.company("beta"), app, fixture, pages }
    }

    async fn select<T: store::Record>(&self, sql: &'static str) -> Vec<T> {
        let read = async |tx: &mut Tx| tx.sql(sql).all().await;
        self.app.app.store.read(read).await.expect("rows")
    }

    /// The records of a table by name.
    async fn records(&self, table: &str) -> BTreeMap<String, Record> {
        let (_, sql) = STATUSES.iter().find(|(name, _)| *name == table).expect("a table");
        let named = |record: Record| {
            let name = self.fixture.names.get(&record.id).unwrap_or(&record.name);
            (name.clone(), record)
        };
        self.select(sql).await.into_iter().map(named).collect()
    }

    /// Checks that each record is expected, and has the expected status.
    async fn check_statuses(&self, at_end: bool) {
        for (table, expected) in OWNERS {
            let records = self.records(table).await;
            let of_fixture = self.fixture.rows(table).len();
            assert_eq!(of_fixture, expected.len(), "{table} that the test does not name");
            for (name, before, after, _) in expected {
                let status = if at_end { after } else { before };
                assert_eq!(records[*name].status, *status, "{table}: {name}");
            }
        }
    }

    /// Checks that each event was emitted once, and that the receiver has those that the previous
    /// version had not delivered.
    async fn check_events(&self) {
        let events = self.select("SELECT subject_id, kind FROM events ORDER BY kind").await;
        let events: Vec<(String, String)> = events;
        let delivered = self.fixture.rows("event_deliveries").iter();
        let delivered = delivered.filter(|row| row["state"] == "delivered").count();
        assert_eq!(self.app.events().len() + delivered, events.len());
        for (table, expected) in OWNERS {
            let records = self.records(table).await;
            for (name, _, _, kinds) in expected {
                let id = &records[*name].id;
                let emitted = events.iter().filter(|(subject, _)| subject == id);
                let emitted: Vec<&str> = emitted.map(|(_, kind)| &**kind).collect();
                // Events of the same millisecond have no order.
                let kinds: Vec<&str> =
                    kinds.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
                assert_eq!(emitted, kinds, "{table}: {name}");
            }
        }
    }

    async fn check_refunds(&self) {
        let sql = "SELECT c.owner_id, r.state FROM charge_refunds r
             JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id ORDER BY r.number";
        let made: Vec<(String, String)> = self.select(sql).await;
        let made: BTreeMap<String, String> = made.into_iter().collect();
        let mut expected = BTreeMap::new();
        for (table, refunds, of) in [
            ("payments", &PAYMENT_REFUNDS[..], "refunds"),
            ("cards", &CARD_REFUNDS[..], "card_refunds"),
        ] {
            let records = self.records(table).await;
            let before = refunds.iter().filter(|(_, before, _)| !before.is_empty()).count();
            assert_eq!(before, self.fixture.rows(of).len(), "{of} that the test does not name");
            let after = refunds.iter().map(|(name, _, after)| (&records[*name].id, *after));
            expected.extend(after.map(|(id, state)| (id.clone(), state.to_owned())));
        }
        assert_eq!(made, expected);
        // The provider was asked for each refund once, unless one failed.
        let listed = format!("{}/paystack/refund", self.app.simulators.url());
        let listed = reply(self.app.client.get(listed).bearer_auth(PAYSTACK_KEY)).await.body;
        let all = listed["data"].as_array().expect("a list").iter();
        let all = all.filter(|refund| refund["status"] != "failed");
        let of: Vec<String> = all.map(|refund| refund["transaction"].to_string()).collect();
        assert_eq!(of.iter().collect::<BTreeSet<_>>().len(), of.len(), "refunded twice");
    }

    /// Checks that the wallet has the net amounts of what succeeded, and nothing else.
    async fn check_wallet(&self) {
        let sql = "SELECT CAST(COALESCE(SUM(minor), 0) AS BIGINT) FROM (
                SELECT amount_minor - fees_minor AS minor FROM payments
                    WHERE status = 'success' AND credits_wallet
                UNION ALL SELECT r.amount_minor - r.fees_minor FROM recollections r
                    JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id
                    WHERE r.status = 'success' AND c.in_books
                UNION ALL SELECT -amount_minor FROM ledger_account_balances
                    WHERE account IN ('operator', 'billing')) AS expected";
        let balance = "SELECT CAST(SUM(amount_minor) AS BIGINT) FROM ledger_account_balances
                WHERE account = 'wallet'";
        let [expected, balance] = [self.select(sql).await, self.select(balance).await];
        let (expected, balance): (Vec<(i64,)>, Vec<(i64,)>) = (expected, balance);
        assert_eq!(balance, expected);
        let pending = "SELECT company_id, (SELECT CAST(COALESCE(SUM(p.amount_minor), 0) AS BIGINT)
                     FROM payments p WHERE p.company_id = b.company_id AND p.status = 'pending'
                         AND p.credits_wallet), amount_minor
             FROM ledger_account_balances b WHERE account = 'pending'";
        let pending: Vec<(String, i64, i64)> = self.select(pending).await;
        assert!(pending.iter().all(|(_, expected, held)| expected == held), "{pending:?}");
    }

    /// Checks that each loan is repaid by what succeeded, and nothing else.
    async fn check_loans(&self) {
        let sql = "SELECT l.id, l.amount_paid_minor,
                 (SELECT CAST(COALESCE(SUM(r.amount_minor), 0) AS BIGINT) FROM recollections r
                  WHERE r.company_id = l.company_id AND r.loan_id = l.id AND r.status = 'success'),
                 (SELECT CAST(SUM(e.amount_minor - e.remaining_minor) AS BIGINT) FROM loan_entries e
                  WHERE e.company_id = l.company_id AND e.loan_id = l.id)
             FROM loans l";
        let loans: Vec<(String, i64, i64, i64)> = self.select(sql).await;
        assert_eq!(loans.len(), self.fixture.rows("loans").len());
        for (loan, paid, repaid, applied) in loans {
            assert_eq!((paid, paid), (repaid, applied), "{loan}");
        }
    }

    /// Checks that removed cards are deauthorized, and then deleted.
    async fn check_removed_cards(&self) {
        let sql = "SELECT id FROM cards WHERE removed_at IS NOT NULL AND token IS NOT NULL";
        assert_eq!(self.select::<(String,)>(sql).await, []);
        cards::sweep(self.app.app.clone()).await.expect("a sweep");
        let left = self.records("cards").await;
        assert!(left.values().all(|card| card.status == "valid"), "{:?}", left.keys());
    }

    async fn check_exceptions(&self) {
        let sql = "SELECT c.owner_id, e.kind FROM exceptions e
             JOIN charges c ON c.company_id = e.company_id AND c.id = e.charge_id
             WHERE e.state = 'open'";
        let raised: Vec<(String, String)> = self.select(sql).await;
        let mut names = BTreeMap::new();
        for table in ["payments", "cards", "recollections"] {
            let records = self.records(table).await;
            names.extend(records.into_iter().map(|(name, record)| (record.id, name)));
        }
        let mut raised: Vec<(&str, &str)> =
            raised.iter().map(|(owner, kind)| (&*names[owner], &**kind)).collect();
        raised.sort_unstable();
        assert_eq!(raised, EXCEPTIONS);
    }

    // ---- what companies see ---------------------------------------------------------------------

    async fn fetch(&self, path: &str, company: &Company) -> Value {
        self.app.request(company, Method::GET, path, None).await.data().clone()
    }

    /// Checks that companies and operators see what they saw before.
    async fn check_unchanged(&self) {
        self.check_statuses(false).await;
        assert_eq!(self.app.wallet().await, self.fixture.wallet);
        assert_eq!(self.app.events(), [""; 0]);
        for (table, path) in [("payments", "payment"), ("recollections", "recollection")] {
            for row in self.fixture.rows(table) {
                let company = match row["company_id"] == *self.beta.id {
                    true => &self.beta,
                    false => &self.app.company,
                };
                let reference = row["reference"].as_str().expect("a reference");
                let shown = format!("/{path}/fetch/reference/{reference}");
                let shown = self.fetch(&shown, company).await;
                let page = &row.get("checkout_url").unwrap_or(&Value::Null);
                assert_eq!(shown["status"], row["status"], "{reference}");
                assert_eq!(shown["message"], row["message"], "{reference}");
                assert_eq!(&&shown["checkout"]["url"], page, "{reference}");
            }
        }
        for row in self.fixture.rows("cards") {
            let path = format!("/card/fetch/{}", row["id"].as_str().expect("an id"));
            let shown = self.app.get(&path).await;
            match row.contains_key("removed_at") {
                true => assert_eq!(shown.failure(), (404, "card not found")),
                false => assert_eq!(shown.data()["valid"], row["status"] == "valid", "{row:?}"),
            }
        }
    }

    // ---- what payers, companies and operators do ------------------------------------------------

    async fn pay(&self, page: &str) {
        let paid = self.app.client.post(format!("{page}/complete"));
        let body = json!({ "outcome": "success", "card": SUCCESS_CARD });
        let paid = paid.json(&body).send().await.expect("a response");
        assert_eq!(paid.status(), 200, "{page}");
    }

    /// Pays the current page of each record.
    async fn pay_pages(&self, table: &str, names: &[&str]) {
        let records = self.records(table).await;
        for name in names {
            self.pay(&self.pages[&records[*name].service_ref]).await;
        }
    }

    /// Pays pages whose responses were lost.
    async fn pay_lost_pages(&self) {
        for reference in ["lost-paid", "resumed-first-page", "resumed-twice"] {
            self.pay(&self.pages[reference]).await;
        }
        let records = self.records("recollections").await;
        for name in ["page-resumed-first", "page-resumed-twice"] {
            self.pay(&self.pages[&format!("rec-{}", records[name].id)]).await;
        }
    }

    /// Repeats requests whose responses were lost, and pays the pages.
    async fn repeat_requests(&self) {
        let app = &self.app;
        for reference in ["lost", "unreached", "leased", "old-lost"] {
            let begun = app.initialize(reference).await;
            self.pay(begun["checkout"]["url"].as_str().expect("a page")).await;
        }
        for reference in ["page-lost", "page-unreached", "page-leased"] {
            let order = by_checkout(reference, json!({ "loan": "pages" }));
            let begun = app.post("/recollection/create", order).await;
            self.pay(begun.data()["checkout"]["url"].as_str().expect("a page")).await;
        }
        let order = json!({
            "user_id": "femi", "currency": "NGN", "checkout": { "success_url": "https://a.example/" },
        });
        let request = app.client.post(format!("{}/api/v1/card/create", app.api)).json(&order);
        let request = request.bearer_auth(&app.company.key);
        let begun = reply(request.header("idempotency-key", "card-lost")).await;
        self.pay(begun.data()["checkout"]["url"].as_str().expect("a page")).await;
    }

    async fn refund(&self, name: &str) -> Reply {
        let id = &self.records("payments").await[name].id;
        let path = format!("/companies/{}/payments/{id}/refund", self.app.company.id);
        self.app.operator(Method::POST, &path, Value::Null).await
    }

    async fn act(&self) {
        let app = &self.app;
        let payments =
            ["old-open", "open", "failed-then-paid", "resumed", "resumed-twice", "own-open"];
        self.pay_pages("payments", &payments).await;
        self.pay_pages("cards", &["page", "old-unverified", "resumed", "failed-then-paid"]).await;
        let recollections = [
            "page", "old-page-open", "page-failed-then-paid", "page-resumed", "page-resumed-twice",
            "card-challenge", "old-challenge",
        ];
        self.pay_pages("recollections", &recollections).await;
        app.run_until_idle().await;
        self.pay_lost_pages().await;
        app.advance(60).await;
        self.repeat_requests().await;
        let records = self.records("recollections").await;
        for name in ["card-pending", "debit-pending"] {
            let reference = &records[name].service_ref;
            assert!(app.simulators.paystack().resolve(reference, Outcome::Success), "{name}");
        }
        app.advance(60).await;
        for name in ["success", "refund-refused"] {
            assert_eq!(self.refund(name).await.data()["status"], "refunded", "{name}");
        }
        for name in ["refund-pending", "reversed", "failed"] {
            let message = "only successful payment can be refunded";
            assert_eq!(self.refund(name).await.failure(), (400, message), "{name}");
        }
        let more = json!({
            "loan": "cards-2", "with_provider": true, "payment_channel": "card", "amount": 10,
        });
        assert_eq!(charge_instrument(app, more).await["status"], "success");
    }

    /// Runs what is due after some days without a host.
    async fn jump(&self, days: i64) {
        let clock = &self.app.app.clock;
        clock.advance_to(clock.now().plus_seconds(days * DAY));
        self.app.run_until_idle().await;
    }

    async fn run(self, sweeps_first: bool) {
        let app = &self.app;
        self.check_unchanged().await;
        let sweep = async || charges::sweep(app.app.clone()).await.expect("a sweep");
        if sweeps_first {
            sweep().await;
            self.check_unchanged().await;
        }
        self.act().await;
        for seconds in [600, HOUR, 2 * HOUR] {
            app.advance(seconds).await;
        }
        sweep().await;
        for days in [1, 1, 1, 1, 4, 11, 13] {
            self.jump(days).await;
            assert_eq!(sweep().await, 0);
        }
        self.check_statuses(true).await;
        self.check_events().await;
        self.check_refunds().await;
        self.check_exceptions().await;
        self.check_wallet().await;
        self.check_loans().await;
        self.check_removed_cards().await;
        assert_eq!(refunds(app, "?state=failed").await.len(), 2);
        let left = "SELECT kind, subject FROM jobs WHERE kind IN
            ('payment.settle', 'recollection.settle', 'card.refund')";
        let left: Vec<(String, String)> = self.select(left).await;
        assert!(left.is_empty(), "{left:?}");
        self.app.finish().await;
    }
}

async fn run(engine: Engine, sweeps_first: bool) {
    Upgrade::start(engine).await.run(sweeps_first).await;
}

/// The job of the previous version verifies a card and removes it, and is late.
#[tokio::test]
async fn a_card_that_was_paid_is_saved_if_the_next_host_starts_two_days_later() {
    let upgrade = Upgrade::start(Engine::Sqlite).await;
    upgrade.jump(2).await;
    let cards = upgrade.records("cards").await;
    for (name, status) in [("paid-unseen", "valid"), ("page-abandoned", "pending removed")] {
        assert_eq!(cards[name].status, status, "{name}");
    }
    upgrade.app.advance(2 * HOUR).await;
    upgrade.app.finish().await;
}

macro_rules! upgrades {
    ($($name:ident: $sweeps_first:literal)*) => {$(
        mod $name {
            #[tokio::test]
            async fn sqlite() {
                super::run(crate::app::Engine::Sqlite, $sweeps_first).await;
            }

            #[tokio::test]
            async fn postgres() {
                let Some(server) = crate::app::postgres() else { return };
                super::run(crate::app::Engine::Postgres(server), $sweeps_first).await;
            }
        }
    )*};
}

upgrades! {
    records_of_the_previous_version_run_to_their_end: false
    records_of_the_previous_version_run_to_their_end_after_a_sweep: true
}
