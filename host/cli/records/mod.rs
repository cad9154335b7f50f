//! Commands on the records of companies: payments, loans, messages and others.

pub mod card_refund;
pub mod collections;
pub mod direct_debit;
pub mod event;
pub mod identity;
pub mod job;
pub mod loan;
pub mod message;
pub mod payment;
pub mod reconcile;
