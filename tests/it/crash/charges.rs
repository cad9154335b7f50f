//! Charges whose host is killed between two transactions, for each transaction of a charge.
//!
//! A trigger in the database refuses the next transaction. When the effect before it is visible, the
//! host is killed, and another one starts without the trigger.

use std::{collections::BTreeMap, time::Duration};

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;
use tollhouse_platform::clock::{Clock, Timestamp};
use tollhouse_sandbox::{Fault, FaultKind, Outcome, mpesa::Answer};

use super::{Lab, Process, TIMEOUT, id};
use crate::{
    app::{Company, Engine, PAYSTACK_KEY, postgres, reply},
    conformance::mpesa,
    ledger::ForeignConnection,
};

/// Longer than any test, for a provider that never responds.
const FOREVER_MS: u64 = 600_000;
/// In minor units: what a payment or a repayment of 100 NGN adds to the wallet.
const NET: i64 = 9_850;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A payment through a page.
    Payment,
    /// The verification charge of a card, through a page.
    Card,
    /// A repayment by saved card.
    Repayment,
}

/// Where the host is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The request is recorded, and the provider has not processed it.
    Call,
    /// The charge is recorded, and its request has not begun.
    Request,
    /// The provider has processed the request, and its response is not recorded.
    Response,
    /// The provider has taken the money, and the success is not recorded.
    Settlement,
    /// The provider has accepted a refund, and its response is not recorded.
    Refund,
}

const CASES: [(Cut, &[Kind]); 5] = [
    (Cut::Call, &[Kind::Payment]),
    (Cut::Request, &[Kind::Repayment]),
    (Cut::Response, &[Kind::Payment, Kind::Card, Kind::Repayment]),
    (Cut::Refund, &[Kind::Payment, Kind::Card]),
    // Last: its verification charge is refunded after its round.
    (Cut::Settlement, &[Kind::Payment, Kind::Card, Kind::Repayment]),
];

impl Cut {
    /// The refused transition, as a table and a condition of its rows.
    fn refused(self) -> Option<(&'static str, &'static str)> {
        const RESPONSE: &str = "OLD.state = 'requested' AND OLD.lease_until IS NOT NULL
            AND (NEW.state <> OLD.state OR NEW.lease_until IS NULL)";
        match self {
            Cut::Call => None,
            Cut::Request => Some(("charges", "NEW.fence > OLD.fence")),
            Cut::Response => Some(("charges", RESPONSE)),
            Cut::Settlement => {
                Some(("charges", "NEW.state = 'succeeded' AND OLD.state <> 'succeeded'"))
            }
            Cut::Refund => Some(("charge_refunds", RESPONSE)),
        }
    }

    /// The rows that the cut leaves behind, as a table and a condition.
    fn left_behind(self) -> (&'static str, &'static str) {
        const REQUESTED: &str =
            "state = 'requested' AND fence = 1 AND lease_until IS NOT NULL AND NOT unsure";
        match self {
            Cut::Call | Cut::Response => ("charges", REQUESTED),
            Cut::Request => ("charges", "state = 'queued' AND fence = 0"),
            Cut::Settlement => ("charges", "state = 'open' AND fence = 1"),
            Cut::Refund => ("charge_refunds", REQUESTED),
        }
    }

    /// The job that fails at the trigger, for the kinds whose charge no client waits for.
    fn job(self, kind: Kind) -> Option<&'static str> {
        match (self, kind) {
            (Cut::Request | Cut::Response, Kind::Repayment) => Some("charge.request"),
            (Cut::Settlement, _) => Some("charge.reconcile"),
            _ => None,
        }
    }
}

struct World {
    lab: Lab,
    company: Company,
    database: ForeignConnection,
    /// The start of the present round: the trigger concerns later rows.
    since: Timestamp,
}

fn name(cut: Cut, kind: Kind) -> String {
    format!("{cut:?}-{kind:?}").to_lowercase()
}

