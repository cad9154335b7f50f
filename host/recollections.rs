//! Recollections: repayments of loans, recorded when the money is there already, or charged through a provider.
//!
//! A recollection changes its loan under the lock of the loan's row, so that those of one loan are processed one at a time. A charge of
//! a saved card or a mandate is made under a reference that the provider takes once, so that it may be asked for again when nobody
//! knows whether it was heard.

pub mod api;
mod automatic;
mod charge;
mod create;
mod settle;
mod store;
mod view;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{automatic::collect_job, settle::settle_job, store::Recollection, view::EventData};
use crate::{
    app::App,
    charges::{self, Lease},
    clock::Timestamp,
    error::{Error, Result},
    store::{Tx, Type},
    users::{self, User},
};

/// What a plan must include for recollections.
pub const FEATURE: &str = "recollections";
/// The job that brings a recollection up to what the provider knows.
pub const SETTLE_JOB: &str = "recollection.settle";
/// What a recollection is called in the directory of references.
pub const SUBJECT: &str = "recollection";

/// The ways to be repaid through a provider.
pub const CHECKOUT: &str = "checkout";
pub const CARD: &str = "card";
pub const DIRECT_DEBIT: &str = "direct_debit";

/// For how long a charge that the provider has not heard of is asked for.
const CHARGED_SECONDS: i64 = 3_600;
/// After that a charge that waits for its customer holds up no other: nobody asks about it any more.
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

/// What is done about a charge that the provider does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    /// The customer may still pay on the page.
    Wait,
    /// It never got there: it is asked for again, under the same reference.
    ChargeAgain,
    /// It never got there, and is not wanted any more.
    GiveUp,
}

impl Recollection {
    /// Whether the service itself takes the money, without the customer on a page.
    #[must_use]
    pub fn is_charge(&self) -> bool {
        [CARD, DIRECT_DEBIT].contains(&&*self.payment_channel) && self.with_provider
    }

    /// Since when the provider is asked about it.
    fn begun_at(&self) -> Timestamp {
        self.begun_at.unwrap_or(self.created_at)
    }

    fn unknown(&self, now: Timestamp) -> Unknown {
        match (self.is_charge(), self.created_at.plus_seconds(CHARGED_SECONDS) > now) {
            (false, _) => Unknown::Wait,
            (true, true) => Unknown::ChargeAgain,
            (true, false) => Unknown::GiveUp,
        }
    }
}

/// Who owes its loan.
async fn user_of(app: &App, recollection: &Recollection) -> Result<Option<User>> {
    let Recollection { company_id, user_key, .. } = recollection;
    let read = async |tx: &mut Tx| users::find_by_id(tx, company_id, user_key).await;
    Ok(app.store.read(read).await?)
}

/// Of another company as of nobody.
fn missing() -> Error {
    Error::not_found("recollection not found")
}
