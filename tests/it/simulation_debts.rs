//! A seeded simulation of debts: cards that are saved, defaulted and deleted, loans that are put and sent again, repayments by hand, page,
//! card and mandate, due dates, a provider that fails in every way it can, callers who hang up half-way, notifications that are
//! lost, doubled and late. After each step loans, schedules, wallets, fees and events agree; once the provider is well again, nothing is under way.
//!
//! A failure names its seed: `TOLLHOUSE_SIMULATION_SEED=… cargo test --test it simulation_debts::` repeats it.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse::random::Random;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Company, Reply, TestApp},
    codes::{balance, credit},
    lending::{OTHER_CARD, SUCCESS_CARD, day, direct_debit, get_loan, put_loan},
    simulation::{minor, seeds},
};

const STEPS: usize = 60;
const USERS: [&str; 2] = ["ada", "bola"];
const FUNDS: i64 = 1_000;
const DAY: i64 = 86_400;
/// What is charged for collecting, in minor units.
const CARD_FEE: i64 = 2_000;
const DEBIT_FEE: i64 = 1_000;

struct World<'a> {
    app: &'a TestApp,
    random: Random,
    /// Days since the begin.
    today: i64,
    /// By loan: its user, how often it was put, and whether only the host itself repays it, by charges.
    loans: Vec<(String, &'static str, bool)>,
    /// Pages of cards and recollections that somebody has got.
    pages: Vec<String>,
    references: usize,
    /// The last status of each record.
    seen: BTreeMap<String, String>,
}