impl World {
    async fn set_up(lab: Lab) -> World {
        let company = lab.set_up().await;
        let database = ForeignConnection::connect(&lab.database.url).await;
        let world = World { lab, company, database, since: Timestamp(0) };
        world.create_user("ada").await;
        let card = reply(world.create_card("ada")).await.data().clone();
        world.lab.pay(&card).await;
        // This fails if the webhook arrived first.
        reply(world.post(&format!("/card/verify/{}", id(&card)), json!({}))).await;
        world
    }

    fn post(&self, path: &str, body: Value) -> RequestBuilder {
        self.lab.to_api(&self.company, Method::POST, path).json(&body)
    }

    async fn get(&self, path: &str) -> Value {
        reply(self.lab.to_api(&self.company, Method::GET, path)).await.data().clone()
    }

    async fn create_user(&self, user_id: &str) {
        let email = format!("{user_id}@example.com");
        let user =
            json!({ "user_id": user_id, "first_name": "A", "last_name": "B", "email": email });
        reply(self.post("/user/create", user)).await.data();
    }

    /// The key makes a repeated request open the page of the same card.
    fn create_card(&self, user_id: &str) -> RequestBuilder {
        let card = json!({
            "user_id": user_id, "currency": "NGN", "checkout": { "success_url": "https://a.example/" },
        });
        self.post("/card/create", card).header("Idempotency-Key", user_id)
    }

    fn initialize(&self, reference: &str) -> RequestBuilder {
        let order = json!({
            "email": "ada@example.com", "amount": 100, "currency": "NGN", "reference": reference,
            "checkout": { "success_url": "https://a.example/" },
        });
        self.post("/payment/initialize", order)
    }

    /// Installs M-Pesa, and sets up its service account.
    async fn set_up_pushes(&self) {
        let install = self.lab.to_operator(Method::POST, "/plugins?grant=true");
        reply(install.body(artifacts::MPESA)).await.data();
        let set = json!({ "credentials": mpesa::credentials(&self.lab.simulators) });
        self.lab.operator(Method::PUT, "/providers/mpesa", set).await;
    }

    fn push(&self, reference: &str) -> RequestBuilder {
        let order = json!({
            "email": "ada@example.com", "phone": "+254722000000", "amount": 100,
            "currency": "KES", "payment_service": "mpesa", "reference": reference,
            "checkout": { "success_url": "https://a.example/" },
        });
        self.post("/payment/initialize", order)
    }

    /// Requests the page of a payment or card.
    fn page(&self, kind: Kind, name: &str) -> RequestBuilder {
        match kind {
            Kind::Payment => self.initialize(name),
            Kind::Card | Kind::Repayment => self.create_card(name),
        }
    }

    /// Creates a loan and repays it with the saved card. The charge is queued.
    async fn repay(&self, name: &str) -> Value {
        let due = Clock::system().now().plus_seconds(30 * 86_400).to_datetime();
        let loan = json!({
            "user_id": "ada", "amount": 100, "currency": "NGN", "disbursed": true,
            "schedule": [{ "due_date": due.format("%Y-%m-%d").to_string(), "amount": 100 }],
        });
        let path = format!("/companies/{}/loans/{name}", self.company.id);
        self.lab.operator(Method::PUT, &path, loan).await;
        let order = json!({
            "loan": name, "with_provider": true, "payment_channel": "card", "reference": name,
        });
        reply(self.post("/recollection/create", order)).await.data().clone()
    }

    // ---- a round -------------------------------------------------------------------------------

