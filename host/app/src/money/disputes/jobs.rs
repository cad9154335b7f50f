//! Queries of disputes, after webhooks and by schedule.

use super::{ACCOUNT_JOB, record::record, store};
use crate::money::{
    charges::{ChargeId, DISPUTES_JOB},
    prelude::*,
};
use tollhouse_plugins::{DisputeFilter, ProviderDispute};

/// Interval of the queries of an account, and of a charge while its disputes may change.
const INTERVAL_SECONDS: i64 = 86_400;
/// How far back the list of an account goes, and how long a lost dispute is watched for money that
/// the ledger lacks. Longer than any outage of hosts or providers.
const LIST_SECONDS: i64 = 30 * 86_400;

/// Queries the disputes of a charge, daily while one may change.
pub async fn disputes_job(app: App, job: Job) -> Result<JobResult> {
    let id = ChargeId::from(&*job.subject);
    let find = async |tx: &mut Tx| charges::find(tx, &job.company_id, &id).await;
    let Some(charge) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    let ChargeVerifier { provider, credentials } = charge.verifier(&app).await?;
    if provider.has_disputes() {
        let (reference, transaction) = (charge.service_ref.clone(), charge.transaction_id.clone());
        let filter = DisputeFilter::Payment(reference, transaction);
        let queried_at = app.clock.now();
        let found = provider.find_disputes(&credentials, &filter).await;
        let found = found.map_err(|error| error.into_error(&charge.provider))?;
        let is_own = |dispute: &ProviderDispute| {
            dispute.key.service_ref.is_empty() || dispute.key.service_ref == charge.service_ref
        };
        for seen in found.into_iter().filter(is_own) {
            record(&app, &charge.company_id, &charge.id, queried_at, seen).await?;
        }
    }
    Ok(match is_watched(&app, &charge).await? {
        true => JobResult::RescheduleAt(app.clock.now().plus_seconds(INTERVAL_SECONDS)),
        false => JobResult::Done,
    })
}

async fn is_watched(app: &App, charge: &Charge) -> Result<bool> {
    let since = app.clock.now().plus_seconds(-LIST_SECONDS);
    let read = async |tx: &mut Tx| store::is_watched(tx, charge, since).await;
    Ok(app.store.select(read).await?)
}

/// Lists the recent disputes of an account, daily: some providers send no webhook.
pub async fn account_job(app: App, job: Job) -> Result<JobResult> {
    let find = async |tx: &mut Tx| providers::find_by_id(tx, &job.subject).await;
    let is_usable = |account: &Account| account.active && account.credentials.is_some();
    let found = app.store.select(find).await?.filter(is_usable);
    let Some(account) = found else { return Ok(JobResult::Done) };
    let plugin = app.plugins.provider(&account.provider, Owner::from(&account.owner).column())?;
    if !plugin.has_disputes() {
        return Ok(JobResult::Done);
    }
    let now = app.clock.now();
    let next = JobResult::RescheduleAt(now.plus_seconds(INTERVAL_SECONDS));
    let filter = DisputeFilter::Since(now.plus_seconds(-LIST_SECONDS));
    let found = match plugin.find_disputes(&account.open_credentials(&app)?, &filter).await {
        Ok(found) => found,
        // An operator must correct the credentials; the call has raised its alarm.
        Err(error) if error.fault.category == FaultCategory::Misconfigured => return Ok(next),
        Err(error) => return Err(error.into_error(&account.provider)),
    };
    let mut failure = None;
    for seen in found {
        failure = record_listed(&app, &account, now, seen).await.err().or(failure);
    }
    failure.map_or(Ok(next), Err)
}

/// Records a listed dispute, unless its payment is unknown to this service.
async fn record_listed(
    app: &App,
    account: &Account,
    queried_at: Timestamp,
    seen: ProviderDispute,
) -> Result<()> {
    let reference = &seen.key.service_ref;
    let owner = async |tx: &mut Tx| notifications::charge_of(tx, &account.id, reference).await;
    let Some((company_id, id)) = app.store.select(owner).await? else { return Ok(()) };
    let id = ChargeId::from(id);
    record(app, &company_id, &id, queried_at, seen).await?;
    let find = async |tx: &mut Tx| charges::find(tx, &company_id, &id).await;
    let Some(charge) = app.store.select(find).await? else { return Ok(()) };
    if !is_watched(app, &charge).await? {
        return Ok(());
    }
    let (db, next) = (app.store.clone(), app.clock.now().plus_seconds(INTERVAL_SECONDS));
    db.write(async move |tx| {
        let Charge { company_id, id, .. } = &charge;
        if jobs::find(tx, company_id, DISPUTES_JOB, id).await?.is_none() {
            jobs::enqueue(tx, company_id, DISPUTES_JOB, id, next).await?;
        }
        Ok(())
    })
    .await
}

/// Enqueues the daily job of each account whose plugin has disputes. Deletes nothing.
pub async fn sweep(app: App) -> Result<u64> {
    providers::enqueue_jobs(&app, ACCOUNT_JOB, |plugin| plugin.has_disputes()).await?;
    Ok(0)
}
