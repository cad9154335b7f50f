//! Actions of companies and customers on payments, and invariants of these.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store::{Tx, params};

use super::{Caller, Events, World, check_events, minor, pushes};

/// Seconds after which the lease of an abandoned request may have expired.
const LEASE_WAIT_SECONDS: i64 = 21;

/// A payment as the simulation knows it.
pub struct Payment {
    pub company: usize,
    pub reference: String,
    pub order: Value,
    /// The payer confirms on a phone.
    pub is_push: bool,
    /// The URL of the provider's page, once a client has received it.
    url: Option<String>,
    /// The customer has paid.
    pub paid: bool,
    /// A client has received the prompt of a push.
    pub prompted: bool,
    pub status: String,
}

/// Balance and pending balance by currency, in minor units.
pub type Balances = BTreeMap<&'static str, (i64, i64)>;

impl World<'_> {
    pub fn any_payment(&self) -> Option<usize> {
        self.payment_where(|_| true)
    }

    /// Returns the index of one of the payments that match, if there are any.
    pub fn payment_where(&self, matches: impl Fn(&Payment) -> bool) -> Option<usize> {
        let found = self.payments.iter().enumerate().filter(|(_, known)| matches(known));
        let found: Vec<usize> = found.map(|(n, _)| n).collect();
        (!found.is_empty()).then(|| found[self.pick(found.len())])
    }

    pub async fn begin_payment(&mut self) {
        let reference = format!("sim-{}-{}", self.seed, self.payments.len());
        let mut order = self.app.order(&reference);
        order["amount"] = json!(1 + self.random.up_to(500_000));
        self.begin(Payment::new(self.pick(2), reference, order)).await;
    }

    pub async fn begin(&mut self, payment: Payment) {
        self.payments.push(payment);
        self.initialize(self.payments.len() - 1).await;
    }

    pub async fn repeat_initialize(&mut self) {
        if let Some(n) = self.any_payment() {
            self.initialize(n).await;
        }
    }

    async fn initialize(&mut self, n: usize) {
        let known = &self.payments[n];
        let (caller, order) = (Caller::Company(known.company), known.order.clone());
        let reply = self.send(caller, Method::POST, "/payment/initialize", Some(order)).await;
        let Some(reply) = reply else {
            return self.app.advance(LEASE_WAIT_SECONDS).await;
        };
        match reply.status.as_u16() {
            200 if known.is_push => {
                self.payments[n].prompted |= reply.data()["checkout"]["prompt"].is_string()
            }
            200 => {
                let url = reply.data()["checkout"]["url"].as_str();
                self.payments[n].url = url.map(str::to_owned);
            }
            409 if known.is_push => {}
            502 | 504 => {}
            _ => panic!("{}", reply.body),
        }
    }

    /// A payer uses an open page, or one that was already paid.
    pub async fn pay_payment(&mut self) {
        let open = self.payment_where(|known| known.url.is_some() && !known.paid);
        let Some(n) = open.or_else(|| self.payment_where(|known| known.url.is_some())) else {
            return;
        };
        let outcome = ["success", "success", "failed", "abandoned"][self.pick(4)];
        let url = self.payments[n].url.clone().expect("a page");
        if self.complete_page(&url, json!({ "outcome": outcome })).await && outcome == "success" {
            self.payments[n].paid = true;
        }
    }

    /// Completes a provider's page. Returns `false` if it was completed before.
    pub async fn complete_page(&self, url: &str, body: Value) -> bool {
        let request = self.app.client.post(format!("{url}/complete")).json(&body);
        request.send().await.expect("a response").status().is_success()
    }

    /// Payers fail on three of four open pages: hosts verify an open one each hour for 72 hours,
    /// which would take most of the time of a seed.
    pub async fn fail_open_pages(&self) {
        let unpaid = self.payments.iter().filter(|known| !known.paid);
        for url in unpaid.filter_map(|known| known.url.as_deref()).chain(self.debt_pages()) {
            if self.pick(4) > 0 {
                self.complete_page(url, json!({ "outcome": "failed" })).await;
            }
        }
    }

    pub async fn verify_payment(&mut self) {
        let Some(n) = self.any_payment() else { return };
        let known = &self.payments[n];
        let path = format!("/payment/verify/{}", known.reference);
        self.send(Caller::Company(known.company), Method::POST, &path, Some(json!({}))).await;
    }

    pub async fn refund_payment(&mut self) {
        let paid = self.payment_where(|known| known.paid);
        let Some(n) = paid.or_else(|| self.any_payment()) else { return };
        let known = &self.payments[n];
        let path = format!("/payment/fetch/reference/{}", known.reference);
        let company = &self.companies[known.company];
        let payment = self.app.request(company, Method::GET, &path, None).await;
        // The payment may not have been stored.
        let Some(id) = payment.body["data"]["id"].as_str() else { return };
        let path = format!("/companies/{}/payments/{id}/refund", company.id);
        let mut body = json!({ "force": self.pick(2) == 0 });
        if !known.is_push && self.pick(2) == 0 {
            let most = known.order["amount"].as_i64().expect("an amount");
            body["amount"] = json!(1 + self.random.up_to(most - 1));
        }
        self.send(Caller::Operator, Method::POST, &path, Some(body)).await;
    }

    /// Verifies paid payments: after three days, only requests do so.
    pub async fn verify_paid_payments(&self) {
        for known in self.payments.iter().filter(|known| known.paid) {
            let path = format!("/payment/verify/{}", known.reference);
            let company = &self.companies[known.company];
            self.app.request(company, Method::POST, &path, Some(json!({}))).await;
        }
    }

    // ---- what must hold ------------------------------------------------------------------------

    /// Returns the balances that result from the payments, for both companies.
    pub async fn check_payments(&mut self, events: &[Events; 2]) -> [Balances; 2] {
        let removed = self.removed().await;
        let mut listed = BTreeMap::new();
        for company in &self.companies {
            let list = self.app.request(company, Method::GET, "/payment/list?limit=1000", None);
            for payment in list.await.data()["docs"].as_array().expect("a list") {
                let reference = payment["reference"].as_str().expect("a reference").to_owned();
                listed.insert(reference, payment.clone());
            }
        }
        let mut shares = [Balances::new(), Balances::new()];
        for known in &mut self.payments {
            let Some(payment) = listed.get(&known.reference) else {
                assert_eq!(known.status, "pending", "a stored payment is missing");
                continue;
            };
            let id = payment["id"].as_str().expect("an id");
            let kinds = events[known.company].get(id).map_or(&[][..], Vec::as_slice);
            known.check(payment, kinds);
            // The other company has its own account at the first provider.
            if known.company == 0 || payment["payment_service"] == "provider_b" {
                let removed = removed.get(id).copied().unwrap_or_default();
                let (balance, pending) = share(payment, removed);
                let currency = if known.is_push { pushes::CURRENCY } else { "NGN" };
                let sum = shares[known.company].entry(currency).or_default();
                *sum = (sum.0 + balance, sum.1 + pending);
            }
        }
        shares
    }

    /// What refunds and disputes have removed from the wallets, by payment, in minor units.
    async fn removed(&self) -> BTreeMap<String, i64> {
        let [one, other] = [0, 1].map(|n| &self.companies[n].id);
        let read = async |tx: &mut Tx| {
            let removed = "SELECT c.owner_id, CAST(SUM(p.minor) AS BIGINT) FROM (
                     SELECT company_id, charge_id, held_minor AS minor FROM charge_refunds
                     UNION ALL SELECT company_id, charge_id, held_minor + lost_minor FROM disputes) p
                 JOIN charges c ON c.company_id = p.company_id AND c.id = p.charge_id
                 WHERE p.company_id IN ($1, $2) AND c.owner_kind = 'payment' GROUP BY c.owner_id";
            tx.sql(removed).params(params![one, other]).all::<(String, i64)>().await
        };
        self.app.app.store.read(read).await.expect("the amounts").into_iter().collect()
    }

    /// Checks that the provider has exactly the refunds that the host recorded.
    pub async fn check_refunds(&self) {
        let company = &self.companies[0].id;
        let read = async |tx: &mut Tx| {
            let refunds =
                "SELECT c.transaction_id, CAST(COALESCE(SUM(r.amount_minor), 0) AS BIGINT)
                 FROM charges c LEFT JOIN charge_refunds r
                     ON r.company_id = c.company_id AND r.charge_id = c.id AND r.state = 'done'
                 WHERE c.company_id = $1 AND c.provider = 'provider_a' AND c.transaction_id <> ''
                 GROUP BY c.transaction_id";
            tx.sql(refunds).bind(company).all::<(String, i64)>().await
        };
        let recorded = self.app.app.store.read(read).await.expect("the refunds");
        for (transaction, refunded) in recorded {
            let made = self.ask_provider(&format!("refund?transaction={transaction}")).await;
            let made = made.as_array().expect("a list").iter();
            let done = made.filter(|refund| refund["status"] == "processed");
            let sum = done.map(|refund| refund["amount"].as_i64().expect("an amount")).sum::<i64>();
            assert_eq!(refunded, sum, "refunds of the transaction {transaction}");
        }
    }

    pub async fn check_paid_succeeded(&self) {
        let identified = self.identified_pushes().await;
        for known in &self.payments {
            let arrived = match &*known.status {
                "success" | "refunded" => true,
                // The payer won a dispute of it before the host knew that it was paid.
                "failed" => known.paid && self.at_paystack(&known.reference).await == "reversed",
                _ => false,
            };
            let expected = match known.is_push {
                true => self.is_paid_by(known, &identified),
                false => known.paid,
            };
            assert_eq!(arrived, expected, "{}: {}", known.reference, known.status);
        }
    }
}

