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

/// Extension of an error response: a summary of the error, for logs that must not contain values of
/// the request. Messages can: a few quote a name or a code that the client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSummary {
    /// The name of the error's variant, for example `not_found`.
    pub kind: &'static str,
    /// The field that the message names. It can be a name that the client made up.
    pub field: Option<String>,
}

impl ErrorSummary {
    fn of(error: &Error) -> ErrorSummary {
        let field = match error {
            Error::Invalid(message) => named_field(message).map(str::to_owned),
            _ => None,
        };
        ErrorSummary { kind: error.into(), field }
    }
}

/// Returns the field of a message like `the amount field must be a number`. A message about a batch
/// begins with the row.
fn named_field(message: &str) -> Option<&str> {
    let message = match message.strip_prefix("row ") {
        Some(row) => row.split_once(": ")?.1,
        None => message,
    };
    Some(message.strip_prefix("the ")?.split_once(" field ")?.0)
}

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
        let summary = ErrorSummary::of(&self);
        let failure = Failure { error: true, message: self.to_string() };
        let body = serde_json::to_vec(&failure).unwrap_or_default();
        let json = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (status, json, body).into_response();
        response.extensions_mut().insert(summary);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_kind_of_an_error_and_the_field_but_no_text() {
        let invalid = |message: &str| Error::invalid(message);
        for (error, kind, field) in [
            (invalid("the amount field must be a number"), "invalid", Some("amount")),
            (invalid("row 3: the user.email field is required"), "invalid", Some("user.email")),
            (invalid("row 3 must be an object"), "invalid", None),
            (invalid("the body is not valid JSON"), "invalid", None),
            (invalid("ada@example.com is not a field"), "invalid", None),
            (Error::not_found("the ada field was not found"), "not_found", None),
            (Error::InsufficientBalance, "insufficient_balance", None),
            (Error::Unauthorized("no"), "unauthorized", None),
            (Error::AfterCommit(Box::new(Error::Conflict("x".to_owned()))), "conflict", None),
            (Error::internal("ada@example.com"), "internal", None),
        ] {
            let what = error.to_string();
            let response = error.into_response();
            let summary = response.extensions().get::<ErrorSummary>();
            let expected = ErrorSummary { kind, field: field.map(str::to_owned) };
            assert_eq!(summary, Some(&expected), "{what}");
        }
    }
}
