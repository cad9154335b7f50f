//! Actions of companies and customers on cards and loans, and invariants of these.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store::{self, Tx};

use super::{Caller, Events, World, check_events, major, minor, today};
use crate::{
    app::TestApp,
    conformance::flutterwave_transaction,
    lending::{
        OTHER_CARD, SUCCESS_CARD, create_user, date_in_days, direct_debit, get_loan, put_loan,
        saved_card,
    },
};

const LENDER: Caller = Caller::Company(0);
const USERS: [&str; 2] = ["ada", "bola"];
/// Fees of automatic collections, in minor units.
const CARD_FEE: i64 = 2_000;
const DEBIT_FEE: i64 = 1_000;

/// A loan as the simulation knows it.
#[derive(Clone)]
struct Loan {
    id: String,
    user: &'static str,
    /// Set if only charges by the host repay it.
    is_charged_only: bool,
}

#[derive(Default)]
pub struct Debts {
    loans: Vec<Loan>,
    /// Checkout URLs of cards and recollections that clients have received, with the providers.
    pages: Vec<(String, String)>,
    references: usize,
    /// The last status of each recollection.
    seen: BTreeMap<String, String>,
}

impl Debts {
    /// One user has a card, the other a direct debit.
    pub async fn new(app: &TestApp) -> Debts {
        for id in USERS {
            create_user(app, id).await;
        }
        let prices = json!({ "recollection.card": 20, "recollection.direct_debit": 10 });
        let path = format!("/companies/{}/prices", app.company.id);
        app.operator(Method::PATCH, &path, prices).await.data();
        saved_card(app, USERS[0], SUCCESS_CARD).await;
        direct_debit(app, &format!("dd-{}", USERS[1]), USERS[1]).await;
        Debts::default()
    }
}

