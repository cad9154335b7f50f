//! What providers tell us: who sent it is checked by the plugin, what it says is never believed.
//!
//! A notification only wakes the job of the record that its reference belongs to; that job asks the provider. References are
//! found in a directory, keyed by provider account, so that a notification never reaches another company's record.

pub mod api;
mod store;

pub use self::store::{Belongs, references, release, replace, reserve};
use crate::{
    app::NOTIFIED,
    clock::Timestamp,
    jobs,
    plugins::{Notification, Subject},
    store::{Result, Tx},
};

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
