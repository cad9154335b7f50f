//! A seeded simulation of payments by page and by push, routing over two providers, refunds of parts,
//! disputes, cards, loans, collection policies, and repayments, also of parts, under faults of the
//! providers, lost, duplicate and late webhooks, disconnecting clients, and crashes between any two
//! transactions (`CrashPoint::crash_after`).
//!
//! After each step no money was created or lost, no status has moved back, and payments, loans,
//! schedules, wallets, fees and events agree. At the end there are no more faults, and payers fail
//! on most open pages. Then every payment has arrived, and the records agree with the provider.
//!
//! A failure prints its seed: `TOLLHOUSE_SIMULATION_SEEDS=7 cargo test --test it simulation::`
//! repeats it, `1..1000` runs many.

pub mod crashing_host;
mod debts;
mod disputes;
mod lists;
mod payments;
mod pushes;
mod routes;

use std::{cell::Cell, collections::BTreeMap, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tollhouse_platform::{random::Random, store::Tx};
use tollhouse_sandbox::{Fault, FaultKind};

use self::{crashing_host::CrashingHost, debts::Debts, payments::Payment};
use crate::{
    app::{Company, Engine, NOW, OPERATOR_TOKEN, PAYSTACK_KEY, Reply, TestApp, postgres, reply},
    codes::credit,
    telemetry::{metric_value, scrape},
};

const STEPS: usize = 60;
const SEEDS: &str = "1..3";
/// Number of seeds that share a host and a database: checking the ledger takes longer with each.
const WORLDS: usize = 5;
/// The key of the company that has its own provider account.
const OWN_KEY: &str = "sk_test_the_companys_own_account";
/// The initial balance of a wallet.
const FUNDS: i64 = 1_000;
const DAY: i64 = 86_400;
const CURRENCIES: [&str; 2] = ["NGN", pushes::CURRENCY];

/// The principal of a request.
#[derive(Clone, Copy)]
enum Caller {
    /// The company with this index.
    Company(usize),
    Operator,
}

struct World<'a> {
    app: &'a TestApp,
    random: Random,
    seed: u64,
    /// The first uses the service account and lends, the second has its own account.
    companies: [Company; 2],
    payments: Vec<Payment>,
    debts: Debts,
    /// A host that has not crashed yet.
    spare_host: Cell<Option<CrashingHost>>,
}

