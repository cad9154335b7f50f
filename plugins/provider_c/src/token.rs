//! The access token that all other calls need: asked for with the account's keys, and kept until a minute before its end.

use serde::Deserialize;
use serde_json::Value;
use tollhouse_plugin::http::Request;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{cache, loose, vault};

use crate::api::{self, Wait};

const KEPT_AS: &str = "access_token";
const MARGIN_SECONDS: u32 = 60;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Login {
    access_token: String,
    #[serde(default)]
    expires_in: Value,
}

/// The token of an earlier call, or a new one.
pub(crate) fn get(wait: Wait) -> Result<String, Fault> {
    cache::get(KEPT_AS).map_or_else(|| renew(wait), Ok)
}

/// A new one, whatever was kept.
pub(crate) fn renew(wait: Wait) -> Result<String, Fault> {
    let credentials = vault::basic(api::API_KEY, api::SECRET_KEY)?;
    let login = Request::post(api::url("/api/v1/auth/login")?).basic(&credentials);
    let Login { access_token, expires_in } = api::read(&wait.send(login)?)?.read()?;
    let seconds = loose::text(&expires_in).parse::<u32>().unwrap_or(0);
    let kept = seconds.saturating_sub(MARGIN_SECONDS);
    if kept > 0 {
        cache::put(KEPT_AS, &access_token, kept);
    }
    Ok(access_token)
}
