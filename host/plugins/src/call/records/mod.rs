//! What providers record of payments: declines, disputes, transactions and settlements.

pub mod declines;
pub mod disputes;
pub mod settlements;
