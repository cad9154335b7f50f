//! Saved cards at every provider: verification, charges, challenges, declines and deletion.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use super::{Subject, request_count};
use crate::{
    app::TestApp,
    lending::{
        charge_instrument, create_loan, create_recollection, create_user, fetch_card, get_loan,
    },
};

/// Completes a checkout page with the provider's success card.
async fn complete(app: &TestApp, begun: &Value) {
    app.complete(begun, "success").await;
    app.run_until_idle().await;
}

async fn begin<S: Subject>(app: &TestApp) -> Value {
    let card = json!({
        "user_id": "ada", "currency": "NGN", "payment_service": S::NAME,
        "checkout": { "success_url": "https://lender.example/saved" },
    });
    app.post("/card/create", card).await.data().clone()
}

async fn saved<S: Subject>(app: &TestApp) -> Value {
    S::set_up(app).await;
    create_user(app, "ada").await;
    let begun = begin::<S>(app).await;
    complete(app, &begun).await;
    fetch_card(app, &begun["id"]).await
}

async fn charge(app: &TestApp, amount: f64) -> Value {
    let body = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "card", "amount": amount });
    charge_instrument(app, body).await
}

async fn status(app: &TestApp, recollection: &Value) -> Value {
    let id = recollection["id"].as_str().expect("an id");
    app.get(&format!("/recollection/fetch/{id}")).await.data()["status"].clone()
}

pub async fn verifies<S: Subject>(app: &TestApp) {
    let card = saved::<S>(app).await;
    assert_eq!((&card["valid"], &card["default"]), (&json!(true), &json!(true)), "{card}");
    assert_eq!(card["payment_service"], S::NAME);
    let details = &card["card"];
    let text = |name: &str| details[name].as_str().expect("a text").to_owned();
    let digits = |name: &str, n: usize| {
        let text = text(name);
        assert!(text.len() == n && text.bytes().all(|b| b.is_ascii_digit()), "{name}: {text}");
    };
    digits("bin", 6);
    digits("last_4_digits", 4);
    digits("exp_month", 2);
    digits("exp_year", 4);
    // Not every provider reports it.
    assert!([0, 2].contains(&text("country_code").len()), "{details}");
    assert!(!text("card_type").is_empty() && text("card_type") == text("card_type").to_lowercase());
    assert!(!card["signature"].as_str().expect("a text").is_empty());
    for _ in 0..3 {
        app.advance(3_600).await;
    }
    let refunds = app.operator(Method::GET, "/card-refunds", Value::Null).await.data().clone();
    let refund = &refunds["refunds"][0];
    assert_eq!((&refund["status"], &refund["amount"]), (&json!("done"), &json!(100)), "{refund}");
    assert_eq!(request_count::<S>(app, S::REFUND), 1);

    let again = begin::<S>(app).await;
    complete(app, &again).await;
    assert_eq!(fetch_card(app, &again["id"]).await["message"], "card already exists");
    let path = format!("/card/delete/{}?delete_default=true", card["id"].as_str().expect("an id"));
    assert_eq!(app.request(&app.company, Method::DELETE, &path, None).await.status, 200);
    app.run_until_idle().await;
    for _ in 0..3 {
        app.advance(3_600).await;
    }
}

pub async fn charges<S: Subject>(app: &TestApp) {
    saved::<S>(app).await;
    create_loan(app, "loan-1", "ada", &[(10, 10_000.0)]).await;
    let made = request_count::<S>(app, S::CHARGE);
    assert_eq!(charge(app, 2_500.5).await["status"], "success");
    app.simulators.faults().push(Fault::new("charge", FaultKind::Decline));
    let declined = charge(app, 100.0).await;
    app.advance(60).await;
    assert_eq!(status(app, &declined).await, "failed");
    assert_eq!(request_count::<S>(app, S::CHARGE) - made, 2);

    app.simulators.faults().push(Fault::new("charge", FaultKind::Challenge));
    let challenged = charge(app, 500.0).await;
    assert_eq!(challenged["status"], "pending");
    assert!(challenged["checkout"]["url"].is_string(), "{challenged}");
    app.advance(60).await;
    assert_eq!(status(app, &challenged).await, "pending");
    complete(app, &challenged).await;
    app.advance(300).await;
    assert_eq!(status(app, &challenged).await, "success");
    assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(3_000.5));
}

/// The card is charged once, whether or not the response arrives.
pub async fn charges_once<S: Subject>(app: &TestApp) {
    saved::<S>(app).await;
    create_loan(app, "loan-1", "ada", &[(10, 10_000.0)]).await;
    for (n, kind) in (1..).zip(super::FAULTS) {
        app.simulators.faults().push(Fault::new("charge", kind));
        let body = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "card", "amount": 100 });
        let begun = create_recollection(app, body).await.data().clone();
        assert_eq!(begun["status"], "pending", "{kind:?}");
        app.advance(60).await;
        app.advance(300).await;
        assert_eq!(status(app, &begun).await, "success", "{kind:?}");
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(n * 100), "{kind:?}");
    }
}