impl World<'_> {
    /// Saves a card through checkout, or a mandate.
    pub async fn save_instrument(&mut self) {
        let user = USERS[self.pick(2)];
        if self.pick(4) == 0 {
            // Creating a mandate at the provider needs a provider without faults.
            if self.app.simulators.faults().list().is_empty() {
                direct_debit(self.app, &format!("dd-{user}"), user).await;
            }
            return;
        }
        let card = json!({
            "user_id": user, "currency": "NGN", "checkout": { "success_url": "https://a.example/" },
        });
        self.open_page("/card/create", card).await;
    }

    /// Sends a request and keeps the checkout URL of the response.
    async fn open_page(&mut self, path: &str, body: Value) {
        if let Some(reply) = self.send(LENDER, Method::POST, path, Some(body)).await {
            let data = &reply.body["data"];
            let page = data["checkout"]["url"].as_str().zip(data["payment_service"].as_str());
            self.debts
                .pages
                .extend(page.map(|(url, provider)| (url.to_owned(), provider.to_owned())));
        }
    }

    pub async fn pay_page(&mut self) {
        if self.debts.pages.is_empty() {
            return;
        }
        let (url, provider) = &self.debts.pages[self.pick(self.debts.pages.len())];
        let outcome = ["success", "success", "success", "failed", "abandoned"][self.pick(5)];
        let cards = match &**provider {
            "provider_b" => ["5531886652142950", "4187427415564246"],
            _ => [SUCCESS_CARD, OTHER_CARD],
        };
        let number = cards[self.pick(2)];
        let body = json!({ "outcome": outcome, "card": number });
        let _already_completed = self.complete_page(url, body).await;
    }

    pub fn debt_pages(&self) -> impl Iterator<Item = &str> {
        self.debts.pages.iter().map(|(url, _)| url.as_str())
    }

    async fn cards(&self, user: &str) -> Vec<Value> {
        let listed = self.app.get(&format!("/card/list/{user}")).await;
        listed.data().as_array().expect("a list").clone()
    }

    pub async fn change_card(&mut self) {
        let cards = self.cards(USERS[self.pick(2)]).await;
        if cards.is_empty() {
            return;
        }
        let id = cards[self.pick(cards.len())]["id"].as_str().expect("an id");
        let (method, path, body) = match self.pick(4) {
            0 => (Method::PUT, format!("/card/default/set/{id}"), None),
            1 => (Method::DELETE, format!("/card/delete/{id}"), None),
            2 => (Method::DELETE, format!("/card/delete/{id}?delete_default=true"), None),
            _ => (Method::POST, format!("/card/verify/{id}"), Some(json!({}))),
        };
        self.send(LENDER, method, &path, body).await;
    }

    /// Puts a new loan, or resends one with other installments.
    pub async fn put_loan(&mut self) {
        let known = self.debts.loans.len();
        let again = (known > 0 && self.pick(3) == 0).then(|| self.pick(known));
        // A loan cannot be less than its repaid and pending amounts.
        let least = match again {
            Some(n) => self.repaid_or_pending(&self.debts.loans[n].id).await,
            None => {
                let (id, user) = (format!("loan-{known}"), USERS[self.pick(2)]);
                self.debts.loans.push(Loan { id, user, is_charged_only: self.pick(2) == 0 });
                0
            }
        };
        let Loan { id, user, .. } = self.debts.loans[again.unwrap_or(known)].clone();
        let mut schedule = Vec::new();
        for _ in 0..=self.pick(3) {
            schedule.push((1 + self.pick(4), 1 + self.random.up_to(20_000)));
        }
        let sum = |schedule: &[(usize, i64)]| schedule.iter().map(|(_, minor)| minor).sum::<i64>();
        if sum(&schedule) < least {
            schedule.push((2, least - sum(&schedule)));
        }
        let begins = today(self.app);
        let entries = schedule.iter().map(|(days, minor)| {
            let due = date_in_days(begins + i64::try_from(*days).expect("small"));
            json!({ "due_date": due, "amount": major(*minor) })
        });
        let loan = json!({
            "user_id": user, "amount": major(sum(&schedule)), "currency": "NGN", "disbursed": true,
            "schedule": entries.collect::<Vec<_>>(),
        });
        put_loan(self.app, &id, loan).await;
    }

    /// Puts another collection policy, which may be inactive.
    pub async fn put_collection_policy(&mut self) {
        let orders: [&[&str]; 4] = [
            &["default_card", "other_cards", "mandates"],
            &["mandates", "default_card"],
            &["other_cards"],
            &["mandates"],
        ];
        let days: [&[i64]; 3] = [&[0], &[0, 1], &[0, 1, 2, 3]];
        let mut policy = json!({
            "active": self.pick(5) > 0, "instruments": (orders[self.pick(4)]),
            "days": (days[self.pick(3)]), "hours": { "from": self.pick(12), "to": 12 + self.pick(13) },
            "utc_offset": (["+00:00", "+01:00", "-03:00"][self.pick(3)]),
            "max_attempts": 1 + self.pick(6),
            "events": { "upcoming_days": 1, "due": self.pick(2) == 0, "overdue_days": 2 },
        });
        if self.pick(2) == 0 {
            policy["min_partial_debit"] = major(1 + self.random.up_to(5_000));
        }
        if self.pick(3) == 0 {
            policy["max_fees"] = major(self.random.up_to(6_000));
        }
        let path = format!("/companies/{}/collection-policy", self.companies[0].id);
        self.send(Caller::Operator, Method::PUT, &path, Some(policy)).await;
    }

    async fn repaid_or_pending(&self, loan: &str) -> i64 {
        let all = self.recollections().await;
        let pending = all.iter().filter(|one| one["loan"] == loan && one["status"] == "pending");
        let pending: i64 = pending.map(|one| minor(&one["amount"])).sum();
        pending + minor(&get_loan(self.app, loan).await["amount_paid"])
    }

    pub async fn repay(&mut self) {
        if self.debts.loans.is_empty() {
            return;
        }
        let Loan { id, is_charged_only, .. } =
            self.debts.loans[self.pick(self.debts.loans.len())].clone();
        let mut body = json!({ "loan": id, "amount": major(1 + self.random.up_to(15_000)) });
        if self.pick(3) == 0 {
            self.debts.references += 1;
            body["reference"] = json!(format!("{id}-{}", self.debts.references));
        }
        let is_charge = is_charged_only || self.pick(2) == 0;
        let channel = match (is_charge, self.pick(2)) {
            (true, 0) => "card",
            (true, _) => "direct_debit",
            (false, 0) => "checkout",
            (false, _) => "cash",
        };
        body["payment_channel"] = json!(channel);
        body["with_provider"] = json!(channel != "cash");
        if channel == "checkout" {
            body["checkout"] = json!({ "success_url": "https://a.example/" });
        }
        self.open_page("/recollection/create", body).await;
    }

    async fn recollections(&self) -> Vec<Value> {
        let listed = self.app.get("/recollection/list?limit=1000").await;
        listed.data()["docs"].as_array().expect("a list").clone()
    }

    pub async fn verify_recollection(&mut self) {
        let all = self.recollections().await;
        if !all.is_empty() {
            let reference = all[self.pick(all.len())]["reference"].as_str().expect("a reference");
            let path = format!("/recollection/verify/{reference}");
            self.send(LENDER, Method::POST, &path, Some(json!({}))).await;
        }
    }

    // ---- what must hold ------------------------------------------------------------------------

    /// Returns the effect on the lender's wallet: repayments minus collection fees.
    pub async fn check_debts(&mut self, events: &Events) -> i64 {
        let all = self.recollections().await;
        for loan in &self.debts.loans {
            let of_loan: Vec<&Value> = all.iter().filter(|one| one["loan"] == *loan.id).collect();
            loan.check(&get_loan(self.app, &loan.id).await, &of_loan);
        }
        for recollection in &all {
            let id = recollection["id"].as_str().expect("an id").to_owned();
            let status = recollection["status"].as_str().expect("a status").to_owned();
            let kinds = events.get(&id).map_or(&[][..], Vec::as_slice);
            check_events("recollection", &status, kinds);
            // In a checkout a customer may fail and then pay; a charge ends once.
            let has_page = recollection["checkout"]["url"].is_string();
            assert!(has_page || kinds.len() <= 1, "{kinds:?}: {recollection}");
            let before = self.debts.seen.insert(id, status.clone());
            let before = before.unwrap_or_else(|| "pending".into());
            let legal = before == status
                || before == "pending"
                || (before == "failed" && status == "success");
            assert!(legal, "{before} -> {status}: {recollection}");
        }
        for user in USERS {
            check_cards(&self.cards(user).await);
        }
        self.check_attempts().await;
        all.iter().map(share).sum::<i64>() - self.fees().await
    }

    /// Checks that no installment has two attempts without an outcome, and that each event about an
    /// installment was sent once.
    async fn check_attempts(&self) {
        let company = &self.companies[0].id;
        let read = async |tx: &mut Tx| {
            let pending: Vec<(String, i64)> = tx
                .sql(
                    "SELECT a.loan_id, COUNT(*) FROM collection_attempts a
                     JOIN recollections r ON r.company_id = a.company_id
                         AND r.id = a.recollection_id
                     WHERE a.company_id = $1 AND r.status = 'pending'
                     GROUP BY a.loan_id, a.number, a.due_at HAVING COUNT(*) > 1",
                )
                .bind(company)
                .all()
                .await?;
            let counts: (i64, i64) = tx
                .sql(
                    "SELECT (SELECT COUNT(*) FROM events
                             WHERE company_id = $1 AND kind LIKE 'installment.%'),
                         (SELECT COUNT(*) FROM installment_reports
                             WHERE company_id = $1 AND kind LIKE 'installment.%')",
                )
                .bind(company)
                .one()
                .await?;
            Ok::<_, store::Error>((pending, counts))
        };
        let (pending, (events, reports)) = self.app.app.store.read(read).await.expect("attempts");
        assert_eq!(pending, [], "two attempts without an outcome");
        assert_eq!(events, reports, "events about installments");
    }

    /// Fees of automatic collections that were not refunded; those of failed ones are refunded.
    async fn fees(&self) -> i64 {
        let company = &self.companies[0].id;
        let collected = async |tx: &mut Tx| {
            tx.sql(
                "SELECT r.payment_channel, COUNT(*) FROM recollections r
                 WHERE r.company_id = $1 AND r.fee_key IS NOT NULL AND NOT EXISTS (
                     SELECT 1 FROM ledger_transactions t
                     WHERE t.company_id = r.company_id AND t.key = 'refund:' || r.fee_key)
                 GROUP BY r.payment_channel",
            )
            .bind(company)
            .all::<(String, i64)>()
            .await
        };
        let rows = self.app.app.store.read(collected).await.expect("the collections");
        let fee = |channel: &str| if channel == "card" { CARD_FEE } else { DEBIT_FEE };
        rows.iter().map(|(channel, n)| n * fee(channel)).sum()
    }

    /// Verifies recollections that have not succeeded: after three days, only requests do so.
    pub async fn verify_open_recollections(&self) {
        for one in self.recollections().await.iter().filter(|one| one["status"] != "success") {
            let reference = one["reference"].as_str().expect("a reference");
            self.app.post(&format!("/recollection/verify/{reference}"), json!({})).await;
        }
    }

    /// Reference, status, provider and the provider's reference of each recollection at a provider.
    async fn charges(&self) -> Vec<(String, String, String, String)> {
        let company = &self.companies[0].id;
        let charges = async |tx: &mut Tx| {
            tx.sql(
                "SELECT reference, status, payment_service, service_ref FROM recollections
                 WHERE company_id = $1 AND with_provider",
            )
            .bind(company)
            .all()
            .await
        };
        self.app.app.store.read(charges).await.expect("the recollections")
    }

    /// Checks that recollections agree with their providers, and that verification charges were
    /// refunded.
    pub async fn check_providers(&self) {
        for (reference, status, provider, service_ref) in self.charges().await {
            let taken = match &*provider {
                "provider_b" => {
                    flutterwave_transaction(self.app, &service_ref).await["status"].clone()
                }
                _ => self.at_paystack(&service_ref).await,
            };
            let is_taken = taken == "success" || taken == "successful";
            assert_eq!(is_taken, status == "success", "{reference} at {provider}: {taken}");
        }
        let open = async |tx: &mut Tx| {
            tx.sql(
                "SELECT COUNT(*) FROM charge_refunds WHERE cause = 'verification'
                 AND state NOT IN ('done', 'failed', 'refused', 'stalled')",
            )
            .one::<(i64,)>()
            .await
        };
        let (open,) = self.app.app.store.read(open).await.expect("a count");
        assert_eq!(open, 0, "verification charges that were not refunded");
    }
}

