//! Mandates to debit bank accounts, `direct_debit` on the wire. Another system creates them and
//! sends them through the operator API.

pub mod api;
mod store;

pub use self::store::{Mandate, MandateId, SEALED, list_active};
use crate::money::prelude::*;

/// Finds an active mandate of a user by its id or, without an id, the default one.
pub async fn find_usable(
    tx: &mut Tx,
    company_id: &CompanyId,
    user_key: &UserKey,
    id: Option<&MandateId>,
) -> Result<Option<Mandate>> {
    let found = match id {
        Some(id) => store::find(tx, company_id, id).await?,
        None => store::find_default(tx, company_id, user_key).await?,
    };
    Ok(found.filter(|mandate| mandate.active && mandate.user_key == *user_key))
}

impl Mandate {
    /// Opens the token that debits the account. Never return it to a client or log it.
    pub fn token(&self, app: &App) -> Result<String> {
        Ok(app.sealer.open(&seal_context(&self.company_id, &self.id), &self.token)?)
    }
}

/// The same error for a missing mandate and for one of another company.
pub fn not_found() -> Error {
    Error::not_found("direct debit not found")
}

fn seal_context(company_id: &str, id: &str) -> String {
    format!("direct_debits/{company_id}/{id}/token")
}
