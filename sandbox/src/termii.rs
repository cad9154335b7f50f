//! Termii's API under `/termii/api`: text messages, the balance and tokens. Any key is an account.

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
    server::with_faults,
    sms::{self, Undeliverable},
};
use tokens::Tokens;

/// Operation name for scripted faults.
const OPERATION: &str = "termii";
const MAX_RECIPIENTS: usize = 100;
const MAX_BULK_RECIPIENTS: usize = 10_000;
const CHANNELS: [&str; 4] = ["dnd", "generic", "whatsapp", "voice"];
const TYPES: [&str; 3] = ["plain", "unicode", "encrypted"];
/// The sender of messages that name none.
const DEFAULT_SENDER: &str = "Termii";
const BALANCE: u64 = 1_000_000;
/// Offset of ids, which exceed the precision of a float.
const FIRST_ID: u64 = 9_122_821_270_000_000_000;

#[derive(Clone)]
struct Termii(Arc<Inner>);

struct Inner {
    env: Arc<Env>,
    tokens: Mutex<Tokens>,
}

pub(crate) fn router<S>(env: &Arc<Env>) -> Router<S> {
    let termii = Termii(Arc::new(Inner { env: env.clone(), tokens: Mutex::default() }));
    let on = |route| with_faults(&env.faults, OPERATION, route);
    Router::new()
        .route("/sms/send", on(post(send)))
        .route("/sms/send/bulk", on(post(send_bulk)))
        .route("/sms/number/send", on(post(send_from_number)))
        .route("/sms/otp/send", on(post(tokens::send)))
        .route("/sms/otp/generate", on(post(tokens::generate)))
        .route("/sms/otp/verify", on(post(tokens::verify)))
        .route("/get-balance", on(get(balance)))
        .layer(from_fn_with_state(env.clone(), sms::track_in_flight))
        .with_state(termii)
}

type ApiResult = Result<Json<Value>, ApiError>;

struct ApiError(StatusCode, String);

impl ApiError {
    fn invalid(message: impl Into<String>) -> ApiError {
        ApiError(StatusCode::BAD_REQUEST, message.into())
    }

    fn invalid_key() -> ApiError {
        ApiError(StatusCode::UNAUTHORIZED, "Invalid api key".to_owned())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ApiError(status, message) = self;
        let body = json!({ "code": status.as_u16(), "message": message, "status": "error" });
        (status, Json(body)).into_response()
    }
}

/// The parameters of an authenticated request.
struct Params(Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        let body = String::from_request(request, state).await.unwrap_or_default();
        let Ok(Value::Object(params)) = serde_json::from_str(&body) else {
            return Err(ApiError::invalid("The body is not a JSON object"));
        };
        let params = Params(params);
        params.required("api_key").map_err(|_| ApiError::invalid_key())?;
        Ok(params)
    }
}

impl Params {
    fn required(&self, name: &str) -> Result<&str, ApiError> {
        let text = self.0.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| ApiError::invalid(format!("{name} is required")))
    }

    fn one_of(&self, name: &str, values: &[&str]) -> Result<(), ApiError> {
        match self.required(name)? {
            value if values.contains(&value) => Ok(()),
            _ => Err(ApiError::invalid(format!("{name} must be one of {}", values.join(", ")))),
        }
    }

    /// Returns a sender name that the account may use.
    fn sender(&self) -> Result<&str, ApiError> {
        let sender = self.required("from")?;
        if sms::is_sender_name(sender) {
            return Ok(sender);
        }
        let message =
            format!("ApplicationSenderId not found for applicationId: 1 and senderName: {sender}");
        Err(ApiError(StatusCode::NOT_FOUND, message))
    }

    /// Returns one number or a list of them in E.164. Termii writes them without `+`.
    fn numbers(&self, most: usize) -> Result<Vec<String>, ApiError> {
        let numbers: Option<Vec<&str>> = match self.0.get("to") {
            Some(Value::Array(numbers)) => numbers.iter().map(Value::as_str).collect(),
            _ => Some(vec![self.required("to")?]),
        };
        match numbers {
            Some(numbers) if (1..=most).contains(&numbers.len()) => {
                Ok(numbers.iter().map(|number| format!("+{number}")).collect())
            }
            _ => Err(ApiError::invalid(format!("to must be a number or 1 to {most} numbers"))),
        }
    }
}

impl Termii {
    /// Delivers to all numbers or to none.
    fn deliver(&self, from: &str, to: &[String], text: &str) -> Result<(), ApiError> {
        let env = &self.0.env;
        for number in to {
            sms::check_deliverable(env, OPERATION, number).map_err(|unreached| {
                ApiError::invalid(match unreached {
                    Undeliverable::Refused => "DND Active on Phone Number",
                    Undeliverable::Unknown => "Invalid phone number",
                    Undeliverable::Unavailable => "Insufficient balance",
                })
            })?;
        }
        to.iter().for_each(|number| sms::deliver(env, from, number, text));
        Ok(())
    }

    fn success_response(&self) -> ApiResult {
        let id = FIRST_ID + self.0.env.next_id();
        Ok(Json(json!({
            "code": "ok",
            "message_id": id,
            "message_id_str": id.to_string(),
            "message": "Successfully Sent",
            "balance": BALANCE,
            "user": "Sandbox",
        })))
    }

    fn validate_and_deliver(&self, params: &Params, most: usize) -> ApiResult {
        let (from, to, text) = (params.sender()?, params.numbers(most)?, params.required("sms")?);
        params.one_of("type", &TYPES)?;
        params.one_of("channel", &CHANNELS)?;
        self.deliver(from, &to, text)?;
        self.success_response()
    }
}

async fn send(State(termii): State<Termii>, params: Params) -> ApiResult {
    termii.validate_and_deliver(&params, MAX_RECIPIENTS)
}

async fn send_bulk(State(termii): State<Termii>, params: Params) -> ApiResult {
    termii.validate_and_deliver(&params, MAX_BULK_RECIPIENTS)
}

async fn send_from_number(State(termii): State<Termii>, params: Params) -> ApiResult {
    termii.deliver(DEFAULT_SENDER, &params.numbers(MAX_RECIPIENTS)?, params.required("sms")?)?;
    termii.success_response()
}

#[derive(Deserialize)]
struct BalanceQuery {
    api_key: Option<String>,
}

async fn balance(Query(query): Query<BalanceQuery>) -> ApiResult {
    query.api_key.filter(|key| !key.trim().is_empty()).ok_or_else(ApiError::invalid_key)?;
    Ok(Json(json!({ "user": "Sandbox", "balance": BALANCE, "currency": "NGN" })))
}
