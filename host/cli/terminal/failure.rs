//! Failures of commands and their exit codes.

use std::{error::Error, io::Write, process::ExitCode};

use serde_json::json;
use tollhouse_platform::{config::ConfigError, store};

use super::output::without_control_characters;

/// An error message that states what to do.
#[derive(Debug)]
pub enum Failure {
    /// Rejected by the host or by a check. Exit code 1.
    Refused { status: Option<u16>, message: String },
    /// The command line or the settings cannot be used. Exit code 2.
    Usage(String),
    /// No response, or a server error with its status: the outcome is unknown. Exit code 3.
    Unreachable { status: Option<u16>, message: String },
}

impl Failure {
    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::Refused { status: None, message: message.into() }
    }

    pub fn unreachable(message: impl Into<String>) -> Failure {
        Failure::Unreachable { status: None, message: message.into() }
    }

    pub fn settings(wrong: Vec<ConfigError>) -> Failure {
        let wrong: Vec<String> = wrong.into_iter().map(|error| error.0).collect();
        Failure::Usage(wrong.join("\n"))
    }

    pub fn message(&self) -> &str {
        match self {
            Failure::Refused { message, .. }
            | Failure::Unreachable { message, .. }
            | Failure::Usage(message) => message,
        }
    }

    /// Writes the failure to standard error and returns the exit code.
    pub fn print(self, json: bool) -> ExitCode {
        let (kind, code, status, message) = match self {
            Failure::Refused { status, message } => ("refused", 1, status, message),
            Failure::Usage(message) => ("usage", 2, None, message),
            Failure::Unreachable { status, message } => ("unreachable", 3, status, message),
        };
        let said = match json {
            true => json!({ "error": kind, "status": status, "message": message }).to_string(),
            false => {
                let lines = message
                    .lines()
                    .map(|line| format!("tollhouse: {}", without_control_characters(line)));
                lines.collect::<Vec<_>>().join("\n")
            }
        };
        // The reader may have closed the pipe.
        drop(writeln!(std::io::stderr().lock(), "{said}"));
        ExitCode::from(code)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::Usage(error.0)
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        match error {
            store::Error::Misconfigured(what) => Failure::Usage(what),
            error => Failure::unreachable(chain(&error)),
        }
    }
}

/// Formats an error and its causes on one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
