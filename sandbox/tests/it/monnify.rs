//! The Monnify simulator.

mod cards;
mod charges;
mod faults;
mod mandates;
mod notifications;
mod refunds;
mod transactions;

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

const KEY: &str = "MK_TEST_ABC123";
const SECRET: &str = "91MUDL9N6U3BQRXBQ2PJ9M0PW4J22M1Y";
const CONTRACT: &str = "4934121686";
const SUCCESS: &str = "4111111111111111";

/// A Monnify merchant with an access token.
struct Shop {
    world: World,
    token: String,
}

impl Shop {
    async fn new() -> Shop {
        let world = World::new().await;
        world.simulators.monnify().set_webhook(KEY, SECRET, &world.receiver.url);
        let (status, body) = log_in(&world, KEY, SECRET).await;
        assert_eq!(status, 200, "{body}");
        let token = body["responseBody"]["accessToken"].as_str().unwrap().to_owned();
        Shop { world, token }
    }

    /// Returns status and body.
    async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.world.request(method, &format!("/monnify/api{path}"));
        let request = request.bearer_auth(&self.token);
        let request = if body.is_null() { request } else { request.json(&body) };
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Returns the `responseBody`.
    async fn ok(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, mut body) = self.call(method, path, body).await;
        assert_eq!((status, &body["requestSuccessful"]), (200, &json!(true)), "{body}");
        let outcome = (&body["responseMessage"], &body["responseCode"]);
        assert_eq!(outcome, (&json!("success"), &json!("0")));
        body["responseBody"].take()
    }

    async fn get(&self, path: &str) -> Value {
        self.ok(Method::GET, path, Value::Null).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.ok(Method::POST, path, body).await
    }

    /// Returns status and code of a refused call.
    async fn refused(&self, path: &str, body: Value) -> (u16, String) {
        let method = if body.is_null() { Method::GET } else { Method::POST };
        let (status, body) = self.call(method, path, body).await;
        assert_eq!(body["requestSuccessful"], false, "{body}");
        (status, body["responseCode"].as_str().unwrap().to_owned())
    }

    /// Initializes a payment of NGN 5,000.
    async fn begin(&self, reference: &str) -> Value {
        self.post("/v1/merchant/transactions/init-transaction", order(reference)).await
    }

    /// Initializes a payment and returns the id of its page.
    async fn page(&self, reference: &str) -> String {
        last_step(&self.begin(reference).await["checkoutUrl"])
    }

    /// Completes a page with this body and returns the redirect URL.
    async fn complete(&self, page: &str, body: Value) -> Value {
        let (status, body) = self.world.complete(page, body).await;
        assert_eq!(status, 200, "{body}");
        body["redirect_url"].clone()
    }

    /// Pays with this card and returns the status response.
    async fn pay(&self, reference: &str, card: &str) -> Value {
        let page = self.page(reference).await;
        self.complete(&page, json!({ "outcome": "success", "card": card })).await;
        self.status(reference).await
    }

    async fn status(&self, reference: &str) -> Value {
        self.get(&format!("/v2/merchant/transactions/query?paymentReference={reference}")).await
    }

    /// Returns the token of a card after a first payment.
    async fn saved(&self, reference: &str, card: &str) -> Value {
        self.pay(reference, card).await["cardDetails"]["cardToken"].clone()
    }

    /// Returns the webhooks received so far, once idle.
    async fn notified(&self) -> Vec<Value> {
        self.world.simulators.run_until_idle().await;
        self.world.receiver.bodies()
    }

    /// Returns the event types of the webhooks received so far.
    async fn events(&self) -> Vec<String> {
        let webhooks = self.notified().await;
        webhooks.iter().map(|body| body["eventType"].as_str().unwrap().to_owned()).collect()
    }
}

async fn log_in(world: &World, api_key: &str, secret_key: &str) -> (u16, Value) {
    let request = world.request(Method::POST, "/monnify/api/v1/auth/login");
    let response = request.basic_auth(api_key, Some(secret_key)).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn order(reference: &str) -> Value {
    json!({
        "amount": 5_000, "customerName": "Ada Obi", "customerEmail": "Ada@Example.com",
        "paymentReference": reference, "paymentDescription": "Loan 7", "currencyCode": "NGN",
        "contractCode": CONTRACT, "redirectUrl": "https://shop.test/back?x=1",
        "metaData": { "order": 7 },
    })
}

fn last_step(url: &Value) -> String {
    url.as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}
