//! Twilio's API under `/twilio`: sending and fetching text messages. Any account SID with any token
//! is an account.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use axum::{
    Form, Json, Router,
    extract::{FromRequestParts, Path, State, rejection::FormRejection},
    http::{StatusCode, Uri, header::AUTHORIZATION, request::Parts},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tollhouse_platform::values::phone;

use crate::{
    env::Env,
    locked,
    server::with_faults,
    sms::{self, Undeliverable},
};

/// Operation name for scripted faults.
const OPERATION: &str = "twilio";
const MAX_MESSAGES: usize = 1_000;
const MAX_BODY_CHARS: usize = 1_600;
/// The sender of messages from a messaging service.
const DEFAULT_SENDER: &str = "+15005550006";

#[derive(Clone)]
struct Twilio(Arc<Inner>);

struct Inner {
    env: Arc<Env>,
    /// Newest first.
    messages: Mutex<VecDeque<Value>>,
}

pub(crate) fn router<S>(env: &Arc<Env>) -> Router<S> {
    let twilio = Twilio(Arc::new(Inner { env: env.clone(), messages: Mutex::default() }));
    let on = |route| with_faults(&env.faults, OPERATION, route);
    Router::new()
        .route("/2010-04-01/Accounts/{account}/Messages.json", on(post(create)))
        .route("/2010-04-01/Accounts/{account}/Messages/{file}", on(get(fetch)))
        .fallback(async |uri: Uri| ApiError::not_found(uri.path()))
        .layer(from_fn_with_state(env.clone(), sms::track_in_flight))
        .with_state(twilio)
}

struct ApiError {
    status: StatusCode,
    code: u32,
    message: String,
}

impl ApiError {
    fn invalid(code: u32, message: impl Into<String>) -> ApiError {
        ApiError { status: StatusCode::BAD_REQUEST, code, message: message.into() }
    }

    fn not_found(path: &str) -> ApiError {
        let message = format!("The requested resource {path} was not found");
        ApiError { status: StatusCode::NOT_FOUND, code: 20404, message }
    }

    fn from_undeliverable(unreached: Undeliverable, to: &str) -> ApiError {
        match unreached {
            Undeliverable::Unknown => {
                ApiError::invalid(21211, format!("Invalid 'To' Phone Number: {to}"))
            }
            Undeliverable::Refused => {
                ApiError::invalid(21610, "Attempt to send to unsubscribed recipient")
            }
            Undeliverable::Unavailable => {
                let status = StatusCode::TOO_MANY_REQUESTS;
                ApiError { status, code: 20429, message: "Too Many Requests".to_owned() }
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({
            "code": self.code,
            "message": self.message,
            "more_info": format!("https://www.twilio.com/docs/errors/{}", self.code),
            "status": self.status.as_u16(),
        });
        (self.status, Json(body)).into_response()
    }
}

/// The account in the path, authenticated by its own credentials or by one of its API keys (`SK…`).
struct Account(String);

impl<S: Send + Sync> FromRequestParts<S> for Account {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Account, ApiError> {
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
        let account = path.ok().and_then(|Path(mut path)| path.remove("account"));
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = header
            .and_then(|value| value.strip_prefix("Basic "))
            .and_then(|value| BASE64_STANDARD.decode(value).ok())
            .and_then(|value| String::from_utf8(value).ok())
            .unwrap_or_default();
        match (account, given.split_once(':')) {
            (Some(account), Some((user, secret)))
                if !secret.is_empty() && (user == account || user.starts_with("SK")) =>
            {
                Ok(Account(account))
            }
            _ => Err(ApiError {
                status: StatusCode::UNAUTHORIZED,
                code: 20003,
                message: "Authenticate".to_owned(),
            }),
        }
    }
}

async fn create(
    State(twilio): State<Twilio>,
    Account(account): Account,
    form: Result<Form<HashMap<String, String>>, FormRejection>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let form = form.map(|Form(form)| form).unwrap_or_default();
    let given = |name: &str| form.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let to =
        given("To").ok_or_else(|| ApiError::invalid(21604, "A 'To' phone number is required."))?;
    let service = given("MessagingServiceSid");
    let from = match (given("From"), service) {
        (Some(from), _) => from,
        (None, Some(service)) if service.starts_with("MG") => DEFAULT_SENDER,
        (None, Some(service)) => {
            return Err(ApiError::not_found(&format!("/Services/{service}")));
        }
        (None, None) => return Err(ApiError::invalid(21603, "A 'From' phone number is required.")),
    };
    let text =
        given("Body").ok_or_else(|| ApiError::invalid(21602, "Message body is required."))?;
    if !is_sender(from) {
        return Err(ApiError::invalid(21212, format!("Invalid From Number (caller ID): {from}")));
    }
    if text.chars().count() > MAX_BODY_CHARS {
        let message = "The concatenated message body exceeds the 1600 character limit";
        return Err(ApiError::invalid(21617, message));
    }
    let env = &twilio.0.env;
    sms::check_deliverable(env, OPERATION, to)
        .map_err(|unreached| ApiError::from_undeliverable(unreached, to))?;
    sms::deliver(env, from, to, text);
    let mut message = message_json(env, &account, from, to, text);
    // A messaging service chooses the number later.
    if let Some(service) = service {
        message["messaging_service_sid"] = json!(service);
        message["from"] = Value::Null;
        message["status"] = json!("accepted");
    }
    let mut messages = locked(&twilio.0.messages);
    messages.push_front(message.clone());
    messages.truncate(MAX_MESSAGES);
    Ok((StatusCode::CREATED, Json(message)))
}

/// Returns whether this is a number, a short code or a sender name.
fn is_sender(from: &str) -> bool {
    let short_code = (3..=8).contains(&from.len()) && from.bytes().all(|b| b.is_ascii_digit());
    phone::is_e164(from) || short_code || sms::is_sender_name(from)
}

/// A message in its initial state.
fn message_json(env: &Env, account: &str, from: &str, to: &str, text: &str) -> Value {
    let half = || env.random.below(u64::MAX);
    let sid = format!("SM{:016x}{:016x}", half(), half());
    let uri = format!("/2010-04-01/Accounts/{account}/Messages/{sid}");
    let now = env.clock.now().to_datetime().to_rfc2822();
    json!({
        "account_sid": account,
        "api_version": "2010-04-01",
        "body": text,
        "date_created": now,
        "date_sent": null,
        "date_updated": now,
        "direction": "outbound-api",
        "error_code": null,
        "error_message": null,
        "from": from,
        "messaging_service_sid": null,
        "num_media": "0",
        "num_segments": sms::segments(text).to_string(),
        "price": null,
        "price_unit": "USD",
        "sid": sid,
        "status": "queued",
        "subresource_uris": { "media": format!("{uri}/Media.json") },
        "to": to,
        "uri": format!("{uri}.json"),
    })
}

/// Returns a message in its delivered state, which it reaches immediately.
async fn fetch(
    State(twilio): State<Twilio>,
    Account(account): Account,
    Path((_, file)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let sid = file.strip_suffix(".json").unwrap_or(&file);
    let messages = locked(&twilio.0.messages);
    let found = messages.iter().find(|m| m["sid"] == sid && m["account_sid"] == *account);
    let Some(mut message) = found.cloned() else {
        let path = format!("/2010-04-01/Accounts/{account}/Messages/{file}");
        return Err(ApiError::not_found(&path));
    };
    message["status"] = json!("delivered");
    message["date_sent"] = message["date_created"].clone();
    Ok(Json(message))
}
