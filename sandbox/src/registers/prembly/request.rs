//! The common request format and errors of Prembly's endpoints.

use axum::{
    Json,
    extract::{FromRequest, Request},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use crate::registers::pictures::Picture;

#[derive(Debug)]
pub(super) struct ApiError(StatusCode, String);

impl ApiError {
    pub(super) fn invalid(detail: impl Into<String>) -> ApiError {
        ApiError(StatusCode::BAD_REQUEST, detail.into())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ApiError(status, detail) = self;
        (status, Json(json!({ "status": false, "detail": detail, "message": detail })))
            .into_response()
    }
}

/// The parameters of an authenticated request.
pub(super) struct Params(Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        if request.headers().get("x-api-key").is_none_or(|key| key.is_empty()) {
            let detail = "Authentication failed: x-api-key is missing or not valid";
            return Err(ApiError(StatusCode::UNAUTHORIZED, detail.to_owned()));
        }
        let body = String::from_request(request, state).await.unwrap_or_default();
        match serde_json::from_str(&body) {
            Ok(Value::Object(params)) => Ok(Params(params)),
            _ => Err(ApiError::invalid("The body is not a JSON object")),
        }
    }
}

impl Params {
    /// Returns a string; numbers count as strings.
    fn text(&self, name: &str) -> Option<String> {
        let text = match self.0.get(name)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(text).filter(|text| !text.is_empty())
    }

    /// Returns the identifier, from the first of these parameters that is present.
    pub(super) fn number(&self, names: &[&str]) -> Result<String, ApiError> {
        let found = names.iter().find_map(|name| self.text(name));
        found.ok_or_else(|| ApiError::invalid(format!("{} is required", names.join(" or "))))
    }

    pub(super) fn picture(&self, name: &str) -> Result<Picture, ApiError> {
        let text =
            self.text(name).ok_or_else(|| ApiError::invalid(format!("{name} is required")))?;
        Picture::from_url_or_base64(&text).ok_or_else(|| {
            ApiError::invalid(format!(
                "{name} is neither the address of an image nor one in base64"
            ))
        })
    }
}
