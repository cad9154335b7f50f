//! Direct debits: permissions to take money from a user's bank account. They are made elsewhere; a neighbouring system puts them here
//! by the operator interface.

pub mod api;
mod store;

pub use self::store::{Mandate, SEALED};
use crate::{
    app::App,
    error::Result,
    store::{self as db, Tx},
};

/// A user's direct debit by its id, or the default one; `None` also when it is not active.
pub async fn usable(
    tx: &mut Tx,
    company_id: &str,
    user_key: &str,
    id: Option<&str>,
) -> db::Result<Option<Mandate>> {
    let found = match id {
        Some(id) => store::find(tx, company_id, id).await?,
        None => store::default_of(tx, company_id, user_key).await?,
    };
    Ok(found.filter(|mandate| mandate.active && mandate.user_key == user_key))
}

impl Mandate {
    /// What debits the account. Never shown, never logged.
    pub fn token(&self, app: &App) -> Result<String> {
        Ok(app.sealer.open(&seal_context(&self.company_id, &self.id), &self.token)?)
    }
}

/// The context under which a token is sealed.
fn seal_context(company_id: &str, id: &str) -> String {
    format!("direct_debits/{company_id}/{id}/token")
}
