//! The common request format and errors of Dojah's endpoints.

use std::collections::HashMap;

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Query as Pairs, Request},
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use crate::registers::{LookupError, pictures::Picture};

#[derive(Debug)]
pub(super) struct ApiError(StatusCode, String);

impl ApiError {
    pub(super) fn invalid(error: impl Into<String>) -> ApiError {
        ApiError(StatusCode::BAD_REQUEST, error.into())
    }

    fn missing(name: &str) -> ApiError {
        ApiError::invalid(format!("{name} is required"))
    }

    pub(super) fn from_lookup_error(absent: LookupError, parameter: &str) -> ApiError {
        match absent {
            LookupError::Malformed => ApiError::invalid(format!("{parameter} is not valid")),
            LookupError::NotFound => ApiError(StatusCode::NOT_FOUND, "Result Not Found".to_owned()),
            LookupError::SourceUnavailable => {
                let error = "The source is not available now, try again later";
                ApiError(StatusCode::FAILED_DEPENDENCY, error.to_owned())
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

/// Authenticates a request. The key must be sent without a scheme such as `Bearer`.
fn authenticate(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        !value.is_empty() && !value.contains(' ')
    };
    match given("authorization") && given("appid") {
        true => Ok(()),
        false => Err(ApiError(StatusCode::UNAUTHORIZED, "Authorization or AppId is wrong".into())),
    }
}

/// The parameters of an authenticated GET request.
pub(super) struct Query(HashMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query, ApiError> {
        authenticate(&parts.headers)?;
        let pairs = Pairs::from_request_parts(parts, state).await;
        let Pairs(pairs) = pairs.map_err(|_| ApiError::invalid("The query cannot be read"))?;
        Ok(Query(pairs))
    }
}

impl Query {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.get(name).ok_or_else(|| ApiError::missing(name))
    }

    /// Returns whether a parameter was sent and matches the record.
    pub(super) fn matches_record(&self, name: &str, recorded: &str) -> bool {
        self.get(name).is_some_and(|text| text.eq_ignore_ascii_case(recorded))
    }
}

/// The parameters of an authenticated POST request.
pub(super) struct Params(Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Params, ApiError> {
        authenticate(request.headers())?;
        let body = String::from_request(request, state).await.unwrap_or_default();
        match serde_json::from_str(&body) {
            Ok(Value::Object(params)) => Ok(Params(params)),
            _ => Err(ApiError::invalid("The body is not a JSON object")),
        }
    }
}

impl Params {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let text = self.0.get(name).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty())
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.get(name).ok_or_else(|| ApiError::missing(name))
    }

    /// Returns a base64 image, which must not have the prefix of a data URL.
    pub(super) fn picture(&self, name: &str) -> Result<Picture, ApiError> {
        let text = self.required(name)?;
        let picture = if text.starts_with("data:") { None } else { Picture::from_base64(text) };
        picture.ok_or_else(|| ApiError::invalid(format!("{name} is not an image in base64")))
    }
}
