//! Queries of disputes, after webhooks and by schedule.

use super::{ACCOUNT_JOB, CHARGE_JOB, record::record, store};
use crate::money::{charges::ChargeId, prelude::*};
use tollhouse_plugins::{DisputeFilter, ProviderDispute};

/// Interval of the queries of an account, and of a charge while it is disputed.
const INTERVAL_SECONDS: i64 = 86_400;
/// Time before a query whose disputes an account's list has. Providers report disputes for longer
/// than any outage lasts, and recording one again has no effect.
const LIST_SECONDS: i64 = 30 * 86_400;

/// Queries the disputes of a charge, daily while one has no outcome.
pub async fn disputes_job(app: App, job: Job) -> Result<JobResult> {
    let id = ChargeId::from(&*job.subject);
    let find = async |tx: &mut Tx| charges::find(tx, &job.company_id, &id).await;
    let Some(charge) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    let ChargeVerifier { provider, credentials } = charge.verifier(&app).await?;
    if !provider.has_disputes() {
        return Ok(JobResult::Done);
    }
    let (reference, transaction) = (charge.service_ref.clone(), charge.transaction_id.clone());
    let filter = DisputeFilter::Payment(reference, transaction);
    let found = provider.find_disputes(&credentials, &filter).await;
    let found = found.map_err(|error| error.into_error(&charge.provider))?;
    let is_own = |dispute: &ProviderDispute| {
        dispute.key.service_ref.is_empty() || dispute.key.service_ref == charge.service_ref
    };
    for seen in found.into_iter().filter(is_own) {
        record(&app, &charge.company_id, &charge.id, seen).await?;
    }
    let is_open = async |tx: &mut Tx| store::is_disputed(tx, &charge.company_id, &charge.id).await;
    Ok(match app.store.select(is_open).await? {
        true => JobResult::RescheduleAt(app.clock.now().plus_seconds(INTERVAL_SECONDS)),
        false => JobResult::Done,
    })
}

/// Lists the recent disputes of an account, daily: some providers send no webhook.
pub async fn account_job(app: App, job: Job) -> Result<JobResult> {
    let find = async |tx: &mut Tx| providers::find_by_id(tx, &job.subject).await;
    let found = app.store.select(find).await?.filter(|account| account.credentials.is_some());
    let Some(account) = found else { return Ok(JobResult::Done) };
    let plugin = app.plugins.provider(&account.provider, Owner::from(&account.owner).column())?;
    if !plugin.has_disputes() {
        return Ok(JobResult::Done);
    }
    let now = app.clock.now();
    let filter = DisputeFilter::Since(now.plus_seconds(-LIST_SECONDS));
    let found = plugin.find_disputes(&account.open_credentials(&app)?, &filter).await;
    for seen in found.map_err(|error| error.into_error(&account.provider))? {
        let reference = &seen.key.service_ref;
        let owner = async |tx: &mut Tx| notifications::charge_of(tx, &account.id, reference).await;
        if let Some((company_id, charge_id)) = app.store.select(owner).await? {
            let charge_id = ChargeId::from(charge_id);
            record(&app, &company_id, &charge_id, seen).await?;
            watch(&app, &company_id, &charge_id).await?;
        }
    }
    Ok(JobResult::RescheduleAt(now.plus_seconds(INTERVAL_SECONDS)))
}

/// Enqueues the daily query of a charge that is disputed.
async fn watch(app: &App, company_id: &CompanyId, charge_id: &ChargeId) -> Result<()> {
    let (db, next) = (app.store.clone(), app.clock.now().plus_seconds(INTERVAL_SECONDS));
    let (company_id, charge_id) = (company_id.clone(), charge_id.clone());
    db.write(async move |tx| {
        let is_open = store::is_disputed(tx, &company_id, &charge_id).await?;
        if is_open && jobs::find(tx, &company_id, CHARGE_JOB, &charge_id).await?.is_none() {
            jobs::enqueue(tx, &company_id, CHARGE_JOB, &charge_id, next).await?;
        }
        Ok(())
    })
    .await
}

/// Enqueues the daily job of each account whose plugin has disputes. Deletes nothing.
pub async fn sweep(app: App) -> Result<u64> {
    let list = async |tx: &mut Tx| providers::list_without_job(tx, ACCOUNT_JOB).await;
    let found = app.store.select(list).await?;
    let has_disputes = |account: &Account| {
        let company = Owner::from(&account.owner);
        let plugin = app.plugins.provider(&account.provider, company.column());
        plugin.is_ok_and(|plugin| plugin.has_disputes())
    };
    let accounts: Vec<Account> = found.into_iter().filter(has_disputes).collect();
    if !accounts.is_empty() {
        let (db, now) = (app.store.clone(), app.clock.now());
        db.write(async move |tx| -> Result<()> {
            for account in &accounts {
                let owner = CompanyId::from(Owner::from(&account.owner).column());
                jobs::enqueue(tx, &owner, ACCOUNT_JOB, &account.id, now).await?;
            }
            Ok(())
        })
        .await?;
    }
    Ok(0)
}
