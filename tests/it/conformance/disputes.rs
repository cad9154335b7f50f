//! Disputes at each provider whose plugin has them.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::money::disputes;
use tollhouse_sandbox::{Fault, FaultKind};

use super::{Subject, flutterwave::Flutterwave, paid, paystack::Paystack};
use crate::app::{Reply, TestApp};

/// A provider that reports disputes.
trait Disputes: Subject {
    /// The fault operation of an answer.
    const ANSWER: &'static str = "dispute_answer";

    /// Opens a dispute of this amount.
    fn open(app: &TestApp, reference: &str, minor: u64);
    /// Decides the dispute of a payment.
    fn decide(app: &TestApp, reference: &str, won: bool);
}

impl Disputes for Paystack {
    fn open(app: &TestApp, reference: &str, minor: u64) {
        app.simulators.paystack().open_dispute(reference, Some(minor)).expect("a dispute");
    }

    fn decide(app: &TestApp, reference: &str, won: bool) {
        let paystack = app.simulators.paystack();
        let id = paystack.unresolved_dispute(reference).expect("a dispute");
        assert!(paystack.decide_dispute(id, won));
    }
}

impl Disputes for Flutterwave {
    fn open(app: &TestApp, reference: &str, minor: u64) {
        let status = tollhouse_sandbox::flutterwave::ChargebackStatus::Initiated;
        assert!(app.simulators.flutterwave().charge_back(reference, Some(minor), status));
    }

    fn decide(app: &TestApp, reference: &str, won: bool) {
        let flutterwave = app.simulators.flutterwave();
        let id = flutterwave.chargeback(reference).expect("a chargeback");
        assert!(flutterwave.decide_chargeback(id, won));
    }
}

macro_rules! conforms {
    ($($module:ident: $subject:ty;)*) => {$(
        mod $module {
            use super::*;
            type S = $subject;

            both! {
                async fn a_contested_dispute_is_won_or_lost(app: TestApp) { contests::<S>(app).await }
                async fn an_accepted_dispute_is_lost(app: TestApp) { accepts::<S>(app).await }
                async fn a_dispute_of_the_whole_amount_reverses_the_payment(app: TestApp) { reverses::<S>(app).await }
                async fn an_answer_whose_response_is_lost_is_made_once(app: TestApp) { answers_once::<S>(app).await }
            }
        }
    )*};
}
conforms! {
    provider_a: Paystack;
    provider_b: Flutterwave;
}

/// Lists the disputes of the service account, as the daily job does.
async fn list(app: &TestApp) {
    disputes::sweep(app.app.clone()).await.expect("a sweep");
    app.run_until_idle().await;
    app.advance(86_400).await;
}

async fn found(app: &TestApp, reference: &str) -> Value {
    let path = format!("/companies/{}/disputes", app.company.id);
    let listed = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    let disputes = listed["disputes"].as_array().expect("a list").iter();
    disputes.clone().find(|dispute| dispute["reference"] == reference).expect("a dispute").clone()
}

async fn answer(app: &TestApp, reference: &str, action: &str) -> Reply {
    let id = found(app, reference).await["id"].as_str().expect("an id").to_owned();
    let path = format!("/companies/{}/disputes/{id}/answer", app.company.id);
    let body = json!({
        "action": action, "message": "The order was delivered", "customer_name": "Ada Obi",
        "customer_email": "ada@example.com", "customer_phone": "+2348012345678",
        "service": "Order 1", "document_url": "https://acme.example/receipts/1",
    });
    app.operator(Method::POST, &path, body).await
}

async fn disputed(app: &TestApp) -> f64 {
    app.wallet().await["balances"]["NGN"]["disputed"].as_f64().unwrap_or_default()
}

async fn balance(app: &TestApp) -> f64 {
    app.wallet().await["balance"].as_f64().expect("an amount")
}

async fn contests<S: Disputes>(app: &TestApp) {
    S::set_up(app).await;
    for (reference, won) in [("won-1", true), ("lost-1", false)] {
        let payment = paid::<S>(app, reference).await;
        let (before, service_ref) =
            (balance(app).await, payment["service_ref"].as_str().expect("a reference"));
        S::open(app, service_ref, 100_000);
        list(app).await;
        let opened = found(app, reference).await;
        assert_eq!(
            (&opened["state"], &opened["amount"], &opened["currency"]),
            (&json!("open"), &json!(1000), &json!("NGN"))
        );
        assert!(opened["due_at"].as_str() > opened["opened_at"].as_str(), "{opened}");
        assert_eq!(disputed(app).await, 1_000.0);
        assert_eq!(answer(app, reference, "contest").await.data()["state"], "answered");
        S::decide(app, service_ref, won);
        list(app).await;
        assert_eq!(found(app, reference).await["state"], if won { "won" } else { "lost" });
        let lost = if won { 0.0 } else { 1_000.0 };
        assert_eq!((disputed(app).await, (before - balance(app).await).round()), (0.0, lost));
    }
}

async fn accepts<S: Disputes>(app: &TestApp) {
    S::set_up(app).await;
    let payment = paid::<S>(app, "order-1").await;
    S::open(app, payment["service_ref"].as_str().expect("a reference"), 100_000);
    list(app).await;
    assert_eq!(answer(app, "order-1", "accept").await.data()["state"], "lost");
    assert_eq!(disputed(app).await, 0.0);
    app.run_until_idle().await;
    assert_eq!(app.fetch("order-1").await["status"], "success");
}

async fn reverses<S: Disputes>(app: &TestApp) {
    S::set_up(app).await;
    let payment = paid::<S>(app, "order-1").await;
    let service_ref = payment["service_ref"].as_str().expect("a reference");
    S::open(app, service_ref, 250_050);
    list(app).await;
    S::decide(app, service_ref, false);
    list(app).await;
    assert_eq!(app.fetch("order-1").await["status"], "refunded");
    assert_eq!((balance(app).await, disputed(app).await), (0.0, 0.0));
}

async fn answers_once<S: Disputes>(app: &TestApp) {
    S::set_up(app).await;
    let payment = paid::<S>(app, "order-1").await;
    S::open(app, payment["service_ref"].as_str().expect("a reference"), 100_000);
    list(app).await;
    app.simulators.faults().push(Fault::new(S::ANSWER, FaultKind::CutAfter));
    let first = answer(app, "order-1", "contest").await;
    assert!([200, 502].contains(&first.status.as_u16()), "{}", first.body);
    app.run_until_idle().await;
    assert_eq!(found(app, "order-1").await["state"], "answered");
}
