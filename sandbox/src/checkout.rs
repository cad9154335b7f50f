//! The state of a hosted checkout page.

use serde::{Deserialize, Serialize};

/// The customer's choice on the hosted page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Success,
    Failed,
    Abandoned,
}

/// A checkout as shown on its page.
pub(crate) struct Checkout {
    pub id: String,
    pub provider: &'static str,
    pub merchant: String,
    /// The customer's e-mail address, or the phone number if the provider has no address.
    pub payer: String,
    /// `None`: a mandate is authorized, and nothing is paid.
    pub amount: Option<(u64, String)>,
    pub reference: String,
    /// False once no further attempt is possible.
    pub open: bool,
    /// Number and outcome of each test card, the success card first.
    pub cards: Vec<(&'static str, &'static str)>,
}

/// The result of completing a checkout.
#[derive(Debug)]
pub(crate) struct Completion {
    pub outcome: Outcome,
    /// URL to which the customer's browser is redirected.
    pub redirect_url: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CompletionError {
    AlreadyPaid,
    UnknownCard,
    /// A card was given for a checkout that is not paid by card.
    CardNotAccepted,
}

/// Rejects a prompt that is closed, or a card, which prompts do not accept.
pub(crate) fn check_prompt(is_open: bool, card: Option<&str>) -> Result<(), CompletionError> {
    match card {
        _ if !is_open => Err(CompletionError::AlreadyPaid),
        Some(_) => Err(CompletionError::CardNotAccepted),
        None => Ok(()),
    }
}

/// Returns a card number without the spaces between its groups.
pub(crate) fn normalize_card_number(number: &str) -> String {
    number.chars().filter(|c| !c.is_whitespace()).collect()
}
