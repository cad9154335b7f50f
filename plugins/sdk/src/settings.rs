//! What the operator set for this plugin and these credentials; not secret.

use crate::types::Fault;
use crate::{http, port};

/// A setting, or the manifest's default for it.
pub fn get(name: &str) -> Option<String> {
    port::settings::get(name)
}

/// A setting, or `default` when neither the operator nor the manifest says anything.
pub fn get_or(name: &str, default: &str) -> String {
    get(name).unwrap_or_else(|| default.to_owned())
}

/// A setting that must be there: `misconfigured` when it is absent or empty.
pub fn required(name: &str) -> Result<String, Fault> {
    get(name).filter(|value| !value.is_empty()).ok_or_else(|| {
        Fault::misconfigured(format!("the setting {name} is missing")).with_detail("setting", name)
    })
}

/// The base URL that a setting holds, with `path` behind it and one slash between the two.
pub fn url(name: &str, path: &str) -> Result<String, Fault> {
    Ok(http::join(&required(name)?, path))
}
