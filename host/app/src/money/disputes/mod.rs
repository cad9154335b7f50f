//! Disputes: claims of payers, through their banks, against charges.
//!
//! The provider decides a dispute; this slice records what it reports. Until then, the ledger holds
//! the disputed money of a charge at the service account in `disputed`, even if that makes the
//! wallet negative: the provider has deducted the money. If the dispute is lost, the money goes to
//! the provider; if it is won, it is returned. Only a verification reverses the charge itself.
//!
//! - `state`: decides the effects of a report, pure;
//! - `record`: records a report with its ledger transactions and events in one transaction;
//! - `jobs`: queries providers after webhooks and by schedule.

pub mod api;
mod jobs;
mod record;
mod state;
mod store;

pub use self::{
    jobs::{account_job, disputes_job, sweep},
    record::EventData,
    store::{Dispute, list_of_charge},
};
use crate::money::prelude::*;
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

/// The job that lists the disputes of a provider account. Its subject is the account.
pub const ACCOUNT_JOB: &str = "account.disputes";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum DisputeState {
    /// The provider waits for an answer.
    Open,
    /// Contested: the bank decides.
    Answered,
    /// The company keeps the money.
    Won,
    /// The payer gets the money.
    Lost,
}

text_columns!(DisputeState);

impl DisputeState {
    pub fn is_closed(self) -> bool {
        matches!(self, DisputeState::Won | DisputeState::Lost)
    }
}

impl Dispute {
    /// Returns the keys of its ledger transactions.
    pub fn ledger_keys(&self) -> impl Iterator<Item = String> {
        (1..=self.postings).map(|n| charges::dispute_key(&self.charge_id, &self.id, n))
    }
}
