//! Cards in API responses and events, never with the token.

use super::{
    Card, CardId,
    store::{CardDetails, Checkout},
};
use crate::money::prelude::*;

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
    card: CardDetails,
    /// Identifies the physical card among the customer's cards at this provider.
    signature: String,
    /// The provider's reference of the verification charge.
    service_ref: String,
    /// The result of the verification; `null` until there is one.
    message: Option<String>,
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

impl Card {
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
            card: self.details.clone(),
            signature: self.signature.clone(),
            service_ref: self.service_ref.clone(),
            message: self.message.clone(),
        }
    }

    pub fn created(&self) -> Created {
        let checkout = self.checkout.clone();
        let (created_at, updated_at) = (self.created_at, self.updated_at);
        Created { card: self.kept(), checkout, created_at, updated_at }
    }
}
