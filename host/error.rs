//! The one error, named by what the caller can do about it.
//!
//! Its text is for callers. What went wrong inside is logged once, where the error becomes an answer, and never leaves.

use std::{any::Any, time::Duration};

use crate::{rate::Exceeded, seal::SealError, store};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Mend the request (400).
    #[error("{0}")]
    Invalid(String),
    /// Top the wallet up (400).
    #[error("insufficient balance, please top up your wallet.")]
    NotCovered,
    /// Send a valid key (401).
    #[error("{0}")]
    Unauthorized(&'static str),
    /// Ask the operator for it (403).
    #[error("{0}")]
    Forbidden(String),
    /// Name something that exists (404).
    #[error("{0}")]
    NotFound(String),
    /// Use one of the methods that `Allow` names (405).
    #[error("the method is not allowed here")]
    MethodNotAllowed,
    /// Look at what is there first (409).
    #[error("{0}")]
    Conflict(String),
    /// Try again after the time that it says: another request does this (409).
    #[error("{message}")]
    InProgress { message: String, retry_after_s: u32 },
    /// Send it in time (408).
    #[error("the request was not sent in time")]
    TooSlow,
    /// Send less (413).
    #[error("the body is too large")]
    TooLarge,
    /// Send another content type (415).
    #[error("the content type must be {0}")]
    UnsupportedType(&'static str),
    /// Send fewer or shorter headers (431).
    #[error("the headers are too large")]
    HeadersTooLarge,
    /// Try again after the time that it says (429).
    #[error(transparent)]
    Throttled(#[from] Exceeded),
    /// Try again after the time that it says: what the caller has stored leaves no room (429).
    #[error("{message}, try again in {retry_after_s} seconds")]
    QuotaExceeded { message: &'static str, retry_after_s: u64 },
    /// Try again after the time that it says: what all callers have stored leaves no room (503).
    #[error("{message}, try again in {retry_after_s} seconds")]
    Full { message: &'static str, retry_after_s: u64 },
    /// Try again later: an upstream failed (502).
    #[error("{message}")]
    Upstream { message: String, detail: String },
    /// Try again later: an upstream gave no answer in time (504).
    #[error("{message}")]
    UpstreamTimeout { message: String, detail: String },
    /// Try again after the time that it says: this host does not ask an upstream now (503).
    #[error("{message}")]
    Busy { message: String, detail: String, retry_after_s: u32 },
    /// Try again later: this host cannot work now (503).
    #[error("{0}")]
    Unavailable(&'static str),
    /// Try again later: the database cannot work now (503).
    #[error("the database cannot work now, try again later")]
    Database(#[source] store::Error),
    /// Look first whether it was done (500).
    #[error("it is unknown whether this was done: look before you send it again")]
    OutcomeUnknown(#[source] store::Error),
    /// The same, of what was not done within this time (500).
    #[error("it is unknown whether this was done: look before you send it again")]
    Late(Duration),
    /// The same as within; but what was done before stands, so that a request under a key is answered so again and never runs twice.
    #[error(transparent)]
    Standing(Box<Error>),
    /// Report it: our fault (500).
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

    /// The error with its causes and details: for logs, never for callers.
    #[must_use]
    pub fn chain(&self) -> String {
        if let Error::Standing(error) = self {
            return error.chain();
        }
        let mut text = self.to_string();
        if let Error::Upstream { detail, .. }
        | Error::UpstreamTimeout { detail, .. }
        | Error::Busy { detail, .. } = self
        {
            text = format!("{text}: {detail}");
        }
        if let Error::Late(time) = self {
            text = format!("{text}: not done within {} s", time.as_secs());
        }
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Internal(source.into())
    }
}

/// A bug that panicked costs only what it was working on.
#[must_use]
pub fn panicked(panic: Box<dyn Any + Send>) -> Error {
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
