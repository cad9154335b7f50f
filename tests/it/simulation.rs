//! A seeded simulation of all that moves money: payments that are begun, resumed, verified and refunded, cards that are saved, defaulted
//! and deleted, loans that are put and sent again, repayments by hand, page, card and mandate, due dates; a provider that fails in every
//! way it can, callers who hang up half-way, hosts that die between two transactions, notifications that are lost, doubled and late.
//!
//! After each step no money was made or lost, nothing has moved back, and payments, loans, schedules, wallets, fees and events agree.
//! Once the provider is well again, all that was paid has arrived, and the provider's books say the same as ours.
//!
//! A failure names its seed: `TOLLHOUSE_SIMULATION_SEEDS=7 cargo test --test it simulation::` repeats it, `1..1000` runs many.
//!
//! Payments, cards, loans and repayments under faults, lost and duplicate webhooks, disconnecting
//! clients, and crashes between any two transactions (`Store::end_after`), by a seed that a failure
//! prints. After each step loans, schedules, wallets, fees and events agree; in the end the ledger
//! agrees with the provider.

mod debts;
mod mortal;
mod payments;

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::{random::Random, store::Tx};
use tollhouse_sandbox::{Fault, FaultKind};

use self::{debts::Debts, mortal::Mortal, payments::Payment};
use crate::{
    app::{Company, Engine, NOW, OPERATOR_TOKEN, PAYSTACK_KEY, Reply, TestApp, postgres, reply},
    codes::credit,
    telemetry::{scrape, value},
};

const STEPS: usize = 60;
const SEEDS: &str = "1..3";
/// Worlds that share a host and a database before there is a new one: looking at the books takes longer with each.
const WORLDS: usize = 5;
/// Of the company that has an account of its own at the provider.
const OWN_KEY: &str = "sk_test_the_companys_own_account";
/// What a company has in its wallet.
const FUNDS: i64 = 1_000;
const DAY: i64 = 86_400;

/// Who asks.
#[derive(Clone, Copy)]
enum Caller {
    /// One of the two.
    Company(usize),
    Operator,
}

struct World<'a> {
    app: &'a TestApp,
    random: Random,
    seed: u64,
    /// The first borrows the service's account and lends, the second has an account of its own.
    companies: [Company; 2],
    payments: Vec<Payment>,
    debts: Debts,
}

