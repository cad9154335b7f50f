//! The response envelope, errors, authentication and the two body formats of all Paystack
//! endpoints.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Request, State},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tollhouse_platform::clock::Timestamp;

use super::Paystack;
use crate::{
    fields::{Fields, email},
    server::error_response,
};

/// Default number of rows per page.
const PER_PAGE: usize = 50;

/// The result of an endpoint.
pub(super) type ApiResult = Result<Reply, ApiError>;

pub(super) struct Reply {
    message: &'static str,
    data: Option<Value>,
    meta: Option<Value>,
}

impl Reply {
    pub(super) fn new(message: &'static str, data: Value) -> Reply {
        Reply { message, data: Some(data), meta: None }
    }

    pub(super) fn bare(message: &'static str) -> Reply {
        Reply { message, data: None, meta: None }
    }

    pub(super) fn page(message: &'static str, rows: Vec<Value>, meta: Value) -> Reply {
        Reply { message, data: Some(rows.into()), meta: Some(meta) }
    }

    /// Returns a page of all rows, by the query parameters `perPage` and `page`.
    pub(super) fn numbered_page(
        message: &'static str,
        all: Vec<Value>,
        [size, page]: [Option<usize>; 2],
    ) -> Reply {
        let (size, page) = (size.unwrap_or(PER_PAGE).max(1), page.unwrap_or(1).max(1));
        let (skipped, total) = ((page - 1).saturating_mul(size), all.len());
        let meta = json!({
            "total": total, "skipped": skipped, "perPage": size, "page": page,
            "pageCount": total.div_ceil(size),
        });
        Reply::page(message, all.into_iter().skip(skipped).take(size).collect(), meta)
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut body = json!({ "status": true, "message": self.message });
        if let Some(data) = self.data {
            body["data"] = data;
        }
        if let Some(meta) = self.meta {
            body["meta"] = meta;
        }
        Json(body).into_response()
    }
}

/// The period of a list, from times or days of the query. Both ends are inclusive.
pub(super) struct Period {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Period {
    pub(super) fn parse(from: Option<&str>, to: Option<&str>) -> Result<Period, ApiError> {
        let parse = |text: &str| {
            let day = || Timestamp::parse(&format!("{text}T00:00:00Z"));
            let invalid = || ApiError::invalid("invalid_params", "Invalid date", "Check the dates");
            Timestamp::parse(text).or_else(day).ok_or_else(invalid)
        };
        Ok(Period { from: from.map(parse).transpose()?, to: to.map(parse).transpose()? })
    }

    pub(super) fn contains(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at <= to)
    }
}

#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    message: String,
    kind: &'static str,
    code: &'static str,
    next_step: &'static str,
    /// One endpoint documents `metadata` where all others have `meta`.
    meta_key: &'static str,
}

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        next_step: &'static str,
    ) -> ApiError {
        let kind = if status == StatusCode::BAD_REQUEST { "validation_error" } else { "api_error" };
        ApiError { status, message: message.into(), kind, code, next_step, meta_key: "meta" }
    }

    pub(super) fn invalid(
        code: &'static str,
        message: impl Into<String>,
        next_step: &'static str,
    ) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, code, message, next_step)
    }

    pub(super) fn missing(field: &str) -> ApiError {
        ApiError::invalid(
            "missing_params",
            format!("{field} is required"),
            "Provide all required params",
        )
    }

    pub(super) fn transaction_not_found() -> ApiError {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "transaction_not_found",
            "Transaction reference not found.",
            "Ensure that you're passing the reference of a transaction that exists on this integration",
        )
    }

    pub(super) fn authorization_not_found() -> ApiError {
        ApiError {
            kind: "api_error",
            meta_key: "metadata",
            ..ApiError::invalid(
                "unknown",
                "Authorization does not exist or does not belong to integration",
                "Try again later",
            )
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body = json!({
            "status": false, "message": self.message, "type": self.kind, "code": self.code,
        });
        body[self.meta_key] = json!({ "nextStep": self.next_step });
        (self.status, Json(body)).into_response()
    }
}

/// The secret key of the request, which identifies the account.
pub(super) struct ApiKey(pub String);

impl<S: Sync> FromRequestParts<S> for ApiKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ApiKey, ApiError> {
        let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = header.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        match key {
            Some(key) if is_secret_key(key) => Ok(ApiKey(key.to_owned())),
            _ => Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "invalid_Key",
                "Invalid key",
                "Ensure that you provide the correct authorization key for the request",
            )),
        }
    }
}

