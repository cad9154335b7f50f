//! Ghana's registers, through Prembly.
//!
//! Prembly's messages are never forwarded, and log lines never contain personal data.

mod identity;
mod shapes;

use serde_json::json;
use tollhouse_plugin::identity::{Entry, Image, Question};
use tollhouse_plugin::identity_face::{self, Compared};
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::{identity_lookup, log, normal};

use crate::identity::IdentityType;

/// A call has 30 s, of which one second is left to the host.
const CALL_TIMEOUT_MS: u32 = 29_000;

/// The plugin.
#[derive(Debug)]
pub struct Ghana;

tollhouse_plugin::export!(Ghana: identity_lookup, identity_face);

impl identity_lookup::Guest for Ghana {
    fn lookup(question: Question) -> Result<Entry, Fault> {
        let identity = IdentityType::from_name(&question.identity)?;
        let result = identity.look_up(&question, CALL_TIMEOUT_MS).inspect_err(log_failure)?;
        Ok(identity.shape().entry(&result.record))
    }
}

impl identity_face::Guest for Ghana {
    fn compare(question: Question, selfie: Image) -> Result<Compared, Fault> {
        let identity = IdentityType::from_name(&question.identity)?;
        if identity != IdentityType::Ssnit {
            return Err(Fault::invalid("identity", "this identity type has no face comparison"));
        }
        let body = json!({"number": question.identifier, "image": normal::base64(&selfie.bytes)});
        let result =
            prembly::call("gh/ssnit/face", &body, CALL_TIMEOUT_MS).inspect_err(log_failure)?;
        let comparison = result.comparison().inspect_err(log_failure)?;
        Ok(Compared { entry: identity.shape().entry(&result.record), comparison })
    }
}

/// Logs faults that an operator should resolve.
fn log_failure(fault: &Fault) {
    if fault.code == prembly::NO_CREDIT {
        log::error("Prembly is unavailable: the account has no credit left");
    } else if matches!(fault.category, FaultCategory::Unavailable | FaultCategory::Misconfigured) {
        log::warn(&format!("Prembly is unavailable: {} ({})", fault.message, fault.code));
    }
}

#[cfg(test)]
mod tests;
