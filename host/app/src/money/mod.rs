//! Taking money through providers, refunding it, and reconciling it with their records.

pub mod cards;
pub mod charges;
pub mod disputes;
pub mod enquiry;
pub mod exceptions;
pub mod payments;
pub mod prelude;
pub mod reconciliation;
pub mod refunds;
pub mod routing;
pub mod totals;