    async fn refuse(&mut self, cut: Cut) {
        let Some((table, transition)) = cut.refused() else { return };
        let since = self.since.0;
        let trigger = format!(
            "CREATE TRIGGER cut BEFORE UPDATE ON {table} FOR EACH ROW
             WHEN (NEW.created_at >= {since} AND {transition})"
        );
        let sql = match &self.database {
            ForeignConnection::Sqlite(_) => {
                format!("{trigger} BEGIN SELECT RAISE(ABORT, 'cut'); END")
            }
            ForeignConnection::Postgres(_) => format!(
                "CREATE OR REPLACE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'cut'; END $$;
                 {trigger} EXECUTE FUNCTION cut()"
            ),
        };
        self.database.run(&sql).await.expect("a trigger");
    }

    async fn allow(&mut self, cut: Cut) {
        let Some((table, _)) = cut.refused() else { return };
        let sql = match &self.database {
            ForeignConnection::Sqlite(_) => "DROP TRIGGER cut".to_owned(),
            ForeignConnection::Postgres(_) => format!("DROP TRIGGER cut ON {table}"),
        };
        self.database.run(&sql).await.expect("a trigger that is dropped");
    }

    /// Brings a charge to its cut, as far as its client and its payer do.
    async fn bring_to(&self, cut: Cut, kind: Kind) {
        let (name, faults) = (name(cut, kind), self.lab.simulators.faults());
        if kind == Kind::Card {
            self.create_user(&name).await;
        }
        match (cut, kind) {
            (Cut::Call, _) => {
                faults.push(Fault::new("initialize", FaultKind::Slow).delay_ms(FOREVER_MS));
                let request = self.page(kind, &name);
                tokio::spawn(async move { request.send().await.map(drop) });
                self.until(async |_| faults.list().is_empty()).await;
            }
            (Cut::Response, Kind::Payment | Kind::Card) => {
                let status = reply(self.page(kind, &name)).await.status;
                assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{cut:?} {kind:?}");
            }
            (Cut::Request | Cut::Response, _) => drop(self.repay(&name).await),
            (Cut::Settlement, Kind::Repayment) => {
                // The earlier charge would take the fault.
                let earlier = self::name(Cut::Request, kind);
                let path = format!("/recollection/fetch/reference/{earlier}");
                self.until(async |world: &World| world.get(&path).await["status"] == "success")
                    .await;
                faults.push(Fault::new("charge", FaultKind::Pending));
                let reference = format!("rec-{}", id(&self.repay(&name).await));
                let paystack = self.lab.simulators.paystack();
                self.until(async |_| paystack.resolve(&reference, Outcome::Success)).await;
            }
            (Cut::Settlement | Cut::Refund, _) => {
                let page = reply(self.page(kind, &name)).await.data().clone();
                let before = self.refunds().await;
                self.lab.pay(&page).await;
                if cut == Cut::Refund {
                    if kind == Kind::Payment {
                        self.refund(&name, &id(&page)).await;
                    }
                    self.until(async |world: &World| world.refunds().await > before).await;
                }
            }
        }
    }

    async fn refund(&self, reference: &str, id: &str) {
        let path = format!("/payment/fetch/reference/{reference}");
        self.until(async |world: &World| world.get(&path).await["status"] == "success").await;
        let path = format!("/companies/{}/payments/{id}/refund", self.company.id);
        let refused = reply(self.lab.to_operator(Method::POST, &path).json(&json!({}))).await;
        assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", refused.body);
    }

    /// Number of refunds that the provider has accepted.
    async fn refunds(&self) -> usize {
        let request = self.lab.client.get(format!("{}/paystack/refund", self.lab.simulators.url()));
        let listed = reply(request.bearer_auth(PAYSTACK_KEY)).await;
        listed.body["data"].as_array().expect("a list").len()
    }

    async fn until(&self, is: impl AsyncFn(&World) -> bool) {
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        let so = async {
            while !is(self).await {
                looks.tick().await;
            }
        };
        timeout(TIMEOUT, so).await.expect("an effect in time");
    }

