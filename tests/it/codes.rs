//! What tests of codes and messages share: gateways that are set up, a wallet and prices, and looks into the mailbox.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::Message;

use crate::app::{Company, Reply, TestApp};

pub const EMAIL: &str = "ada@example.com";
pub const PHONE: &str = "+2348031234567";

/// The component of a gateway, and the service's account at its stand-in.
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

/// Installs gateways and sets up the service's accounts at them.
pub async fn use_gateways(app: &TestApp, names: &[&str]) {
    for name in names {
        let (wasm, credentials) = gateway(app, name);
        app.install(wasm).await;
        let set = json!({ "credentials": credentials, "active": true });
        app.operator(Method::PUT, &format!("/providers/{name}"), set).await.data();
    }
}

/// An e-mail costs 2.50, a text message 4.
pub async fn set_prices(app: &TestApp) {
    let prices = json!({ "otp.email": 2.5, "otp.sms": 4 });
    let path = format!("/companies/{}/prices", app.company.id);
    app.operator(Method::PATCH, &path, prices).await.data();
}

pub async fn credit(app: &TestApp, amount: impl Into<Value>, key: &str) {
    let path = format!("/companies/{}/wallet/credit", app.company.id);
    app.operator(Method::POST, &path, json!({ "amount": amount.into(), "key": key })).await.data();
}

/// What the wallet holds.
pub async fn balance(app: &TestApp) -> Value {
    app.wallet().await["balance"].clone()
}

pub async fn edit_company(app: &TestApp, company: &Company, change: Value) -> Reply {
    app.operator(Method::PATCH, &format!("/companies/{}", company.id), change).await
}

/// A body that sends a code to [`EMAIL`] for `login`, with other or more fields.
pub fn to_email(more: Value) -> Value {
    with(json!({ "identifier": "login", "channels": ["email"], "email": EMAIL }), more)
}

/// The same to [`PHONE`].
pub fn to_phone(more: Value) -> Value {
    with(json!({ "identifier": "login", "channels": ["sms"], "phone": PHONE }), more)
}

/// The object with the fields of another; `null` takes a field away.
pub fn with(mut object: Value, more: Value) -> Value {
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
    app.settle().await;
    sent
}

pub async fn sent(app: &TestApp, body: Value) {
    let sent = send(app, body).await;
    assert_eq!(sent.body, json!({ "error": false, "message": "OTP sent successfully" }));
}

pub async fn verify(app: &TestApp, token: &str) -> Reply {
    app.post("/otp/verify", json!({ "identifier": "login", "token": token })).await
}

pub const VERIFIED: (u16, &str) = (200, "OTP verified successfully");
pub const WRONG: (u16, &str) = (400, "invalid or expired otp provided");
pub const CANCELLED: (u16, &str) = (400, "too many invalid attempts, please request a new otp");

/// Status and message of an answer, be it a success or not.
pub fn said(reply: &Reply) -> (u16, &str) {
    (reply.status.as_u16(), reply.body["message"].as_str().expect("a message"))
}

pub fn messages(app: &TestApp, to: &str) -> Vec<Message> {
    app.simulators.mailbox().list(Some(to))
}

/// The code in the latest message to an address: the only run of `digits` digits in it.
pub fn code(app: &TestApp, to: &str, digits: usize) -> String {
    let text = messages(app, to).first().expect("a message").text.clone();
    let runs = text.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() == digits);
    let runs: Vec<&str> = runs.collect();
    assert_eq!(runs.len(), 1, "{text}");
    runs[0].to_owned()
}

/// Another code of the same length.
pub fn other(code: &str) -> String {
    let last = code.as_bytes()[code.len() - 1];
    format!("{}{}", &code[..code.len() - 1], if last == b'0' { '1' } else { '0' })
}

/// What operators see of the company's messages, newest first.
pub async fn queue(app: &TestApp) -> Vec<Value> {
    let path = format!("/companies/{}/messages", app.company.id);
    let listed = app.operator(Method::GET, &path, Value::Null).await;
    listed.data()["docs"].as_array().expect("a list").clone()
}
