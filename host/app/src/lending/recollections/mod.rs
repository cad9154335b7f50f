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
//! 2. No transaction is open while the provider is called. A checkout page is opened as for a
//!    payment. A card or mandate is charged under one reference for all attempts: if the outcome is
//!    unknown, the recollection stays pending and the job `recollection.settle` queries the
//!    provider. If the provider does not know the charge, it is repeated under the same reference,
//!    for an hour.
//! 3. One transaction (`settle::record`) applies the repayment under the loan's lock, oldest due
//!    date first, writes both feeds, credits the wallet (service account only) and writes the
//!    event. An amount beyond the outstanding one is an overpayment.

pub mod api;
mod automatic;
mod charge;
mod create;
mod settle;
mod store;
mod view;

pub use self::{
    automatic::collect_job,
    settle::settle_job,
    store::{Recollection, RecollectionId},
    view::EventData,
};
use crate::{
    lending::loans::{self, Loan},
    money::prelude::*,
};
use tollhouse_platform::store::Type;

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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RecollectionStatus")]
pub enum Status {
    #[default]
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

impl Recollection {
    /// Returns whether the service charges a card or mandate, without a checkout session.
    pub fn is_charge(&self) -> bool {
        [CARD, DIRECT_DEBIT].contains(&&*self.payment_channel) && self.with_provider
    }

    fn as_owner(&self) -> ReferenceOwner<'_> {
        (&self.company_id, SUBJECT, &self.id)
    }

    async fn verifier(&self, app: &App) -> Result<ChargeVerifier> {
        ChargeVerifier::open(app, &self.company_id, &self.payment_service, &self.account_id).await
    }

    /// The start of the schedule of checks.
    fn checks_start_at(&self) -> Timestamp {
        self.begun_at.unwrap_or(self.created_at)
    }
}

async fn user_of(app: &App, recollection: &Recollection) -> Result<Option<User>> {
    let Recollection { company_id, user_key, .. } = recollection;
    let read = async |tx: &mut Tx| users::find_by_id(tx, company_id, user_key).await;
    Ok(app.store.select(read).await?)
}

/// Locks the loan's row and returns the current loan and recollection.
async fn lock_with_loan(tx: &mut Tx, before: &Recollection) -> Result<(Loan, Recollection)> {
    let loan = loans::lock(tx, &before.company_id, &before.loan_id).await?;
    let now = store::find(tx, &before.company_id, &before.id).await?;
    loan.zip(now).ok_or_else(not_found)
}

/// The same error for a missing recollection and for one of another company.
fn not_found() -> Error {
    Error::not_found("recollection not found")
}
