//! Paystack: hosted checkout, verification, saved cards, direct debit, refunds and notifications.
//!
//! Amounts are in the currency's minor unit on the wire as well. Paystack has no idempotency key: a reference may be used
//! once. A repeated one is refused as `duplicate-reference` at checkout, whereupon the host asks how that payment stands; a
//! repeated charge is answered by the first.

mod api;
mod charge;
mod checkout;
mod instrument;
mod loose;
mod notifications;
mod refunds;
mod transaction;

/// The plugin.
#[derive(Debug)]
pub struct Paystack;

tollhouse_plugin::export!(
    Paystack: checkout, verification, saved_card, direct_debit, refunds, notifications
);

#[cfg(test)]
mod tests;
