//! Direct debits at every provider: repayments are debited from a bank account once.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use super::Subject;
use crate::{
    app::TestApp,
    lending::{charge_instrument, create_loan, create_user, direct_debit_body, get_loan},
};

async fn set_up<S: Subject>(app: &TestApp) {
    S::set_up(app).await;
    create_user(app, "ada").await;
    let token = S::mandate(app).await;
    let debit = crate::codes::merged(
        direct_debit_body("ada", &token),
        json!({ "payment_service": S::NAME, "email": "ada@example.com", "default": true }),
    );
    let path = format!("/companies/{}/direct-debits/dd-1", app.company.id);
    app.operator(Method::PUT, &path, debit).await.data();
    create_loan(app, "loan-1", "ada", &[(30, 10_000.0)]).await;
}

async fn debit(app: &TestApp) -> Value {
    let body = json!({
        "loan": "loan-1", "with_provider": true, "payment_channel": "direct_debit", "amount": 500.5,
    });
    charge_instrument(app, body).await
}

async fn status(app: &TestApp, recollection: &Value) -> Value {
    let id = recollection["id"].as_str().expect("an id");
    app.get(&format!("/recollection/fetch/{id}")).await.data()["status"].clone()
}

pub async fn debits<S: Subject>(app: &TestApp) {
    set_up::<S>(app).await;
    let begun = debit(app).await;
    app.advance(60).await;
    app.advance(300).await;
    assert_eq!(status(app, &begun).await, "success");
    app.simulators.faults().push(Fault::new("charge", FaultKind::Decline));
    let declined = debit(app).await;
    app.advance(60).await;
    app.advance(300).await;
    assert_eq!(status(app, &declined).await, "failed");
    assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(500.5));
    // The service account received it, so the net amount is credited to the company.
    let balance = app.wallet().await["balance"].as_f64();
    assert!(balance.is_some_and(|balance| (480.0..=500.5).contains(&balance)), "{balance:?}");
}

/// The account is debited once, whether or not the response arrives.
pub async fn debits_once<S: Subject>(app: &TestApp) {
    set_up::<S>(app).await;
    for (n, kind) in (1..).zip(super::FAULTS) {
        app.simulators.faults().push(Fault::new("charge", kind));
        let begun = debit(app).await;
        app.advance(60).await;
        app.advance(300).await;
        assert_eq!(status(app, &begun).await, "success", "{kind:?}");
        let paid = get_loan(app, "loan-1").await["amount_paid"].as_f64();
        assert_eq!(paid, Some(500.5 * f64::from(n)), "{kind:?}");
    }
}
