//! Recollections: repayments of loans, recorded manually or charged through a provider.
//!
//! A recollection changes its loan under the lock of the loan's row, so those of a loan are
//! processed one at a time. The provider accepts the reference of a card or mandate charge once, so
//! a charge with an unknown outcome is safely repeated.
//!
//! A recollection has up to three steps:
//!
//! 1. One transaction (`create::record`) locks the loan, checks it and the reference, and caps the
//!    amount at the outstanding amount; for a card or mandate, minus pending charges. A manual
//!    repayment is applied at once.
//! 2. No transaction is open while the provider is called. A checkout page is opened as for a payment.
//!    A card or mandate is charged under one reference for all attempts: if the outcome is unknown, the
//!    recollection stays pending and the job `recollection.settle` queries the provider. If the
//!    provider does not know the charge, it is repeated under the same reference, for an hour.
//! 3. One transaction (`settle::record`) applies the repayment under the loan's lock, oldest due date
//!    first, writes both feeds, credits the wallet (service account only) and writes the event. An
//!    amount beyond the outstanding one is an overpayment.

pub mod api;
mod automatic;
mod charge;
mod create;
mod settle;
mod store;
mod view;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    automatic::collect_job,
    settle::settle_job,
    store::{Recollection, RecollectionId},
    view::EventData,
};
use crate::{
    customers as users,
    customers::User,
    money::charges::{self, Lease},
    state::App,
};
use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    store::{Tx, Type},
};

/// The plan feature that recollections require.
pub const FEATURE: &str = "recollections";
/// The job that settles a recollection.
pub const SETTLE_JOB: &str = "recollection.settle";
/// The subject of recollections in the reference directory.
pub const SUBJECT: &str = "recollection";

/// The payment channels of recollections through a provider.
pub const CHECKOUT: &str = "checkout";
pub const CARD: &str = "card";
pub const DIRECT_DEBIT: &str = "direct_debit";

/// Time after creation during which a charge that the provider does not know is repeated.
const CHARGE_RETRY_SECONDS: i64 = 3_600;
/// Age from which a charge that waits for its customer no longer counts as pending.
const ABANDONED_SECONDS: i64 = 72 * 3_600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RecollectionStatus")]
pub enum Status {
    Pending,
    Success,
    Failed,
}

impl Status {
    fn of_charge(self) -> charges::Status {
        match self {
            Status::Pending => charges::Status::Pending,
            Status::Success => charges::Status::Success,
            Status::Failed => charges::Status::Failed,
        }
    }
}

/// The next step for a recollection that the provider does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnknownChargeStep {
    /// Keep waiting: the customer may still pay in the checkout session.
    Wait,
    /// Repeat the charge under the same reference.
    ChargeAgain,
    /// Fail the recollection: the charge is outdated.
    GiveUp,
}

impl Recollection {
    /// Returns whether the service charges a card or mandate, without a checkout session.
    #[must_use]
    pub fn is_charge(&self) -> bool {
        [CARD, DIRECT_DEBIT].contains(&&*self.payment_channel) && self.with_provider
    }

    /// The start of the schedule of checks.
    fn checks_start_at(&self) -> Timestamp {
        self.begun_at.unwrap_or(self.created_at)
    }

    fn step_if_unknown(&self, now: Timestamp) -> UnknownChargeStep {
        match (self.is_charge(), self.created_at.plus_seconds(CHARGE_RETRY_SECONDS) > now) {
            (false, _) => UnknownChargeStep::Wait,
            (true, true) => UnknownChargeStep::ChargeAgain,
            (true, false) => UnknownChargeStep::GiveUp,
        }
    }
}

async fn user_of(app: &App, recollection: &Recollection) -> Result<Option<User>> {
    let Recollection { company_id, user_key, .. } = recollection;
    let read = async |tx: &mut Tx| users::find_by_id(tx, company_id, user_key).await;
    Ok(app.store.read(read).await?)
}

/// The same error for a missing recollection and for one of another company.
fn not_found() -> Error {
    Error::not_found("recollection not found")
}
