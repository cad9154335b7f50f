//! What providers record of payments: disputes, transactions and settlements.

pub mod disputes;
pub mod settlements;