    /// Waits until the jobs of the round have failed at the trigger.
    async fn await_cut(&mut self, cut: Cut, kinds: &[Kind]) {
        let jobs: Vec<&str> = kinds.iter().filter_map(|kind| cut.job(*kind)).collect();
        let expected = i64::try_from(jobs.len()).unwrap();
        let Some(job) = jobs.first() else { return };
        let failed = format!(
            "SELECT COUNT(*) FROM jobs j WHERE j.kind = '{job}' AND j.failures > 0 AND j.subject IN (
                 SELECT id FROM charges WHERE created_at >= {since}
                 UNION SELECT lane FROM charges WHERE created_at >= {since})",
            since = self.since.0
        );
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        let so = async {
            while self.database.select(&failed).await < expected {
                looks.tick().await;
            }
        };
        timeout(TIMEOUT, so).await.unwrap_or_else(|_| panic!("{cut:?}: no {job} failed"));
    }

    /// Kills the host at the cut and returns the next one.
    async fn run(&mut self, process: Process, cut: Cut, kinds: &[Kind]) -> Process {
        self.since = Clock::system().now();
        self.refuse(cut).await;
        for kind in kinds {
            self.bring_to(cut, *kind).await;
        }
        self.await_cut(cut, kinds).await;
        process.kill();
        let (table, left) = cut.left_behind();
        let since = self.since.0;
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE created_at >= {since} AND {left}");
        assert_eq!(
            self.database.select(&sql).await,
            i64::try_from(kinds.len()).unwrap(),
            "{cut:?}"
        );
        self.allow(cut).await;
        Process::start(&self.lab).await
    }

    // ---- the end -------------------------------------------------------------------------------

    /// Requests the pages again that no client has, and pays them.
    async fn resume(&self) {
        for (cut, kinds) in CASES.iter().filter(|(cut, _)| matches!(cut, Cut::Call | Cut::Response))
        {
            for kind in kinds.iter().filter(|kind| **kind != Kind::Repayment) {
                let page = reply(self.page(*kind, &name(*cut, *kind))).await.data().clone();
                self.lab.pay(&page).await;
            }
        }
    }

    /// Checks the status of an owner and returns its id.
    async fn check_owner(&self, cut: Cut, kind: Kind) -> String {
        let name = name(cut, kind);
        let (path, field, expected) = match kind {
            Kind::Payment if cut == Cut::Refund => {
                ("payment/fetch/reference", "status", json!("refunded"))
            }
            Kind::Payment => ("payment/fetch/reference", "status", json!("success")),
            Kind::Card => ("card/list", "valid", json!(true)),
            Kind::Repayment => ("recollection/fetch/reference", "status", json!("success")),
        };
        let mut owner = self.get(&format!("/{path}/{name}")).await;
        if kind == Kind::Card {
            assert_eq!(owner.as_array().map(Vec::len), Some(1), "{name}: {owner}");
            owner = owner[0].take();
        }
        assert_eq!(owner[field], expected, "{name}: {owner}");
        id(&owner)
    }

    async fn check(&mut self) {
        let mut owners = vec![id(&self.get("/card/list/ada").await[0])];
        let mut expected = BTreeMap::from([("card.validation.success".to_owned(), 1)]);
        for (cut, kinds) in CASES {
            for kind in kinds {
                owners.push(self.check_owner(cut, *kind).await);
                let event = match kind {
                    Kind::Payment => "payment.success",
                    Kind::Card => "card.validation.success",
                    Kind::Repayment => "recollection.success",
                };
                *expected.entry(event.to_owned()).or_default() += 1;
            }
        }
        expected.insert("payment.refunded".to_owned(), 1);
        assert_eq!(self.events(), expected);
        owners.sort();
        assert_eq!(self.lab.charged().await, owners);
        let requests = self.lab.simulators.paystack().requests();
        let count =
            |path: &str| requests.iter().filter(|one| (&*one.0, &*one.1) == ("POST", path)).count();
        // Three repayments; refunds of four cards and of a payment.
        assert_eq!((count("/transaction/charge_authorization"), count("/refund")), (3, 5));
        assert_eq!(self.lab.balance(&self.company).await, 6 * NET);
        for (what, sql) in [
            ("exceptions", "SELECT COUNT(*) FROM exceptions"),
            (
                "money that settled nothing",
                "SELECT COUNT(*) FROM ledger_account_balances WHERE account IN ('suspense', 'verification') AND amount_minor <> 0",
            ),
            (
                "refunds that are not accepted",
                "SELECT COUNT(*) FROM charge_refunds WHERE state NOT IN ('pending', 'done')",
            ),
        ] {
            assert_eq!(self.database.select(sql).await, 0, "{what}");
        }
        let counted = self.database.select("SELECT COUNT(*) FROM charges WHERE counts").await;
        assert_eq!(counted, i64::try_from(owners.len()).unwrap());
    }

    /// Returns the number of records with an event, by event. Each has one; repeated deliveries count
    /// once.
    fn events(&self) -> BTreeMap<String, usize> {
        let mut ids: BTreeMap<(String, String), String> = BTreeMap::new();
        for event in self.lab.simulators.events() {
            let body: Value = serde_json::from_str(&event.body).expect("JSON");
            let subject = (event.event.clone(), id(&body["data"]));
            let other = ids.insert(subject, event.id.clone());
            assert!(other.is_none_or(|other| other == event.id), "two events: {}", event.body);
        }
        let mut counts = BTreeMap::new();
        for (event, _) in ids.into_keys() {
            *counts.entry(event).or_default() += 1;
        }
        counts
    }
}

