//! Queries and cancels mandates at the provider, after webhooks and by schedule.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD as BASE64};

use super::{
    Mandate, MandateId, MandateState, forget, lock_any,
    record::{cancel, record_seen},
    session_context,
    state::{Fact, OVERDUE_SECONDS, next_check},
    store,
};
use crate::money::prelude::*;
use tollhouse_plugins::{KnownMandate, MandateStatus, PluginData, ProviderMandate};

/// Time after which a mandate is deleted if no response confirmed it and the provider does not know
/// it.
const UNKNOWN_SECONDS: i64 = 3_600;
/// Time for which a cancellation is retried, in case the payer authorizes the mandate late; also
/// the retention of removed mandates.
const RETENTION_SECONDS: i64 = 30 * DAY_SECONDS;
const NOT_CANCELLED: &str = "mandate not cancelled";

/// Queries a mandate, or cancels it, if it was deleted or was not authorized in time.
pub async fn sync_job(app: App, job: Job) -> Result<JobResult> {
    let id = MandateId::from(&job.subject);
    let find = async |tx: &mut Tx| store::find_any(tx, &job.company_id, &id).await;
    let found = app.store.select(find).await?.filter(|mandate| !mandate.is_foreign());
    let Some(mandate) = found else { return Ok(JobResult::Done) };
    if mandate.to_cancel {
        return cancel_at_provider(&app, &job, mandate).await;
    }
    if mandate.state == MandateState::Cancelled {
        return Ok(JobResult::Done);
    }
    let queried = query(&app, &mandate).await?;
    let current = settle(&app, mandate, queried).await?;
    let now = app.clock.now();
    let next = current.and_then(|mandate| match mandate.to_cancel {
        true => Some(now),
        false => next_check(mandate.state, mandate.created_at, now),
    });
    Ok(next.map_or(JobResult::Done, JobResult::RescheduleAt))
}

/// Returns the provider's report; `None` if the provider does not know the mandate.
async fn query(app: &App, mandate: &Mandate) -> Result<Option<ProviderMandate>> {
    let ChargeVerifier { provider, credentials } = mandate.verifier(app).await?;
    match provider.query_mandate(&credentials, &mandate.known(app)?).await {
        Ok(seen) => Ok(Some(seen)),
        Err(error) if error.fault.category == FaultCategory::NotFound => Ok(None),
        Err(error) => Err(error.into_private_error(&mandate.payment_service)),
    }
}

/// Records the result of a query. `None`: the mandate is deleted.
async fn settle(
    app: &App,
    mandate: Mandate,
    queried: Option<ProviderMandate>,
) -> Result<Option<Mandate>> {
    let (db, app) = (app.store.clone(), app.clone());
    db.write(async move |tx| {
        let found = lock_any(tx, &mandate).await?.filter(|found| !found.is_foreign());
        let Some(mut current) = found else { return Ok(None) };
        let now = app.clock.now();
        match &queried {
            Some(seen) => current = record_seen(tx, &app, current, seen).await?,
            None if current.is_unknown(now) => {
                forget(tx, &current).await?;
                return Ok(None);
            }
            None => {}
        }
        let is_waiting = matches!(current.state, MandateState::Created | MandateState::Approved);
        if is_waiting && current.created_at.plus_seconds(OVERDUE_SECONDS) <= now {
            current = cancel(tx, &app, current, Fact::Overdue).await?;
        }
        Ok(Some(current))
    })
    .await
}

/// Cancels a mandate at the provider. Retries daily while the provider cannot cancel it.
async fn cancel_at_provider(app: &App, job: &Job, mandate: Mandate) -> Result<JobResult> {
    let now = app.clock.now();
    match request_cancellation(app, &mandate).await {
        Ok(true) => {}
        Ok(false) if now < mandate.updated_at.plus_seconds(RETENTION_SECONDS) => {
            return Ok(JobResult::RescheduleAt(now.plus_seconds(DAY_SECONDS)));
        }
        // No payer authorizes a mandate after this time.
        Ok(false) => {}
        Err(error) if job.failures < jobs::ABANDON_AFTER_FAILURES => return Err(error),
        Err(error) => {
            app.metrics.count_alarm(NOT_CANCELLED);
            let (company, id) = (mandate.company_id.as_str(), mandate.id.as_str());
            tracing::error!(
                alarm = NOT_CANCELLED,
                company,
                direct_debit = id,
                error = error.chain(),
                "a mandate could not be cancelled at the provider; no further attempts"
            );
        }
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        if let Some(current) = lock_any(tx, &mandate).await? {
            store::update(tx, &Mandate { to_cancel: false, ..current }).await?;
        }
        Ok(JobResult::Done)
    })
    .await
}

async fn request_cancellation(app: &App, mandate: &Mandate) -> Result<bool> {
    let ChargeVerifier { provider, credentials } = mandate.verifier(app).await?;
    match provider.cancel_mandate(&credentials, &mandate.known(app)?).await {
        Ok(is_cancelled) => Ok(is_cancelled),
        Err(error) if error.fault.category == FaultCategory::NotFound => Ok(true),
        Err(error) => Err(error.into_private_error(&mandate.payment_service)),
    }
}

/// Deletes the rows of mandates removed more than 30 days ago. Returns their number.
pub async fn sweep(app: App) -> Result<u64> {
    let before = app.clock.now().plus_seconds(-RETENTION_SECONDS);
    let swept =
        app.store.write_in_batches(async move |tx, most| store::sweep(tx, before, most).await);
    Ok(swept.await?)
}

impl Mandate {
    /// Returns whether a mandate that the provider does not know was never begun: no response
    /// confirmed it, and the last request for it was long ago.
    fn is_unknown(&self, now: Timestamp) -> bool {
        self.is_unbegun() && self.updated_at.plus_seconds(UNKNOWN_SECONDS) <= now
    }

    /// Returns whether no response has confirmed that the provider began it.
    pub fn is_unbegun(&self) -> bool {
        self.session.is_none() && self.state == MandateState::Created
    }

    fn known(&self, app: &App) -> Result<KnownMandate> {
        let state = self.session.as_deref().map(|sealed| open_session(app, self, sealed));
        Ok(KnownMandate {
            service_ref: self.service_ref.clone(),
            status: match self.state {
                MandateState::Created => MandateStatus::Created,
                MandateState::Approved => MandateStatus::Approved,
                MandateState::Ready => MandateStatus::Ready,
                MandateState::Cancelled => MandateStatus::Cancelled,
            },
            state: state.transpose()?,
        })
    }
}

pub fn seal_session(app: &App, mandate: &Mandate, data: &PluginData) -> String {
    app.sealer.seal(&session_context(&mandate.company_id, &mandate.id), &BASE64.encode(&data.0))
}

fn open_session(app: &App, mandate: &Mandate, sealed: &str) -> Result<PluginData> {
    let text = app.sealer.open(&session_context(&mandate.company_id, &mandate.id), sealed)?;
    Ok(PluginData(BASE64.decode(text).map_err(Error::internal)?.into()))
}
