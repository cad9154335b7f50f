//! The Jenga simulator.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{
    Fault, FaultKind,
    jenga::{Answer, Credentials, sign},
};

use crate::world::World;

const LOGIN: &str = "/authentication/api/v3/authenticate/merchant";
const PUSH: &str = "/v3-apis/payment-api/v3.0/stkussdpush/initiate";
const DETAILS: &str = "/v3-apis/transaction-api/v3.0/transactions/details";
const PHONE: &str = "254764555291";
const REFERENCE: &str = "LOAN00000007";

/// A merchant with an access token.
struct Shop {
    world: World,
    token: String,
}

impl Shop {
    async fn new() -> Shop {
        let world = World::new().await;
        let token = token(&world).await;
        Shop { world, token }
    }

    /// Sends a request with a signature. Returns status and body.
    async fn call(&self, method: Method, path: &str, signed: &str, body: Value) -> (u16, Value) {
        let request = self.world.request(method, &format!("/jenga{path}"));
        let request = request.bearer_auth(&self.token).header("Signature", sign(signed));
        let response = request.json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn initiate(&self, body: Value) -> (u16, Value) {
        self.call(Method::POST, PUSH, &signed(&body), body).await
    }

    /// Requests KES 500 of a payer.
    async fn push(&self, phone: &str) -> Value {
        let (status, body) = self.initiate(order(&self.world, phone)).await;
        assert_eq!((status, &body["status"]), (200, &json!(true)), "{body}");
        body
    }

    async fn details(&self, reference: &str) -> (u16, Value) {
        let path = format!("{DETAILS}/{reference}");
        self.call(Method::GET, &path, reference, Value::Null).await
    }

    async fn data(&self) -> Value {
        let (status, body) = self.details(REFERENCE).await;
        assert_eq!((status, &body["status"]), (200, &json!(true)), "{body}");
        body["data"].clone()
    }

    /// Returns the callbacks received so far, once idle.
    async fn notified(&self) -> Vec<Value> {
        self.world.simulators.run_until_idle().await;
        self.world.receiver.bodies()
    }
}

async fn log_in(world: &World, api_key: &str, body: Value) -> (u16, Value) {
    let request = world.request(Method::POST, &format!("/jenga{LOGIN}"));
    let response = request.header("Api-Key", api_key).json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn token(world: &World) -> String {
    let own = Credentials::default();
    let body = json!({ "merchantCode": own.merchant_code, "consumerSecret": own.consumer_secret });
    let (status, body) = log_in(world, &own.api_key, body).await;
    assert_eq!((status, &body["expiresIn"]), (200, &json!("2026-11-21T10:15:00Z")), "{body}");
    body["accessToken"].as_str().unwrap().to_owned()
}

fn order(world: &World, phone: &str) -> Value {
    let own = Credentials::default();
    json!({
        "merchant": {
            "accountNumber": own.account_number, "countryCode": "KE", "name": own.merchant_name,
        },
        "payment": {
            "ref": REFERENCE, "amount": "500.00", "currency": "KES", "telco": "Equitel",
            "mobileNumber": phone, "date": "2026-11-21", "callBackUrl": world.receiver.url,
            "pushType": "STK",
        },
    })
}

/// Returns the fields that the signature of a push covers.
fn signed(body: &Value) -> String {
    let account = body["merchant"]["accountNumber"].as_str().unwrap_or_default();
    let fields = ["ref", "mobileNumber", "telco", "amount", "currency"];
    let fields = fields.map(|name| body["payment"][name].as_str().unwrap_or_default());
    format!("{account}{}", fields.concat())
}

#[tokio::test]
async fn a_payment_has_the_documented_shapes() {
    let shop = Shop::new().await;
    let begun = shop.push(PHONE).await;
    assert_eq!((&begun["code"], &begun["reference"]), (&json!(-1), &json!(REFERENCE)));
    assert!(begun["transactionId"].is_string(), "{begun}");
    assert_eq!(shop.data().await["stateCode"], -1);

    let push = shop.world.simulators.jenga().answer(PHONE, Answer::Pay).unwrap();
    assert_eq!((push.amount, push.telco.as_str()), (50_000, "Equitel"));
    let data = shop.data().await;
    assert_eq!((&data["state"], &data["stateCode"]), (&json!("Success"), &json!(2)));
    assert_eq!((&data["amount"], &data["transactionReference"]), (&json!(500), &json!(REFERENCE)));
    let expected = json!({
        "status": true, "code": 3,
        "message": "Transaction completed successfully and credited to merchant",
        "transactionReference": REFERENCE, "telcoReference": push.receipt, "telco": "Equitel",
        "mobileNumber": PHONE, "currency": "KES", "requestAmount": 500, "debitedAmount": 500,
        "charge": 0,
    });
    assert_eq!(shop.notified().await, [expected]);
    assert_eq!(shop.world.simulators.jenga().taken(), 50_000);
    // An answer is final.
    assert!(shop.world.simulators.jenga().answer(REFERENCE, Answer::Cancel).is_none());
}

#[tokio::test]
async fn failures_have_a_code_and_a_message() {
    for (answer, code, message) in [
        (Answer::InsufficientFunds, 1, "Insufficient funds"),
        (Answer::Cancel, 5, "Transaction was cancelled by the user"),
        (Answer::Expire, 6, "No response from user"),
    ] {
        let shop = Shop::new().await;
        shop.push(PHONE).await;
        assert!(shop.world.simulators.jenga().answer(REFERENCE, answer).is_some());
        let callback = shop.notified().await.remove(0);
        assert_eq!((&callback["status"], &callback["code"]), (&json!(false), &json!(code)));
        assert_eq!(callback["message"], message);
        assert_eq!(callback["debitedAmount"], 0);
        let data = shop.data().await;
        assert_eq!((&data["stateCode"], &data["message"]), (&json!(1), &json!(message)));
        assert_eq!(shop.world.simulators.jenga().taken(), 0);
    }
}

#[tokio::test]
async fn payers_answer_by_themselves_or_not_at_all() {
    for (phone, seconds, code) in
        [("254763000000", 3, 3), ("254763000001", 3, 1), ("254763000002", 3, 5), (PHONE, 120, 6)]
    {
        let shop = Shop::new().await;
        shop.push(phone).await;
        shop.world.advance(seconds - 1).await;
        assert!(shop.notified().await.is_empty(), "{phone}");
        shop.world.advance(1).await;
        assert_eq!(shop.notified().await[0]["code"], code, "{phone}");
        shop.world.advance(86_400).await;
        assert_eq!(shop.notified().await.len(), 1, "{phone}");
    }
}

#[tokio::test]
async fn a_request_needs_the_signature_of_its_fields() {
    let shop = Shop::new().await;
    let wrong = (400, &json!(900_101));
    for field in ["ref", "mobileNumber", "telco", "amount"] {
        let mut body = order(&shop.world, PHONE);
        let signed = signed(&body);
        body["payment"][field] = match field {
            "ref" => json!("LOAN00000008"),
            "mobileNumber" => json!("254764555292"),
            "telco" => json!("Safaricom"),
            _ => json!("500"),
        };
        let (status, body) = shop.call(Method::POST, PUSH, &signed, body).await;
        assert_eq!((status, &body["code"]), wrong, "{field}");
    }
    shop.push(PHONE).await;
    let path = format!("{DETAILS}/{REFERENCE}");
    let (status, body) = shop.call(Method::GET, &path, "LOAN00000008", Value::Null).await;
    assert_eq!((status, &body["code"]), wrong);
    assert_eq!(shop.world.simulators.jenga().pushes().len(), 1);
}

#[tokio::test]
async fn every_field_is_checked() {
    let shop = Shop::new().await;
    for (object, field, value) in [
        ("merchant", "accountNumber", json!("0170194290581")),
        ("merchant", "countryCode", json!("UG")),
        ("merchant", "name", Value::Null),
        ("payment", "ref", json!("LOAN7")),
        ("payment", "ref", json!("LOAN000000007")),
        ("payment", "ref", json!("LOAN-0000007")),
        ("payment", "amount", json!("0.00")),
        ("payment", "amount", json!("5.005")),
        ("payment", "currency", json!("UGX")),
        ("payment", "telco", json!("Airtel")),
        ("payment", "mobileNumber", json!("0764555291")),
        ("payment", "mobileNumber", json!("+254764555291")),
        ("payment", "date", json!("21-11-2026")),
        ("payment", "callBackUrl", json!("/callback")),
        ("payment", "pushType", json!("SMS")),
    ] {
        let mut body = order(&shop.world, PHONE);
        body[object][field] = value;
        let (status, body) = shop.initiate(body).await;
        assert_eq!((status, &body["status"]), (400, &json!(false)), "{field}");
        assert_eq!(body["message"], format!("Bad request: invalid {object}.{field}"));
    }
    assert!(shop.world.simulators.jenga().pushes().is_empty());
    shop.push(PHONE).await;
    let (status, body) = shop.initiate(order(&shop.world, PHONE)).await;
    assert_eq!((status, &body["code"]), (400, &json!(400_101)));
    let (status, body) = shop.details("LOAN00000008").await;
    assert_eq!((status, &body["code"]), (404, &json!(111_102)));
}

#[tokio::test]
async fn tokens_and_credentials_are_checked() {
    let shop = Shop::new().await;
    let own = Credentials::default();
    for (key, code, secret) in [
        ("wrong", &*own.merchant_code, &*own.consumer_secret),
        (&*own.api_key, "nobody", &*own.consumer_secret),
        (&*own.api_key, &*own.merchant_code, "wrong"),
    ] {
        let body = json!({ "merchantCode": code, "consumerSecret": secret });
        let (status, body) = log_in(&shop.world, key, body).await;
        assert_eq!((status, &body["code"]), (401, &json!(401_101)));
    }
    shop.world.advance(899).await;
    assert_eq!(shop.details(REFERENCE).await.0, 404);
    shop.world.advance(1).await;
    assert_eq!(shop.details(REFERENCE).await.0, 401);
}

#[tokio::test]
async fn accounts_are_opened_over_http_and_isolated() {
    let shop = Shop::new().await;
    shop.push(PHONE).await;
    let set = async |body: Value| {
        let request = shop.world.request(Method::PUT, "/jenga/account").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(set(json!({ "public_key": "none" })).await, 400);
    assert_eq!(set(json!({ "password": "x" })).await, 400);
    let other = json!({ "merchant_code": "other", "api_key": "k", "consumer_secret": "s" });
    assert_eq!(set(other).await, 204);
    let login = json!({ "merchantCode": "other", "consumerSecret": "s" });
    let (_, body) = log_in(&shop.world, "k", login).await;
    let token = body["accessToken"].as_str().unwrap().to_owned();
    assert_eq!(Shop { token, ..shop }.details(REFERENCE).await.0, 404);
}

#[tokio::test]
async fn pages_controls_and_faults_apply() {
    let shop = Shop::new().await;
    shop.world.simulators.faults().push(Fault::new("initialize", FaultKind::Error500));
    let request = shop.world.request(Method::POST, &format!("/jenga{PUSH}"));
    assert_eq!(request.send().await.unwrap().status(), 500);
    shop.push(PHONE).await;
    let tamper = async |body: Value| {
        let request = shop.world.request(Method::PUT, "/jenga/tamper").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(tamper(json!({ "reference": REFERENCE, "taken_minor": 49_900 })).await, 204);
    assert_eq!(tamper(json!({ "reference": REFERENCE, "reversed": true })).await, 404);
    let path = format!("/checkout/{REFERENCE}");
    let page = shop.world.request(Method::GET, &path).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("KES 500.00") && page.contains(PHONE), "{page}");
    let complete = shop.world.request(Method::POST, &format!("{path}/complete"));
    let completed = complete.json(&json!({ "outcome": "success" })).send().await.unwrap();
    assert_eq!(completed.status(), 200);
    assert_eq!(shop.notified().await[0]["debitedAmount"], 499);
    let requests = shop.world.simulators.jenga().requests();
    assert_eq!(requests[0], ("POST".to_owned(), LOGIN.to_owned()));
}
