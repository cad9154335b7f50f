use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tollhouse_sandbox::flutterwave::{Webhook, sign};

use super::Subject;
use crate::app::{TestApp, reply};

const KEY: &str = "FLWSECK_TEST-the_services_own_account-X";
const HASH: &str = "the_hash_of_the_services_own_account";

pub struct Flutterwave;

fn provider_request(app: &TestApp, method: Method, path: &str) -> RequestBuilder {
    let url = format!("{}/flutterwave/v3{path}", app.simulators.url());
    app.client.request(method, url).bearer_auth(KEY)
}

pub async fn verified(app: &TestApp, reference: &str) -> Value {
    let path = format!("/transactions/verify_by_reference?tx_ref={reference}");
    reply(provider_request(app, Method::GET, &path)).await.body["data"].clone()
}

impl Subject for Flutterwave {
    const NAME: &'static str = "provider_b";
    const CHECKOUT: (&'static str, &'static str) = ("POST", "/payments");
    const REFUND: (&'static str, &'static str) = ("POST", "/transactions/{id}/refund");
    const CHARGE: (&'static str, &'static str) = ("POST", "/tokenized-charges");
    const FEES: f64 = 35.01; // 1.4 %
    const SUPPORTS_USD: bool = true;

    async fn set_up(app: &TestApp) -> String {
        app.install(artifacts::PROVIDER_B).await;
        let base_url = format!("{}/flutterwave/v3", app.simulators.url());
        let credentials = json!({ "secret_key": KEY, "webhook_hash": HASH, "base_url": base_url });
        let set = json!({ "credentials": credentials, "active": true });
        let account = app.operator(Method::PUT, "/providers/provider_b", set).await.data().clone();
        let url = account["notification_url"].as_str().expect("a URL").to_owned();
        app.simulators.flutterwave().configure_webhook(KEY, Webhook::new(HASH, &url).signed());
        url
    }

    /// Returns the requests, with `{id}` in place of transaction ids.
    fn requests(app: &TestApp) -> Vec<(String, String)> {
        let plain = |part: &str| match part.parse::<u64>() {
            Ok(_) => "{id}".to_owned(),
            Err(_) => part.to_owned(),
        };
        let plain = |path: String| path.split('/').map(plain).collect::<Vec<_>>().join("/");
        let requests = app.simulators.flutterwave().requests().into_iter();
        requests.map(|(method, path)| (method, plain(path))).collect()
    }

    fn notification(reference: &str) -> String {
        let data = json!({ "tx_ref": reference, "id": 1, "amount": 2500.5, "currency": "NGN", "status": "successful" });
        json!({ "event": "charge.completed", "data": data }).to_string()
    }

    fn signature(body: &str, authentic: bool) -> (&'static str, String) {
        let hash = if authentic { HASH } else { "a_hash_of_somebody_else" };
        ("flutterwave-signature", sign(hash, body.as_bytes()))
    }

    fn tamper(app: &TestApp, reference: &str, minor: u64, currency: &str) {
        assert!(app.simulators.flutterwave().tamper(reference, minor, currency));
    }

    fn tamper_taken(app: &TestApp, reference: &str, minor: u64) {
        assert!(app.simulators.flutterwave().tamper_charged_amount(reference, minor));
    }

    async fn take_reference(app: &TestApp, reference: &str) {
        let order = json!({
            "tx_ref": reference, "amount": 2500.5, "currency": "NGN", "redirect_url": "https://eve.example/",
            "customer": { "email": "eve@example.com" },
        });
        let taken = provider_request(app, Method::POST, "/payments").json(&order).send().await;
        assert!(taken.expect("a response").status().is_success());
    }

    async fn refund_elsewhere(app: &TestApp, reference: &str, minor: u64) {
        let path = format!("/transactions/{}/refund", verified(app, reference).await["id"]);
        let part = json!({ "amount": minor / 100 });
        let refunded = provider_request(app, Method::POST, &path).json(&part).send().await;
        assert!(refunded.expect("a response").status().is_success());
    }

    fn reverse(app: &TestApp, reference: &str) {
        assert!(app.simulators.flutterwave().reverse(reference));
    }

    async fn mandate(app: &TestApp) -> String {
        let order = json!({
            "email": "ada@example.com", "amount": 10_000, "address": "1 Allen Avenue", "phone_number": "0800",
            "account_bank": "058", "account_number": "0123456789", "start_date": "2026-11-22T00:00:00.000Z",
            "end_date": "2027-11-20T00:00:00.000Z", "narration": "loan",
        });
        let opened = reply(provider_request(app, Method::POST, "/accounts/tokenize").json(&order))
            .await
            .body;
        // First the customer's transfer arrives, then the consent of the bank.
        app.advance(10).await;
        app.advance(10).await;
        let reference = opened["data"]["reference"].as_str().expect("a reference");
        let found =
            reply(provider_request(app, Method::GET, &format!("/accounts/token/{reference}")))
                .await;
        found.body["data"]["token"].as_str().expect("a token").to_owned()
    }

    async fn reusable_tokens(app: &TestApp, reference: &str) -> Vec<String> {
        let card = verified(app, reference).await["card"].clone();
        vec![card["token"].as_str().expect("a card token").to_owned()]
    }
}
