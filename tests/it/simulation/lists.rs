//! Lists of an operator, and what they must show at the end: the provider's transactions are
//! exactly those recorded, or an open exception names the difference, and the provider's money
//! equals that of the ledger.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::money::disputes;
use tollhouse_platform::{
    clock::Timestamp,
    store::{self, Tx, params},
};

use super::{Caller, World};
use crate::{app::TestApp, reconciliation::account};

const PROVIDERS: [&str; 2] = ["provider_a", "provider_b"];

/// Transactions that do not match: kind, provider's id, result, and the number of charges whose lost
/// disputes exceed the amount that was taken and not refunded.
const DIFFERING: &str = "SELECT t.kind, t.provider_id, t.result, CAST((
        SELECT COUNT(*) FROM charges c WHERE c.company_id = t.company_id AND c.id = t.charge_id
            AND COALESCE(c.taken_minor - c.refunded_minor, 0) < (
                SELECT SUM(d.amount_minor) FROM disputes d WHERE d.company_id = c.company_id
                    AND d.charge_id = c.id AND d.state = 'lost')
    ) AS BIGINT) FROM provider_transactions t
    WHERE t.company_id IN ($1, $2, '') AND t.result <> 'matched'";
/// What an account has taken from companies and not returned to payers, without its fees.
const LISTED: &str = "SELECT CAST(COALESCE(SUM(
        CASE WHEN t.kind = 'payment' THEN t.amount_minor ELSE -t.amount_minor END
        - COALESCE(t.fees_minor, CASE WHEN t.kind = 'payment' THEN c.fees_minor END, 0)), 0) AS BIGINT)
    FROM provider_transactions t JOIN charges c ON c.company_id = t.company_id AND c.id = t.charge_id
    WHERE t.company_id IN ($1, $2) AND t.account_id = $3";
/// The same in the ledger, with payments and refunds that have no outcome.
const IN_LEDGER: &str = "SELECT CAST(COALESCE(-SUM(amount_minor), 0) AS BIGINT) FROM ledger_entries
    WHERE company_id IN ($1, $2) AND account = $3";
const PENDING: &str = "SELECT CAST(COALESCE(SUM(c.amount_minor), 0) AS BIGINT) FROM payments p
    JOIN charges c ON c.company_id = p.company_id AND c.owner_kind = 'payment' AND c.owner_id = p.id
    WHERE p.company_id IN ($1, $2) AND p.status = 'pending' AND c.account_id = $3
        AND c.number = (SELECT MAX(o.number) FROM charges o WHERE o.company_id = c.company_id
            AND o.owner_kind = 'payment' AND o.owner_id = c.owner_id)";
/// Refunds whose outcome is unknown, and that the provider does not list.
const REFUNDING: &str = "SELECT CAST(COALESCE(SUM(r.held_minor + r.fee_minor), 0) AS BIGINT)
    FROM charge_refunds r JOIN charges c ON c.company_id = r.company_id AND c.id = r.charge_id
    WHERE r.company_id IN ($1, $2) AND c.account_id = $3
        AND r.state IN ('requested', 'pending', 'stalled') AND NOT EXISTS (
            SELECT 1 FROM provider_transactions t WHERE t.company_id = r.company_id
                AND t.charge_id = r.charge_id AND t.kind = 'refund' AND t.record_id = r.id)";

/// Lists the transactions of both providers, because what happened before the first list is not
/// listed, and begins the daily lists of disputes, whose webhooks may all be lost.
pub async fn set_up(app: &TestApp) {
    disputes::sweep(app.app.clone()).await.expect("the jobs of the accounts");
    for provider in PROVIDERS {
        list(app, &account(app, provider).await).await;
    }
    app.run_until_idle().await;
}

async fn list(app: &TestApp, account: &str) {
    app.operator(Method::POST, &format!("/accounts/{account}/reconcile"), json!({})).await;
}

