//! Provider webhooks: the plugin checks the signature; the content is never trusted.
//!
//! A webhook only enqueues the verification of the charge with its reference; the job queries the
//! provider. References are kept per provider account, so no webhook reaches another company's
//! record.

pub mod api;
mod store;

pub use self::store::{
    ReferenceOwner, assign_charge, insert_reference, list_references, release, replace, reserve,
};
use crate::tenants::prelude::*;
use tollhouse_plugins::{Notification, NotificationSubject};

/// The subject of references that belong to a charge.
pub const CHARGE: &str = "charge";

/// Enqueues the verification of the charge that a webhook names. An unknown reference is ignored.
async fn enqueue_verification(
    tx: &mut Tx,
    app: &App,
    account_id: &AccountId,
    notification: &Notification,
    now: Timestamp,
) -> Result<()> {
    if !matches!(notification.subject, NotificationSubject::Payment | NotificationSubject::Refund) {
        return Ok(());
    }
    let owner = store::owner_of(tx, account_id, &notification.service_ref).await?;
    let Some((company_id, subject, id, charge_id)) = owner else { return Ok(()) };
    let (subject, id) = charge_id.map_or((subject, id), |id| (CHARGE.to_owned(), id));
    let job = app.tables.webhook_subjects.iter().find(|(name, _)| *name == subject);
    if let Some((_, job)) = job {
        jobs::enqueue(tx, &company_id, job, &id, now).await?;
    }
    Ok(())
}
