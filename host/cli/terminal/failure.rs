//! Failures of commands and their exit codes.

use std::{error::Error, fmt::Display, io::Write, iter, process::ExitCode, time::Duration};

use serde::Serialize;
use serde_json::json;
use tollhouse_platform::{config::ConfigError, store};

use super::output::{Report, without_control_characters};

pub type Result<T = Report, E = Failure> = std::result::Result<T, E>;

/// The failure of a command, with the message for the user.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    /// Status of the host's response.
    pub status: Option<u16>,
    /// `Retry-After` of the host's response.
    pub retry_after: Option<Duration>,
    pub message: String,
}

/// The kinds of failures, with their exit codes.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum FailureKind {
    /// Rejected by the host or by a check.
    Refused = 1,
    /// The command line or the settings cannot be used.
    Usage = 2,
    /// No response, or a server error: the outcome is unknown.
    Unreachable = 3,
}

impl Failure {
    fn new(kind: FailureKind, message: impl Display) -> Failure {
        Failure { kind, status: None, retry_after: None, message: message.to_string() }
    }

    pub fn refused(message: impl Display) -> Failure {
        Failure::new(FailureKind::Refused, message)
    }

    pub fn usage(message: impl Display) -> Failure {
        Failure::new(FailureKind::Usage, message)
    }

    pub fn unreachable(message: impl Display) -> Failure {
        Failure::new(FailureKind::Unreachable, message)
    }

    /// Returns whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, FailureKind::Unreachable) || self.status == Some(429)
    }

    /// Writes the failure to standard error and returns the exit code.
    pub fn print(self, json: bool) -> ExitCode {
        let Failure { kind, status, message, .. } = self;
        let text = match json {
            true => json!({ "error": kind, "status": status, "message": message }).to_string(),
            false => {
                let lines = message
                    .lines()
                    .map(|line| format!("tollhouse: {}", without_control_characters(line)));
                lines.collect::<Vec<_>>().join("\n")
            }
        };
        // The reader may have closed the pipe.
        drop(writeln!(std::io::stderr().lock(), "{text}"));
        ExitCode::from(kind as u8)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::usage(error)
    }
}

impl From<Vec<ConfigError>> for Failure {
    fn from(errors: Vec<ConfigError>) -> Failure {
        let errors: Vec<String> = errors.into_iter().map(|error| error.0).collect();
        Failure::usage(errors.join("\n"))
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        match error {
            store::Error::Misconfigured(what) => Failure::usage(what),
            error => Failure::unreachable(chain(&error)),
        }
    }
}

/// Formats an error and its causes on one line.
pub fn chain(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&error| error.source());
    causes.map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}
