//! Cards in API responses and events, never with the token.

use schemars::JsonSchema;
use serde::Serialize;

use super::Card;
use crate::{customers::UserKey, money::cards::CardId};
use tollhouse_platform::{clock::Timestamp, values::money::Currency};

/// A saved card.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Card")]
pub struct View {
    #[serde(flatten)]
    card: Kept,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// The fields of a card without its timestamps.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Kept {
    id: CardId,
    /// The internal id of the user.
    user: UserKey,
    user_id: String,
    /// `true` if this is the customer's default card.
    default: bool,
    payment_service: String,
    /// `true` if the card can be charged.
    valid: bool,
    currency: Currency,
    card: Details,
    /// Identifies the physical card among the customer's cards at this provider.
    signature: String,
    /// The provider's reference of the verification charge.
    service_ref: String,
    /// The result of the verification; `null` until there is one.
    message: Option<String>,
}

/// Card details, empty until the card is verified.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "CardDetails")]
pub struct Details {
    last_4_digits: String,
    card_holder_name: String,
    /// The first six digits of the card number.
    bin: String,
    /// Card type, for example `visa`, `mastercard` or `verve`.
    card_type: String,
    bank: String,
    /// Two-letter country code.
    country_code: String,
    exp_month: String,
    exp_year: String,
    /// The user's e-mail address.
    email: String,
}

/// A new card with its checkout session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "CreatedCard")]
pub struct Created {
    #[serde(flatten)]
    card: Kept,
    checkout: Checkout,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// The checkout session in which the customer verifies the card.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "CardCheckout")]
pub struct Checkout {
    success_url: String,
    cancel_url: Option<String>,
    url: Option<String>,
}

pub type EventData = View;

impl Card {
    #[must_use]
    pub fn view(&self) -> View {
        let (created_at, updated_at) = (self.created_at, self.updated_at);
        View { card: self.kept(), created_at, updated_at }
    }

    fn kept(&self) -> Kept {
        Kept {
            id: self.id.clone(),
            user: self.user_key.clone(),
            user_id: self.user_id.clone(),
            default: self.is_default,
            payment_service: self.payment_service.clone(),
            valid: self.is_valid(),
            currency: self.currency.clone(),
            card: Details {
                last_4_digits: self.last4.clone(),
                card_holder_name: self.holder.clone(),
                bin: self.bin.clone(),
                card_type: self.brand.clone(),
                bank: self.bank.clone(),
                country_code: self.country.clone(),
                exp_month: self.exp_month.clone(),
                exp_year: self.exp_year.clone(),
                email: self.email.clone(),
            },
            signature: self.signature.clone(),
            service_ref: self.service_ref.clone(),
            message: self.message.clone(),
        }
    }

    #[must_use]
    pub fn created(&self) -> Created {
        let checkout = Checkout {
            success_url: self.success_url.clone(),
            cancel_url: self.cancel_url.clone(),
            url: self.checkout_url.clone(),
        };
        let (created_at, updated_at) = (self.created_at, self.updated_at);
        Created { card: self.kept(), checkout, created_at, updated_at }
    }
}
