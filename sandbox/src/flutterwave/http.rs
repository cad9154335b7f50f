//! The response envelope, errors, authentication and bodies of all Flutterwave endpoints.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Request},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use crate::{
    fields::{Fields, email},
    money,
};

/// The result of an endpoint.
pub(super) type ApiResult = Result<Reply, ApiError>;

pub(super) struct Reply {
    message: &'static str,
    data: Value,
    meta: Option<Value>,
}

impl Reply {
    pub(super) fn new(message: &'static str, data: Value) -> Reply {
        Reply { message, data, meta: None }
    }

    pub(super) fn with_meta(self, meta: Value) -> Reply {
        Reply { meta: Some(meta), ..self }
    }

    /// Returns a page of a list.
    pub(super) fn page(message: &'static str, rows: Vec<Value>, page: Page) -> Reply {
        let total = rows.len();
        let rows = rows.into_iter().skip((page.number - 1).saturating_mul(page.size));
        let info = json!({
            "total": total, "current_page": page.number, "total_pages": total.div_ceil(page.size),
            "page_size": page.size,
        });
        Reply::new(message, rows.take(page.size).collect()).with_meta(json!({ "page_info": info }))
    }
}

/// A page of a list.
pub(super) struct Page {
    number: usize,
    size: usize,
}

impl Page {
    pub(super) fn numbered(number: Option<usize>, size: usize) -> Page {
        Page { number: number.unwrap_or(1).max(1), size }
    }
}

/// Returns whether a time is within the days of a list's query, `YYYY-MM-DD`. Both are inclusive.
pub(super) fn is_within(at: Timestamp, from: Option<&str>, to: Option<&str>) -> bool {
    let day = at.to_datetime().format("%Y-%m-%d").to_string();
    from.is_none_or(|from| from <= day.as_str()) && to.is_none_or(|to| day.as_str() <= to)
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut body = json!({ "status": "success", "message": self.message, "data": self.data });
        if let Some(meta) = self.meta {
            body["meta"] = meta;
        }
        Json(body).into_response()
    }
}

#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    message: String,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> ApiError {
        ApiError { status, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn missing(field: &str) -> ApiError {
        ApiError::invalid(format!("{field} is required"))
    }

    /// Clients must handle both 400 and 404: lookups by id return one, lookups by reference the
    /// other.
    pub(super) fn transaction_not_found(status: StatusCode) -> ApiError {
        ApiError::new(status, "No transaction was found for this id")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "status": "error", "message": self.message, "data": null });
        (self.status, Json(body)).into_response()
    }
}

/// The secret key of the request, which identifies the account.
pub(super) struct ApiKey(pub String);

impl<S: Sync> FromRequestParts<S> for ApiKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ApiKey, ApiError> {
        let refused = |message: &str| ApiError::new(StatusCode::UNAUTHORIZED, message);
        let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let header = header.ok_or_else(|| refused("Authorization required"))?;
        let key = header.strip_prefix("Bearer ").map(str::trim).filter(|key| is_secret_key(key));
        let key = key.ok_or_else(|| refused("Invalid authorization key"))?;
        Ok(ApiKey(key.to_owned()))
    }
}

pub(super) fn is_secret_key(key: &str) -> bool {
    let rest = key.strip_prefix("FLWSECK_TEST-").or_else(|| key.strip_prefix("FLWSECK-"));
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic()))
}

/// The fields of a JSON body.
pub(super) struct Params(Fields);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        let unreadable = || ApiError::invalid("Unable to parse the request body");
        let body = String::from_request(request, state).await.map_err(|_| unreadable())?;
        Fields::parse(&body).map(Params).ok_or_else(unreadable)
    }
}

impl Params {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.0.text(name)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.flag(name)
    }

    pub(super) fn required(&self, name: &str) -> Result<String, ApiError> {
        self.text(name).ok_or_else(|| ApiError::missing(name))
    }

    /// Returns a positive amount in minor units.
    pub(super) fn amount(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let amount = money::minor(value).filter(|amount| *amount > 0);
        amount
            .map(Some)
            .ok_or_else(|| ApiError::invalid(format!("{name} must be a positive number")))
    }

    pub(super) fn email(&self) -> Result<String, ApiError> {
        valid_email(&self.required("email")?)
    }
}

/// Returns the address in lower case, if it is valid.
pub(super) fn valid_email(text: &str) -> Result<String, ApiError> {
    email(text).ok_or_else(|| ApiError::invalid("email must be a valid email"))
}

pub(super) async fn unknown_path() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "Cannot find the requested resource")
}
