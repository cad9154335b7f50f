//! Input of commands from a file or from standard input.

use std::{
    fs,
    io::{Read, stdin},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::Value;

use super::failure::Failure;

/// The input of a command that saves a record.
#[derive(Args)]
pub struct Input {
    /// File with the JSON object; `-` for standard input
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

impl Input {
    /// Reads the object. An error message quotes `example`.
    pub fn read(&self, example: &str) -> Result<Value, Failure> {
        object(&self.file, example)
    }
}

/// Reads a JSON object from a file. It may be secret, so error messages do not quote it.
pub fn object(file: &Path, example: &str) -> Result<Value, Failure> {
    let mut read = String::new();
    let (name, done) = match file.as_os_str() == "-" {
        true => ("standard input".to_owned(), stdin().read_to_string(&mut read).map(drop)),
        false => {
            (file.display().to_string(), fs::read_to_string(file).map(|content| read = content))
        }
    };
    let wrong = |what: &str| Failure::Usage(format!("{name}: {what}"));
    done.map_err(|error| wrong(&error.to_string()))?;
    match serde_json::from_str(&read) {
        Ok(Value::Object(values)) => Ok(Value::Object(values)),
        _ => Err(wrong(&format!("it must be a JSON object like {example}"))),
    }
}
