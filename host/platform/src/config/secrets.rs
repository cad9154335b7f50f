//! Secrets: read from files or variables when needed, never stored in a setting.

use std::{fs, path::Path, path::PathBuf};

use crate::config::{ConfigError, settings};

/// The setting that names a secret's file, and the variable that contains the secret.
pub type SecretSource = (&'static str, &'static str);

const OPERATOR_TOKEN: SecretSource = ("operator_token_file", "TOLLHOUSE_OPERATOR_TOKEN");
const MASTER_KEY: SecretSource = ("master_key_file", "TOLLHOUSE_MASTER_KEY");
pub(super) const SMTP_PASSWORD: SecretSource = ("smtp_password_file", "TOLLHOUSE_SMTP_PASSWORD");
pub const OIDC_CLIENT_SECRET: SecretSource =
    ("oidc_client_secret_file", "TOLLHOUSE_OIDC_CLIENT_SECRET");
pub(super) const SECRET_SOURCES: [SecretSource; 4] =
    [OPERATOR_TOKEN, MASTER_KEY, SMTP_PASSWORD, OIDC_CLIENT_SECRET];

settings! {
    "Secrets" OperatorToken;
    /// File with the operator token. Without it, TOLLHOUSE_OPERATOR_TOKEN contains the token
    operator_token_file: Option<PathBuf>, "TOLLHOUSE_OPERATOR_TOKEN_FILE", "file", global = true;
}

settings! {
    "Secrets" MasterKey;
    /// File with the master keys, one per line, 64 hexadecimal characters each: the first seals,
    /// the others only open. Without it, TOLLHOUSE_MASTER_KEY contains them, separated by blanks
    master_key_file: Option<PathBuf>, "TOLLHOUSE_MASTER_KEY_FILE", "file";
}

impl OperatorToken {
    pub fn read(&self) -> Result<String, ConfigError> {
        read_required(self.operator_token_file.as_deref(), OPERATOR_TOKEN)
    }
}

impl MasterKey {
    pub fn read(&self) -> Result<String, ConfigError> {
        read_required(self.master_key_file.as_deref(), MASTER_KEY)
    }
}

fn read_required(file: Option<&Path>, source: SecretSource) -> Result<String, ConfigError> {
    read(file, source)?.ok_or_else(|| {
        let (key, place) = source;
        ConfigError(format!(
            "set {key} to a file that contains the secret, or {place} to the secret itself"
        ))
    })
}

/// Reads the secret from the file if one is named, else from the variable, if that is set.
pub fn read(file: Option<&Path>, source: SecretSource) -> Result<Option<String>, ConfigError> {
    let (key, variable) = source;
    match file {
        Some(file) => read_file(file, key).map(Some),
        None => {
            let text = std::env::var(variable).unwrap_or_default().trim().to_owned();
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
    }
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
