//! Monnify: hosted checkout, verification, saved cards, direct debit, refunds and notifications.
//!
//! Amounts are decimals of the naira on the wire, numbers or texts; there is no other currency. Monnify has no idempotency
//! key: a `paymentReference` may be used once, and so may a `refundReference`. A repeated payment is refused as
//! `duplicate-reference` at checkout, and answered by the first one elsewhere. Cards carry no signature, so one is derived; a
//! token cannot be given back; where a customer who gives up goes cannot be told: it is where the others go.

mod api;
mod channels;
mod charge;
mod checkout;
mod instrument;
mod naira;
mod notifications;
mod refunds;
mod status;
mod token;
mod transaction;

/// The plugin.
#[derive(Debug)]
pub struct Monnify;

tollhouse_plugin::export!(
    Monnify: checkout, verification, saved_card, direct_debit, refunds, notifications
);

#[cfg(test)]
mod tests;