impl Loan {
    fn check(&self, loan: &Value, recollections: &[&Value]) {
        let (amount, paid) = (minor(&loan["amount"]), minor(&loan["amount_paid"]));
        let remaining = minor(&loan["amount_remaining_to_pay"]);
        assert_eq!(paid + remaining, amount, "{loan}");
        let schedule = loan["schedule"].as_array().expect("a schedule");
        let sum = |name: &str| schedule.iter().map(|entry| minor(&entry[name])).sum::<i64>();
        assert_eq!((sum("amount"), sum("amount_remaining")), (amount, remaining), "{loan}");
        assert_eq!(loan["paid"], remaining == 0, "{loan}");
        let of = |status: &str| {
            let these = recollections.iter().filter(|one| one["status"] == status);
            these.map(|one| minor(&one["amount"])).sum::<i64>()
        };
        assert!(paid <= of("success"), "{loan}: {recollections:?}");
        // A customer with a checkout session can pay at any time.
        let has_page = recollections.iter().any(|one| one["checkout"]["url"].is_string());
        if self.is_charged_only && !has_page {
            // Never more than the outstanding amount.
            assert_eq!(paid, of("success"), "{loan}: {recollections:?}");
        }
    }
}

/// Checks that exactly one valid card is the default, if there is any.
fn check_cards(cards: &[Value]) {
    let valid = cards.iter().filter(|card| card["valid"] == true).count();
    let defaults = cards.iter().filter(|card| card["default"] == true);
    assert!(defaults.clone().all(|card| card["valid"] == true), "{cards:?}");
    assert_eq!(defaults.count(), valid.min(1), "{cards:?}");
}

/// The amount that a recollection credits to the wallet, minus the provider's fee: Flutterwave's 1.4 %
/// (rounded), or Paystack's 1.5 % (rounded up) and another 100 from 2,500 on.
fn share(recollection: &Value) -> i64 {
    if recollection["with_provider"] != true || recollection["status"] != "success" {
        return 0;
    }
    let amount = minor(&recollection["amount"]);
    if recollection["payment_service"] == "provider_b" {
        return amount - (amount * 14 + 500) / 1_000;
    }
    let flat = if amount >= 250_000 { 10_000 } else { 0 };
    amount - (amount * 15 + 999) / 1_000 - flat
}