impl World<'_> {
    /// Of companies of its own, the first of which is the app's.
    async fn new(app: &mut TestApp, seed: u64) -> World<'_> {
        app.company = app.new_company(&format!("Service {seed}")).await;
        let own = app.new_company(&format!("Own {seed}")).await;
        let path = format!("/companies/{}/providers/provider_a", own.id);
        app.use_paystack(&path, OWN_KEY).await;
        credit(app, FUNDS, "funds").await;
        let (random, companies) = (Random::seeded(seed), [app.company.clone(), own]);
        let debts = Debts::new(app).await;
        let mut world = World { app, random, seed, companies, payments: Vec::new(), debts };
        world.put_loan().await;
        world
    }

    /// One of `n`.
    fn pick(&self, n: usize) -> usize {
        let most = i64::try_from(n).expect("a small number") - 1;
        usize::try_from(self.random.up_to(most)).expect("no less than 0")
    }

    /// Something happens; what it may have changed is looked at.
    async fn step(&mut self) {
        match self.pick(32) {
            0..=1 => self.begin_payment().await,
            2 => self.begin_payment_again().await,
            3..=4 => self.pay_payment().await,
            5 => self.verify_payment().await,
            6 => self.refund_payment().await,
            7 => self.save_means().await,
            8..=9 => self.pay_page().await,
            10 => self.change_card().await,
            11 => self.put_loan().await,
            12..=17 => self.repay().await,
            18..=19 => self.verify_recollection().await,
            20..=24 => return self.break_something(), // nothing of ours
            25 => drop(self.app.simulators.release()),
            26 => self.let_a_host_die_at_work().await,
            27..=29 => self.app.advance([1, 30, 60, 300, 3_600][self.pick(5)]).await,
            _ => self.app.advance(DAY).await,
        }
        self.check().await;
    }

    /// An answer, unless the caller hangs up before, as one of six does, or the host that is asked dies, as one of six does.
    async fn ask(
        &self,
        caller: Caller,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Option<Reply> {
        let request = |api: &str, internal: &str| {
            let (url, token) = match caller {
                Caller::Company(n) => (format!("{api}/api/v1{path}"), &*self.companies[n].key),
                Caller::Operator => (format!("{internal}/internal/v1{path}"), OPERATOR_TOKEN),
            };
            let request = self.app.client.request(method, url).bearer_auth(token);
            reply(match &body {
                Some(body) => request.json(body),
                None => request,
            })
        };
        let (api, internal) = (&*self.app.api, &*self.app.internal);
        let reply = match self.pick(6) {
            0 => {
                let most = Duration::from_millis(1 + self.pick(5) as u64);
                let reply = tokio::time::timeout(most, request(api, internal)).await;
                if reply.is_err() {
                    self.until_quiet().await;
                }
                reply.ok()?
            }
            1 => {
                let host = Mortal::start(self.app, self.pick(8)).await;
                let reply = host.outlive(request(&host.api, &host.internal)).await;
                drop(host);
                if reply.is_none() {
                    self.until_quiet().await;
                }
                reply?
            }
            _ => request(api, internal).await,
        };
        // A refund that a host was asking for when it died is nobody else's for a while.
        let busy = path.ends_with("/refund") && reply.status == 409;
        let expected = busy || [200, 400, 404, 502, 504].contains(&reply.status.as_u16());
        assert!(expected, "{path}: {}", reply.body);
        Some(reply)
    }

    /// Whatever was under way when nobody waited for it any more has ended, in the database, too.
    async fn until_quiet(&self) {
        let under_way = async |listener: &str| {
            let name = format!("tollhouse_http_requests_in_flight{{listener=\"{listener}\"}}");
            value(&scrape(self.app).await, &name).unwrap_or_default()
        };
        // The one that asks is one.
        while under_way("public").await + under_way("internal").await > 1.0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.app.app.store.probe().await.expect("a database");
    }

    /// Time passes, and what becomes due is begun by a host that gets no further than that.
    async fn let_a_host_die_at_work(&self) {
        let seconds = [1, 60, 300, DAY][self.pick(4)];
        let host = Mortal::start(self.app, self.pick(16)).await;
        self.app.app.clock.advance_to(self.app.app.clock.now().plus_seconds(seconds));
        host.run_due().await;
        drop(host);
        self.until_quiet().await;
        self.app.settle().await;
    }

    fn break_something(&self) {
        use FaultKind::{
            Challenge, Cut, CutAfter, Decline, Duplicate, Error500, Hold, Malformed, Pending,
            Reorder,
        };
        let (operation, kinds): (_, &[FaultKind]) = match self.pick(7) {
            0 => ("initialize", &[Cut, CutAfter, Error500, Malformed]),
            1 => ("verify", &[Cut, CutAfter, Error500, Malformed]),
            2 => ("refund", &[Cut, CutAfter, Error500, Malformed]),
            3..=5 => ("charge", &[Cut, CutAfter, Error500, Malformed, Decline, Challenge, Pending]),
            _ => ("notification", &[Cut, Duplicate, Hold, Reorder]),
        };
        let kind = kinds[self.pick(kinds.len())];
        self.app.simulators.faults().push(Fault::new(operation, kind).times(1));
    }

    // ---- what must hold ------------------------------------------------------------------------

    async fn check(&mut self) {
        self.app.check_books().await;
        let events = [self.events(0).await, self.events(1).await];
        let mut expected = self.check_payments(&events).await;
        expected[0].0 += FUNDS * 100 + self.check_debts(&events[0]).await;
        for (company, expected) in self.companies.iter().zip(expected) {
            let path = format!("/companies/{}/wallet", company.id);
            let wallet = self.app.operator(Method::GET, &path, Value::Null).await.data().clone();
            let wallet = (minor(&wallet["balance"]), minor(&wallet["pending"]));
            assert_eq!(wallet, expected, "balance and pending of {}", company.id);
        }
    }

    /// Kinds of events of a company by their subjects, oldest first.
    async fn events(&self, company: usize) -> Events {
        let id = &self.companies[company].id;
        let read = async |tx: &mut Tx| {
            tx.sql("SELECT subject_id, kind FROM events WHERE company_id = $1 ORDER BY created_at")
                .bind(id)
                .all::<(String, String)>()
                .await
        };
        let mut told = Events::new();
        for (subject, kind) in self.app.app.store.select(read).await.expect("the events") {
            let kinds = told.entry(subject).or_default();
            assert!(!kinds.contains(&kind), "told more than once: {kind} after {kinds:?}");
            kinds.push(kind);
        }
        told
    }

    async fn all_events(&self, company: usize) -> Vec<Value> {
        let path = format!("/companies/{}/events?limit=1000", self.companies[company].id);
        let events = self.app.operator(Method::GET, &path, Value::Null).await.data().clone();
        events["docs"].as_array().expect("a list").clone()
    }

    /// The provider is well again: what was paid arrives, nothing is under way but what waits for customers, and every event is
    /// delivered.
    async fn heal(&mut self) {
        self.app.simulators.faults().clear();
        self.app.simulators.release();
        for _ in 0..4 {
            self.app.advance(DAY).await;
            self.check().await;
        }
        self.ask_about_payments().await;
        self.ask_about_recollections().await;
        self.app.settle().await;
        self.check().await;
        self.check_arrived();
        self.check_provider().await;
        for company in 0..2 {
            for event in self.all_events(company).await {
                assert_eq!(event["deliveries"][0]["state"], "delivered", "{event}");
            }
        }
    }

    /// What the provider says of a charge on the service's account.
    async fn at_provider(&self, service_ref: &str) -> Value {
        let url =
            format!("{}/paystack/transaction/verify/{service_ref}", self.app.simulators.url());
        let answer = self.app.client.get(url).bearer_auth(PAYSTACK_KEY).send().await;
        let answer: Value = answer.expect("an answer").json().await.expect("JSON");
        answer["data"]["status"].clone()
    }
}

