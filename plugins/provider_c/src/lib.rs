//! Monnify: hosted checkout, verification, saved cards, mandates and direct debit, refunds, virtual
//! accounts, account enquiry, settlements and webhooks.
//!
//! Amounts on the wire are decimals of the naira, as numbers or strings; there is no other
//! currency. Monnify has no idempotency keys; instead, a `paymentReference` can be used only once,
//! and so can a `refundReference`. At checkout, a repeated payment is refused as
//! `duplicate-reference`; a repeated charge returns the first charge. Cards have no signature, so
//! one is derived. Tokens cannot be revoked. There is no cancel URL: a customer who cancels is sent
//! to the success URL.

mod api;
mod channels;
mod charge;
mod checkout;
mod enquiry;
mod instrument;
mod mandates;
mod naira;
mod notifications;
mod refunds;
mod settlements;
mod status;
mod token;
mod transaction;
mod virtual_accounts;

/// The plugin.
#[derive(Debug)]
pub struct Monnify;

tollhouse_plugin::export!(
    Monnify: checkout, verification, saved_card, direct_debit, declines, refunds, partial_refunds,
    virtual_accounts, account_enquiry, settlements, mandates, notifications
);

#[cfg(test)]
mod tests;