impl World<'_> {
    /// Creates new companies; the first becomes that of `app`.
    async fn new(app: &mut TestApp, seed: u64) -> World<'_> {
        app.company = app.new_company(&format!("Service {seed}")).await;
        let own = app.new_company(&format!("Own {seed}")).await;
        let path = format!("/companies/{}/providers/provider_a", own.id);
        app.use_paystack(&path, OWN_KEY).await;
        for company in [&app.company, &own] {
            routes::route(app, company).await;
        }
        credit(app, FUNDS, "funds").await;
        let (random, companies) = (Random::seeded(seed), [app.company.clone(), own]);
        let debts = Debts::new(app).await;
        let (payments, spare_host) = (Vec::new(), Cell::default());
        let mut world = World { app, random, seed, companies, payments, debts, spare_host };
        world.put_loan().await;
        world
    }

    /// Returns a random number below `n`.
    fn pick(&self, n: usize) -> usize {
        let most = i64::try_from(n).expect("a small number") - 1;
        usize::try_from(self.random.up_to(most)).expect("no less than 0")
    }

    /// Runs a random action, then checks the invariants.
    async fn step(&mut self) {
        match self.pick(41) {
            0..=1 => self.begin_payment().await,
            2 => self.repeat_initialize().await,
            3..=4 => self.pay_payment().await,
            5 => self.verify_payment().await,
            6 => self.refund_payment().await,
            7 => self.save_instrument().await,
            8..=9 => self.pay_page().await,
            10 => self.change_card().await,
            11 => self.put_loan().await,
            12..=17 => self.repay().await,
            18..=19 => self.verify_recollection().await,
            20..=24 => return self.break_something(), // changes no record
            25 => drop(self.app.simulators.release()),
            26 => self.crash_during_jobs().await,
            27..=29 => self.app.advance([1, 30, 60, 300, 3_600][self.pick(5)]).await,
            30 => self.begin_push().await,
            31..=32 => self.answer_push().await,
            33 => self.open_dispute().await,
            34 => self.answer_dispute().await,
            35 => self.decide_dispute().await,
            36 => self.list_transactions().await,
            37..=38 => self.put_collection_policy().await,
            _ => self.app.advance(DAY).await,
        }
        self.check().await;
    }

    /// Sends a request. Returns `None` if the client disconnects or the host crashes before the
    /// response; one of six requests risks each.
    async fn send(
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
                let host = self.crashing_host(8).await;
                let reply = host.until_crash(request(&host.api, &host.internal)).await;
                self.keep(host);
                if reply.is_none() {
                    self.until_quiet().await;
                }
                reply?
            }
            _ => request(api, internal).await,
        };
        // The lease of a crashed host on a refund or an answer has not expired yet, or the outcome of
        // an earlier request for the refund has been unknown for less than a minute.
        let is_leased = path.ends_with("/refund") || path.ends_with("/answer");
        let busy = is_leased && reply.status == 409;
        // The payer may still confirm a push whose response was lost.
        let open = path == "/payment/initialize" && reply.status == 409;
        let expected = busy || open || [200, 400, 404, 502, 504].contains(&reply.status.as_u16());
        assert!(expected, "{path}: {}", reply.body);
        Some(reply)
    }

    /// Returns another host, which crashes after fewer than `most` transactions.
    async fn crashing_host(&self, most: usize) -> CrashingHost {
        let transactions = self.pick(most);
        let Some(host) = self.spare_host.take() else {
            return CrashingHost::start(self.app, transactions).await;
        };
        host.crash_after(transactions);
        host
    }

    /// Keeps a host for later, because starting one takes as long as many requests. One of four
    /// crashes now instead, between its response and its background work.
    fn keep(&self, host: CrashingHost) {
        if host.is_running() && self.pick(4) > 0 {
            self.spare_host.set(Some(host));
        }
    }

    /// Waits until abandoned requests have ended, in the database, too.
    async fn until_quiet(&self) {
        let in_flight = async |listener: &str| {
            let name = format!("tollhouse_http_requests_in_flight{{listener=\"{listener}\"}}");
            metric_value(&scrape(self.app).await, &name).unwrap_or_default()
        };
        // The scrape itself is one.
        while in_flight("public").await + in_flight("internal").await > 1.0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.app.app.store.probe().await.expect("a database");
    }

    /// Advances the clock; a host begins due jobs, and crashes.
    async fn crash_during_jobs(&self) {
        let seconds = [1, 60, 300, DAY][self.pick(4)];
        let host = self.crashing_host(16).await;
        self.app.app.clock.advance_to(self.app.app.clock.now().plus_seconds(seconds));
        host.run_due().await;
        self.keep(host);
        self.until_quiet().await;
        self.app.run_until_idle().await;
    }

    fn break_something(&self) {
        use FaultKind::{
            Challenge, Cut, CutAfter, Decline, Duplicate, Error401, Error500, Hold, Malformed,
            Partial, Pending, Reorder,
        };
        let (operation, kinds): (_, &[FaultKind]) = match self.pick(7) {
            0 => ("initialize", &[Cut, CutAfter, Error401, Error500, Malformed]),
            1 => ("verify", &[Cut, CutAfter, Error500, Malformed]),
            2 => ("refund", &[Cut, CutAfter, Error500, Malformed]),
            3..=5 => (
                "charge",
                &[Cut, CutAfter, Error500, Malformed, Decline, Challenge, Partial, Pending],
            ),
            _ => ("notification", &[Cut, Duplicate, Hold, Reorder]),
        };
        let kind = kinds[self.pick(kinds.len())];
        self.app.simulators.faults().push(Fault::new(operation, kind).times(1));
    }

    // ---- what must hold ------------------------------------------------------------------------

    async fn check(&mut self) {
        self.app.check_ledger().await;
        let events = [self.events(0).await, self.events(1).await];
        let mut expected = self.check_payments(&events).await;
        expected[0].entry("NGN").or_default().0 += FUNDS * 100 + self.check_debts(&events[0]).await;
        for (company, expected) in self.companies.iter().zip(expected) {
            let path = format!("/companies/{}/wallet", company.id);
            let wallet = self.app.operator(Method::GET, &path, Value::Null).await.data().clone();
            for currency in CURRENCIES {
                let of = |name: &str| wallet["balances"][currency].get(name).map_or(0, minor);
                let (wallet, expected) =
                    ((of("balance"), of("pending")), expected.get(currency).copied());
                let what = format!("balance and pending of {} in {currency}", company.id);
                assert_eq!(wallet, expected.unwrap_or_default(), "{what}");
            }
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
        let mut events = Events::new();
        for (subject, kind) in self.app.app.store.select(read).await.expect("the events") {
            let kinds = events.entry(subject).or_default();
            let repeats = ["payment.partly_refunded", "payment.disputed", "payment.dispute_closed"];
            // Each installment of a loan has its own event.
            let repeats = repeats.contains(&&*kind) || kind.starts_with("installment.");
            let is_first = !kinds.contains(&kind) || repeats;
            assert!(is_first, "more than one event {kind}, after {kinds:?}");
            kinds.push(kind);
        }
        events
    }

    async fn all_events(&self, company: usize) -> Vec<Value> {
        let path = format!("/companies/{}/events?limit=1000", self.companies[company].id);
        let events = self.app.operator(Method::GET, &path, Value::Null).await.data().clone();
        events["docs"].as_array().expect("a list").clone()
    }

    /// Removes all faults, and checks that payments arrive, that the provider agrees, and that
    /// every event is delivered.
    async fn heal(&mut self) {
        self.app.simulators.faults().clear();
        self.app.simulators.release();
        self.fail_open_pages().await;
        for _ in 0..4 {
            self.app.advance(DAY).await;
            self.check().await;
        }
        self.verify_paid_payments().await;
        self.verify_open_recollections().await;
        self.app.run_until_idle().await;
        self.check().await;
        self.check_paid_succeeded().await;
        self.check_providers().await;
        self.check_refunds().await;
        self.check_disputes().await;
        self.app.check_charges().await;
        self.check_pushes().await;
        self.check_lists().await;
        for company in 0..2 {
            for event in self.all_events(company).await {
                assert_eq!(event["deliveries"][0]["state"], "delivered", "{event}");
            }
        }
    }

    /// Paystack's status of a charge on the service account.
    async fn at_paystack(&self, service_ref: &str) -> Value {
        self.ask_provider(&format!("transaction/verify/{service_ref}")).await["status"].clone()
    }

    /// The data of the provider's response to a query on the service account.
    async fn ask_provider(&self, path: &str) -> Value {
        let url = format!("{}/paystack/{path}", self.app.simulators.url());
        let response = self.app.client.get(url).bearer_auth(PAYSTACK_KEY).send().await;
        let response: Value = response.expect("a response").json().await.expect("JSON");
        response["data"].clone()
    }
}

