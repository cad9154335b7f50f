//! Termii's API under `/termii/api`: texts, the balance and tokens. Any key is an account.

mod tokens;

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::{FromRequest, Query, Request, State},
    http::StatusCode,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    env::Env,
    server::faulty,
    sms::{self, Unreached},
};
use tokens::Tokens;

/// The name of faults for it.
const OPERATION: &str = "termii";
const MOST_NUMBERS: usize = 100;
const MOST_NUMBERS_IN_BULK: usize = 10_000;
const CHANNELS: [&str; 4] = ["dnd", "generic", "whatsapp", "voice"];
const TYPES: [&str; 3] = ["plain", "unicode", "encrypted"];
/// What a text comes from that names no sender.
const OWN_NUMBER: &str = "Termii";
const BALANCE: u64 = 1_000_000;
/// Added to ids, which are longer than a float holds exactly.
const FIRST_ID: u64 = 9_122_821_270_000_000_000;

#[derive(Clone)]
struct Termii(Arc<Inner>);

struct Inner {
    env: Arc<Env>,
    tokens: Mutex<Tokens>,
}

pub(crate) fn router<S>(env: &Arc<Env>) -> Router<S> {
    let termii = Termii(Arc::new(Inner { env: env.clone(), tokens: Mutex::default() }));
    let on = |route| faulty(&env.faults, OPERATION, route);
    Router::new()
        .route("/sms/send", on(post(send)))
        .route("/sms/send/bulk", on(post(send_bulk)))
        .route("/sms/number/send", on(post(send_from_number)))
        .route("/sms/otp/send", on(post(tokens::send)))
        .route("/sms/otp/generate", on(post(tokens::generate)))
        .route("/sms/otp/verify", on(post(tokens::verify)))
        .route("/get-balance", on(get(balance)))
        .layer(from_fn_with_state(env.clone(), sms::in_flight))
        .with_state(termii)
}

type Answer = Result<Json<Value>, Refusal>;

struct Refusal(StatusCode, String);

impl Refusal {
    fn invalid(message: impl Into<String>) -> Refusal {
        Refusal(StatusCode::BAD_REQUEST, message.into())
    }

    fn key() -> Refusal {
        Refusal(StatusCode::UNAUTHORIZED, "Invalid api key".to_owned())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Refusal(status, message) = self;
        let body = json!({ "code": status.as_u16(), "message": message, "status": "error" });
        (status, Json(body)).into_response()
    }
}

/// The parameters of a request that has a key.
struct Params(Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Params, Refusal> {
        let body = String::from_request(request, state).await.unwrap_or_default();
        let Ok(Value::Object(params)) = serde_json::from_str(&body) else {
            return Err(Refusal::invalid("The body is not a JSON object"));
        };
        let params = Params(params);
        params.required("api_key").map_err(|_| Refusal::key())?;
        Ok(params)
    }
}

impl Params {
    fn required(&self, name: &str) -> Result<&str, Refusal> {
        let text = self.0.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| Refusal::invalid(format!("{name} is required")))
    }

    fn one_of(&self, name: &str, values: &[&str]) -> Result<(), Refusal> {
        match self.required(name)? {
            value if values.contains(&value) => Ok(()),
            _ => Err(Refusal::invalid(format!("{name} must be one of {}", values.join(", ")))),
        }
    }

    /// A name that the account may send under.
    fn sender(&self) -> Result<&str, Refusal> {
        let sender = self.required("from")?;
        if sms::is_sender_name(sender) {
            return Ok(sender);
        }
        let message =
            format!("ApplicationSenderId not found for applicationId: 1 and senderName: {sender}");
        Err(Refusal(StatusCode::NOT_FOUND, message))
    }

    /// One number or a list of them, as Termii writes them (without `+`), in E.164.
    fn numbers(&self, most: usize) -> Result<Vec<String>, Refusal> {
        let numbers: Option<Vec<&str>> = match self.0.get("to") {
            Some(Value::Array(numbers)) => numbers.iter().map(Value::as_str).collect(),
            _ => Some(vec![self.required("to")?]),
        };
        match numbers {
            Some(numbers) if (1..=most).contains(&numbers.len()) => {
                Ok(numbers.iter().map(|number| format!("+{number}")).collect())
            }
            _ => Err(Refusal::invalid(format!("to must be a number or 1 to {most} numbers"))),
        }
    }
}

impl Termii {
    /// To all of them or to none.
    fn deliver(&self, from: &str, to: &[String], text: &str) -> Result<(), Refusal> {
        let env = &self.0.env;
        for number in to {
            sms::reach(env, OPERATION, number).map_err(|unreached| {
                Refusal::invalid(match unreached {
                    Unreached::Refused => "DND Active on Phone Number",
                    Unreached::Unknown => "Invalid phone number",
                    Unreached::OutOfOrder => "Insufficient balance",
                })
            })?;
        }
        to.iter().for_each(|number| sms::deliver(env, from, number, text));
        Ok(())
    }

    fn sent(&self) -> Answer {
        let id = FIRST_ID + self.0.env.next_id();
        Ok(Json(json!({
            "code": "ok",
            "message_id": id,
            "message_id_str": id.to_string(),
            "message": "Successfully Sent",
            "balance": BALANCE,
            "user": "Stand-in",
        })))
    }

    fn deliver_as_asked(&self, params: &Params, most: usize) -> Answer {
        let (from, to, text) = (params.sender()?, params.numbers(most)?, params.required("sms")?);
        params.one_of("type", &TYPES)?;
        params.one_of("channel", &CHANNELS)?;
        self.deliver(from, &to, text)?;
        self.sent()
    }
}

async fn send(State(termii): State<Termii>, params: Params) -> Answer {
    termii.deliver_as_asked(&params, MOST_NUMBERS)
}

async fn send_bulk(State(termii): State<Termii>, params: Params) -> Answer {
    termii.deliver_as_asked(&params, MOST_NUMBERS_IN_BULK)
}

async fn send_from_number(State(termii): State<Termii>, params: Params) -> Answer {
    termii.deliver(OWN_NUMBER, &params.numbers(MOST_NUMBERS)?, params.required("sms")?)?;
    termii.sent()
}

#[derive(Deserialize)]
struct BalanceQuery {
    api_key: Option<String>,
}

async fn balance(Query(query): Query<BalanceQuery>) -> Answer {
    query.api_key.filter(|key| !key.trim().is_empty()).ok_or_else(Refusal::key)?;
    Ok(Json(json!({ "user": "Stand-in", "balance": BALANCE, "currency": "NGN" })))
}
