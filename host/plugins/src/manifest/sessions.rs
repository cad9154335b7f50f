//! The manifest key `sessions`: how the provider treats payments of the interface of that name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules of the interface `sessions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
// An unknown key could be a rule that this host would ignore.
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SessionRules")]
pub struct SessionRules {
    /// `true`: the provider sends a prompt to the payer's phone. Payments then require a phone
    /// number, and the prompt may reach the payer even if the response is lost.
    pub push: bool,
    pub lookup: Lookup,
    /// The time after which a payer can no longer confirm, in seconds. Required with `push`, and if
    /// `lookup` is `state`.
    pub expires_s: u32,
}

/// The data by which a payment is found at the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SessionLookup")]
pub enum Lookup {
    /// The reference.
    #[default]
    Reference,
    /// Only the data that `start` or a notification returned.
    State,
}

impl SessionRules {
    /// Maximum of `expires_s`: a day.
    const MAX_EXPIRES_S: u32 = 86_400;

    pub(super) fn is_default(&self) -> bool {
        *self == SessionRules::default()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.outlives_response() && self.expires_s == 0 {
            let why = "is required if sessions.push is true or sessions.lookup is \"state\"";
            return Err(format!("the manifest's sessions.expires_s {why}"));
        }
        if self.expires_s > Self::MAX_EXPIRES_S {
            let most = Self::MAX_EXPIRES_S;
            return Err(format!("the manifest's sessions.expires_s must be at most {most}"));
        }
        Ok(())
    }

    /// Returns whether the host generates all references. Under a caller's reference, a payment
    /// whose response was lost could not be distinguished from a payment by another system.
    #[must_use]
    pub fn needs_own_reference(&self) -> bool {
        self.push && !self.is_found_by_state()
    }

    /// Returns whether only the response or a notification identifies the session.
    #[must_use]
    pub fn is_found_by_state(&self) -> bool {
        self.lookup == Lookup::State
    }

    /// Returns whether a session can be confirmed although its response was lost. Another one must
    /// not begin before it has expired.
    #[must_use]
    pub fn outlives_response(&self) -> bool {
        self.push || self.is_found_by_state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_outlives_its_response_must_expire() {
        for (json, valid, outlives_response) in [
            ("{}", true, false),
            (r#"{"lookup": "reference", "expires_s": 60}"#, true, false),
            (r#"{"push": true, "expires_s": 60}"#, true, true),
            (r#"{"push": true}"#, false, true),
            (r#"{"lookup": "state", "expires_s": 90}"#, true, true),
            (r#"{"lookup": "state"}"#, false, true),
            (r#"{"lookup": "state", "expires_s": 86401}"#, false, true),
        ] {
            let rules: SessionRules = serde_json::from_str(json).unwrap();
            assert_eq!(rules.check().is_ok(), valid, "{json}: {:?}", rules.check());
            assert_eq!(rules.outlives_response(), outlives_response, "{json}");
        }
    }
}
