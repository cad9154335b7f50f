//! Prembly (IdentityPass): its protocol, for the plugins of the countries that it serves. Not a
//! plugin itself.
//!
//! All requests are POST with JSON. Errors are in `response_code`, often with HTTP 200 and `status:
//! true`. Prembly's messages are never forwarded, because they may contain personal data.
//!
//! A plugin that uses this crate has the secret [`KEY`] and the settings `prembly_url`,
//! `prembly_prefix` and, if the account needs it, `prembly_app_id`.

mod face;
mod refusal;
mod response;

use serde_json::Value;
use tollhouse_plugin::http::{self, Request};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

pub use response::LookupResult;

/// Name of the account's key in the manifest.
pub const KEY: &str = "prembly_key";

/// Sends a request to `path`, given without the prefix.
///
/// The faults `not-found`, `refused`, and `invalid` naming `identifier` or `image`, are final.
/// After any other fault, Prembly is unavailable; the code is [`NO_CREDIT`] if the account has no
/// credit left.
pub fn call(path: &str, body: &Value, timeout_ms: u32) -> Result<LookupResult, Fault> {
    let path = http::join(&settings::get_or("prembly_prefix", ""), path);
    let mut request = Request::post(settings::url("prembly_url", &path)?)
        .header("x-api-key", vault::secret(KEY)?)
        .json(body)
        .timeout_ms(timeout_ms);
    if let Some(id) = settings::get("prembly_app_id").filter(|id| !id.is_empty()) {
        request = request.header("app-id", id);
    }
    let response = request.send().map_err(refusal::no_response)?;
    response::parse(&response, body.get("image").is_some())
}

/// Fault code: the account has no credit left, so the operator must act.
pub const NO_CREDIT: &str = "no-credit";

#[cfg(test)]
mod tests;
