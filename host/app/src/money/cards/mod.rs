//! Saved cards and their states.
//!
//! The cards of a user change only under the lock of the user's row: one valid card is the default,
//! and no card is saved twice at a provider.
//!
//! `create` opens a checkout session with a small verification charge. If the charge succeeds, the
//! token is saved, unless the customer already has that card, and the charge is refunded. A card
//! that was removed, or not verified within a day, is hidden, but its row is kept for some time: a
//! later charge in its session is refunded, too.

pub mod api;
mod cleanup;
mod create;
mod owner;
mod store;
mod view;

pub use self::{
    cleanup::{adopt_refund_job, confirm_job, revoke_job, sweep},
    store::{Card, CardId, SEALED},
    view::View as EventData,
};
use super::prelude::*;
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

pub const FEATURE: &str = "cards";
/// The channel of verification charges.
const CHANNEL: &str = "card";
/// The job that removes a card that was not verified.
pub const CONFIRM_JOB: &str = "card.confirm";
/// The job of the previous version that refunded a verification charge.
pub const FORMER_REFUND_JOB: &str = "card.refund";
/// The job that deauthorizes the token of a deleted card at the provider.
pub const REVOKE_JOB: &str = "card.revoke";
/// The subject of cards in the reference directory.
pub const SUBJECT: &str = "card";

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The verification charge is not paid yet.
    #[default]
    Pending,
    Valid,
    Failed,
    /// The customer has already saved this card.
    Duplicate,
    /// The verification charge succeeded, but the card cannot be charged again.
    Unusable,
}

text_columns!(Status);

/// The same error for a missing card and for one of another company.
pub fn not_found() -> Error {
    Error::not_found("card not found")
}

/// Locks the user of a card that is not removed, and returns the card.
async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &CardId) -> Result<Card> {
    let found = store::find(tx, company_id, id).await?.ok_or_else(not_found)?;
    let card = lock_any(tx, &found).await?;
    if card.removed_at.is_some() { Err(not_found()) } else { Ok(card) }
}

/// Locks the user of a card, and returns the card, removed or not.
async fn lock_any(tx: &mut Tx, before: &Card) -> Result<Card> {
    users::lock(tx, &before.company_id, &before.user_key).await?;
    store::find_any(tx, &before.company_id, &before.id).await?.ok_or_else(not_found)
}

/// Finds a user's card by its id or, without an id, the default card.
pub async fn find_for_user(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
    id: Option<&CardId>,
) -> Result<Option<Card>> {
    let found = match id {
        Some(id) => store::find(tx, company_id, id).await?,
        None => store::find_default(tx, company_id, user_key).await?,
    };
    Ok(found.filter(|card| card.user_key == *user_key))
}

/// Returns a user's valid cards, newest first.
pub async fn list_valid(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
) -> Result<Vec<Card>> {
    let order = SortOrder::Descending;
    Ok(store::list_for_user(tx, company_id, user_key, Some(true), order).await?)
}

impl Card {
    pub fn is_valid(&self) -> bool {
        self.status == Status::Valid
    }

    async fn verifier(&self, app: &App) -> Result<ChargeVerifier> {
        ChargeVerifier::open(app, &self.company_id, &self.payment_service, &self.account_id).await
    }

    /// Opens the token that charges the card. Never return it to a client or log it.
    pub fn token(&self, app: &App) -> Result<String> {
        let sealed = self.token.as_deref().ok_or_else(not_found)?;
        Ok(app.sealer.open(&seal_context(&self.company_id, &self.id), sealed)?)
    }
}

fn seal_context(company_id: &str, id: &str) -> String {
    format!("cards/{company_id}/{id}/token")
}
