//! Mandates to debit bank accounts, `direct_debit` on the wire.
//!
//! A company begins one for a user: it is recorded, then begun at the provider, whose page or
//! instruction the payer follows. A webhook or the schedule enqueues a query, and only its result
//! changes the state. Recollections charge a mandate once it is ready. Another system may also send
//! a mandate through the operator API; it is ready at once.
//!
//! - `state`: the states and their transitions, pure;
//! - `create`: records a mandate, begins it, and records the response;
//! - `sync`: queries and cancels mandates at the provider, by job;
//! - `record`: records a change with its event in one transaction.
//!
//! The mandates of a user change only under the lock of the user's row, which keeps the default
//! unique.

pub mod api;
mod create;
mod record;
mod state;
mod store;
mod sync;
mod view;

pub use self::{
    state::MandateState,
    store::{Mandate, MandateId, SEALED, list_usable},
    sync::{sweep, sync_job},
    view::View as EventData,
};
use crate::money::prelude::*;
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

const FEATURE: &str = "recollections";
/// The job that queries or cancels a mandate at the provider.
pub const SYNC_JOB: &str = "direct_debit.sync";
/// The subject of mandates in the reference directory.
pub const SUBJECT: &str = "direct_debit";

/// Finds a mandate of a user that can be charged, by its id or, without an id, the default one.
pub async fn find_usable(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
    id: Option<&MandateId>,
) -> Result<Option<Mandate>> {
    let found = find_for_user(tx, company_id, user_key, id).await?;
    Ok(found.filter(Mandate::is_usable))
}

/// Like [`find_usable`], but returns the reason for the client if there is none.
pub async fn get_usable(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
    id: Option<&MandateId>,
) -> Result<Mandate> {
    let mandate = find_for_user(tx, company_id, user_key, id).await?.ok_or_else(not_found)?;
    match mandate.state {
        MandateState::Ready if mandate.active => Ok(mandate),
        MandateState::Ready => Err(not_found()),
        MandateState::Created | MandateState::Approved | MandateState::Cancelled => {
            Err(Error::invalid("direct debit is not ready"))
        }
    }
}

async fn find_for_user(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
    id: Option<&MandateId>,
) -> Result<Option<Mandate>> {
    let found = match id {
        Some(id) => store::find(tx, company_id, id).await?,
        None => store::find_default(tx, company_id, user_key).await?,
    };
    Ok(found.filter(|mandate| mandate.user_key == *user_key))
}

/// Locks the user of a mandate, and returns the mandate, removed or not. `None` if it was deleted.
async fn lock_any(tx: &mut Tx, before: &Mandate) -> Result<Option<Mandate>> {
    users::lock(tx, &before.company_id, &before.user_key).await?;
    Ok(store::find_any(tx, &before.company_id, &before.id).await?)
}

/// Deletes a mandate that was not begun, with its reference.
async fn forget(tx: &mut Tx, mandate: &Mandate) -> Result<()> {
    notifications::release(tx, &mandate.account_id, &mandate.service_ref).await?;
    Ok(store::delete(tx, mandate).await?)
}

impl Mandate {
    /// Returns a mandate of a user with only the common fields set.
    fn blank(company_id: &CompanyId, id: MandateId, user: &User, now: Timestamp) -> Mandate {
        Mandate {
            company_id: company_id.clone(),
            id,
            user_key: user.id.clone(),
            user_id: user.user_id.clone(),
            created_at: now,
            updated_at: now,
            ..Mandate::default()
        }
    }

    fn is_usable(&self) -> bool {
        self.active && self.state == MandateState::Ready
    }

    /// Returns whether another system created it.
    fn is_foreign(&self) -> bool {
        self.account_id.is_empty()
    }

    /// Returns the account that issued the token; `None` if another system created it.
    pub fn issuer(&self) -> Option<&AccountId> {
        (!self.is_foreign()).then_some(&self.account_id)
    }

    /// Opens the token that debits the account. Never return it to a client or log it.
    pub fn token(&self, app: &App) -> Result<String> {
        Ok(app.sealer.open(&token_context(&self.company_id, &self.id), &self.token)?)
    }

    fn seal_token(&self, app: &App, token: &str) -> String {
        app.sealer.seal(&token_context(&self.company_id, &self.id), token)
    }

    async fn verifier(&self, app: &App) -> Result<ChargeVerifier> {
        let Mandate { company_id, payment_service, account_id, .. } = self;
        ChargeVerifier::open(app, company_id, payment_service, account_id).await
    }
}

/// The same error for a missing mandate and for one of another company.
pub fn not_found() -> Error {
    Error::not_found("direct debit not found")
}

fn token_context(company_id: &str, id: &str) -> String {
    format!("direct_debits/{company_id}/{id}/token")
}

fn session_context(company_id: &str, id: &str) -> String {
    format!("direct_debits/{company_id}/{id}/session")
}