async fn killing_the_host(engine: Engine) {
    let lab = Lab::build(engine).await;
    let mut process = Process::start(&lab).await;
    let mut world = World::set_up(lab).await;
    for (cut, kinds) in CASES {
        process = world.run(process, cut, kinds).await;
    }
    // Then all leases of killed hosts have expired, also those of idempotency keys.
    world.lab.advance(180).await;
    world.resume().await;
    world.lab.advance(4 * 3_600).await;
    world.check().await;
    process.kill();
    world.lab.database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_between_the_transactions_of_a_charge_on_sqlite() {
    killing_the_host(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_between_the_transactions_of_a_charge_on_postgres() {
    let Some(server) = postgres() else { return };
    killing_the_host(Engine::Postgres(server)).await;
}

/// The payer of a push has the prompt although its response was lost with the host.
async fn killing_the_host_of_a_push(engine: Engine) {
    let lab = Lab::build(engine).await;
    let process = Process::start(&lab).await;
    let mut world = World::set_up(lab).await;
    world.set_up_pushes().await;
    world.since = Clock::system().now();
    world.refuse(Cut::Response).await;
    let lost = reply(world.push("push-1")).await;
    assert_eq!(lost.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", lost.body);
    process.kill();
    world.allow(Cut::Response).await;
    let process = Process::start(&world.lab).await;
    let simulator = world.lab.simulators.mpesa().clone();
    let prompt = simulator.pushes().pop().expect("a prompt").checkout_request_id;
    simulator.answer(&prompt, Answer::Pay).expect("an open prompt");
    let path = "/payment/fetch/reference/push-1";
    world.until(async |world: &World| world.get(path).await["status"] == "success").await;
    world.lab.advance(180).await;
    let again = reply(world.push("push-1")).await;
    assert_eq!(again.data()["status"], "success", "{}", again.body);
    assert_eq!(simulator.pushes().len(), 1);
    world.lab.advance(3_600).await;
    let expected = ["card.validation.success", "payment.success"].map(|kind| (kind.to_owned(), 1));
    assert_eq!(world.events(), BTreeMap::from(expected));
    process.kill();
    world.lab.database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_of_a_push_on_sqlite() {
    killing_the_host_of_a_push(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_of_a_push_on_postgres() {
    let Some(server) = postgres() else { return };
    killing_the_host_of_a_push(Engine::Postgres(server)).await;
}
