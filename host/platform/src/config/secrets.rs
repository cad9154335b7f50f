//! Secrets: read from files or variables when needed, never stored in a setting.

use std::{fs, path::Path, path::PathBuf};

use clap::Args;

use crate::config::ConfigError;

/// Each secret: the setting that names its file, and the variable that contains it.
pub(super) const SECRET_SOURCES: [(&str, &str); 3] = [
    (OperatorToken::SETTING, OperatorToken::VARIABLE),
    (MasterKey::SETTING, MasterKey::VARIABLE),
    (SmtpPassword::SETTING, SmtpPassword::VARIABLE),
];

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Secrets")]
pub struct OperatorToken {
    /// File with the operator token. Without it, TOLLHOUSE_OPERATOR_TOKEN contains the token
    #[arg(long, global = true, env = "TOLLHOUSE_OPERATOR_TOKEN_FILE", value_name = "file")]
    pub operator_token_file: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Secrets")]
pub struct MasterKey {
    /// File with the master keys, one per line, 64 hexadecimal characters each: the first seals,
    /// the others only open. Without it, TOLLHOUSE_MASTER_KEY contains them, separated by blanks
    #[arg(long, env = "TOLLHOUSE_MASTER_KEY_FILE", value_name = "file")]
    pub master_key_file: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "E-mail")]
pub struct SmtpPassword {
    /// File with the password of `smtp_username`. Without it, TOLLHOUSE_SMTP_PASSWORD contains it
    #[arg(long, env = "TOLLHOUSE_SMTP_PASSWORD_FILE", value_name = "file")]
    pub smtp_password_file: Option<PathBuf>,
}

impl OperatorToken {
    const SETTING: &str = "operator_token_file";
    const VARIABLE: &str = "TOLLHOUSE_OPERATOR_TOKEN";

    pub fn read(&self) -> Result<String, ConfigError> {
        read_file_or_env(self.operator_token_file.as_deref(), Self::SETTING, Self::VARIABLE)
    }
}

impl MasterKey {
    const SETTING: &str = "master_key_file";
    const VARIABLE: &str = "TOLLHOUSE_MASTER_KEY";

    pub fn read(&self) -> Result<String, ConfigError> {
        read_file_or_env(self.master_key_file.as_deref(), Self::SETTING, Self::VARIABLE)
    }
}

impl SmtpPassword {
    const SETTING: &str = "smtp_password_file";
    const VARIABLE: &str = "TOLLHOUSE_SMTP_PASSWORD";

    /// Returns `None` if neither the file nor the variable is set.
    pub fn read(&self) -> Result<Option<String>, ConfigError> {
        match &self.smtp_password_file {
            Some(file) => read_file(file, Self::SETTING).map(Some),
            None => Ok(env_value(Self::VARIABLE)),
        }
    }
}

/// Reads the secret from the file if one is named, else from the variable `place`.
fn read_file_or_env(file: Option<&Path>, key: &str, place: &str) -> Result<String, ConfigError> {
    match file {
        Some(file) => read_file(file, key),
        None => env_value(place).ok_or_else(|| {
            ConfigError(format!(
                "set {key} to a file that contains the secret, or {place} to the secret itself"
            ))
        }),
    }
}

fn env_value(name: &str) -> Option<String> {
    let text = std::env::var(name).unwrap_or_default().trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Reads the file that the setting `key` names, without surrounding whitespace.
pub fn read_file(file: &Path, key: &str) -> Result<String, ConfigError> {
    let wrong = |what: String| ConfigError(format!("{key} {}: {what}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    match text.trim() {
        "" => Err(wrong("the file is empty".to_owned())),
        text => Ok(text.to_owned()),
    }
}
