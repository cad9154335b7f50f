//! What the stand-ins of SMS gateways share: whom a text reaches, and the mailbox.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use tollhouse_platform::values::phone;

use crate::{env::Env, faults::FaultKind, mailbox::Message};

/// Endings of numbers that a text does not reach, and why, for people.
pub(crate) const ENDINGS: [(&str, &str); 3] = [
    (REFUSED, "refused by the recipient's network"),
    (UNKNOWN, "no number, says the gateway"),
    (OUT_OF_ORDER, "not now: the gateway is out of credit or too busy"),
];

const REFUSED: &str = "0000";
const UNKNOWN: &str = "0001";
const OUT_OF_ORDER: &str = "0002";

/// Why a text does not reach a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undeliverable {
    Refused,
    Unknown,
    Unavailable,
}

/// Whether a text to this number would arrive; `number` is in E.164.
///
/// # Errors
/// What the number's ending, its form, or the next fault of this gateway says.
pub(crate) fn check_deliverable(
    env: &Env,
    gateway: &str,
    number: &str,
) -> Result<(), Undeliverable> {
    if env.faults.take(gateway, FaultKind::is_outcome).is_some() {
        return Err(Undeliverable::Refused);
    }
    match number {
        number if !phone::is_e164(number) || number.ends_with(UNKNOWN) => {
            Err(Undeliverable::Unknown)
        }
        number if number.ends_with(REFUSED) => Err(Undeliverable::Refused),
        number if number.ends_with(OUT_OF_ORDER) => Err(Undeliverable::Unavailable),
        _ => Ok(()),
    }
}

pub(crate) fn deliver(env: &Env, from: &str, to: &str, text: &str) {
    env.mailbox.deliver(Message::sms(from, to, text, env.clock.now()));
}

/// 3 to 11 characters, of which one is a letter: what networks show instead of a number.
pub(crate) fn is_sender_name(sender: &str) -> bool {
    (3..=11).contains(&sender.len())
        && sender.bytes().all(|b| b.is_ascii_alphanumeric() || b" -_.".contains(&b))
        && sender.bytes().any(|b| b.is_ascii_alphabetic())
}

/// How many messages a text is sent as. Parts are shorter than a message alone, since they say what they are a part of;
/// what is not ASCII is counted as UCS-2, though GSM 03.38 has some of it.
pub(crate) fn segments(text: &str) -> usize {
    let units = text.encode_utf16().count();
    let (single, part) = if text.is_ascii() { (160, 153) } else { (70, 67) };
    if units <= single { 1 } else { units.div_ceil(part) }
}

/// The middleware of all gateways: what is being sent is under way.
pub(crate) async fn track_in_flight(
    State(env): State<Arc<Env>>,
    request: Request,
    next: Next,
) -> Response {
    let _flight = env.in_flight.begin();
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_several_messages() {
        for (text, count) in [
            (String::new(), 1),
            ("x".repeat(160), 1),
            ("x".repeat(161), 2),
            ("x".repeat(307), 3),
            ("é".repeat(70), 1),
            ("é".repeat(71), 2),
            // Outside of the basic plane: two units each.
            ("😀".repeat(36), 2),
        ] {
            assert_eq!(segments(&text), count, "{text}");
        }
    }

    #[test]
    fn senders_are_told_from_numbers() {
        for (sender, valid) in [
            ("Lender", true),
            ("Lend 24", true),
            ("abc", true),
            ("ab", false),
            ("Lenders Union", false),
            ("12345", false),
            ("Länder", false),
        ] {
            assert_eq!(is_sender_name(sender), valid, "{sender}");
        }
    }
}
