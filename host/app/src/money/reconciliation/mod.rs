//! Reconciliation: compares the transactions and settlements that providers list with charges,
//! refunds and disputes.
//!
//! A daily job per provider account lists the transactions of a period that overlaps with the
//! previous one, then the settlements, then the payments of each new settlement. If a listed
//! transaction does not match, its charge is first verified by its own jobs. A remaining difference
//! raises an exception of kind `payment_not_recorded`, `fee_differs` and so on; so does a record
//! that the list lacks. Until an operator decides, the ledger account `suspense` holds the amount
//! of the difference, so that the account `provider:P` agrees with the provider.
//!
//! An operator can close a day that has no open exceptions. A later change to a closed day raises
//! another exception.
//!
//! - `compare`: compares a transaction with its record, pure;
//! - `listing`: the job, page by page;
//! - `claims`: finds the record that a listed transaction matches;
//! - `record`: records the transactions of a page;
//! - `settlements`: records settlements, and compares them with their payments;
//! - `check`: raises and resolves exceptions after a complete list;
//! - `differences`: exceptions of reconciliation, with their ledger transactions;
//! - `days`: the totals of a day, and closing it.

pub mod api;
mod check;
mod claims;
mod compare;
mod days;
mod differences;
mod listing;
mod record;
mod settlements;
mod store;

use self::compare::Comparison;

pub use self::{
    differences::{Remedy, check_remedy, resolve as resolve_difference},
    listing::{account_job, sweep},
};
use crate::money::prelude::*;
use serde::Deserialize;
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};
use tollhouse_plugins::ListedKind;

/// The job that lists the transactions and settlements of a provider account. Its subject is the
/// account.
pub const ACCOUNT_JOB: &str = "account.settlements";

const SETTLEMENT_DIFFERS: &str = "settlement_differs";
const CLOSED_DAY_CHANGED: &str = "closed_day_changed";

/// Returns the start of the UTC day that contains a time.
fn day_of(at: Timestamp) -> Timestamp {
    Timestamp(at.0.div_euclid(DAY_MS) * DAY_MS)
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum TransactionKind {
    Payment,
    Refund,
    /// The money of a lost dispute.
    Dispute,
}

text_columns!(TransactionKind);

impl TransactionKind {
    const ALL: [TransactionKind; 3] =
        [TransactionKind::Payment, TransactionKind::Refund, TransactionKind::Dispute];

    /// Returns the kind of exception for a record that the list lacks.
    fn not_listed(self) -> &'static str {
        match self {
            TransactionKind::Payment => "payment_not_listed",
            TransactionKind::Refund => "refund_not_listed",
            TransactionKind::Dispute => "dispute_not_listed",
        }
    }
}

impl From<ListedKind> for TransactionKind {
    fn from(kind: ListedKind) -> TransactionKind {
        match kind {
            ListedKind::Payment => TransactionKind::Payment,
            ListedKind::Refund => TransactionKind::Refund,
            ListedKind::Dispute => TransactionKind::Dispute,
        }
    }
}
