//! Flutterwave (v3): hosted checkout, verification, saved cards, direct debit, refunds and notifications.
//!
//! Amounts are decimals of the major unit on the wire. Flutterwave has no idempotency key: a `tx_ref` may be used once. A
//! repeated one is refused as `duplicate-reference` at checkout, and answered by the first charge elsewhere. Cards carry no
//! signature, so one is derived; a token cannot be given back; where a customer who gives up goes cannot be told: it is
//! where the others go, with `status=cancelled`.

mod api;
mod channels;
mod charge;
mod checkout;
mod instrument;
mod notifications;
mod refunds;
mod transaction;

/// The plugin.
#[derive(Debug)]
pub struct Flutterwave;

tollhouse_plugin::export!(
    Flutterwave: checkout, verification, saved_card, direct_debit, refunds, notifications
);

#[cfg(test)]
mod tests;
