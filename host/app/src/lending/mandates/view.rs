//! Mandates in API responses and events, never with the token.

use super::{Mandate, MandateId, MandateState};
use crate::money::prelude::*;

/// A mandate to debit a bank account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DirectDebit")]
pub struct View {
    id: MandateId,
    /// The internal id of the account holder.
    user: UserKey,
    user_id: String,
    /// `true` if this is the customer's default mandate.
    default: bool,
    /// Only a `ready` mandate can be charged.
    status: MandateState,
    /// `false` blocks all debits. `true` only if the mandate is `ready`.
    active: bool,
    payment_service: String,
    currency: Currency,
    email: String,
    bank: String,
    /// The last digits of the account number; empty if the provider does not return them.
    last_4_digits: String,
    /// The maximum amount of one debit; `null` if none was sent.
    max_amount: Option<Minor>,
    /// The end of the mandate; `null` if none was sent.
    ends_at: Option<Timestamp>,
    /// The provider's reference; empty for a mandate of another system.
    service_ref: String,
    /// The provider's message about the last change.
    message: String,
    /// `null` for a mandate of another system.
    checkout: Option<Consent>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// How the customer authorizes the mandate. `url` and `instruction` are `null` once that is no
/// longer possible.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DirectDebitCheckout")]
struct Consent {
    success_url: String,
    /// The page of the provider on which the customer authorizes the mandate.
    url: Option<String>,
    /// An instruction to show to a customer who authorizes it elsewhere.
    instruction: Option<String>,
}

impl Mandate {
    pub fn view(&self) -> View {
        let is_open = self.state == MandateState::Created;
        let checkout = self.success_url.clone().map(|success_url| Consent {
            success_url,
            url: self.consent_url.clone().filter(|_| is_open),
            instruction: self.instruction.clone().filter(|_| is_open),
        });
        View {
            id: self.id.clone(),
            user: self.user_key.clone(),
            user_id: self.user_id.clone(),
            default: self.is_default,
            status: self.state,
            active: self.active,
            payment_service: self.payment_service.clone(),
            currency: self.currency.clone(),
            email: self.email.clone(),
            bank: self.bank.clone(),
            last_4_digits: self.last4.clone(),
            max_amount: self.max_amount,
            ends_at: self.ends_at,
            service_ref: self.service_ref.clone(),
            message: self.message.clone(),
            checkout,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}
