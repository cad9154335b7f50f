use serde_json::{Value, json};
use tollhouse_sandbox::paystack;

use super::{Subject, mandates::MandateSubject};
use crate::{
    app::{PAYSTACK_KEY, TestApp, reply},
    lending,
};

pub struct Paystack;

impl Subject for Paystack {
    const NAME: &'static str = "provider_a";
    const CHECKOUT: (&'static str, &'static str) = ("POST", "/transaction/initialize");
    const REFUND: (&'static str, &'static str) = ("POST", "/refund");
    const CHARGE: (&'static str, &'static str) = ("POST", "/transaction/charge_authorization");
    const FEES: f64 = 137.51; // 1.5 % and 100
    const SUPPORTS_USD: bool = true;

    async fn set_up(app: &TestApp) -> String {
        app.install(artifacts::PROVIDER_A).await;
        app.use_paystack("/providers/provider_a", PAYSTACK_KEY).await
    }

    fn requests(app: &TestApp) -> Vec<(String, String)> {
        app.simulators.paystack().requests()
    }

    fn notification(reference: &str) -> String {
        let data = json!({ "reference": reference, "id": 1, "amount": 250_050, "currency": "NGN", "status": "success" });
        json!({ "event": "charge.success", "data": data }).to_string()
    }

    fn signature(body: &str, authentic: bool) -> (&'static str, String) {
        let key = if authentic { PAYSTACK_KEY } else { "sk_test_of_somebody_else" };
        ("x-paystack-signature", paystack::sign(key, body.as_bytes()))
    }

    fn tamper(app: &TestApp, reference: &str, minor: u64, currency: &str) {
        assert!(app.simulators.paystack().tamper(reference, minor, currency));
    }

    fn tamper_taken(app: &TestApp, reference: &str, minor: u64) {
        assert!(app.simulators.paystack().tamper_charged_amount(reference, minor));
    }

    async fn take_reference(app: &TestApp, reference: &str) {
        let order =
            json!({ "email": "eve@example.com", "amount": 250_050, "reference": reference });
        let url = format!("{}/paystack/transaction/initialize", app.simulators.url());
        let taken = app.client.post(url).bearer_auth(PAYSTACK_KEY).json(&order).send().await;
        assert!(taken.expect("a response").status().is_success());
    }

    async fn refund_elsewhere(app: &TestApp, reference: &str, minor: u64) {
        let order = json!({ "transaction": reference, "amount": minor });
        let url = format!("{}/paystack/refund", app.simulators.url());
        let refunded = app.client.post(url).bearer_auth(PAYSTACK_KEY).json(&order).send().await;
        assert!(refunded.expect("a response").status().is_success());
    }

    fn reverse(app: &TestApp, reference: &str) {
        assert!(app.simulators.paystack().reverse(reference));
    }

    async fn mandate(app: &TestApp) -> String {
        lending::paystack_mandate(app, "ada@example.com").await
    }

    async fn reusable_tokens(app: &TestApp, reference: &str) -> Vec<String> {
        let url = format!("{}/paystack/transaction/verify/{reference}", app.simulators.url());
        let transaction = reply(app.client.get(url).bearer_auth(PAYSTACK_KEY)).await.body;
        let authorization = &transaction["data"]["authorization"];
        ["authorization_code", "signature"]
            .map(|name| authorization[name].as_str().expect("a card token").to_owned())
            .to_vec()
    }
}

/// Returns the authorization of a mandate.
async fn authorization(app: &TestApp, mandate: &Value) -> Value {
    let reference = mandate["service_ref"].as_str().expect("a reference");
    let base = app.simulators.url();
    let url = format!("{base}/paystack/customer/authorization/verify/{reference}");
    reply(app.client.get(url).bearer_auth(PAYSTACK_KEY)).await.body["data"].clone()
}

impl MandateSubject for Paystack {
    const BEGIN: (&'static str, &'static str) = ("POST", "/customer/authorization/initialize");
    const KEEPS_REFERENCE: bool = false;

    async fn end(app: &TestApp, mandate: &Value) {
        let code = authorization(app, mandate).await["authorization_code"].clone();
        let url = format!("{}/paystack/customer/authorization/deactivate", app.simulators.url());
        let request = app.client.post(url).bearer_auth(PAYSTACK_KEY);
        let ended = request.json(&json!({ "authorization_code": code })).send().await;
        assert!(ended.expect("a response").status().is_success());
    }

    async fn is_active(app: &TestApp, mandate: &Value) -> bool {
        authorization(app, mandate).await["active"] == true
    }
}
