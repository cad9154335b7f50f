//! What the hosted checkout page knows.

use serde::{Deserialize, Serialize};

/// What the customer does on the hosted page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Success,
    Failed,
    Abandoned,
}

/// A checkout as its page shows it.
pub(crate) struct Checkout {
    pub id: String,
    pub provider: &'static str,
    pub merchant: String,
    pub email: String,
    /// `None`: a mandate is authorised, nothing is paid.
    pub amount: Option<(u64, String)>,
    pub reference: String,
    /// False once it is paid or authorised.
    pub open: bool,
    /// Number and what it does, the success card first.
    pub cards: Vec<(&'static str, &'static str)>,
}

/// What came of completing a checkout.
#[derive(Debug)]
pub(crate) struct Completion {
    pub outcome: Outcome,
    /// Where the customer's browser goes now.
    pub redirect_url: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CompletionError {
    AlreadyPaid,
    UnknownCard,
    /// A card for what is not paid by card.
    CardNotAccepted,
}

/// A card's number without the blanks between its groups.
pub(crate) fn normalize_card_number(number: &str) -> String {
    number.chars().filter(|c| !c.is_whitespace()).collect()
}
