//! Errors, authentication and bodies of all Jenga endpoints.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{Jenga, accounts::Account, signatures};
use crate::fields::{Fields, text};

/// The result of an endpoint.
pub(super) type ApiResult = Result<Json<Value>, ApiError>;

/// An error response: its status, code and message.
#[derive(Debug)]
pub(super) struct ApiError(StatusCode, u32, String);

impl ApiError {
    /// A missing or invalid field, for which Jenga documents no code.
    pub(super) fn invalid(field: &str) -> ApiError {
        ApiError(StatusCode::BAD_REQUEST, 400, format!("Bad request: invalid {field}"))
    }

    pub(super) fn duplicate() -> ApiError {
        let message = "Duplicate Transaction/ Payment Reference".to_owned();
        ApiError(StatusCode::BAD_REQUEST, 400_101, message)
    }

    pub(super) fn not_found() -> ApiError {
        ApiError(StatusCode::NOT_FOUND, 111_102, "Transaction not found".to_owned())
    }

    pub(super) fn unauthorized() -> ApiError {
        ApiError(StatusCode::UNAUTHORIZED, 401_101, "Unauthorized".to_owned())
    }

    pub(super) fn wrong_signature() -> ApiError {
        ApiError(StatusCode::BAD_REQUEST, 900_101, "Invalid merchant Cipher Text".to_owned())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ApiError(status, code, message) = self;
        let body = json!({ "status": false, "code": code, "message": message, "data": null });
        (status, Json(body)).into_response()
    }
}

/// Returns the value of a header, if it is text.
pub(super) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// The holder of the access token, and the signature of the request.
pub(super) struct Caller {
    /// The merchant code, which identifies the account.
    pub merchant_code: String,
    signature: String,
}

impl Caller {
    /// Checks that the signature is that of these fields, by the key of the account.
    pub(super) fn check_signature(
        &self,
        account: &Account,
        fields: &[&str],
    ) -> Result<(), ApiError> {
        let key = &account.credentials.public_key;
        match signatures::is_signature(key, &fields.concat(), &self.signature) {
            true => Ok(()),
            false => Err(ApiError::wrong_signature()),
        }
    }
}

impl FromRequestParts<Jenga> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, jenga: &Jenga) -> Result<Caller, ApiError> {
        let authorization = header(&parts.headers, "authorization");
        let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
        let token = token.ok_or_else(ApiError::unauthorized)?;
        let holder = jenga.0.find_map(|account, env| {
            let valid = account.has_valid_token(token, env.clock.now());
            valid.then(|| account.credentials.merchant_code.clone())
        });
        Ok(Caller {
            merchant_code: holder.ok_or_else(ApiError::unauthorized)?,
            signature: header(&parts.headers, "signature").unwrap_or_default().to_owned(),
        })
    }
}

/// The fields of a JSON body. Numbers count as strings.
pub(super) struct Params(Fields);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        let body = String::from_request(request, state).await;
        let body = body.map_err(|_| ApiError::invalid("body"))?;
        Fields::parse(&body).map(Params).ok_or_else(|| ApiError::invalid("body"))
    }
}

impl Params {
    /// Returns a field by its path, such as `payment.ref`.
    pub(super) fn required(&self, path: &str) -> Result<String, ApiError> {
        self.valid(path, |_| true)
    }

    /// Returns a field that fulfils a condition.
    pub(super) fn valid(
        &self,
        path: &str,
        condition: impl FnOnce(&str) -> bool,
    ) -> Result<String, ApiError> {
        let found = match path.split_once('.') {
            Some((object, name)) => self.0.get(object).and_then(|object| text(&object[name])),
            None => self.0.text(path),
        };
        found.filter(|text| condition(text)).ok_or_else(|| ApiError::invalid(path))
    }
}

pub(super) async fn unknown_path() -> ApiError {
    ApiError(StatusCode::NOT_FOUND, 404, "Resource not found".to_owned())
}