impl World<'_> {
    async fn new(app: &TestApp, seed: u64) -> World<'_> {
        for user in USERS {
            let known = app.get(&format!("/user/fetch/{user}")).await;
            if known.status != 200 {
                crate::lending::user(app, user).await;
            }
        }
        let prices = json!({ "recollection.card": 20, "recollection.direct_debit": 10 });
        app.operator(Method::PATCH, &format!("/companies/{}/prices", app.company.id), prices)
            .await
            .data();
        let random = Random::seeded(seed);
        let (loans, pages, seen) = (Vec::new(), Vec::new(), BTreeMap::new());
        World { app, random, today: 0, loans, pages, references: 0, seen }
    }

    /// One of `n`.
    fn pick(&self, n: usize) -> usize {
        let most = i64::try_from(n).expect("a small number") - 1;
        usize::try_from(self.random.up_to(most)).expect("no less than 0")
    }

    /// An answer, unless the caller hangs up before: one of eight does.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Option<Reply> {
        let patience = Duration::from_millis(if self.pick(8) == 0 { 4 } else { 20_000 });
        let request = self.app.request(&self.app.company, method, path, body);
        let reply = tokio::time::timeout(patience, request).await.ok()?;
        let expected = [200, 400, 404, 502, 504].contains(&reply.status.as_u16());
        assert!(expected, "{path}: {}", reply.body);
        Some(reply)
    }

    async fn step(&mut self) {
        match self.pick(16) {
            0 => self.save_card().await,
            1..=2 => self.pay().await,
            3 => self.change_card().await,
            4 => self.put_loan().await,
            5..=7 => self.repay().await,
            8 => self.verify().await,
            9..=11 => self.break_something(),
            12 => drop(self.app.standins.release()),
            13..=14 => self.advance([1, 60, 300, 3_600][self.pick(4)]).await,
            _ => {
                self.today += 1;
                self.advance(DAY).await;
            }
        }
    }

    async fn advance(&self, seconds: i64) {
        self.app.advance(seconds).await;
    }

    async fn save_card(&mut self) {
        let user = USERS[self.pick(2)];
        if self.pick(4) == 0 {
            let id = format!("dd-{user}");
            if self.app.standins.faults().list().is_empty() {
                direct_debit(self.app, &id, user).await;
            }
            return;
        }
        let card = json!({
            "user_id": user, "currency": "NGN", "checkout": { "success_url": "https://a.example/" },
        });
        self.begin("/card/create", card).await;
    }

    /// Keeps the page, if one came.
    async fn begin(&mut self, path: &str, body: Value) {
        if let Some(reply) = self.ask(Method::POST, path, Some(body)).await {
            let url = reply.body["data"]["checkout"]["url"].as_str();
            self.pages.extend(url.map(str::to_owned));
        }
    }

    async fn pay(&mut self) {
        if self.pages.is_empty() {
            return;
        }
        let url = &self.pages[self.pick(self.pages.len())];
        let outcome = ["success", "success", "success", "failed", "abandoned"][self.pick(5)];
        let number = [SUCCESS_CARD, OTHER_CARD][self.pick(2)];
        let body = json!({ "outcome": outcome, "card": number });
        let paid = self.app.client.post(format!("{url}/complete")).json(&body).send().await;
        let _already = paid.expect("an answer");
    }

    async fn cards(&self, user: &str) -> Vec<Value> {
        let listed = self.app.get(&format!("/card/list/{user}")).await;
        listed.data().as_array().expect("a list").clone()
    }

    async fn change_card(&mut self) {
        let cards = self.cards(USERS[self.pick(2)]).await;
        if cards.is_empty() {
            return;
        }
        let id = cards[self.pick(cards.len())]["id"].as_str().expect("an id").to_owned();
        match self.pick(4) {
            0 => drop(self.ask(Method::PUT, &format!("/card/default/set/{id}"), None).await),
            1 => drop(self.ask(Method::DELETE, &format!("/card/delete/{id}"), None).await),
            2 => {
                let path = format!("/card/delete/{id}?delete_default=true");
                drop(self.ask(Method::DELETE, &path, None).await);
            }
            _ => {
                let path = format!("/card/verify/{id}");
                drop(self.ask(Method::POST, &path, Some(json!({}))).await);
            }
        }
    }

    /// A new loan, or one that is sent again with later installments.
    async fn put_loan(&mut self) {
        let again = !self.loans.is_empty() && self.pick(3) == 0;
        if !again {
            let (user, own) = (USERS[self.pick(2)], self.pick(2) == 0);
            self.loans.push((format!("loan-{}", self.random.token("")), user, own));
        }
        let n = if again { self.pick(self.loans.len()) } else { self.loans.len() - 1 };
        let (id, user, _) = &self.loans[n];
        let paid = match again {
            true => minor(&get_loan(self.app, id).await["amount_paid"]),
            false => 0,
        };
        let mut schedule = Vec::new();
        let mut amount = 0;
        for _ in 0..=self.pick(3) {
            let minor = 1 + self.random.up_to(20_000);
            amount += minor;
            let due = day(self.today + 1 + i64::try_from(self.pick(4)).expect("small"));
            schedule.push(json!({ "due_date": due, "amount": major(minor) }));
        }
        if amount < paid {
            let due = day(self.today + 2);
            schedule.push(json!({ "due_date": due, "amount": major(paid - amount) }));
            amount = paid;
        }
        let loan = json!({
            "user_id": user, "amount": major(amount), "currency": "NGN", "disbursed": true, "schedule": schedule,
        });
        put_loan(self.app, id, loan).await;
    }

    async fn repay(&mut self) {
        if self.loans.is_empty() {
            return;
        }
        let (loan, _, own) = self.loans[self.pick(self.loans.len())].clone();
        let mut body = json!({ "loan": loan, "amount": major(1 + self.random.up_to(15_000)) });
        if self.pick(3) == 0 {
            self.references += 1;
            body["reference"] = json!(format!("{loan}-{}", self.references));
        }
        let by_charge = own || self.pick(2) == 0;
        let channel = match (by_charge, self.pick(2)) {
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
        self.begin("/recollection/create", body).await;
    }

    async fn recollections(&self) -> Vec<Value> {
        let listed = self.app.get("/recollection/list?limit=1000").await;
        listed.data()["docs"].as_array().expect("a list").clone()
    }

    async fn verify(&mut self) {
        let all = self.recollections().await;
        if !all.is_empty() {
            let reference = all[self.pick(all.len())]["reference"].as_str().expect("a reference");
            let path = format!("/recollection/verify/{reference}");
            self.ask(Method::POST, &path, Some(json!({}))).await;
        }
    }

    fn break_something(&self) {
        use FaultKind::{
            Challenge, Cut, CutAfter, Decline, Duplicate, Error500, Hold, Malformed, Pending,
            Reorder,
        };
        let (operation, kinds): (_, &[FaultKind]) = match self.pick(6) {
            0 => ("initialize", &[Cut, CutAfter, Error500, Malformed]),
            1 => ("verify", &[Cut, CutAfter, Error500, Malformed]),
            2 => ("refund", &[Cut, CutAfter, Error500, Malformed]),
            3..=4 => ("charge", &[Cut, CutAfter, Error500, Malformed, Decline, Challenge, Pending]),
            _ => ("notification", &[Cut, Duplicate, Hold, Reorder]),
        };
        let kind = kinds[self.pick(kinds.len())];
        self.app.standins.faults().push(Fault::new(operation, kind).times(1));
    }

    // ---- what must hold ------------------------------------------------------------------------

    async fn check(&mut self) {
        self.app.check_books().await;
        let all = self.recollections().await;
        let events = events(self.app, &self.app.company).await;
        for (id, _, own) in self.loans.clone() {
            let of_loan: Vec<&Value> = all.iter().filter(|one| one["loan"] == *id).collect();
            check_loan(&get_loan(self.app, &id).await, &of_loan, own);
        }
        for recollection in &all {
            let id = recollection["id"].as_str().expect("an id").to_owned();
            let status = recollection["status"].as_str().expect("a status").to_owned();
            let none = Vec::new();
            check_told(&status, events.get(&id).unwrap_or(&none));
            let before = self.seen.insert(id, status.clone()).unwrap_or_else(|| "pending".into());
            let legal = before == status
                || before == "pending"
                || (before == "failed" && status == "success");
            assert!(legal, "{before} -> {status}: {recollection}");
        }
        for user in USERS {
            let cards = self.cards(user).await;
            let valid = cards.iter().filter(|card| card["valid"] == true).count();
            let defaults = cards.iter().filter(|card| card["default"] == true);
            assert!(defaults.clone().all(|card| card["valid"] == true), "{cards:?}");
            assert_eq!(defaults.count(), valid.min(1), "{cards:?}");
        }
        let expected = FUNDS * 100 + all.iter().map(share).sum::<i64>() - self.fees().await;
        assert_eq!(minor(&balance(self.app).await), expected, "the wallet");
    }

    /// What collecting by itself has cost, of all that did not fail.
    async fn fees(&self) -> i64 {
        let sum = async |tx: &mut tollhouse::store::Tx| {
            tx.sql(
                "SELECT r.payment_channel, r.status, COUNT(*) FROM collections c
                 JOIN recollections r ON r.company_id = c.company_id AND r.id = c.recollection_id
                 GROUP BY r.payment_channel, r.status",
            )
            .all::<(String, String, i64)>()
            .await
        };
        let rows = self.app.app.store.read(sum).await.expect("the collections");
        let held = rows.into_iter().filter(|(_, status, _)| status != "failed");
        held.map(|(channel, _, n)| n * if channel == "card" { CARD_FEE } else { DEBIT_FEE }).sum()
    }

    /// The provider is well again: nothing is under way but what waits for customers, and every charge of a card went back.
    async fn heal(&mut self) {
        self.app.standins.faults().clear();
        self.app.standins.release();
        for _ in 0..4 {
            self.today += 1;
            self.advance(DAY).await;
            self.check().await;
        }
        let open = async |tx: &mut tollhouse::store::Tx| {
            tx.sql("SELECT COUNT(*) FROM card_refunds WHERE status NOT IN ('done', 'failed')")
                .one::<(i64,)>()
                .await
        };
        let (open,) = self.app.app.store.read(open).await.expect("a count");
        assert_eq!(open, 0, "verification charges that did not go back");
    }
}

