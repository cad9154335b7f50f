//! Africa's Talking's API under `/africastalking`: text messages. Any key and user name are an
//! account.
//!
//! A valid request succeeds even if no recipient is reached: each recipient has a status of its
//! own.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Form, Json, Router,
    extract::{State, rejection::FormRejection},
    http::{
        HeaderMap, StatusCode,
        header::{ACCEPT, CONTENT_TYPE},
    },
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};

use crate::{
    env::Env,
    server::with_faults,
    sms::{self, Undeliverable},
};

/// Operation name for scripted faults.
const OPERATION: &str = "africastalking";
/// The sender of messages that name none.
const DEFAULT_SENDER: &str = "AFRICASTKNG";
/// In ten-thousandths of a naira, per message part.
const PRICE: usize = 22_000;

pub(crate) fn router<S>(env: &Arc<Env>) -> Router<S> {
    Router::new()
        .route("/version1/messaging", with_faults(&env.faults, OPERATION, post(send)))
        .layer(from_fn_with_state(env.clone(), sms::track_in_flight))
        .with_state(env.clone())
}

async fn send(
    State(env): State<Arc<Env>>,
    headers: HeaderMap,
    form: Result<Form<HashMap<String, String>>, FormRejection>,
) -> Response {
    let form = form.map(|Form(form)| form).unwrap_or_default();
    let given = |name: &str| form.get(name).map(|text| text.trim()).filter(|t| !t.is_empty());
    let missing = |name: &str| {
        let reason = format!("Request is missing required form field '{name}'");
        (StatusCode::BAD_REQUEST, reason).into_response()
    };
    let key = headers.get("apikey").is_some_and(|key| !key.is_empty());
    if !key || given("username").is_none() {
        return (StatusCode::UNAUTHORIZED, "The supplied authentication is invalid")
            .into_response();
    }
    let Some(to) = given("to") else { return missing("to") };
    let Some(text) = given("message") else { return missing("message") };
    let from = given("from").unwrap_or(DEFAULT_SENDER);
    let short_code = (3..=8).contains(&from.len()) && from.bytes().all(|b| b.is_ascii_digit());
    if !sms::is_sender_name(from) && !short_code {
        return response(&headers, "InvalidSenderId", &[]);
    }
    let recipients: Vec<Value> =
        to.split(',').map(|number| send_to(&env, from, number.trim(), text)).collect();
    let sent = recipients.iter().filter(|recipient| recipient["statusCode"] == 101).count();
    let total = format_cost(sent * sms::segments(text));
    let message = format!("Sent to {sent}/{} Total Cost: {total}", recipients.len());
    response(&headers, &message, &recipients)
}

/// Sends to one number and returns the recipient's status.
fn send_to(env: &Env, from: &str, number: &str, text: &str) -> Value {
    let (code, status) = match sms::check_deliverable(env, OPERATION, number) {
        Ok(()) => {
            sms::deliver(env, from, number, text);
            let id = format!("ATXid_{}", env.random.code(32));
            let cost = format_cost(sms::segments(text));
            return json!({
                "statusCode": 101, "number": number, "status": "Success", "cost": cost, "messageId": id,
            });
        }
        Err(Undeliverable::Unknown) => (403, "InvalidPhoneNumber"),
        Err(Undeliverable::Unavailable) => (405, "InsufficientBalance"),
        Err(Undeliverable::Refused) => (409, "DoNotDisturbRejection"),
    };
    json!({
        "statusCode": code, "number": number, "status": status, "cost": "0", "messageId": "None",
    })
}

fn format_cost(parts: usize) -> String {
    let cost = parts * PRICE;
    format!("NGN {}.{:04}", cost / 10_000, cost % 10_000)
}

/// Responds with JSON if the client accepts it, and with XML otherwise.
fn response(headers: &HeaderMap, message: &str, recipients: &[Value]) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepted.contains("application/json") {
        let xml = format!(
            "<AfricasTalkingResponse><SMSMessageData><Message>{message}</Message></SMSMessageData>\
             </AfricasTalkingResponse>"
        );
        return (StatusCode::CREATED, [(CONTENT_TYPE, "application/xml")], xml).into_response();
    }
    let body = json!({ "SMSMessageData": { "Message": message, "Recipients": recipients } });
    (StatusCode::CREATED, Json(body)).into_response()
}
