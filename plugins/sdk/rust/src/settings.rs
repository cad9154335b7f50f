//! Settings of this plugin and provider account, set by the operator. They are not secret.

use crate::types::Fault;
use crate::{http, port};

/// Returns a setting, or the manifest's default.
pub fn get(name: &str) -> Option<String> {
    port::settings::get(name)
}

/// Returns a setting, or `default` if neither the operator nor the manifest sets it.
pub fn get_or(name: &str, default: &str) -> String {
    get(name).unwrap_or_else(|| default.to_owned())
}

/// Returns a required setting, or `misconfigured` if it is absent or empty.
pub fn required(name: &str) -> Result<String, Fault> {
    get(name).filter(|value| !value.is_empty()).ok_or_else(|| {
        Fault::misconfigured(format!("the setting {name} is missing")).with_detail("setting", name)
    })
}

/// Returns the base URL in a setting, joined to `path` by one slash.
pub fn url(name: &str, path: &str) -> Result<String, Fault> {
    Ok(http::join(&required(name)?, path))
}