impl Payment {
    fn new(company: usize, reference: String, order: Value) -> Payment {
        let status = "pending".to_owned();
        Payment {
            company,
            reference,
            order,
            is_push: false,
            url: None,
            paid: false,
            prompted: false,
            status,
        }
    }

    /// Returns a payment by push of the company that uses the service account.
    pub fn push(reference: String, order: Value) -> Payment {
        Payment { is_push: true, ..Payment::new(0, reference, order) }
    }

    fn check(&mut self, payment: &Value, kinds: &[String]) {
        let (before, status) = (&*self.status, payment["status"].as_str().expect("a status"));
        let legal = before == status
            || matches!(
                (before, status),
                ("pending", _) | ("failed", "success" | "refunded") | ("success", "refunded")
            );
        assert!(legal, "{before} -> {status}: {payment}");
        check_events("payment", status, kinds);
        let succeeded = ["success", "refunded"].contains(&status);
        assert!(!succeeded || self.paid, "a success that was not paid: {payment}");
        self.status = status.to_owned();
    }
}

/// Balance and pending balance of a payment in minor units. `removed`: what refunds and disputes
/// have taken from the balance.
fn share(payment: &Value, removed: i64) -> (i64, i64) {
    let amount = minor(&payment["amount"]);
    match payment["status"].as_str().expect("a status") {
        "pending" => (0, amount),
        "success" => (amount - minor(&payment["fees"]) - removed, 0),
        _ => (0, 0),
    }
}
