//! Provider webhooks: the plugin checks the signature; the content is never trusted.
//!
//! A webhook only enqueues the verification of the charge or mandate with its reference; the job
//! queries the provider. References are kept per provider account, so no webhook reaches another
//! company's record.

pub mod api;
mod store;

pub use self::api::{lower_case, open};
pub use self::store::{
    ReceivedWebhook, ReferenceOwner, assign_charge, insert_or_count as record, insert_reference,
    list_references, list_webhooks, release, replace, reserve,
};
use crate::tenants::prelude::*;
use tollhouse_plugins::{Notification, NotificationSubject};

/// The subject of references that belong to a charge.
pub const CHARGE: &str = "charge";

/// Returns the job for a payment without a record, if it may be a transfer to a virtual account.
async fn find_transfer(
    app: &App,
    account: &Account,
    service_ref: &str,
) -> Result<Option<Verification>> {
    let has = async |tx: &mut Tx| (app.tables.has_virtual_accounts)(tx, &account.id).await;
    if service_ref.is_empty() || !app.store.select(has).await? {
        return Ok(None);
    }
    if service_ref.len() > MAX_REFERENCE_BYTES {
        let provider = &*account.provider;
        tracing::error!(provider, "the reference of a transfer is too long to be recorded");
        return Ok(None);
    }
    let owner = Owner::from(&account.owner).column().into();
    let subject = format!("{}/{service_ref}", account.id);
    Ok(Some((owner, app.tables.transfer_job, subject)))
}

/// Splits the subject of a transfer's job into provider account and reference.
pub fn parse_transfer(subject: &str) -> (AccountId, &str) {
    let (account_id, service_ref) = subject.split_once('/').unwrap_or_default();
    (AccountId::from(account_id), service_ref)
}

/// Maximum length of the reference of a transfer.
const MAX_REFERENCE_BYTES: usize = 500;

/// A job: company, kind and subject.
type Verification = (CompanyId, &'static str, String);

/// Returns the charge with this reference.
pub async fn charge_of(
    tx: &mut Tx,
    account_id: &AccountId,
    service_ref: &str,
) -> tollhouse_platform::store::Result<Option<(CompanyId, String)>> {
    let owner = store::owner_of(tx, account_id, service_ref).await?;
    Ok(owner.and_then(|(company_id, _, _, charge_id)| Some((company_id, charge_id?))))
}

/// Returns the job that verifies the charge or mandate of a webhook, or that queries the disputes
/// of a charge. If the reference is unknown, returns the job for a transfer to a virtual account,
/// or `None`.
async fn find_verification(
    app: &App,
    account: &Account,
    notification: &Notification,
    has_disputes: bool,
) -> Result<Option<Verification>> {
    let Notification { subject, service_ref, .. } = notification;
    match subject {
        NotificationSubject::Payment
        | NotificationSubject::Refund
        | NotificationSubject::Mandate => {}
        NotificationSubject::Other if has_disputes => {
            let find = async |tx: &mut Tx| charge_of(tx, &account.id, service_ref).await;
            let found = app.store.select(find).await?;
            return Ok(found.map(|(company_id, id)| (company_id, app.tables.dispute_job, id)));
        }
        NotificationSubject::Other => return Ok(None),
    }
    let find = async |tx: &mut Tx| store::owner_of(tx, &account.id, service_ref).await;
    let owner = app.store.select(find).await?;
    let Some((company_id, subject, id, charge_id)) = owner else {
        let is_payment = *subject == NotificationSubject::Payment;
        return if is_payment { find_transfer(app, account, service_ref).await } else { Ok(None) };
    };
    let (subject, id) = charge_id.map_or((subject, id), |id| (CHARGE.to_owned(), id));
    let job = app.tables.webhook_subjects.iter().find(|(name, _)| *name == subject);
    Ok(job.map(|(_, job)| (company_id, *job, id)))
}
