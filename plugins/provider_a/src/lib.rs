//! Paystack: hosted checkout, verification, saved cards, mandates and direct debit, refunds,
//! disputes, settlements and webhooks.
//!
//! Amounts on the wire are in the currency's minor unit, as in the contract. Paystack has no
//! idempotency keys; instead, a reference can be used only once. At checkout, a repeated reference
//! is refused as `duplicate-reference`, and the host then verifies the payment. A repeated charge
//! returns the first charge.

mod api;
mod charge;
mod checkout;
mod disputes;
mod instrument;
mod loose;
mod mandates;
mod notifications;
mod refunds;
mod settlements;
mod transaction;

/// The plugin.
#[derive(Debug)]
pub struct Paystack;

tollhouse_plugin::export!(
    Paystack: checkout, verification, saved_card, direct_debit, partial_debits, declines, refunds,
    partial_refunds, disputes, settlements, mandates, notifications
);

#[cfg(test)]
mod tests;
