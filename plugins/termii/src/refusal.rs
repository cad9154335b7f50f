//! The mapping of Termii's messages and statuses to faults.

use tollhouse_plugin::types::Fault;

/// Maps HTTP statuses whose meaning does not depend on the body.
pub(crate) fn check_service(status: u16) -> Result<(), Fault> {
    let code = format!("http-{status}");
    match status {
        401 | 403 => {
            Err(Fault::misconfigured("Termii does not accept the API key").with_code(&code))
        }
        408 | 429 | 500.. => {
            Err(Fault::unavailable(format!("Termii returned {status}")).with_code(&code))
        }
        _ => Ok(()),
    }
}

/// Maps an error message. The order of the conditions matters: "DND Active on Phone Number" is not
/// about the account, and "Invalid Sender Id" not about the recipient.
pub(crate) fn fault(status: u16, words: &str) -> Fault {
    let words = words.to_lowercase();
    let mentions = |any: &[&str]| any.iter().any(|word| words.contains(word));
    if mentions(&["dnd active", "blacklist"]) {
        Fault::refused("do-not-disturb", "the recipient has opted out of such messages")
    } else if mentions(&["insufficient", "balance"]) {
        Fault::unavailable("the account has no credit left").with_code("no-credit")
    } else if mentions(&["limit"]) {
        Fault::unavailable("the account has reached its sending limit").with_code("limit")
    } else if mentions(&["sender"]) {
        Fault::misconfigured("the sender is not registered").with_code("sender")
    } else if mentions(&["api key", "not active", "inactive", "not set up", "route", "country"]) {
        Fault::misconfigured("the account may not send to this country or by this route")
            .with_code("account")
    } else if mentions(&["phone", "number", "recipient", "destination"]) {
        Fault::invalid("to", "the number is not valid").with_code("number")
    } else if (400..500).contains(&status) {
        Fault::other(format!("Termii returned {status}")).with_code(&format!("http-{status}"))
    } else {
        Fault::unavailable("Termii did not confirm that it accepted the message")
            .with_code("unexpected-answer")
    }
}
