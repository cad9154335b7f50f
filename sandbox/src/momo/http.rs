//! Errors, authentication, headers and bodies of all MoMo endpoints.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{Momo, accounts::Product};
use crate::fields::{Fields, text};

/// Maximum length of a message or note.
const MAX_NOTE_CHARS: usize = 160;

/// The result of an endpoint.
pub(super) type ApiResult<T = Json<Value>> = Result<T, ApiError>;

/// An error response. `None`: without a body.
#[derive(Debug)]
pub(super) struct ApiError(StatusCode, Option<Value>);

impl ApiError {
    fn coded(status: StatusCode, code: &str, message: &str) -> ApiError {
        ApiError(status, Some(json!({ "code": code, "message": message })))
    }

    /// An error of the API gateway, which has no code.
    fn of_gateway(status: StatusCode, message: &str) -> ApiError {
        ApiError(status, Some(json!({ "statusCode": status.as_u16(), "message": message })))
    }

    /// A missing or invalid field, for which MoMo documents no body.
    pub(super) fn bad_request() -> ApiError {
        ApiError(StatusCode::BAD_REQUEST, None)
    }

    /// A valid request that MoMo rejects.
    pub(super) fn internal(code: &str, message: &str) -> ApiError {
        ApiError::coded(StatusCode::INTERNAL_SERVER_ERROR, code, message)
    }

    pub(super) fn duplicate() -> ApiError {
        let message = "Duplicated reference id. Creation of resource failed.";
        ApiError::coded(StatusCode::CONFLICT, "RESOURCE_ALREADY_EXIST", message)
    }

    pub(super) fn not_found() -> ApiError {
        let message = "Requested resource was not found.";
        ApiError::coded(StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND", message)
    }

    pub(super) fn unauthorized() -> ApiError {
        ApiError(StatusCode::UNAUTHORIZED, Some(json!({ "error": "invalid_token" })))
    }

    pub(super) fn login_failed() -> ApiError {
        ApiError(StatusCode::UNAUTHORIZED, Some(json!({ "error": "login_failed" })))
    }

    pub(super) fn subscription_key() -> ApiError {
        let message = "Access denied due to invalid subscription key.";
        ApiError::of_gateway(StatusCode::UNAUTHORIZED, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            ApiError(status, Some(body)) => (status, Json(body)).into_response(),
            ApiError(status, None) => status.into_response(),
        }
    }
}

/// Returns the value of a header, if it is text.
pub(super) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// Returns the `X-Reference-Id`, which must be a UUID of version 4.
pub(super) fn reference_id(headers: &HeaderMap) -> ApiResult<String> {
    let id = header(headers, "x-reference-id").filter(|id| is_uuid(id));
    Ok(id.ok_or_else(ApiError::bad_request)?.to_owned())
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|b| b.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(is_hex)
        && parts[2].starts_with('4')
        && parts[3].starts_with(['8', '9', 'a', 'b', 'A', 'B'])
}

/// The holder of the access token.
pub(super) struct Caller {
    /// The API user, which identifies the account.
    pub api_user: String,
}

impl FromRequestParts<Momo> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, momo: &Momo) -> Result<Caller, ApiError> {
        let product = Product::of_path(parts.uri.path());
        let of_request = |name| header(&parts.headers, name);
        let token = of_request("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let token = token.ok_or_else(ApiError::unauthorized)?;
        let holder = momo.0.find_map(|account, env| {
            let valid = account.has_valid_token(product, token, env.clock.now());
            valid.then(|| account.credentials.clone())
        });
        let holder = holder.ok_or_else(ApiError::unauthorized)?;
        if of_request("ocp-apim-subscription-key") != Some(holder.subscription_key(product)) {
            return Err(ApiError::subscription_key());
        }
        if of_request("x-target-environment") != Some(holder.target_environment.as_str()) {
            let message = "Access to target environment is forbidden.";
            return Err(ApiError::internal("NOT_ALLOWED_TARGET_ENVIRONMENT", message));
        }
        Ok(Caller { api_user: holder.api_user })
    }
}

/// The fields of a JSON body. Numbers count as strings.
pub(super) struct Params(Fields);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        let body = String::from_request(request, state).await;
        let body = body.map_err(|_| ApiError::bad_request())?;
        Fields::parse(&body).map(Params).ok_or_else(ApiError::bad_request)
    }
}

impl Params {
    pub(super) fn required(&self, name: &str) -> ApiResult<String> {
        self.0.text(name).ok_or_else(ApiError::bad_request)
    }

    /// Returns the phone number of a party.
    pub(super) fn msisdn(&self, name: &str) -> ApiResult<String> {
        let party = self.0.get(name).ok_or_else(ApiError::bad_request)?;
        let id = text(&party["partyId"]).filter(|id| is_msisdn(id));
        match party["partyIdType"].as_str() {
            Some("MSISDN") => id.ok_or_else(ApiError::bad_request),
            _ => Err(ApiError::bad_request()),
        }
    }

    /// Returns an optional note. MoMo rejects apostrophes.
    pub(super) fn note(&self, name: &str) -> ApiResult<String> {
        let note = self.0.text(name).unwrap_or_default();
        match note.chars().count() > MAX_NOTE_CHARS || note.contains('\'') {
            true => Err(ApiError::bad_request()),
            false => Ok(note),
        }
    }
}

fn is_msisdn(text: &str) -> bool {
    (8..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

pub(super) async fn unknown_path() -> ApiError {
    ApiError::of_gateway(StatusCode::NOT_FOUND, "Resource not found")
}
