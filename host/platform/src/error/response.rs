//! The HTTP response of an error: status, body and headers, such as `Retry-After`.

use axum_core::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::Error;

/// The body of an error response.
#[derive(Serialize, JsonSchema)]
pub struct Failure {
    #[schemars(extend("const" = true))]
    pub error: bool,
    /// Description of the error, or of what to do about it.
    pub message: String,
}

/// Extension of a response: effects before the failure are committed.
#[derive(Clone, Copy)]
pub struct EffectCommitted;

/// Converts an error to a response. Nothing else logs its internal details.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        if let Error::AfterCommit(error) = self {
            let mut response = error.into_response();
            response.extensions_mut().insert(EffectCommitted);
            return response;
        }
        let status = match &self {
            Error::Invalid(_) | Error::InsufficientBalance => StatusCode::BAD_REQUEST,
            Error::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Error::Forbidden(_) => StatusCode::FORBIDDEN,
            Error::NotFound(_) => StatusCode::NOT_FOUND,
            Error::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Error::Conflict(_) | Error::InProgress { .. } => StatusCode::CONFLICT,
            Error::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Error::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Error::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Error::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Error::RateLimited(_) | Error::QuotaExceeded { .. } => StatusCode::TOO_MANY_REQUESTS,
            Error::Upstream { .. } => StatusCode::BAD_GATEWAY,
            Error::UpstreamTimeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            Error::RetryLater { .. }
            | Error::StorageFull { .. }
            | Error::Unavailable(_)
            | Error::Database(_) => StatusCode::SERVICE_UNAVAILABLE,
            Error::TimedOut(_)
            | Error::OutcomeUnknown(_)
            | Error::Internal(_)
            | Error::AfterCommit(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        match &self {
            Error::Internal(_) => tracing::error!(error = %self.chain(), "request failed"),
            Error::TimedOut(_) => tracing::warn!(error = %self.chain(), "request failed"),
            Error::Database(error) | Error::OutcomeUnknown(error) => {
                tracing::error!(alarm = "database", %error, "request failed");
            }
            Error::Upstream { .. } | Error::UpstreamTimeout { .. } | Error::RetryLater { .. } => {
                tracing::warn!(error = %self.chain(), "upstream failed");
            }
            _ => {}
        }
        let failure = Failure { error: true, message: self.to_string() };
        let body = serde_json::to_vec(&failure).unwrap_or_default();
        let json = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (status, json, body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        let retry_after_s = match &self {
            Error::RateLimited(exceeded) => Some(exceeded.seconds),
            Error::RetryLater { retry_after_s, .. } | Error::InProgress { retry_after_s, .. } => {
                Some((*retry_after_s).into())
            }
            Error::QuotaExceeded { retry_after_s, .. }
            | Error::StorageFull { retry_after_s, .. } => Some(*retry_after_s),
            Error::Unavailable(_) | Error::Database(_) => Some(5),
            _ => None,
        };
        if let Some(seconds) = retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
