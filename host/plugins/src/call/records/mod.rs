//! What providers record of payers and payments: declines, mandates, disputes, transactions and
//! settlements.

pub mod declines;
pub mod disputes;
pub mod mandates;
pub mod settlements;
