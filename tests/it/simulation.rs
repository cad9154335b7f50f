//! A seeded simulation: companies that begin, resume, verify and refund payments, customers who pay, a provider that fails in
//! every way it can, callers who hang up half-way, notifications that are lost, doubled and late. After each step no money was
//! made or lost and nothing has moved back; once the provider is well again, everything that was paid has arrived.
//!
//! A failure names its seed: `TOLLHOUSE_SIMULATION_SEED=… cargo test --test it simulation::` repeats it.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse::random::Random;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::app::{Company, TestApp};

const STEPS: usize = 60;
const SEEDS: [u64; 3] = [1, 2, 3];
/// Of the company that has an account of its own at the provider.
const OWN_KEY: &str = "sk_test_the_companys_own_account";

/// A payment as the simulation knows it.
struct Known {
    company: usize,
    reference: String,
    order: Value,
    /// Where a customer can pay, once somebody has heard of it.
    url: Option<String>,
    /// The customer has paid.
    paid: bool,
    status: String,
}

struct World<'a> {
    app: &'a TestApp,
    random: Random,
    seed: u64,
    companies: [Company; 2],
    payments: Vec<Known>,
}

impl World<'_> {
    async fn new(app: &TestApp, seed: u64) -> World<'_> {
        let random = Random::seeded(seed);
        let companies = [
            app.new_company(&format!("Service {seed}")).await,
            app.new_company(&format!("Own {seed}")).await,
        ];
        let path = format!("/companies/{}/providers/provider_a", companies[1].id);
        app.use_paystack(&path, OWN_KEY).await;
        World { app, random, seed, companies, payments: Vec::new() }
    }

    /// One of `n`.
    fn pick(&self, n: usize) -> usize {
        let most = i64::try_from(n).expect("a small number") - 1;
        usize::try_from(self.random.up_to(most)).expect("no less than 0")
    }

    fn any(&self) -> Option<usize> {
        (!self.payments.is_empty()).then(|| self.pick(self.payments.len()))
    }

    async fn step(&mut self) {
        match self.pick(12) {
            0..=2 => self.begin().await,
            3 => self.begin_again().await,
            4..=5 => self.pay().await,
            6 => self.verify().await,
            7 => self.refund().await,
            8..=9 => self.break_something(),
            10 => drop(self.app.standins.release()),
            _ => {
                let seconds = [1, 30, 60, 300, 3_600][self.pick(5)];
                self.app.advance(seconds).await;
            }
        }
    }

    async fn begin(&mut self) {
        let reference = format!("sim-{}-{}", self.seed, self.payments.len());
        let mut order = self.app.order(&reference);
        order["amount"] = json!(1 + self.random.up_to(500_000));
        let (company, status) = (self.pick(2), "pending".to_owned());
        self.payments.push(Known { company, reference, order, url: None, paid: false, status });
        self.initialize(self.payments.len() - 1).await;
    }

    async fn begin_again(&mut self) {
        if let Some(n) = self.any() {
            self.initialize(n).await;
        }
    }

    /// Every fifth caller hangs up before the answer.
    async fn initialize(&mut self, n: usize) {
        let patience = if self.pick(5) == 0 { 3 } else { 20_000 };
        let known = &self.payments[n];
        let company = &self.companies[known.company];
        let request = self.app.request(
            company,
            Method::POST,
            "/payment/initialize",
            Some(known.order.clone()),
        );
        let Ok(reply) = tokio::time::timeout(Duration::from_millis(patience), request).await else {
            // Whoever is still at the provider for it is given time to be taken for dead.
            return self.app.advance(71).await;
        };
        match reply.status.as_u16() {
            200 => {
                let url = reply.data()["checkout"]["url"].as_str();
                self.payments[n].url = url.map(str::to_owned);
            }
            502 | 504 => {}
            _ => panic!("{}", reply.body),
        }
    }

    async fn pay(&mut self) {
        let Some(n) = self.any() else { return };
        let Some(url) = &self.payments[n].url else { return };
        let outcome = ["success", "success", "failed", "abandoned"][self.pick(4)];
        let request = self.app.client.post(format!("{url}/complete"));
        let answer = request.json(&json!({ "outcome": outcome })).send().await.expect("an answer");
        if answer.status().is_success() && outcome == "success" {
            self.payments[n].paid = true;
        }
    }

    async fn verify(&mut self) {
        let Some(n) = self.any() else { return };
        let known = &self.payments[n];
        let path = format!("/payment/verify/{}", known.reference);
        let company = &self.companies[known.company];
        let reply = self.app.request(company, Method::POST, &path, Some(json!({}))).await;
        assert!([200, 400, 404, 502, 504].contains(&reply.status.as_u16()), "{}", reply.body);
    }

    async fn refund(&mut self) {
        let Some(n) = self.any() else { return };
        let Some(payment) = self.fetch(n).await else { return };
        let path = self.refund_path(n, &payment);
        let reply =
            self.app.operator(Method::POST, &path, json!({ "force": self.pick(2) == 0 })).await;
        assert!([200, 400, 502, 504].contains(&reply.status.as_u16()), "{}", reply.body);
    }

    fn refund_path(&self, n: usize, payment: &Value) -> String {
        let company = &self.companies[self.payments[n].company].id;
        format!("/companies/{company}/payments/{}/refund", payment["id"].as_str().expect("an id"))
    }

    fn break_something(&self) {
        use FaultKind::{Cut, CutAfter, Duplicate, Error500, Hold, Malformed, Reorder};
        let (operation, kinds): (_, &[FaultKind]) = match self.pick(4) {
            0 => ("initialize", &[Cut, CutAfter, Error500, Malformed]),
            1 => ("verify", &[Cut, CutAfter, Error500, Malformed]),
            2 => ("refund", &[Cut, CutAfter, Error500, Malformed]),
            _ => ("notification", &[Cut, Duplicate, Hold, Reorder]),
        };
        let kind = kinds[self.pick(kinds.len())];
        self.app.standins.faults().push(Fault::new(operation, kind).times(1));
    }

    /// `None`: the host has not heard of it.
    async fn fetch(&self, n: usize) -> Option<Value> {
        let known = &self.payments[n];
        let path = format!("/payment/fetch/reference/{}", known.reference);
        let reply =
            self.app.request(&self.companies[known.company], Method::GET, &path, None).await;
        (reply.status != 404).then(|| reply.data().clone())
    }

    // ---- what must hold ------------------------------------------------------------------------

    async fn check(&mut self) {
        self.app.check_books().await;
        let events = [self.events(0).await, self.events(1).await];
        let mut expected = [(0, 0); 2];
        for n in 0..self.payments.len() {
            let Some(payment) = self.fetch(n).await else {
                assert_eq!(self.payments[n].status, "pending", "a payment is gone");
                continue;
            };
            let company = self.payments[n].company;
            let none = Vec::new();
            let told = events[company].get(payment["id"].as_str().expect("an id")).unwrap_or(&none);
            self.check_payment(n, &payment, told);
            let (balance, pending) = self.share(n, &payment).await;
            if company == 0 {
                expected[0] = (expected[0].0 + balance, expected[0].1 + pending);
            }
            self.payments[n].status = payment["status"].as_str().expect("a status").to_owned();
        }
        for (company, expected) in self.companies.iter().zip(expected) {
            let path = format!("/companies/{}/wallet", company.id);
            let wallet = self.app.operator(Method::GET, &path, Value::Null).await.data().clone();
            let wallet = (minor(&wallet["balance"]), minor(&wallet["pending"]));
            assert_eq!(wallet, expected, "balance and pending of {}", company.id);
        }
    }

    /// Kinds of events by payment, oldest first.
    async fn events(&self, company: usize) -> BTreeMap<String, Vec<String>> {
        let path = format!("/companies/{}/events?limit=1000", self.companies[company].id);
        let events = self.app.operator(Method::GET, &path, Value::Null).await.data().clone();
        let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in events["docs"].as_array().expect("a list").iter().rev() {
            let text = |name: &str| event[name].as_str().expect("a text").to_owned();
            told.entry(text("subject")).or_default().push(text("event"));
        }
        told
    }

    fn check_payment(&self, n: usize, payment: &Value, told: &[String]) {
        let (before, status) =
            (&*self.payments[n].status, payment["status"].as_str().expect("a status"));
        let legal = before == status
            || matches!(
                (before, status),
                ("pending", _) | ("failed", "success" | "refunded") | ("success", "refunded")
            );
        assert!(legal, "{before} -> {status}: {payment}");
        let once = |kind: &str| told.iter().filter(|told| *told == kind).count() <= 1;
        assert!(
            ["payment.success", "payment.failed", "payment.refunded"].iter().all(|k| once(k)),
            "{told:?}"
        );
        let last = told.last().map(String::as_str);
        let expected = match status {
            "pending" => None,
            "success" => Some("payment.success"),
            "failed" => Some("payment.failed"),
            _ => Some("payment.refunded"),
        };
        assert_eq!(last, expected, "{payment}: {told:?}");
        let succeeded = ["success", "refunded"].contains(&status);
        assert!(!succeeded || self.payments[n].paid, "nobody has paid {payment}");
    }

    /// What a payment adds to the balance and to what is pending, in minor units.
    async fn share(&self, n: usize, payment: &Value) -> (i64, i64) {
        let amount = minor(&payment["amount"]);
        match payment["status"].as_str().expect("a status") {
            "pending" => (0, amount),
            "success" => {
                let path = self.refund_path(n, payment);
                let refund = self.app.operator(Method::GET, &path, Value::Null).await;
                let held = refund.body["data"]["status"] == "requested";
                (if held { 0 } else { amount - minor(&payment["fees"]) }, 0)
            }
            _ => (0, 0),
        }
    }

    /// The provider is well again: what was paid arrives, and every event is delivered.
    async fn heal(&mut self) {
        self.app.standins.faults().clear();
        self.app.standins.release();
        self.app.advance(73 * 3_600).await; // as long as the reconciler asks
        self.check().await;
        for n in 0..self.payments.len() {
            let known = &self.payments[n];
            let arrived = ["success", "refunded"].contains(&known.status.as_str());
            assert_eq!(arrived, known.paid, "{}: {}", known.reference, known.status);
        }
        for company in &self.companies {
            let path = format!("/companies/{}/events?limit=1000", company.id);
            let events = self.app.operator(Method::GET, &path, Value::Null).await.data().clone();
            for event in events["docs"].as_array().expect("a list") {
                assert_eq!(event["deliveries"][0]["state"], "delivered", "{event}");
            }
        }
    }
}

/// Exactly: two decimals at most, and never through a float.
pub fn minor(major: &Value) -> i64 {
    let text = major.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{decimals:0<2}").parse().expect("an amount")
}

pub fn seeds() -> Vec<u64> {
    match std::env::var("TOLLHOUSE_SIMULATION_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => SEEDS.to_vec(),
    }
}

both! {
    async fn whatever_happens_no_money_is_made_or_lost(app: TestApp) {
        for seed in seeds() {
            println!("TOLLHOUSE_SIMULATION_SEED={seed}");
            let mut world = World::new(app, seed).await;
            for _ in 0..STEPS {
                world.step().await;
                world.check().await;
            }
            world.heal().await;
        }
    }
}
