//! The Flutterwave simulator.

mod cards;
mod chargebacks;
mod charges;
mod faults;
mod mandates;
mod notifications;
mod refunds;
mod transactions;

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

const KEY: &str = "FLWSECK_TEST-abc123-X";
const HASH: &str = "my-secret-hash";
const SUCCESS: &str = "5531886652142950";

/// A Flutterwave merchant.
struct Shop {
    world: World,
}

impl Shop {
    async fn new() -> Shop {
        let world = World::new().await;
        world.simulators.flutterwave().set_webhook(KEY, HASH, &world.receiver.url);
        Shop { world }
    }

    /// Returns status and body.
    async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.world.request(method, &format!("/flutterwave/v3{path}"));
        let request = request.bearer_auth(KEY);
        let request = if body.is_null() { request } else { request.json(&body) };
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn ok(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, body) = self.call(method, path, body).await;
        assert_eq!((status, &body["status"]), (200, &json!("success")), "{body}");
        body
    }

    async fn get(&self, path: &str) -> Value {
        self.ok(Method::GET, path, Value::Null).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.ok(Method::POST, path, body).await
    }

    /// Returns status and message of a refused call.
    async fn refused(&self, path: &str, body: Value) -> (u16, String) {
        let method = if body.is_null() { Method::GET } else { Method::POST };
        let (status, body) = self.call(method, path, body).await;
        assert_eq!((&body["status"], &body["data"]), (&json!("error"), &Value::Null), "{body}");
        (status, body["message"].as_str().unwrap().to_owned())
    }

    /// Returns the page id of a payment of NGN 5,000.
    async fn link(&self, tx_ref: &str) -> String {
        let data = self.post("/payments", order(tx_ref)).await["data"].clone();
        data["link"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
    }

    /// Completes a page with this body and returns the redirect URL.
    async fn complete(&self, page: &str, body: Value) -> Value {
        let (status, body) = self.world.complete(page, body).await;
        assert_eq!(status, 200, "{body}");
        body["redirect_url"].clone()
    }

    /// Pays with this card and returns the verification response.
    async fn pay(&self, tx_ref: &str, card: &str) -> Value {
        let page = self.link(tx_ref).await;
        self.complete(&page, json!({ "outcome": "success", "card": card })).await;
        self.verify(tx_ref).await
    }

    async fn verify(&self, tx_ref: &str) -> Value {
        let path = format!("/transactions/verify_by_reference?tx_ref={tx_ref}");
        self.get(&path).await["data"].clone()
    }

    /// Returns the token of a card after a first payment.
    async fn saved(&self, tx_ref: &str) -> Value {
        self.pay(tx_ref, SUCCESS).await["card"]["token"].clone()
    }

    /// Returns the webhooks received so far, once idle.
    async fn notified(&self) -> Vec<Value> {
        self.world.simulators.run_until_idle().await;
        self.world.receiver.bodies()
    }
}

fn order(tx_ref: &str) -> Value {
    json!({
        "tx_ref": tx_ref, "amount": 5_000, "redirect_url": "https://shop.test/back?x=1",
        "customer": { "email": "Ada@Example.com", "name": "Ada Obi", "phonenumber": "0800" },
        "meta": { "order": 7 },
    })
}

fn charge(token: &Value, tx_ref: &str) -> Value {
    json!({
        "token": token, "currency": "NGN", "amount": "1250.5", "email": "ada@example.com",
        "tx_ref": tx_ref,
    })
}
