//! Monnify's test cards.

use crate::checkout::bare_number;

/// What a card asks of its holder when it is charged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Nothing,
    Otp,
    ThreeDSecure,
}

/// How a refund to a card ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returns {
    Completed,
    Failed,
    /// It is not even begun: the merchant's wallet has less.
    WalletShort,
}

#[derive(Debug)]
pub(super) struct Card {
    pub number: &'static str,
    pub meaning: &'static str,
    pub kind: &'static str,
    /// Why every charge of it fails, whatever the customer does.
    pub refusal: Option<&'static str>,
    pub asks: Asks,
    pub returns: Returns,
}

impl Card {
    pub(super) fn bin(&self) -> &'static str {
        &self.number[..6]
    }

    pub(super) fn last4(&self) -> &'static str {
        &self.number[self.number.len() - 4..]
    }

    /// `411111******1111`.
    pub(super) fn masked(&self) -> String {
        format!("{}******{}", self.bin(), self.last4())
    }
}

const fn card(number: &'static str, meaning: &'static str) -> Card {
    let kind = if number.as_bytes()[0] == b'4' { "VISA" } else { "VERVE" };
    let (asks, returns) = (Asks::Nothing, Returns::Completed);
    Card { number, meaning, kind, refusal: None, asks, returns }
}

/// The success card first: it is the one used when no other is named. The first four are Monnify's; it has none for the others.
pub(super) static CARDS: [Card; 7] = [
    card("4111111111111111", "succeeds"),
    Card {
        asks: Asks::Otp,
        ..card("5060995994247093", "succeeds; asks for an OTP when charged again")
    },
    Card {
        asks: Asks::ThreeDSecure,
        ..card("4000000000000002", "succeeds; asks for 3-D Secure when charged again")
    },
    Card { refusal: Some("Declined"), ..card("4111111111111110", "is declined") },
    Card {
        refusal: Some("Insufficient funds"),
        ..card("4000000000009995", "has insufficient funds")
    },
    Card { returns: Returns::Failed, ..card("5061020000000000094", "succeeds; refunds fail") },
    Card {
        returns: Returns::WalletShort,
        ..card("5061020000000000086", "succeeds; refunds find the wallet short")
    },
];

pub(super) fn find(number: &str) -> Option<&'static Card> {
    let digits = bare_number(number);
    CARDS.iter().find(|card| card.number == digits)
}