/// Kinds of events by their subjects.
type Events = BTreeMap<String, Vec<String>>;

/// Checks that the events of a record match its status. Events of the same second have no order.
fn check_events(kind: &str, status: &str, kinds: &[String]) {
    let emitted = |outcome: &str| kinds.contains(&format!("{kind}.{outcome}"));
    let later: &[&str] = match status {
        "pending" => &["failed", "success", "partly_refunded", "refunded"],
        "failed" => &["success", "partly_refunded", "refunded"],
        "success" => &["refunded"],
        _ => &[],
    };
    assert!(status == "pending" || emitted(status), "{status}: {kinds:?}");
    assert!(!later.iter().any(|outcome| emitted(outcome)), "{status}: {kinds:?}");
}

/// Days since the start of the tests.
fn today(app: &TestApp) -> i64 {
    (app.app.clock.now().unix_seconds() - NOW.unix_seconds()) / DAY
}

/// Converts an amount to minor units, without a float.
pub fn minor(major: &Value) -> i64 {
    let text = major.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{decimals:0<2}").parse().expect("an amount")
}

fn major(minor: i64) -> Value {
    json!(serde_json::Number::from_string_unchecked(format!("{}.{:02}", minor / 100, minor % 100)))
}

/// Parses `7`, or `1..1000` including both ends.
fn seeds() -> Vec<u64> {
    let named = std::env::var("TOLLHOUSE_SIMULATION_SEEDS");
    let named = named.unwrap_or_else(|_| SEEDS.to_owned());
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match named.split_once("..") {
        Some((first, last)) => (number(first)..=number(last)).collect(),
        None => vec![number(&named)],
    }
}

/// Each group of seeds has its own runtime, which closes the connections of its hosts when it ends.
fn simulate(engine: &Engine) {
    for seeds in seeds().chunks(WORLDS) {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut app = TestApp::start(engine.clone()).await;
            pushes::set_up(&app).await;
            routes::set_up(&app).await;
            lists::set_up(&app).await;
            for seed in seeds {
                println!("TOLLHOUSE_SIMULATION_SEEDS={seed}");
                let mut world = World::new(&mut app, *seed).await;
                for _ in 0..STEPS {
                    world.step().await;
                }
                world.heal().await;
            }
            app.finish().await;
        });
    }
}

#[test]
fn no_money_is_created_or_lost_under_faults_and_crashes_on_sqlite() {
    simulate(&Engine::Sqlite);
}

#[test]
fn no_money_is_created_or_lost_under_faults_and_crashes_on_postgres() {
    let Some(server) = postgres() else { return };
    simulate(&Engine::Postgres(server));
}
