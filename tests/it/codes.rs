//! Helpers for tests of one-time passwords and messages: gateways, wallet, prices and mailbox.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::Message;

use crate::app::{Company, Reply, TestApp};

pub const EMAIL: &str = "ada@example.com";
pub const PHONE: &str = "+2348031234567";

/// Returns the component of a gateway and the credentials of the service account at its simulator.
pub fn gateway(app: &TestApp, name: &str) -> (&'static [u8], Value) {
    let sandbox = app.simulators.url();
    let (wasm, path, mut credentials) = match name {
        "termii" => {
            (artifacts::TERMII, "termii/api", json!({ "api_key": "TLkey", "sender": "Acme" }))
        }
        "africastalking" => {
            let credentials = json!({ "api_key": "atsk_key", "username": "sandbox" });
            (artifacts::AFRICASTALKING, "africastalking", credentials)
        }
        _ => {
            let sid = "AC00000000000000000000000000000001";
            let credentials =
                json!({ "account_sid": sid, "auth_token": "token", "sender": "+12025550100" });
            (artifacts::TWILIO, "twilio", credentials)
        }
    };
    credentials["base_url"] = format!("{sandbox}/{path}").into();
    (wasm, credentials)
}

/// Installs gateways and sets up the service accounts at them.
pub async fn use_gateways(app: &TestApp, names: &[&str]) {
    for name in names {
        let (wasm, credentials) = gateway(app, name);
        app.install(wasm).await;
        let set = json!({ "credentials": credentials, "active": true });
        app.operator(Method::PUT, &format!("/providers/{name}"), set).await.data();
    }
}

/// Sets the company's prices: 2.50 per e-mail, 4 per text message.
pub async fn set_prices(app: &TestApp) {
    let prices = json!({ "otp.email": 2.5, "otp.sms": 4 });
    let path = format!("/companies/{}/prices", app.company.id);
    app.operator(Method::PATCH, &path, prices).await.data();
}

pub async fn credit(app: &TestApp, amount: impl Into<Value>, key: &str) {
    let path = format!("/companies/{}/wallet/credit", app.company.id);
    app.operator(Method::POST, &path, json!({ "amount": amount.into(), "key": key })).await.data();
}

/// Returns the available balance.
pub async fn balance(app: &TestApp) -> Value {
    app.wallet().await["balance"].clone()
}

pub async fn edit_company(app: &TestApp, company: &Company, change: Value) -> Reply {
    app.operator(Method::PATCH, &format!("/companies/{}", company.id), change).await
}

/// A request body that sends a code for `login` to [`EMAIL`]. `more` adds and overrides fields.
pub fn email_request(more: Value) -> Value {
    merged(json!({ "identifier": "login", "channels": ["email"], "email": EMAIL }), more)
}

/// A request body that sends a code for `login` to [`PHONE`].
pub fn sms_request(more: Value) -> Value {
    merged(json!({ "identifier": "login", "channels": ["sms"], "phone": PHONE }), more)
}

/// Merges the fields of `more` into an object; `null` removes a field.
pub fn merged(mut object: Value, more: Value) -> Value {
    let fields = object.as_object_mut().expect("an object");
    for (name, value) in more.as_object().expect("an object") {
        match value {
            Value::Null => fields.remove(name),
            value => fields.insert(name.clone(), value.clone()),
        };
    }
    object
}

pub async fn send(app: &TestApp, body: Value) -> Reply {
    let sent = app.post("/otp/send", body).await;
    app.run_until_idle().await;
    sent
}

pub async fn send_ok(app: &TestApp, body: Value) {
    let sent = send(app, body).await;
    assert_eq!(sent.body, json!({ "error": false, "message": "OTP sent successfully" }));
}

pub async fn verify(app: &TestApp, token: &str) -> Reply {
    app.post("/otp/verify", json!({ "identifier": "login", "token": token })).await
}

pub const VERIFIED: (u16, &str) = (200, "OTP verified successfully");
pub const WRONG_CODE: (u16, &str) = (400, "invalid or expired otp provided");
pub const CANCELLED: (u16, &str) = (400, "too many invalid attempts, please request a new otp");

/// Returns the status and message of a successful or failed response.
pub fn status_and_message(reply: &Reply) -> (u16, &str) {
    (reply.status.as_u16(), reply.body["message"].as_str().expect("a message"))
}

pub fn messages(app: &TestApp, to: &str) -> Vec<Message> {
    app.simulators.mailbox().list(Some(to))
}

/// Returns the code in the latest message to an address: its only number of `digits` digits.
pub fn latest_code(app: &TestApp, to: &str, digits: usize) -> String {
    let text = messages(app, to).first().expect("a message").text.clone();
    let runs = text.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() == digits);
    let runs: Vec<&str> = runs.collect();
    assert_eq!(runs.len(), 1, "{text}");
    runs[0].to_owned()
}

/// Another code of the same length.
pub fn different_code(code: &str) -> String {
    let last = code.as_bytes()[code.len() - 1];
    format!("{}{}", &code[..code.len() - 1], if last == b'0' { '1' } else { '0' })
}

/// Returns the company's messages as operators see them, newest first.
pub async fn listed_messages(app: &TestApp) -> Vec<Value> {
    let path = format!("/companies/{}/messages", app.company.id);
    let listed = app.operator(Method::GET, &path, Value::Null).await;
    listed.data()["docs"].as_array().expect("a list").clone()
}
