//! Paystack's test cards, and BIN lookups.

use axum::extract::Path;
use serde_json::json;

use super::http::{ApiError, ApiKey, ApiResult, Reply};
use crate::checkout::normalize_card_number;

/// The outcome of charges of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChargeOutcome {
    Succeeds,
    /// With this `gateway_response`, regardless of the customer's choice.
    Fails(&'static str),
}

/// The outcome of refunds to a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefundOutcome {
    Processed,
    Failed,
    NeedsAttention,
}

#[derive(Debug)]
pub(super) struct Card {
    pub number: &'static str,
    pub meaning: &'static str,
    pub brand: &'static str,
    /// With the trailing space that Paystack sends.
    pub card_type: &'static str,
    pub charge_outcome: ChargeOutcome,
    pub refund_outcome: RefundOutcome,
}

impl Card {
    pub(super) fn bin(&self) -> &'static str {
        &self.number[..6]
    }

    pub(super) fn last4(&self) -> &'static str {
        &self.number[self.number.len() - 4..]
    }
}

const fn card(number: &'static str, meaning: &'static str, brand: &'static str) -> Card {
    let card_type = match brand.as_bytes()[0] {
        b'm' => "mastercard DEBIT",
        b'v' if brand.as_bytes()[1] == b'i' => "visa ",
        _ => "verve ",
    };
    let (charge, returns) = (ChargeOutcome::Succeeds, RefundOutcome::Processed);
    Card { number, meaning, brand, card_type, charge_outcome: charge, refund_outcome: returns }
}

/// The success card is first, because it is the default.
pub(super) static CARDS: [Card; 10] = [
    card("4084084084084081", "succeeds", "visa"),
    card("507850785078507812", "succeeds with a PIN", "verve"),
    card("5060666666666666666", "succeeds with PIN and OTP", "verve"),
    card("507850785078507804", "succeeds with PIN, phone and OTP", "verve"),
    card("5192602720584796", "succeeds after the bank's page", "mastercard"),
    Card {
        charge_outcome: ChargeOutcome::Fails("Declined"),
        ..card("4084080000005408", "is declined", "visa")
    },
    Card {
        charge_outcome: ChargeOutcome::Fails(
            "Token Not Generated. Customer Not Registered on Token Platform",
        ),
        ..card("507850785078507853", "fails without a token", "verve")
    },
    Card {
        charge_outcome: ChargeOutcome::Fails("Insufficient Funds"),
        ..card("4084080000670037", "has insufficient funds", "visa")
    },
    Card {
        refund_outcome: RefundOutcome::Failed,
        ..card("4084080000671803", "succeeds; refunds fail", "visa")
    },
    Card {
        refund_outcome: RefundOutcome::NeedsAttention,
        ..card("4084080000671902", "succeeds; refunds need attention", "visa")
    },
];

/// Finds a card by its number, with or without spaces.
pub(super) fn find(number: &str) -> Option<&'static Card> {
    let digits = normalize_card_number(number);
    CARDS.iter().find(|card| card.number == digits)
}

pub(super) async fn resolve_bin(_: ApiKey, Path(bin): Path<String>) -> ApiResult {
    let Some(card) = CARDS.iter().find(|card| card.bin() == bin) else {
        return Err(ApiError::invalid(
            "invalid_bin",
            "Could not resolve BIN",
            "Provide the first 6 digits of the card",
        ));
    };
    let mut brand = card.brand.to_owned();
    brand[..1].make_ascii_uppercase();
    let data = json!({
        "bin": card.bin(), "brand": brand, "sub_brand": "", "country_code": "NG",
        "country_name": "Nigeria", "card_type": "DEBIT", "bank": "TEST BANK", "currency": "NGN",
        "linked_bank_id": 24,
    });
    Ok(Reply::new("Bin resolved", data))
}
