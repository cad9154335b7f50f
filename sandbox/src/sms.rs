//! The common part of all simulators of SMS gateways: which numbers are reached, and delivery to
//! the mailbox.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use tollhouse_platform::values::phone;

use crate::{env::Env, faults::FaultKind, mailbox::Message};

/// Endings of numbers that are not reached, and the reason, for the front page.
pub(crate) const ENDINGS: [(&str, &str); 3] = [
    (REFUSED, "refused by the recipient's network"),
    (UNKNOWN, "not a valid number, according to the gateway"),
    (OUT_OF_ORDER, "the gateway is out of credit or overloaded"),
];

const REFUSED: &str = "0000";
const UNKNOWN: &str = "0001";
const OUT_OF_ORDER: &str = "0002";

/// The reason why a text message does not reach a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undeliverable {
    Refused,
    Unknown,
    Unavailable,
}

/// Checks whether a text message to this number would arrive; `number` is in E.164.
///
/// # Errors
/// As selected by the number's ending, its format, or the next fault of this gateway.
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

/// Returns whether this is an alphanumeric sender: 3 to 11 characters with at least one letter.
pub(crate) fn is_sender_name(sender: &str) -> bool {
    (3..=11).contains(&sender.len())
        && sender.bytes().all(|b| b.is_ascii_alphanumeric() || b" -_.".contains(&b))
        && sender.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Returns the number of messages in which a text is sent. Parts are shorter than a single message,
/// because of their header. All text that is not ASCII counts as UCS-2, although GSM 03.38 has some
/// of its characters.
pub(crate) fn segments(text: &str) -> usize {
    let units = text.encode_utf16().count();
    let (single, part) = if text.is_ascii() { (160, 153) } else { (70, 67) };
    if units <= single { 1 } else { units.div_ceil(part) }
}

/// Middleware of all gateways: counts a message as in flight.
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
    fn long_texts_are_split_into_several_messages() {
        for (text, count) in [
            (String::new(), 1),
            ("x".repeat(160), 1),
            ("x".repeat(161), 2),
            ("x".repeat(307), 3),
            ("é".repeat(70), 1),
            ("é".repeat(71), 2),
            // Outside the Basic Multilingual Plane: two units per character.
            ("😀".repeat(36), 2),
        ] {
            assert_eq!(segments(&text), count, "{text}");
        }
    }

    #[test]
    fn sender_names_are_distinguished_from_numbers() {
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
