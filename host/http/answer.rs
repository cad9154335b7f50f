//! The envelope of every JSON answer: `{error, message, data?}`, in this order.

use std::{any::Any, io, marker::PhantomData};

use axum::{
    Json,
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use futures::stream::BoxStream;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::openapi::{Describe, Operation};
use crate::{
    clock::Timestamp,
    error::{self, Error, Result},
};

/// A success with data. It is JSON already, so that what cannot be written is found where it was made.
pub struct Answer<T> {
    json: Vec<u8>,
    kept_until: Option<KeptUntil>,
    data: PhantomData<fn() -> T>,
}

/// Beside an answer: when it must not be replayed any more, because what is in it is erased.
#[derive(Clone, Copy)]
pub struct KeptUntil(pub Timestamp);

impl<T: Serialize> Answer<T> {
    pub fn data(data: T, message: &str) -> Result<Answer<T>> {
        #[derive(Serialize)]
        struct Success<'m, T> {
            error: bool,
            message: &'m str,
            data: T,
        }
        let success = Success { error: false, message, data };
        let json = serde_json::to_vec(&success).map_err(Error::internal)?;
        Ok(Answer { json, kept_until: None, data: PhantomData })
    }
}

impl<T> Answer<T> {
    /// Limits how long the answer is kept for an `Idempotency-Key`.
    #[must_use]
    pub fn kept_until(self, at: Timestamp) -> Answer<T> {
        Answer { kept_until: Some(KeptUntil(at)), ..self }
    }
}

impl<T> IntoResponse for Answer<T> {
    fn into_response(self) -> axum::response::Response {
        let json = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (json, self.json).into_response();
        if let Some(until) = self.kept_until {
            response.extensions_mut().insert(until);
        }
        response
    }
}

impl<T: JsonSchema> Describe for Answer<T> {
    fn describe(operation: &mut Operation<'_>) {
        let data = operation.given::<T>();
        let mut success = success();
        success["properties"]["data"] = data;
        success["required"] = json!(["error", "message", "data"]);
        operation.answers("application/json", success);
    }
}

/// A file to be kept, which is sent as it is read.
pub struct Attachment {
    pub name: &'static str,
    pub content_type: &'static str,
    pub bytes: BoxStream<'static, io::Result<Bytes>>,
}

impl IntoResponse for Attachment {
    fn into_response(self) -> axum::response::Response {
        let name = format!("attachment; filename=\"{}\"", self.name);
        let headers = [
            (header::CONTENT_TYPE, self.content_type.to_owned()),
            (header::CONTENT_DISPOSITION, name),
        ];
        (headers, Body::from_stream(self.bytes)).into_response()
    }
}

impl Describe for Attachment {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers("text/csv", json!({ "type": "string" }));
    }
}

/// A success without data.
pub struct Done(pub &'static str);

impl IntoResponse for Done {
    fn into_response(self) -> axum::response::Response {
        Json(json!({ "error": false, "message": self.0 })).into_response()
    }
}

impl Describe for Done {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers("application/json", success());
    }
}

fn success() -> Value {
    json!({
        "type": "object",
        "properties": {
            "error": { "type": "boolean", "const": false },
            "message": { "type": "string" },
        },
        "required": ["error", "message"],
    })
}

/// A failure.
#[derive(Serialize, JsonSchema)]
pub struct Failure {
    #[schemars(extend("const" = true))]
    pub error: bool,
    /// What the caller can do about it.
    pub message: String,
}

/// Beside the answer of a failure: what was done before it stands.
#[derive(Clone, Copy)]
pub struct Standing;

/// The one place where an error becomes an answer, and where what callers must not see is logged.
impl IntoResponse for Error {
    fn into_response(self) -> axum::response::Response {
        if let Error::Standing(error) = self {
            let mut response = error.into_response();
            response.extensions_mut().insert(Standing);
            return response;
        }
        let status = match &self {
            Error::Invalid(_) | Error::NotCovered => StatusCode::BAD_REQUEST,
            Error::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Error::Forbidden(_) => StatusCode::FORBIDDEN,
            Error::NotFound(_) => StatusCode::NOT_FOUND,
            Error::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Error::Conflict(_) | Error::InProgress { .. } => StatusCode::CONFLICT,
            Error::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Error::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Error::UnsupportedType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Error::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Error::Throttled(_) | Error::QuotaExceeded { .. } => StatusCode::TOO_MANY_REQUESTS,
            Error::Upstream { .. } => StatusCode::BAD_GATEWAY,
            Error::UpstreamTimeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            Error::Busy { .. }
            | Error::Full { .. }
            | Error::Unavailable(_)
            | Error::Database(_) => StatusCode::SERVICE_UNAVAILABLE,
            Error::Late(_) | Error::OutcomeUnknown(_) | Error::Internal(_) | Error::Standing(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        match &self {
            Error::Internal(_) => tracing::error!(error = %self.chain(), "request failed"),
            Error::Late(_) => tracing::warn!(error = %self.chain(), "request failed"),
            Error::Database(error) | Error::OutcomeUnknown(error) => {
                tracing::error!(alarm = "database", %error, "request failed");
            }
            Error::Upstream { .. } | Error::UpstreamTimeout { .. } | Error::Busy { .. } => {
                tracing::warn!(error = %self.chain(), "upstream failed");
            }
            _ => {}
        }
        let failure = Failure { error: true, message: self.to_string() };
        let mut response = (status, Json(failure)).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        let retry_after = match &self {
            Error::Throttled(exceeded) => Some(HeaderValue::from(exceeded.seconds)),
            Error::Busy { retry_after_s, .. } | Error::InProgress { retry_after_s, .. } => {
                Some(HeaderValue::from(*retry_after_s))
            }
            Error::QuotaExceeded { retry_after_s, .. } | Error::Full { retry_after_s, .. } => {
                Some(HeaderValue::from(*retry_after_s))
            }
            Error::Unavailable(_) | Error::Database(_) => Some(HeaderValue::from_static("5")),
            _ => None,
        };
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

/// A bug that panicked costs its own request only.
pub fn panicked(panic: Box<dyn Any + Send>) -> Response<axum::body::Body> {
    error::panicked(panic).into_response()
}
