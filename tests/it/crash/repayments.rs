//! Charges of a saved card: repayments that a company requests, and automatic collection.

use std::{collections::BTreeMap, sync::Arc};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tollhouse_platform::clock::Clock;

use super::{Lab, Process, RequestLog, id, kill_repeatedly};
use crate::{
    app::{Company, Engine, postgres, reply},
    simulation::minor,
};

/// In the major unit.
const FUNDS: i64 = 100_000;
/// In minor units: the amount of a loan, its net amount, and the fee of an automatic collection.
const OWED: i64 = 10_000;
const SHARE: i64 = 9_850;
const FEE: i64 = 2_000;
/// Days until a loan is due: collected automatically at once, or not during the test.
const DUE_NOW: i64 = 0;
const DUE_LATER: i64 = 30;

/// A company, and a user with a saved card.
struct World {
    lab: Lab,
    company: Company,
    card: Value,
    /// Loans that clients repay, by name, and the ids of the recollections.
    repaid: RequestLog,
    /// Loans left to automatic collection, and their ids.
    left: RequestLog,
}

impl World {
    async fn set_up(lab: Lab) -> World {
        let company = lab.set_up().await;
        let path = format!("/companies/{}/prices", company.id);
        lab.operator(Method::PATCH, &path, json!({ "recollection.card": FEE / 100 })).await;
        let path = format!("/companies/{}/wallet/credit", company.id);
        lab.operator(Method::POST, &path, json!({ "amount": FUNDS, "key": "funds" })).await;
        let post = async |path: &str, body: Value| {
            reply(lab.to_api(&company, Method::POST, path).json(&body)).await.data().clone()
        };
        let user = json!({ "user_id": "ada", "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com" });
        post("/user/create", user).await;
        let card = json!({
            "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://lender.example/saved" },
        });
        let card = post("/card/create", card).await;
        lab.pay(&card).await;
        // This fails if the webhook arrived first.
        let verify = format!("/card/verify/{}", id(&card));
        reply(lab.to_api(&company, Method::POST, &verify)).await;
        let path = format!("/card/fetch/{}", id(&card));
        let card = reply(lab.to_api(&company, Method::GET, &path)).await.data().clone();
        assert_eq!(card["valid"], true);
        World { lab, company, card, repaid: RequestLog::default(), left: RequestLog::default() }
    }

    fn put(&self, loan: &str, due_days: i64) -> RequestBuilder {
        let due = Clock::system().now().plus_seconds(due_days * 86_400).to_datetime();
        let amount = OWED / 100;
        let body = json!({
            "user_id": "ada", "amount": amount, "currency": "NGN", "disbursed": true,
            "schedule": [{ "due_date": due.format("%Y-%m-%d").to_string(), "amount": amount }],
        });
        let path = format!("/companies/{}/loans/{loan}", self.company.id);
        self.lab.to_operator(Method::PUT, &path).json(&body)
    }

    /// Repays a loan in full with the card.
    fn repay(&self, loan: &str) -> RequestBuilder {
        let body = json!({
            "loan": loan, "with_provider": true, "payment_channel": "card", "reference": loan,
        });
        let request = self.lab.to_api(&self.company, Method::POST, "/recollection/create");
        let request = request.json(&body);
        match has_key(loan) {
            true => request.header("Idempotency-Key", loan),
            false => request,
        }
    }

    /// Creates loans one after the other, and repays every second one. The others are left to
    /// automatic collection.
    async fn run_client(self: Arc<World>, name: String) {
        let first = usize::from(name.ends_with(['1', '3']));
        for n in first.. {
            let loan = format!("{name}-{n}");
            let is_left = n % 2 == 1;
            let requests = if is_left { &self.left } else { &self.repaid };
            requests.lock().unwrap().insert(loan.clone(), None);
            let due_days = if is_left { DUE_NOW } else { DUE_LATER };
            let mut response = self.lab.try_send(self.put(&loan, due_days)).await;
            if response.is_some() && !is_left {
                response = self.lab.try_send(self.repay(&loan)).await;
            }
            let Some(response) = response else { return };
            requests.lock().unwrap().insert(loan, Some(id(&response)));
        }
    }

    /// Sends the loans without a response again.
    async fn put_again(&self) {
        for loan in without_response(&self.repaid) {
            reply(self.put(&loan, DUE_LATER)).await.data();
        }
        for loan in without_response(&self.left) {
            reply(self.put(&loan, DUE_NOW)).await.data();
        }
    }

    /// Repeats the repayments without a response: those with an idempotency key, or the others.
    async fn repay_again(&self, with_key: bool) {
        let without_response = without_response(&self.repaid).into_iter();
        for loan in without_response.filter(|loan| has_key(loan) == with_key) {
            let again = reply(self.repay(&loan)).await;
            if with_key || again.status == 200 {
                let status = again.data()["status"].as_str().expect("a status");
                assert!(["pending", "success"].contains(&status), "{status}");
            } else {
                let (status, message) = again.failure();
                let known = ["reference already exists", "loan already been paid completely"];
                assert!(status == 400 && known.contains(&message), "{status} {message}");
            }
        }
    }

    // ---- checks --------------------------------------------------------------------------------

    async fn check(&self) {
        let (repaid, left) =
            (self.repaid.lock().unwrap().clone(), self.left.lock().unwrap().clone());
        assert!(repaid.values().any(Option::is_some), "no request received a response");
        for loan in repaid.keys().chain(left.keys()) {
            let path = format!("/companies/{}/loans/{loan}", self.company.id);
            let loan = self.lab.operator(Method::GET, &path, json!({})).await;
            assert_eq!(
                (minor(&loan["amount_paid"]), &loan["paid"]),
                (OWED, &json!(true)),
                "{loan}"
            );
        }
        let made = self.made().await;
        assert!(made.keys().eq(self.loans().iter()), "{made:?}");
        for (loan, recollection) in &made {
            assert_eq!(
                (&recollection["status"], minor(&recollection["amount"])),
                (&json!("success"), OWED)
            );
            if let Some(Some(known)) = repaid.get(loan) {
                assert_eq!(recollection["id"], known.as_str());
            }
        }
        let mut ids: Vec<String> = made.values().map(id).collect();
        ids.sort();
        let events = self.lab.event_ids("recollection.success");
        assert!(events.keys().eq(ids.iter()), "{events:?}");
        assert!(events.values().all(|ids| ids.len() == 1), "{events:?}");
        ids.push(id(&self.card));
        ids.sort();
        assert_eq!(self.lab.charged().await, ids);
        let [made, left] = [made.len(), left.len()].map(|n| i64::try_from(n).unwrap());
        let expected = FUNDS * 100 + SHARE * made - FEE * left;
        assert_eq!(self.lab.balance(&self.company).await, expected);
    }

    /// Returns the names of all loans, sorted.
    fn loans(&self) -> Vec<String> {
        let (repaid, left) = (self.repaid.lock().unwrap(), self.left.lock().unwrap());
        let mut all: Vec<String> = repaid.keys().chain(left.keys()).cloned().collect();
        all.sort();
        all
    }

    /// Returns the only recollection of each loan.
    async fn made(&self) -> BTreeMap<String, Value> {
        let request = self.lab.to_api(&self.company, Method::GET, "/recollection/list?limit=1000");
        let listed = reply(request).await.data()["docs"].clone();
        let listed = listed.as_array().expect("a list");
        let of_loan = |one: &Value| (one["loan"].as_str().expect("an id").to_owned(), one.clone());
        let made: BTreeMap<String, Value> = listed.iter().map(of_loan).collect();
        assert_eq!(made.len(), listed.len(), "a loan has several recollections: {listed:?}");
        made
    }
}

