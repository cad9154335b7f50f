//! A payment that its payer confirms on the phone.

use reqwest::Method;
use serde_json::json;
use tollhouse_sandbox::mpesa::{Answer, CERTIFICATE, Credentials};

use super::Lab;

pub const PAGE: &str = "/pay/{company}/{charge}/{signature}";
const NOTIFICATION: &str =
    "/api/v1/notifications/{provider}/{account}/{company}/{charge_or_refund}/{signature}";
pub const PHONE: &str = "+254722000001";

/// Initializes and confirms a payment. Sends forged notifications to its URL before.
pub async fn pay(lab: &Lab) {
    assert_eq!(lab.send("POST /internal/v1/plugins", artifacts::MPESA).await["error"], false);
    let own = Credentials::default();
    let credentials = json!({
        "consumer_key": own.consumer_key, "consumer_secret": own.consumer_secret,
        "shortcode": own.shortcode, "passkey": own.passkey, "initiator_name": own.initiator,
        "initiator_password": own.initiator_password, "certificate": CERTIFICATE,
        "base_url": format!("{}/mpesa", lab.simulators.url()),
    });
    let before = ["provider", "account"].map(|name| (name, lab.named(name)));
    lab.name("provider", &json!("mpesa"));
    let account =
        lab.call("PUT /internal/v1/providers/{provider}", json!({ "credentials": credentials }));
    lab.name("account", &account.await["account"]);
    let order = json!({
        "email": "ada.obi@example.com", "phone": PHONE, "amount": 1000, "currency": "KES",
        "reference": "order-by-phone", "payment_service": "mpesa",
        "checkout": { "success_url": "https://lender.example/paid" },
    });
    let payment = lab.call("POST /api/v1/payment/initialize", order).await;
    let page = payment["checkout"]["url"].as_str().expect("a URL");
    let shown = lab.client.get(page).send().await.expect("a response");
    let shown = shown.text().await.expect("a page");
    assert!(shown.contains("1000"), "{shown}");
    lab.responses.lock().unwrap().push((format!("GET {PAGE}"), shown));
    let push = lab.simulators.mpesa().pushes().pop().expect("a push");
    let mut parts = push.callback_url.rsplit('/');
    lab.name("signature", &json!(parts.next()));
    lab.name("charge_or_refund", &json!(parts.next()));
    for method in [Method::POST, Method::PUT] {
        lab.send(&format!("{method} {NOTIFICATION}"), r#"{"event":"forged"}"#).await;
    }
    lab.simulators.mpesa().answer(&push.checkout_request_id, Answer::Pay).expect("an open push");
    lab.settle().await;
    for (name, value) in before {
        lab.name(name, &json!(value));
    }
}
