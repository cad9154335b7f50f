//! Requests, responses and results in short, readable form, safe to print to a terminal.

use std::fmt::Write;

use super::upstream::ObservedRequest;
use crate::{excerpt::excerpts, prelude::*};
use tollhouse_platform::values::money::Money;
use tollhouse_plugins::{IncomingTransfer, NotificationRefusal};

const MAX_CHARS: usize = 600;

pub fn request(seen: &ObservedRequest) -> String {
    with_body(format!("{} {} {}", seen.method, seen.url, headers(&seen.headers)), &seen.body)
}

pub fn notification(named: &[(String, String)], body: &[u8]) -> String {
    with_body(headers(named), body)
}

pub fn headers(named: &[(String, String)]) -> String {
    let all: Vec<String> = named.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("[{}]", all.join("; "))
}

pub fn response(response: &Result<EgressResponse, EgressError>) -> String {
    match response {
        Err(error) => error.to_string(),
        Ok(EgressResponse { status, body, .. }) => with_body(status.to_string(), body),
    }
}

fn with_body(line: String, body: &[u8]) -> String {
    if body.is_empty() { shorten(&line) } else { format!("{} {}", shorten(&line), bytes(body)) }
}

pub fn bytes(body: &[u8]) -> String {
    let shown = &body[..body.len().min(4 * MAX_CHARS)];
    let text = shorten(&String::from_utf8_lossy(shown));
    if shown.len() < body.len() && text.chars().count() < MAX_CHARS {
        return format!("{text}… ({} bytes)", body.len());
    }
    text
}

/// Truncates a text, and escapes invisible characters.
pub fn shorten(text: &str) -> String {
    let mut shown = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(MAX_CHARS) {
        match c {
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(c.escape_default());
            }
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    if chars.next().is_some() {
        let _ = write!(shown, "… ({} bytes)", text.len());
    }
    shown
}

/// Shows two texts from where they begin to differ.
pub fn first_difference(one: &str, other: &str) -> [String; 2] {
    const MAX_SHOWN_CHARS: usize = 60;
    excerpts(one, other, MAX_SHOWN_CHARS).map(|text| shorten(&text))
}

pub fn reply(reply: &Result<PluginReply, CallError>) -> String {
    let text = match reply {
        Err(CallError { fault, .. }) => {
            let category = word(fault.category);
            let code = if fault.code.is_empty() { "" } else { &*format!(" ({})", fault.code) };
            format!("{category}{code}: {}", fault.message)
        }
        Ok(PluginReply::Session(session)) => match &session.prompt {
            Some(prompt) => format!("a session with the prompt {prompt:?}"),
            None => format!("a session with the URL {:?}", session.url),
        },
        Ok(PluginReply::Payment(payment)) => {
            let status = word(payment.status);
            format!("a payment with status {status}, of {}", money(&payment.amount))
        }
        Ok(PluginReply::Deauthorized(done)) => format!("deauthorized: {done}"),
        Ok(PluginReply::Refund(refund)) => {
            let status = word(refund.status);
            format!("a refund with status {status} and id {:?}", refund.provider_id)
        }
        Ok(PluginReply::Parsed(Ok(notifications))) if notifications.is_empty() => {
            "accepted, without notifications".to_owned()
        }
        Ok(PluginReply::Parsed(Ok(notifications))) => {
            let about = notifications
                .iter()
                .map(|one| format!("{} {:?}", word(one.subject), one.service_ref));
            format!("accepted, about {}", about.collect::<Vec<_>>().join(", "))
        }
        Ok(PluginReply::Parsed(Err(NotificationRefusal::Unauthentic))) => "unauthentic".to_owned(),
        Ok(PluginReply::Parsed(Err(NotificationRefusal::Malformed(why)))) => {
            format!("malformed: {why}")
        }
        Ok(PluginReply::Received(data)) => format!("accepted, {} bytes of data", data.0.len()),
        Ok(PluginReply::Account(account)) => {
            format!("an account with id {:?}", account.provider_id)
        }
        Ok(PluginReply::Closed(done)) => format!("closed: {done}"),
        Ok(PluginReply::Transfer(Some(IncomingTransfer { payment, .. }))) => {
            let status = word(payment.status);
            format!("a transfer with status {status}, of {}", money(&payment.amount))
        }
        Ok(PluginReply::Transfer(None)) => "no transfer to a virtual account".to_owned(),
        Ok(PluginReply::Banks(banks)) => format!("{} banks", banks.len()),
        Ok(PluginReply::Disputes(page)) => format!("{} disputes", page.disputes.len()),
        Ok(PluginReply::Transactions(page)) => format!("{} transactions", page.transactions.len()),
        Ok(PluginReply::Settlements(page)) => format!("{} settlements", page.settlements.len()),
        Ok(PluginReply::Dispute(dispute)) => {
            format!("a dispute with status {}, of {}", word(dispute.status), money(&dispute.amount))
        }
        Ok(PluginReply::MandateSession(session)) => {
            format!("a mandate under the reference {:?}", session.service_ref)
        }
        Ok(PluginReply::Mandate(mandate)) => {
            format!("a mandate with status {}", word(mandate.status))
        }
        Ok(PluginReply::Cancelled(done)) => format!("cancelled: {done}"),
        Ok(PluginReply::Holder(_)) => "a name".to_owned(),
        Ok(PluginReply::Declined(reason)) => format!("the reason {}", word(reason)),
        Ok(PluginReply::Accepted(id)) => format!("an accepted message with id {id:?}"),
        Ok(PluginReply::Entry(_)) => "an entry".to_owned(),
        Ok(PluginReply::Compared((_, comparison))) => {
            format!("an entry; faces match: {}", comparison.matches)
        }
        Ok(PluginReply::Read((identifier, _))) => format!("an entry for {identifier:?}"),
    };
    shorten(&text)
}

/// Returns a value without fields in the contract's spelling.
fn word(value: impl Serialize) -> String {
    json!(value).as_str().unwrap_or_default().replace('_', "-")
}

pub fn money(money: &Money) -> String {
    format!("{} {}", money.currency, money.minor.to_major())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated_and_invisible_characters_escaped() {
        assert_eq!(shorten("a\r\n\u{202e}é"), "a\\r\\n\\u{202e}é");
        let long = shorten(&"é".repeat(MAX_CHARS + 1));
        assert!(long.starts_with("éé") && long.ends_with("… (1202 bytes)"), "{long}");
        assert_eq!(bytes(b"\xff{}"), "\u{fffd}{}");
        assert!(bytes(&vec![b'x'; 1 << 20]).len() < 2 * MAX_CHARS);
    }
}