/// Returns whether the loan's client sends idempotency keys, as half of the clients do.
fn has_key(loan: &str) -> bool {
    ["-c0-", "-c1-"].iter().any(|client| loan.contains(client))
}

fn without_response(requests: &RequestLog) -> Vec<String> {
    let requests = requests.lock().unwrap();
    requests.iter().filter(|(_, id)| id.is_none()).map(|(loan, _)| loan.clone()).collect()
}

async fn killing_the_host(engine: Engine) {
    let lab = Lab::build(engine).await;
    let process = Process::start(&lab).await;
    let world = Arc::new(World::set_up(lab).await);
    let lab = &world.lab;
    let process = kill_repeatedly(lab, process, |name| world.clone().run_client(name)).await;
    let (all, left) = (world.loans().len(), world.left.lock().unwrap().len());
    let lost = without_response(&world.repaid).len() + without_response(&world.left).len();
    println!(
        "{all} loans, {left} of them left to the host, {lost} without a response before a kill"
    );
    world.put_again().await;
    world.repay_again(false).await;
    // Then all leases of killed hosts have expired, also those of idempotency keys.
    lab.advance(180).await;
    world.repay_again(true).await;
    lab.advance(4 * 3600).await;
    world.check().await;
    process.kill();
    lab.database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_charges_each_loan_once_on_sqlite() {
    killing_the_host(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_charges_each_loan_once_on_postgres() {
    let Some(server) = postgres() else { return };
    killing_the_host(Engine::Postgres(server)).await;
}