/// Kinds of events by their subjects.
type Events = BTreeMap<String, Vec<String>>;

/// What was told of a record is how it stands. Events of one second come in any order.
fn check_told(kind: &str, status: &str, told: &[String]) {
    let tells = |outcome: &str| told.contains(&format!("{kind}.{outcome}"));
    let later: &[&str] = match status {
        "pending" => &["failed", "success", "refunded"],
        "failed" => &["success", "refunded"],
        "success" => &["refunded"],
        _ => &[],
    };
    assert!(status == "pending" || tells(status), "{status}: {told:?}");
    assert!(!later.iter().any(|outcome| tells(outcome)), "{status}: {told:?}");
}

/// Days since the begin of the tests.
fn today(app: &TestApp) -> i64 {
    (app.app.clock.now().unix_seconds() - NOW.unix_seconds()) / DAY
}

/// Exactly: two decimals at most, and never through a float.
pub fn minor(major: &Value) -> i64 {
    let text = major.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{decimals:0<2}").parse().expect("an amount")
}

fn major(minor: i64) -> Value {
    json!(serde_json::Number::from_string_unchecked(format!("{}.{:02}", minor / 100, minor % 100)))
}

/// `7`, or `1..1000` with both ends.
fn seeds() -> Vec<u64> {
    let named = std::env::var("TOLLHOUSE_SIMULATION_SEEDS");
    let named = named.unwrap_or_else(|_| SEEDS.to_owned());
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match named.split_once("..") {
        Some((first, last)) => (number(first)..=number(last)).collect(),
        None => vec![number(&named)],
    }
}

async fn simulate(engine: Engine) {
    for seeds in seeds().chunks(WORLDS) {
        let mut app = TestApp::start(engine.clone()).await;
        for seed in seeds {
            println!("TOLLHOUSE_SIMULATION_SEEDS={seed}");
            let mut world = World::new(&mut app, *seed).await;
            for _ in 0..STEPS {
                world.step().await;
            }
            world.heal().await;
        }
        app.finish().await;
    }
}

#[tokio::test]
async fn whatever_happens_no_money_is_made_or_lost_on_sqlite() {
    simulate(Engine::Sqlite).await;
}

#[tokio::test]
async fn whatever_happens_no_money_is_made_or_lost_on_postgres() {
    let Some(server) = postgres() else { return };
    simulate(Engine::Postgres(server)).await;
}