pub(super) fn is_secret_key(key: &str) -> bool {
    let rest = key.strip_prefix("sk_test_").or_else(|| key.strip_prefix("sk_live_"));
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic()))
}

/// The parameters of a JSON or form body.
pub(super) struct Params(Fields);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        let form = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        let unreadable = || {
            ApiError::invalid("invalid_params", "Invalid JSON in request body", "Send valid JSON")
        };
        let body = String::from_request(request, state).await.map_err(|_| unreadable())?;
        if form {
            return Ok(Params(parse_form(&body).into()));
        }
        Fields::parse(&body).map(Params).ok_or_else(unreadable)
    }
}

impl Params {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns a non-empty string; numbers count as strings.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.0.text(name)
    }

    pub(super) fn required(&self, name: &str) -> Result<String, ApiError> {
        self.text(name).ok_or_else(|| ApiError::missing(name))
    }

    /// Returns a positive number of minor units, from a number or a string.
    pub(super) fn amount(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let amount = match value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_u64(),
        };
        amount.filter(|amount| *amount > 0).map(Some).ok_or_else(|| {
            ApiError::invalid(
                "invalid_amount",
                "Invalid Amount Sent",
                "Ensure that you're passing a positive integer in the currency's subunit",
            )
        })
    }

    /// Returns the address in lower case, if it is valid.
    pub(super) fn email(&self) -> Result<String, ApiError> {
        email(&self.required("email")?).ok_or_else(|| {
            ApiError::invalid(
                "invalid_email_address",
                "Invalid Email Address Passed",
                "Ensure that you're passing a valid email address",
            )
        })
    }
}

/// Parses form fields with the nesting that client libraries use: `metadata[cancel_action]=...`,
/// `channels[]=card`.
fn parse_form(body: &str) -> Map<String, Value> {
    let mut root = Value::Object(Map::new());
    for (name, text) in url::form_urlencoded::parse(body.as_bytes()) {
        let mut at = &mut root;
        for step in name.split(['[', ']']).enumerate().filter(|(n, s)| *n == 0 || !s.is_empty()) {
            at = entry_mut(at, step.1);
        }
        if name.ends_with("[]") {
            at = entry_mut(at, "");
        }
        *at = Value::String(text.into_owned());
    }
    match root {
        Value::Object(map) => {
            map.into_iter().map(|(name, value)| (name, normalize_lists(value))).collect()
        }
        _ => Map::new(),
    }
}

/// Returns the named field; an empty name appends.
fn entry_mut<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let size = value.as_object().map_or(0, Map::len).to_string();
    &mut value[if name.is_empty() { &size } else { name }]
}

/// Converts objects with the keys 0, 1, 2, … to lists.
fn normalize_lists(value: Value) -> Value {
    let Value::Object(map) = value else { return value };
    let map: Map<_, _> =
        map.into_iter().map(|(name, value)| (name, normalize_lists(value))).collect();
    let is_list = !map.is_empty() && (0..map.len()).all(|n| map.contains_key(&n.to_string()));
    if !is_list {
        return Value::Object(map);
    }
    (0..map.len()).map(|n| map[&n.to_string()].clone()).collect()
}

#[derive(Deserialize)]
pub(super) struct Webhook {
    secret_key: String,
    url: String,
}

/// Control endpoint of the simulators: sets the webhook of an account.
pub(super) async fn set_webhook(State(paystack): State<Paystack>, body: String) -> Response {
    match serde_json::from_str::<Webhook>(&body) {
        Ok(webhook)
            if is_secret_key(&webhook.secret_key) && url::Url::parse(&webhook.url).is_ok() =>
        {
            paystack.set_webhook(&webhook.secret_key, &webhook.url);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => {
            error_response(StatusCode::BAD_REQUEST, "secret_key (sk_test_...) and url are required")
        }
    }
}

pub(super) async fn unknown_path() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "The endpoint you are trying to reach does not exist",
        "Check the address and the method",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_fields_nest() {
        let form = parse_form(
            "amount=500&metadata[cancel_action]=http%3A%2F%2Fx&channels[]=card&channels[]=bank&a[0][b]=1",
        );
        assert_eq!(
            Value::Object(form),
            json!({
                "amount": "500",
                "metadata": { "cancel_action": "http://x" },
                "channels": ["card", "bank"],
                "a": [{ "b": "1" }],
            })
        );
    }
}
