//! Flutterwave (v3): hosted checkout, verification, saved cards, direct debit, refunds, disputes,
//! settlements and webhooks.
//!
//! Amounts on the wire are decimals in the major unit. Flutterwave has no idempotency keys;
//! instead, a `tx_ref` can be used only once. At checkout, a repeated one is refused as
//! `duplicate-reference`; a repeated charge returns the first charge. Cards have no signature, so
//! one is derived. Tokens cannot be revoked. There is no cancel URL: a customer who cancels is sent
//! to the success URL with `status=cancelled`. Returned money does not change the status of a
//! transaction, so verification also reads its refunds and chargebacks.

mod api;
mod channels;
mod charge;
mod checkout;
mod disputes;
mod instrument;
mod list;
mod notifications;
mod refunds;
mod reversal;
mod settlements;
mod transaction;

/// The plugin.
#[derive(Debug)]
pub struct Flutterwave;

tollhouse_plugin::export!(
    Flutterwave: checkout, verification, saved_card, direct_debit, declines, refunds, partial_refunds,
    disputes, settlements, notifications
);

#[cfg(test)]
mod tests;
