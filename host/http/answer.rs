//! The envelope of every JSON answer: `{data?, error, message}`.

use std::any::Any;

use axum::{
    Json,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{self, Error, Result};

/// A success. Its data is JSON already, so that what cannot be written is found where it was made.
pub struct Answer {
    data: Option<Value>,
    message: &'static str,
}

impl Answer {
    pub fn data(data: impl Serialize, message: &'static str) -> Result<Answer> {
        let data = serde_json::to_value(data).map_err(Error::internal)?;
        Ok(Answer { data: Some(data), message })
    }

    #[must_use]
    pub fn message(message: &'static str) -> Answer {
        Answer { data: None, message }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> axum::response::Response {
        let mut body = json!({ "error": false, "message": self.message });
        if let Some(data) = self.data {
            body["data"] = data;
        }
        Json(body).into_response()
    }
}

/// The one place where an error becomes an answer, and where what callers must not see is logged.
impl IntoResponse for Error {
    fn into_response(self) -> axum::response::Response {
        let status = match &self {
            Error::Invalid(_) => StatusCode::BAD_REQUEST,
            Error::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Error::Forbidden(_) => StatusCode::FORBIDDEN,
            Error::NotFound(_) => StatusCode::NOT_FOUND,
            Error::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Error::Conflict(_) => StatusCode::CONFLICT,
            Error::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Error::UnsupportedType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Error::Upstream { .. } => StatusCode::BAD_GATEWAY,
            Error::UpstreamTimeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            Error::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Error::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        match &self {
            Error::Internal(_) => tracing::error!(error = %self.chain(), "request failed"),
            Error::Upstream { .. } | Error::UpstreamTimeout { .. } => {
                tracing::warn!(error = %self.chain(), "upstream failed");
            }
            _ => {}
        }
        let mut response =
            (status, Json(json!({ "error": true, "message": self.to_string() }))).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

/// A bug that panicked costs its own request only.
pub fn panicked(panic: Box<dyn Any + Send>) -> Response<axum::body::Body> {
    error::panicked(panic).into_response()
}
