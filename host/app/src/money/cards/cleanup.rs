//! Removal of cards that were deleted or never verified. A removed card is hidden; its row stays
//! while its session may still be paid and until its token is deauthorized.

use super::{Card, CardId, REVOKE_JOB, Status, lock, lock_any, store};
use crate::money::prelude::*;

/// The alarm of a token that the provider did not revoke.
const NOT_REVOKED: &str = "card not revoked";
/// Retention of the rows of removed cards.
const RETENTION_SECONDS: i64 = 30 * DAY_SECONDS;

/// Returns when the card is removed if it is not valid by then.
pub fn removal_due_at(card: &Card) -> Option<Timestamp> {
    let waits = card.status != Status::Valid && card.removed_at.is_none();
    waits.then(|| card.created_at.plus_seconds(DAY_SECONDS))
}

/// Removes a card that is not valid after one day. Its charges are verified for two more days. In
/// the previous version, this job verified them, so it also enqueues their verification.
pub async fn confirm_job(app: App, job: Job) -> Result<JobResult> {
    let id = CardId::from(&job.subject);
    charges::adopt_job::<Card>(app.clone(), job.clone()).await?;
    let find = async |tx: &mut Tx| store::find_any(tx, &job.company_id, &id).await;
    let Some(card) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    let is_due = removal_due_at(&card).is_some_and(|at| at <= app.clock.now());
    // Its payer may have paid while no host ran.
    if is_due
        && let Err(error) = charges::verify_all::<Card>(&app, &card.company_id, &card.id).await
    {
        let (company, id) = (card.company_id.as_str(), card.id.as_str());
        tracing::warn!(
            company,
            card = id,
            error = error.chain(),
            "card removed without a verification of its charges"
        );
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let now = app.clock.now();
        let found = store::find_any(tx, &job.company_id, &id).await?;
        let Some(card) = found else { return Ok(JobResult::Done) };
        let mut card = lock_any(tx, &card).await?;
        match removal_due_at(&card) {
            None => Ok(JobResult::Done),
            Some(at) if now < at => Ok(JobResult::RescheduleAt(at)),
            Some(_) => {
                card.removed_at = Some(now);
                store::update(tx, &card).await?;
                Ok(JobResult::Done)
            }
        }
    })
    .await
}

/// Adopts the card of a refund that a host of the previous version began. Its own job continues it.
pub async fn adopt_refund_job(app: App, job: Job) -> Result<JobResult> {
    let find = async |tx: &mut Tx| store::card_of_refund(tx, &job.company_id, &job.subject).await;
    match app.store.select(find).await? {
        Some(card_id) => charges::adopt_job::<Card>(app, Job { subject: card_id, ..job }).await,
        None => Ok(JobResult::Done),
    }
}

/// Deletes a card. If it was the default, the newest other valid card becomes the default.
pub async fn delete(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    id: &CardId,
    default_too: bool,
) -> Result<()> {
    let mut card = lock(tx, company_id, id).await?;
    if card.is_default && !default_too {
        return Err(Error::invalid("default card cannot be deleted"));
    }
    let (was_default, now) = (card.is_default, app.clock.now());
    card.is_default = false;
    card.removed_at = Some(now);
    card.updated_at = now;
    store::update(tx, &card).await?;
    if was_default && let Some(next) = store::list_other_valid(tx, &card).await?.into_iter().next()
    {
        store::update(tx, &Card { is_default: true, updated_at: now, ..next }).await?;
    }
    if card.token.is_some() {
        jobs::enqueue(tx, company_id, REVOKE_JOB, id, now).await?;
    }
    Ok(())
}

/// Deauthorizes the token of a deleted card at the provider, then destroys it.
pub async fn revoke_job(app: App, job: Job) -> Result<JobResult> {
    let id = CardId::from(&job.subject);
    let find = async |tx: &mut Tx| store::find_any(tx, &job.company_id, &id).await;
    let card = app.store.select(find).await?;
    let Some(card) = card.filter(|card| card.removed_at.is_some() && card.token.is_some()) else {
        return Ok(JobResult::Done);
    };
    if let Err(error) = revoke(&app, &card).await {
        if job.failures < jobs::ABANDON_AFTER_FAILURES {
            return Err(error);
        }
        app.metrics.count_alarm(NOT_REVOKED);
        let (company, id, error) = (card.company_id.as_str(), id.as_str(), error.chain());
        tracing::error!(
            alarm = NOT_REVOKED,
            company,
            card = id,
            error,
            "token of a deleted card could not be revoked; no further attempts"
        );
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let card = lock_any(tx, &card).await?;
        store::update(tx, &Card { token: None, ..card }).await?;
        Ok(JobResult::Done)
    })
    .await
}

async fn revoke(app: &App, card: &Card) -> Result<()> {
    use FaultCategory::{Invalid, NotFound, Refused};
    let ChargeVerifier { provider, credentials } = card.verifier(app).await?;
    if !provider.exports("saved-card") {
        return Ok(());
    }
    match provider.deauthorize(&credentials, &card.token(app)?).await {
        Ok(_) => Ok(()),
        // The provider does not know the token or no longer accepts it.
        Err(error) if matches!(error.fault.category, NotFound | Refused | Invalid) => Ok(()),
        Err(error) => Err(error.into_error(&card.payment_service)),
    }
}

/// Deletes the rows of cards removed more than 30 days ago. Returns their number.
pub async fn sweep(app: App) -> Result<u64> {
    let before = app.clock.now().plus_seconds(-RETENTION_SECONDS);
    let swept =
        app.store.write_in_batches(async move |tx, most| store::sweep(tx, before, most).await);
    Ok(swept.await?)
}
