//! What providers tell us: who sent it is checked by the plugin, what it says is never believed.
//!
//! A notification only wakes the job of the record that its reference belongs to; that job asks the provider. References are
//! found in a directory, keyed by provider account, so that a notification never reaches another company's record.

pub mod api;
mod store;

pub use self::store::Belongs;
use crate::{
    app::NOTIFIED,
    clock::Timestamp,
    jobs,
    plugins::{Notification, Subject},
    store::{Result, Tx},
};

/// Enters a reference into the directory; `false` when it is another record's on that provider account.
pub async fn reserve(
    tx: &mut Tx,
    account_id: &str,
    service_ref: &str,
    belongs: &Belongs,
    now: Timestamp,
) -> Result<bool> {
    store::reserve(tx, account_id, service_ref, belongs, now).await
}

/// All references that a record was ever known by at its provider.
pub async fn references(
    tx: &mut Tx,
    company_id: &str,
    subject: &str,
    subject_id: &str,
) -> Result<Vec<String>> {
    store::references(tx, company_id, subject, subject_id).await
}

/// Takes a reference out of the directory: the provider knows it as somebody else's.
pub async fn release(tx: &mut Tx, account_id: &str, service_ref: &str) -> Result<()> {
    store::release(tx, account_id, service_ref).await
}

/// Wakes what a notification is about; an unknown reference is nobody's business.
async fn wake(tx: &mut Tx, account_id: &str, told: &Notification, now: Timestamp) -> Result<()> {
    if !matches!(told.subject, Subject::Payment | Subject::Refund) {
        return Ok(());
    }
    let Some(belongs) = store::belongs(tx, account_id, &told.service_ref).await? else {
        return Ok(());
    };
    let job = NOTIFIED.iter().find(|(subject, _)| *subject == belongs.subject);
    if let Some((_, job)) = job {
        jobs::wake(tx, &belongs.company_id, job, &belongs.subject_id, now).await?;
    }
    Ok(())
}
