//! Payments through hosted checkout.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use reqwest::Method;
use serde_json::{Value, json};

use super::{Lab, Process, RequestLog, id, kill_repeatedly};
use crate::app::{Company, Engine, postgres, reply};

/// Initializes a payment. `None`: the host was killed before it responded.
async fn initialize(lab: &Lab, company: &Company, reference: &str) -> Option<Value> {
    let order = json!({
        "email": "ada@example.com", "amount": 100, "currency": "NGN", "reference": reference,
        "checkout": { "success_url": "https://lender.example/paid" },
    });
    lab.try_send(lab.to_api(company, Method::POST, "/payment/initialize").json(&order)).await
}

async fn run_client(lab: Arc<Lab>, company: Company, name: String, requests: RequestLog) {
    for n in 0.. {
        let reference = format!("{name}-{n}");
        requests.lock().unwrap().insert(reference.clone(), None);
        let Some(payment) = initialize(&lab, &company, &reference).await else { return };
        requests.lock().unwrap().insert(reference, Some(id(&payment)));
        lab.pay(&payment).await;
    }
}

async fn killing_the_host(engine: Engine) {
    let lab = Arc::new(Lab::build(engine).await);
    let process = Process::start(&lab).await;
    let (company, requests) = (lab.set_up().await, RequestLog::default());
    let client = |name| run_client(lab.clone(), company.clone(), name, requests.clone());
    let process = kill_repeatedly(&lab, process, client).await;

    // Requests without a response can be repeated, and all payments succeed in the end.
    let requests = requests.lock().unwrap().clone();
    let completed = requests.values().flatten().count();
    println!("{} payments requested, {completed} completed before a kill", requests.len());
    for reference in requests.iter().filter(|(_, id)| id.is_none()).map(|(reference, _)| reference)
    {
        // The checkout lease of a killed host must expire first.
        lab.advance(21).await;
        let payment = initialize(&lab, &company, reference).await.expect("a payment that resumes");
        lab.pay(&payment).await;
    }
    lab.advance(4 * 3600).await;
    check(&lab, &company, &requests).await;
    process.kill();
    lab.database.drop().await;
}

async fn check(lab: &Lab, company: &Company, requests: &BTreeMap<String, Option<String>>) {
    assert!(requests.values().any(Option::is_some), "no request received a response");
    let mut paid = BTreeSet::new();
    for (reference, known) in requests {
        let path = format!("/payment/fetch/reference/{reference}");
        let payment = reply(lab.to_api(company, Method::GET, &path)).await.data().clone();
        assert_eq!(payment["status"], "success", "{reference}");
        if let Some(known) = known {
            assert_eq!(payment["id"], known.as_str(), "{reference}");
        }
        paid.insert(id(&payment));
    }
    let events = lab.event_ids("payment.success");
    assert_eq!(events.keys().cloned().collect::<BTreeSet<_>>(), paid);
    assert!(events.values().all(|ids| ids.len() == 1), "{events:?}");
    // 100 NGN less 1.5 %.
    assert_eq!(lab.balance(company).await, 9_850 * i64::try_from(paid.len()).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_loses_nothing_on_sqlite() {
    killing_the_host(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_loses_nothing_on_postgres() {
    let Some(server) = postgres() else { return };
    killing_the_host(Engine::Postgres(server)).await;
}
