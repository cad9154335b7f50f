//! Prembly (IdentityPass): one call to it, for the plugins of the countries that it serves. No plugin itself.
//!
//! All calls are POST with JSON. What went wrong stands in `response_code`, often behind HTTP 200 and `status: true`. Nothing
//! of Prembly's own words is handed on: they may name people.
//!
//! A plugin that uses it has the secret [`KEY`] and the settings `prembly_url`, `prembly_prefix` and, unless the account works
//! without, `prembly_app_id`.

mod face;
mod refusal;
mod response;

use serde_json::Value;
use tollhouse_plugin::http::{self, Request};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

pub use response::LookupResult;

/// The manifest's name for the account's key.
pub const KEY: &str = "prembly_key";

/// Asks what stands under `path`, which is without the prefix. `not-found`, `invalid` naming `identifier` or `image`, and
/// `refused` are Prembly's last word; with all other faults Prembly is out of order, with the code [`NO_CREDIT`] because the
/// account has nothing left.
pub fn call(path: &str, body: &Value, timeout_ms: u32) -> Result<LookupResult, Fault> {
    let path = http::join(&settings::get_or("prembly_prefix", ""), path);
    let mut request = Request::post(settings::url("prembly_url", &path)?)
        .header("x-api-key", vault::secret(KEY)?)
        .json(body)
        .timeout_ms(timeout_ms);
    if let Some(id) = settings::get("prembly_app_id").filter(|id| !id.is_empty()) {
        request = request.header("app-id", id);
    }
    let answer = request.send().map_err(refusal::no_response)?;
    response::parse(&answer, body.get("image").is_some())
}

/// The code of a fault that says that the account has no money left: the operator must act.
pub const NO_CREDIT: &str = "no-credit";

#[cfg(test)]
mod tests;
