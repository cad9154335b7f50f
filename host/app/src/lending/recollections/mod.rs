//! Recollections: repayments of loans, recorded manually or charged through a provider.
//!
//! A recollection changes its loan under the lock of the loan's row, so those of a loan are
//! processed one at a time.
//!
//! A manual one is applied at once. One through a provider owns charges: a checkout page is opened
//! while its client waits, and the charges of cards and mandates are queued, one at a time per
//! loan. When its turn comes, a charge is capped at the outstanding amount. A success applies the
//! repayment, oldest due date first, and writes both feeds and the event. Any excess is an
//! overpayment. A reversal reverts what was applied.

pub mod api;
mod automatic;
mod create;
mod owner;
mod store;
mod view;

pub use self::{
    automatic::{
        Charged, billing_item, charge_fee, charge_instrument, collect_job, key_of, report_obstacle,
    },
    create::receive,
    owner::obstacle,
    store::{InstallmentKey, Recollection, RecollectionId, record_collection_if_new},
    view::EventData,
};
use crate::money::prelude::*;
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

pub const FEATURE: &str = "recollections";
/// The job of the previous version that settled a recollection.
pub const FORMER_JOB: &str = "recollection.settle";
/// The subject of recollections in the reference directory.
pub const SUBJECT: &str = "recollection";

/// The payment channels of recollections through a provider.
pub const CHECKOUT: &str = "checkout";
pub const CARD: &str = "card";
pub const DIRECT_DEBIT: &str = "direct_debit";
/// The payment channel of transfers to a virtual account.
pub const VIRTUAL_ACCOUNT: &str = "virtual_account";

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RecollectionStatus")]
pub enum Status {
    #[default]
    Pending,
    Success,
    Failed,
}

text_columns!(Status);

impl Recollection {
    async fn user(&self, app: &App) -> Result<Option<User>> {
        let Recollection { company_id, user_key, .. } = self;
        let read = async |tx: &mut Tx| users::find_by_id(tx, company_id, user_key).await;
        Ok(app.store.select(read).await?)
    }
}

/// The same error for a missing recollection and for one of another company.
fn not_found() -> Error {
    Error::not_found("recollection not found")
}
