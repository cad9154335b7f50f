//! Input of commands from files or from standard input.

use std::{
    fmt::Display,
    fs,
    io::{self, stdin},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::Value;

use super::failure::{Failure, Result};

/// The input of a command that saves a record.
#[derive(Args)]
pub struct Input {
    /// File with the JSON object; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
}

pub fn file_failure(file: &Path, why: impl Display) -> Failure {
    Failure::usage(format!("{}: {why}", file.display()))
}

pub fn read_bytes(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|error| file_failure(file, error))
}

pub fn read_text(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|error| file_failure(file, error))
}

/// Reads a JSON object from a file, or from standard input if `file` is `-`. It may be secret, so
/// error messages quote `example` instead.
pub fn read_object(file: &Path, example: &str) -> Result<Value> {
    let (name, text) = match file.as_os_str() == "-" {
        true => (Path::new("standard input"), io::read_to_string(stdin())),
        false => (file, fs::read_to_string(file)),
    };
    let text = text.map_err(|error| file_failure(name, error))?;
    match serde_json::from_str(&text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        _ => Err(file_failure(name, format!("it must be a JSON object like {example}"))),
    }
}
