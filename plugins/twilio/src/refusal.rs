//! The mapping of Twilio's codes and statuses to faults.

use tollhouse_plugin::types::Fault;

/// Maps HTTP statuses whose meaning does not depend on the body.
pub(crate) fn check_service(status: u16) -> Result<(), Fault> {
    let code = format!("http-{status}");
    match status {
        401 => Err(Fault::misconfigured("Twilio does not accept the account's SID and token")
            .with_code(&code)),
        408 | 429 | 500.. => {
            Err(Fault::unavailable(format!("Twilio returned {status}")).with_code(&code))
        }
        _ => Ok(()),
    }
}

/// Maps the codes of Twilio's error dictionary: 2xxxx refuse a request, 3xxxx concern a created
/// message.
pub(crate) fn fault(code: u64) -> Fault {
    let text = &code.to_string();
    let fault = match code {
        21211 | 21217 | 21604 | 21614 | 21635 => {
            Fault::invalid("to", "the number cannot receive messages")
        }
        21602 | 21605 | 21617 => Fault::invalid("text", "the text is empty or too long"),
        21214 | 21610 | 30004..=30006 => {
            Fault::refused(text, "the recipient is unreachable or has opted out")
        }
        20003 | 20005 | 20404 | 30002 => {
            Fault::misconfigured("the account is unknown or suspended")
        }
        21219 | 21408 | 21608 => {
            Fault::misconfigured("the account may not send to this country or number")
        }
        21212 | 21603 | 21606 | 21657 | 21659 | 21660 | 21701..=21705 | 30032 | 30034 => {
            Fault::misconfigured("the account may not use this sender")
        }
        20429 | 21611 | 30001 => Fault::unavailable("the account exceeds its sending rate"),
        21612 => Fault::unavailable("there is no route from the sender to the number"),
        30003 | 30007..=30010 => Fault::unavailable("the network did not accept the message"),
        _ => Fault::other("Twilio returned an unknown error code"),
    };
    fault.with_code(text)
}
