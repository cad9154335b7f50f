//! Taking money through a provider and refunding it: charges, payments and saved cards.

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