fn major(minor: i64) -> Value {
    json!(serde_json::Number::from_string_unchecked(format!("{}.{:02}", minor / 100, minor % 100)))
}

/// What a recollection has brought to the wallet: of charges and pages less 1.5 %, rounded up, and 100 more from 2,500 on.
fn share(recollection: &Value) -> i64 {
    let by_provider = recollection["with_provider"] == true && recollection["status"] == "success";
    if !by_provider {
        return 0;
    }
    let amount = minor(&recollection["amount"]);
    amount - paystack_fees(amount)
}

fn paystack_fees(amount: i64) -> i64 {
    let flat = if amount >= 250_000 { 10_000 } else { 0 };
    (amount * 15 + 999) / 1_000 + flat
}

fn check_loan(loan: &Value, recollections: &[&Value], own: bool) {
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
    if own {
        // Nobody but us repays it: never more than is owed.
        assert_eq!(paid, of("success"), "{loan}: {recollections:?}");
        assert!(of("pending") <= remaining, "{loan}: {recollections:?}");
    }
}

/// Each outcome is told once, and the last that is told is how it stands.
fn check_told(status: &str, told: &[String]) {
    let once = |kind: &str| told.iter().filter(|told| *told == kind).count() <= 1;
    assert!(once("recollection.success") && once("recollection.failed"), "{told:?}");
    let expected = (status != "pending").then(|| format!("recollection.{status}"));
    assert_eq!(told.last(), expected.as_ref(), "{told:?}");
}

/// Kinds of events by their subjects, oldest first.
async fn events(app: &TestApp, company: &Company) -> BTreeMap<String, Vec<String>> {
    let path = format!("/companies/{}/events?limit=1000", company.id);
    let events = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events["docs"].as_array().expect("a list").iter().rev() {
        let text = |name: &str| event[name].as_str().expect("a text").to_owned();
        told.entry(text("subject")).or_default().push(text("event"));
    }
    told
}

both! {
    async fn whatever_happens_debts_agree(app: TestApp) {
        credit(app, FUNDS, "funds").await;
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
