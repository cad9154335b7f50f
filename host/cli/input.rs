//! What commands read from a file or from standard input.

use std::{
    fs,
    io::{Read, stdin},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::Value;

use super::failure::Failure;

/// A record as the host takes it.
#[derive(Args)]
pub struct Input {
    /// Holds it as a JSON object; `-` for standard input
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

impl Input {
    /// `example` is what one looks like.
    pub fn read(&self, example: &str) -> Result<Value, Failure> {
        object(&self.file, example)
    }
}

/// The JSON object in a file. It may be secret: what is wrong with it is not quoted.
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
        _ => Err(wrong(&format!("it is no JSON object like {example}"))),
    }
}
