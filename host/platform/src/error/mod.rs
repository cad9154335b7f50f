//! The error type of the host. Variants are named by what the client can do.
//!
//! Messages are for clients. Internal details are only logged, when the response is built.

mod response;

use std::{any::Any, error::Error as _, iter::successors, time::Duration};

use strum::IntoStaticStr;

use crate::{crypto::seal::SealError, limits::rate::RateLimitExceeded, store};

pub use self::response::{EffectCommitted, ErrorSummary, Failure};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Error {
    /// 400: the request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// 400: the wallet balance is insufficient.
    #[error("insufficient balance, please top up your wallet.")]
    InsufficientBalance,
    /// 401: the API key or operator token is missing or invalid.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// 403: only the operator can permit this.
    #[error("{0}")]
    Forbidden(String),
    /// 404: the named record or path does not exist.
    #[error("{0}")]
    NotFound(String),
    /// 405: the method is not allowed; the `Allow` header lists those that are.
    #[error("the method is not allowed")]
    MethodNotAllowed,
    /// 409: a conflict with the current state; check it before a retry.
    #[error("{0}")]
    Conflict(String),
    /// 409: another request is doing the same; retry after `retry_after_s`.
    #[error("{message}")]
    InProgress { message: String, retry_after_s: u32 },
    /// 408: the request was not received in time.
    #[error("the request was not received in time")]
    RequestTimeout,
    /// 413: the body is too large.
    #[error("the body is too large")]
    TooLarge,
    /// 415: the body needs another content type.
    #[error("the content type must be {0}")]
    UnsupportedMediaType(&'static str),
    /// 431: the headers are too many or too large.
    #[error("the headers are too large")]
    HeadersTooLarge,
    /// 429: too many requests; retry after the given time.
    #[error(transparent)]
    RateLimited(#[from] RateLimitExceeded),
    /// 429: the company's storage quota is exhausted; retry after `retry_after_s`.
    #[error("{message}, try again in {retry_after_s} seconds")]
    QuotaExceeded { message: &'static str, retry_after_s: u64 },
    /// 503: storage for all companies is full; retry after `retry_after_s`.
    #[error("{message}, try again in {retry_after_s} seconds")]
    StorageFull { message: &'static str, retry_after_s: u64 },
    /// 502: an upstream failed; retry later.
    #[error("{message}")]
    Upstream { message: String, detail: String },
    /// 504: an upstream did not respond in time; retry later.
    #[error("{message}")]
    UpstreamTimeout { message: String, detail: String },
    /// 503: this host does not call an upstream now; retry after `retry_after_s`.
    #[error("{message}")]
    RetryLater { message: String, detail: String, retry_after_s: u32 },
    /// 503: this host cannot serve the request now; retry later.
    #[error("{0}")]
    Unavailable(&'static str),
    /// 503: the database is unavailable; retry later.
    #[error("the database is unavailable, try again later")]
    Database(#[source] store::Error),
    /// 500: the outcome of the commit is unknown; check the current state before a retry.
    #[error("outcome unknown: check the current state before you retry")]
    OutcomeUnknown(#[source] store::Error),
    /// 500: the outcome is unknown, because the request was not done within this time.
    #[error("outcome unknown: check the current state before you retry")]
    TimedOut(Duration),
    /// The inner error. Earlier effects are committed, so a repeated request under the same
    /// idempotency key gets this response and does not run again.
    #[error(transparent)]
    AfterCommit(Box<Error>),
    /// 500: an internal error, to be reported.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid(message.into())
    }

    pub fn not_found(message: impl Into<String>) -> Error {
        Error::NotFound(message.into())
    }

    /// Returns the error with its causes and details, for logs and never for clients.
    pub fn chain(&self) -> String {
        if let Error::AfterCommit(error) = self {
            return error.chain();
        }
        let mut text = self.to_string();
        match self {
            Error::Upstream { detail, .. }
            | Error::UpstreamTimeout { detail, .. }
            | Error::RetryLater { detail, .. } => text = format!("{text}: {detail}"),
            Error::TimedOut(time) => text = format!("{text}: not done within {} s", time.as_secs()),
            _ => {}
        }
        let causes = successors(self.source(), |&cause| cause.source());
        causes.fold(text, |text, cause| format!("{text}: {cause}"))
    }

    /// Returns whether a statement violated a unique constraint.
    pub fn is_duplicate(&self) -> bool {
        self.statement_error().is_some_and(store::is_duplicate)
    }

    /// Returns whether a statement that must affect one row affected another number.
    pub fn is_not_one_row(&self) -> bool {
        matches!(self.statement_error(), Some(store::Error::NotOneRow))
    }

    fn statement_error(&self) -> Option<&store::Error> {
        let Error::Internal(source) = self else { return None };
        source.downcast_ref()
    }

    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Internal(source.into())
    }
}

/// Converts a caught panic to an internal error: only the work that panicked fails.
pub fn from_panic(panic: Box<dyn Any + Send>) -> Error {
    let what = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let what = what.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::internal(format!("panic: {}", what.unwrap_or_default()))
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        match error {
            store::Error::Unavailable { .. } => Error::Database(error),
            store::Error::CommitUnknown(_) => Error::OutcomeUnknown(error),
            error => Error::internal(error),
        }
    }
}

impl From<SealError> for Error {
    fn from(error: SealError) -> Error {
        Error::internal(error)
    }
}
