//! Bulk import: all new users are stored and billed, or none.

use super::{User, create::BILLING_ITEM, store, store::imports};
use crate::tenants::prelude::*;

/// Lease duration: longer than any transaction, so that no previous owner can still commit.
const LEASE_SECONDS: i64 = 120;

/// Stores the users whose e-mail address and `user_id` neither exist nor repeat an earlier row. 400
/// during another import of the company, or if the balance is insufficient. `run` names a request
/// that may run more than once.
pub async fn import(
    app: &App,
    company: &Company,
    users: Vec<User>,
    run: Option<String>,
) -> Result<()> {
    let key = format!("import:{}", run.unwrap_or_else(|| app.new_id()));
    // Not cancelled if the client disconnects: an unreleased lease would block the next import.
    let import = import_under_lease(app.clone(), company.clone(), users, key);
    app.tasks.spawn(import).await.map_err(Error::internal)?
}

async fn import_under_lease(
    app: App,
    company: Company,
    users: Vec<User>,
    key: String,
) -> Result<()> {
    let (lease, company_id, now) = (app.random.token(""), company.id.clone(), app.clock.now());
    let (own, times) = (lease.clone(), [now, now.plus_seconds(LEASE_SECONDS)]);
    let acquire =
        async move |tx: &mut Tx| imports::acquire_lease(tx, &company_id, &own, times).await;
    if !app.store.write(acquire).await? {
        return Err(Error::invalid("upload is processing"));
    }
    let (host, own, company_id) = (app.clone(), lease.clone(), company.id.clone());
    let store = async move |tx: &mut Tx| {
        insert_new(tx, &host, &company, &users, &key).await?;
        match imports::release_lease(tx, &company.id, &own).await? {
            true => Ok(()),
            false => Err(Error::Conflict(
                "this upload took too long and another one has started, try again later".to_owned(),
            )),
        }
    };
    let stored = app.store.write(store).await;
    if stored.is_err() {
        // Release the lease early instead of letting it expire.
        let release =
            async move |tx: &mut Tx| imports::release_lease(tx, &company_id, &lease).await;
        if let Err(error) = app.store.write(release).await {
            tracing::warn!(%error, "lease of an import could not be released; it will expire");
        }
    }
    stored
}

async fn insert_new(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    users: &[User],
    key: &str,
) -> Result<()> {
    if wallet::is_fee_charged(tx, &company.id, key).await? {
        // An earlier run of this request stored them, but could not respond.
        return Ok(());
    }
    let new = store::insert_all(tx, users).await?;
    wallet::charge_fee(tx, app, company, BILLING_ITEM, new, key).await?;
    Ok(())
}
