//! Monnify's test cards.

use crate::checkout::normalize_card_number;

/// The authentication that a card requires when it is charged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CardChallenge {
    NotRequired,
    Otp,
    ThreeDSecure,
}

/// The outcome of refunds to a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefundOutcome {
    Completed,
    Failed,
    /// Refused immediately: the merchant's wallet balance is too low.
    InsufficientBalance,
}

#[derive(Debug)]
pub(super) struct Card {
    pub number: &'static str,
    pub meaning: &'static str,
    pub kind: &'static str,
    /// The reason for which every charge fails, regardless of the customer's choice.
    pub decline_reason: Option<&'static str>,
    pub challenge: CardChallenge,
    pub refund_outcome: RefundOutcome,
}

impl Card {
    pub(super) fn bin(&self) -> &'static str {
        &self.number[..6]
    }

    pub(super) fn last4(&self) -> &'static str {
        &self.number[self.number.len() - 4..]
    }

    /// Returns `411111******1111`.
    pub(super) fn masked(&self) -> String {
        format!("{}******{}", self.bin(), self.last4())
    }
}

const fn card(number: &'static str, meaning: &'static str) -> Card {
    let kind = if number.as_bytes()[0] == b'4' { "VISA" } else { "VERVE" };
    let (challenge, refund_outcome) = (CardChallenge::NotRequired, RefundOutcome::Completed);
    Card { number, meaning, kind, decline_reason: None, challenge, refund_outcome }
}

/// The success card is first, because it is the default. The first four are Monnify's; it has no
/// test cards for the other cases.
pub(super) static CARDS: [Card; 7] = [
    card("4111111111111111", "succeeds"),
    Card {
        challenge: CardChallenge::Otp,
        ..card("5060995994247093", "succeeds; requires an OTP when charged again")
    },
    Card {
        challenge: CardChallenge::ThreeDSecure,
        ..card("4000000000000002", "succeeds; requires 3-D Secure when charged again")
    },
    Card { decline_reason: Some("Declined"), ..card("4111111111111110", "is declined") },
    Card {
        decline_reason: Some("Insufficient funds"),
        ..card("4000000000009995", "has insufficient funds")
    },
    Card {
        refund_outcome: RefundOutcome::Failed,
        ..card("5061020000000000094", "succeeds; refunds fail")
    },
    Card {
        refund_outcome: RefundOutcome::InsufficientBalance,
        ..card("5061020000000000086", "succeeds; refunds exceed the wallet balance")
    },
];

pub(super) fn find(number: &str) -> Option<&'static Card> {
    let digits = normalize_card_number(number);
    CARDS.iter().find(|card| card.number == digits)
}