impl World<'_> {
    /// An operator lists the transactions of the service account.
    pub async fn list_transactions(&mut self) {
        let path = format!("/accounts/{}/reconcile", account(self.app, "provider_a").await);
        self.send(Caller::Operator, Method::POST, &path, Some(json!({}))).await;
        self.app.run_until_idle().await;
    }

    // ---- what must hold ------------------------------------------------------------------------

    /// Lists the transactions of both providers without faults, and checks that all match, or that
    /// an open exception names the difference.
    pub async fn check_lists(&self) {
        let [a, b] = PROVIDERS;
        let accounts = [account(self.app, a).await, account(self.app, b).await];
        // A payment that was paid long after it was initialized is only in a settlement: lists
        // are by the time of creation.
        let simulators = &self.app.simulators;
        while simulators.paystack().settle(None).is_some() {}
        while simulators.flutterwave().settle(None).is_some() {}
        for _ in 0..2 {
            for account in &accounts {
                list(self.app, account).await;
            }
            self.app.run_until_idle().await;
            self.app.advance(60).await;
        }
        let [one, other] = [0, 1].map(|n| &*self.companies[n].id);
        let read = async |tx: &mut Tx| {
            let differing = tx.sql(DIFFERING).params(params![one, other]);
            differing.all::<(String, String, String, i64)>().await
        };
        let differing = self.app.app.store.read(read).await.expect("the transactions");
        let is_explained = |(kind, _, result, charges): &(String, String, String, i64)| {
            let by_disputes = [("payment", "not_recorded"), ("dispute", "amount_differs")];
            by_disputes.contains(&(kind.as_str(), result.as_str())) && *charges > 0
        };
        let unexplained: Vec<_> = differing.iter().filter(|found| !is_explained(found)).collect();
        assert!(unexplained.is_empty(), "{unexplained:?}");
        let now = self.app.app.clock.now();
        let today = now.to_datetime().format("%Y-%m-%d");
        for account in &accounts {
            let path = format!("/accounts/{account}/days/{today}");
            let report = self.app.operator(Method::GET, &path, Value::Null).await;
            let until = report.data()["listed_until"].as_str().and_then(Timestamp::parse);
            assert!(until > Some(now.plus_seconds(-600)), "the list is not complete: {until:?}");
        }
        let open =
            self.app.operator(Method::GET, "/exceptions?state=open&limit=1000", Value::Null).await;
        let open = open.data()["exceptions"].as_array().expect("a list").clone();
        // Exceptions of former seeds may be open.
        let is_own = |found: &&Value| {
            found["company"].as_str().is_none_or(|company| company == one || company == other)
        };
        let of_lists = open.iter().filter(|found| !found["day"].is_null()).filter(is_own);
        let of_lists: BTreeSet<&str> =
            of_lists.map(|one| one["subject"].as_str().expect("a subject")).collect();
        let differing: Vec<String> =
            differing.iter().map(|(kind, id, ..)| format!("{kind}:{id}")).collect();
        assert_eq!(of_lists, differing.iter().map(String::as_str).collect());
        for (provider, account) in PROVIDERS.iter().zip(&accounts) {
            self.check_money(provider, account).await;
        }
    }

    /// Checks that the ledger has the money of both companies that the provider has.
    async fn check_money(&self, provider: &str, account: &str) {
        let [one, other] = [0, 1].map(|n| &self.companies[n].id);
        let ledger = format!("provider:{provider}");
        let read = async |tx: &mut Tx| -> store::Result<[i64; 4]> {
            let booked = tx.sql(IN_LEDGER).params(params![one, other, &ledger]).value().await?;
            let mut amounts = [booked, 0, 0, 0];
            for (amount, statement) in amounts[1..].iter_mut().zip([LISTED, PENDING, REFUNDING]) {
                *amount = tx.sql(statement).params(params![one, other, account]).value().await?;
            }
            Ok(amounts)
        };
        let [booked, listed, pending, refunding] =
            self.app.app.store.read(read).await.expect("the amounts");
        assert_eq!(booked, listed + pending - refunding, "money at {provider}: listed {listed}");
    }
}
