//! Client errors for requests about a user that a provider rejected. They contain no message of a
//! plugin.

use crate::money::prelude::*;

/// Returns the client's error. Names only fields in `fields`; `purpose` completes "PROVIDER refused
/// to …".
pub fn client_error(error: CallError, provider: &str, fields: &[&str], purpose: &str) -> Error {
    if !error.is_certain_rejection() {
        return error.into_private_error(provider);
    }
    Error::Invalid(match error.fault.detail("field") {
        Some(field) if fields.contains(&field) => {
            format!("the {field} field must be one that {provider} accepts")
        }
        Some("email") => format!("{provider} does not accept the user's e-mail address"),
        Some("phone") => format!("{provider} does not accept the user's phone number"),
        _ => format!("{provider} refused to {purpose} for this user"),
    })
}
