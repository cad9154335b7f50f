//! The access token of all other requests: obtained with the account's keys, and cached until a
//! minute before it expires.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::http::Request;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{cache, loose, vault};

use crate::api::{self, ResponseTimeout};

const CACHE_KEY: &str = "access_token";
const EXPIRY_MARGIN_SECONDS: u32 = 60;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Login {
    access_token: String,
    #[serde(default)]
    expires_in: Value,
}

/// Returns the cached token, or a new one.
pub(crate) fn get_or_log_in(wait: ResponseTimeout) -> Result<String, Fault> {
    cache::get(CACHE_KEY).map_or_else(|| log_in(wait), Ok)
}

/// Obtains a new token and replaces the cached one.
pub(crate) fn log_in(wait: ResponseTimeout) -> Result<String, Fault> {
    let credentials = vault::basic(api::API_KEY, api::SECRET_KEY)?;
    let login = Request::post(api::url("/api/v1/auth/login")?).basic(&credentials);
    let Login { access_token, expires_in } = api::parse_envelope(&wait.send(login)?)?.read()?;
    let seconds = loose::text(&expires_in).parse::<u32>().unwrap_or(0);
    let kept = seconds.saturating_sub(EXPIRY_MARGIN_SECONDS);
    if kept > 0 {
        cache::put(CACHE_KEY, &access_token, kept);
    }
    Ok(access_token)
}
