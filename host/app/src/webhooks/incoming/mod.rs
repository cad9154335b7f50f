//! Provider webhooks: the plugin checks the signature; the content is never trusted.
//!
//! A webhook only enqueues the verification of the charge with its reference; the job queries the
//! provider. References are kept per provider account, so no webhook reaches another company's
//! record.

pub mod api;
mod store;

pub use self::api::{lower_case, open};
pub use self::store::{
    ReferenceOwner, assign_charge, insert_or_count as record, insert_reference, list_references,
    release, replace, reserve,
};
use crate::tenants::prelude::*;
use tollhouse_plugins::{Notification, NotificationSubject};

/// The subject of references that belong to a charge.
pub const CHARGE: &str = "charge";

/// A job: company, kind and subject.
type Verification = (CompanyId, &'static str, String);

/// Returns the job that verifies the charge of a webhook; `None` if the reference is unknown.
async fn find_verification(
    app: &App,
    account_id: &AccountId,
    notification: &Notification,
) -> Result<Option<Verification>> {
    if !matches!(notification.subject, NotificationSubject::Payment | NotificationSubject::Refund) {
        return Ok(None);
    }
    let find = async |tx: &mut Tx| store::owner_of(tx, account_id, &notification.service_ref).await;
    let owner = app.store.select(find).await?;
    let Some((company_id, subject, id, charge_id)) = owner else { return Ok(None) };
    let (subject, id) = charge_id.map_or((subject, id), |id| (CHARGE.to_owned(), id));
    let job = app.tables.webhook_subjects.iter().find(|(name, _)| *name == subject);
    Ok(job.map(|(_, job)| (company_id, *job, id)))
}
