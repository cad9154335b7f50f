//! Reasons of declined charges, recognized by words in the bank's message.

use crate::declines::DeclineReason;

/// Words of banks and switches, in lower case, with their reasons. The first match counts.
const WORDS: [(&str, DeclineReason); 29] = [
    ("insufficient", DeclineReason::InsufficientFunds),
    ("not sufficient", DeclineReason::InsufficientFunds),
    ("low balance", DeclineReason::InsufficientFunds),
    ("expired", DeclineReason::Expired),
    ("lost card", DeclineReason::LostOrStolen),
    ("stolen", DeclineReason::LostOrStolen),
    ("pick-up", DeclineReason::LostOrStolen),
    ("pick up", DeclineReason::LostOrStolen),
    ("restricted", DeclineReason::Blocked),
    ("blocked", DeclineReason::Blocked),
    ("hotlisted", DeclineReason::Blocked),
    ("inactive card", DeclineReason::Blocked),
    ("dormant", DeclineReason::Blocked),
    ("closed account", DeclineReason::Blocked),
    ("account closed", DeclineReason::Blocked),
    ("no debit", DeclineReason::Blocked),
    ("not permitted to cardholder", DeclineReason::Blocked),
    ("limit", DeclineReason::Limit),
    ("withdrawal frequency", DeclineReason::Limit),
    ("inoperative", DeclineReason::TryLater),
    ("system malfunction", DeclineReason::TryLater),
    ("unable to route", DeclineReason::TryLater),
    ("could not be reached", DeclineReason::TryLater),
    ("unavailable", DeclineReason::TryLater),
    ("timeout", DeclineReason::TryLater),
    ("timed out", DeclineReason::TryLater),
    ("try again", DeclineReason::TryLater),
    ("try later", DeclineReason::TryLater),
    ("re-enter", DeclineReason::TryLater),
];

impl DeclineReason {
    /// Returns the reason that a text of a bank or a switch states, ignoring case, or else `Other`.
    pub fn from_words(text: &str) -> DeclineReason {
        let text = text.to_lowercase();
        let found = WORDS.iter().find(|(words, _)| text.contains(words));
        found.map_or(DeclineReason::Other, |(_, reason)| *reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_banks_have_reasons_and_other_words_are_other() {
        for (text, reason) in [
            ("Insufficient Funds", DeclineReason::InsufficientFunds),
            ("INSUFFICIENT_FUNDS", DeclineReason::InsufficientFunds),
            ("Expired card", DeclineReason::Expired),
            ("Lost Card, Pick-Up", DeclineReason::LostOrStolen),
            ("Restricted Card", DeclineReason::Blocked),
            ("Transaction not permitted to cardholder", DeclineReason::Blocked),
            ("Exceeds Withdrawal Limit", DeclineReason::Limit),
            ("Exceeds withdrawal frequency", DeclineReason::Limit),
            ("Issuer or Switch Inoperative", DeclineReason::TryLater),
            ("Declined", DeclineReason::Other),
            ("Do not honor", DeclineReason::Other),
            ("", DeclineReason::Other),
        ] {
            assert_eq!(DeclineReason::from_words(text), reason, "{text}");
        }
    }
}
