//! Errors, authentication and bodies of all Daraja endpoints.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Request, State},
    http::{StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::Mpesa;
use crate::fields::Fields;

/// The result of an endpoint.
pub(super) type ApiResult = Result<Json<Value>, ApiError>;

/// An error response. Its body is added by [`add_error_body`], because it contains a new id.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    /// `errorCode` and `errorMessage`; `None` is an empty body.
    body: Option<(&'static str, String)>,
}

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> ApiError {
        ApiError { status, body: Some((code, message.into())) }
    }

    pub(super) fn without_body(status: StatusCode) -> ApiError {
        ApiError { status, body: None }
    }

    /// A missing or invalid field.
    pub(super) fn invalid(field: &str) -> ApiError {
        let message = format!("Bad Request - Invalid {field}");
        ApiError::new(StatusCode::BAD_REQUEST, "400.002.02", message)
    }

    /// A valid request that M-Pesa rejects.
    pub(super) fn failed(message: &str) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "500.001.1001", message)
    }

    pub(super) fn invalid_token() -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "404.001.03", "Invalid Access Token")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Middleware that adds the bodies of errors.
pub(super) async fn add_error_body(
    State(mpesa): State<Mpesa>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    let error = response.extensions_mut().remove::<ApiError>();
    let Some(ApiError { status, body: Some((code, message)) }) = error else { return response };
    let id = mpesa.0.with_accounts(|_, env| env.next_id());
    let body = json!({
        "requestId": format!("{}-{id}-1", id % 100_000), "errorCode": code, "errorMessage": message,
    });
    (status, Json(body)).into_response()
}

/// The consumer key of the access token, which identifies the account.
pub(super) struct ConsumerKey(pub String);

impl FromRequestParts<Mpesa> for ConsumerKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, mpesa: &Mpesa) -> Result<ConsumerKey, ApiError> {
        let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        let missing =
            || ApiError::new(StatusCode::NOT_FOUND, "404.001.04", "Invalid Authentication Header");
        let token = token.ok_or_else(missing)?;
        let holder = mpesa.0.find_map(|account, env| {
            let valid = account.has_valid_token(token, env.clock.now());
            valid.then(|| account.credentials.consumer_key.clone())
        });
        holder.map(ConsumerKey).ok_or_else(ApiError::invalid_token)
    }
}

/// The fields of a JSON body. Numbers count as strings.
pub(super) struct Params(Fields);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        let unreadable = || {
            let message = "Bad Request - Invalid Request Payload";
            ApiError::new(StatusCode::BAD_REQUEST, "400.002.05", message)
        };
        let body = String::from_request(request, state).await.map_err(|_| unreadable())?;
        Fields::parse(&body).map(Params).ok_or_else(unreadable)
    }
}

impl Params {
    pub(super) fn required(&self, name: &str) -> Result<String, ApiError> {
        self.0.text(name).ok_or_else(|| ApiError::invalid(name))
    }

    /// Returns a required field that fulfils a condition.
    pub(super) fn valid(
        &self,
        name: &str,
        condition: impl FnOnce(&str) -> bool,
    ) -> Result<String, ApiError> {
        let text = self.required(name)?;
        if condition(&text) { Ok(text) } else { Err(ApiError::invalid(name)) }
    }

    /// Returns a required text with a maximum number of characters.
    pub(super) fn short(&self, name: &str, max_chars: usize) -> Result<String, ApiError> {
        self.valid(name, |text| text.chars().count() <= max_chars)
    }

    /// Returns an optional text with a maximum number of characters; the default is empty.
    pub(super) fn optional(&self, name: &str, max_chars: usize) -> Result<String, ApiError> {
        if self.0.text(name).is_none() { Ok(String::new()) } else { self.short(name, max_chars) }
    }

    /// Returns a positive amount in whole shillings.
    pub(super) fn amount(&self, name: &str, max: u64) -> Result<u64, ApiError> {
        let amount = self.required(name)?.parse::<u64>().ok();
        amount.filter(|amount| (1..=max).contains(amount)).ok_or_else(|| ApiError::invalid(name))
    }

    /// Returns an absolute HTTP URL.
    pub(super) fn url(&self, name: &str) -> Result<String, ApiError> {
        self.valid(name, |text| {
            url::Url::parse(text).is_ok_and(|url| ["http", "https"].contains(&url.scheme()))
        })
    }
}

pub(super) async fn unknown_path() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "404.003.01", "Resource not found")
}
