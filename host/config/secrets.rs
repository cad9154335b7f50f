//! What must not be known: read from files or variables when it is needed, and never kept in a setting.

use std::{fs, path::Path, path::PathBuf};

use clap::Args;

use super::ConfigError;

/// Each secret: the setting that names its file, and the variable that holds the secret itself.
pub(super) const PLACES: [(&str, &str); 2] =
    [(OperatorToken::SETTING, OperatorToken::VARIABLE), (MasterKey::SETTING, MasterKey::VARIABLE)];

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Secrets")]
pub struct OperatorToken {
    /// Holds the operator's token; or give the token in TOLLHOUSE_OPERATOR_TOKEN
    #[arg(long, global = true, env = "TOLLHOUSE_OPERATOR_TOKEN_FILE", value_name = "file")]
    pub operator_token_file: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Secrets")]
pub struct MasterKey {
    /// Holds the master keys, 64 hexadecimal characters each, one on a line: the first seals, the others only open what they
    /// sealed before. Or give them in TOLLHOUSE_MASTER_KEY, with blanks between
    #[arg(long, env = "TOLLHOUSE_MASTER_KEY_FILE", value_name = "file")]
    pub master_key_file: Option<PathBuf>,
}

impl OperatorToken {
    const SETTING: &str = "operator_token_file";
    const VARIABLE: &str = "TOLLHOUSE_OPERATOR_TOKEN";

    pub fn read(&self) -> Result<String, ConfigError> {
        read_or(self.operator_token_file.as_deref(), Self::SETTING, Self::VARIABLE)
    }
}

impl MasterKey {
    const SETTING: &str = "master_key_file";
    const VARIABLE: &str = "TOLLHOUSE_MASTER_KEY";

    pub fn read(&self) -> Result<String, ConfigError> {
        read_or(self.master_key_file.as_deref(), Self::SETTING, Self::VARIABLE)
    }
}

/// From the file when one is named, else from the variable.
fn read_or(file: Option<&Path>, key: &str, variable: &str) -> Result<String, ConfigError> {
    if let Some(file) = file {
        return read(file, key);
    }
    match std::env::var(variable).unwrap_or_default().trim() {
        "" => Err(ConfigError(format!(
            "set {key} to a file that holds the secret, or give it in {variable}"
        ))),
        text => Ok(text.to_owned()),
    }
}

/// The text of the file that the setting `key` names, without the blanks around it.
pub fn read(file: &Path, key: &str) -> Result<String, ConfigError> {
    let wrong = |what: String| ConfigError(format!("{key} {}: {what}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    match text.trim() {
        "" => Err(wrong("the file is empty".to_owned())),
        text => Ok(text.to_owned()),
    }
}
