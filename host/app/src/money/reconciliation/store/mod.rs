//! The rows of reconciliation.

mod days;
mod settlements;
mod transactions;
mod unlisted;

pub use self::{
    days::{
        count_by_day, count_open_by_day, count_unresolved, find_closed, insert_closed, list_closed,
        totals,
    },
    settlements::{
        Settlement, SettlementState, find_settlement, list_settlements, next_settlement,
        oldest_pending_settlement, save_settlement, sum_settled,
    },
    transactions::{
        ProviderTransaction, charge_of_dispute, charge_of_payment, charge_of_refund, find_listed,
        find_transaction, is_claimed, list_differing, mark_listed, save_transaction,
    },
    unlisted::{UnlistedRecord, find_record, list_unlisted},
};
use crate::{money::prelude::AccountId, state::storage::*};

/// Records younger than this may be in the next list.
pub const GRACE_SECONDS: i64 = 86_400;

/// How far a list reaches back before the end of the previous one, and the first list before the
/// current time, because providers list some transactions late.
pub const OVERLAP_SECONDS: i64 = 3 * 86_400;

#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Step {
    Transactions,
    Settlements,
    /// The payments of settlements.
    Contents,
    /// Listed transactions that do not match.
    Check,
    /// Records that the list lacks.
    Unlisted,
    Done,
}

text_columns!(Step);

/// The progress of the list of an account.
#[derive(Clone, Debug, FromRow)]
pub struct Listing {
    pub account_id: AccountId,
    /// The end of the first list. Money taken before it may be missing.
    pub begun_at: Timestamp,
    /// The period of the current list.
    pub since: Timestamp,
    pub until: Timestamp,
    pub step: Step,
    /// Where this step continues: the plugin's cursor, or the last record of a check.
    pub next_page: Option<String>,
    /// Number of pages that were listed.
    pub pages: i64,
    /// When the step `Check` may begin.
    pub check_at: Timestamp,
    /// The end of the last complete list.
    pub listed_at: Option<Timestamp>,
}

impl Listing {
    /// The beginning of the first list.
    pub fn first_since(&self) -> Timestamp {
        self.begun_at.plus_seconds(-OVERLAP_SECONDS)
    }
}

pub async fn find_listing(tx: &mut Tx, account_id: &AccountId) -> Result<Option<Listing>> {
    tx.sql("SELECT * FROM account_listings WHERE account_id = $1").bind(account_id).optional().await
}

/// Locks a listing and returns it.
pub async fn lock_listing(tx: &mut Tx, account_id: &AccountId) -> Result<Option<Listing>> {
    tx.sql("SELECT * FROM account_listings WHERE account_id = $1 FOR UPDATE")
        .bind(account_id)
        .optional()
        .await
}

/// Inserts the first list of an account. Returns `false` if another host has begun one.
pub async fn insert_listing(tx: &mut Tx, listing: &Listing) -> Result<bool> {
    tx.sql(
        "INSERT INTO account_listings (account_id, begun_at, since, until, step, pages, check_at)
         VALUES ($1, $2, $3, $4, $5, 0, $6) ON CONFLICT (account_id) DO NOTHING",
    )
    .params(params![
        &listing.account_id, listing.begun_at, listing.since, listing.until, listing.step,
        listing.check_at
    ])
    .affects_one()
    .await
}

/// Writes the progress of a list. Returns `false` if another run has continued it since `before`.
pub async fn update_listing(tx: &mut Tx, before: &Listing, after: &Listing) -> Result<bool> {
    tx.sql(
        "UPDATE account_listings SET since = $2, until = $3, step = $4, next_page = $5, pages = $6,
             check_at = $7, listed_at = $8
         WHERE account_id = $1 AND until = $9 AND step = $10
             AND COALESCE(next_page, '') = $11 AND pages = $12",
    )
    .params(params![
        &after.account_id,
        after.since,
        after.until,
        after.step,
        &after.next_page,
        after.pages,
        after.check_at,
        after.listed_at,
        before.until,
        before.step,
        before.next_page.clone().unwrap_or_default(),
        before.pages
    ])
    .affects_one()
    .await
}
