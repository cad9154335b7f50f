//! Refunds of verification charges: requested until accepted, then polled until final.
//!
//! By the plugin contract a repeated request never makes a second refund.

use super::{
    Card, REFUND_JOB,
    store::{self, Refund, RefundStatus},
};
use crate::{
    money::prelude::*,
    operations::operator_events::{self, CARD_REFUND_FAILED},
};

/// Maximum number of consecutive failures of a refund request, about six hours.
const MAX_FAILURES: i64 = 20;
/// Polling interval and total polling time of a pending refund.
const POLL_INTERVAL_SECONDS: i64 = 3_600;
const MAX_POLL_SECONDS: i64 = 30 * 86_400;

/// Enqueues the refund of a verification charge, once per charge, in the caller's transaction.
pub async fn begin(tx: &mut Tx, app: &App, card: &Card, seen: &ProviderPayment) -> Result<()> {
    let now = app.clock.now();
    // What the customer paid on top is the provider fee, which is not refunded.
    let amount = seen.requested.as_ref().unwrap_or(&seen.amount);
    let refund = Refund {
        company_id: card.company_id.clone(),
        id: app.random.id(now),
        refund_ref: None,
        card_id: card.id.clone(),
        status: RefundStatus::Requested,
        payment_service: card.payment_service.clone(),
        account_id: card.account_id.clone(),
        service_ref: card.service_ref.clone(),
        transaction_id: seen.transaction_id.clone(),
        amount: amount.minor,
        currency: amount.currency.clone(),
        provider_id: String::new(),
        tries: 1,
        message: String::new(),
        created_at: now,
        updated_at: now,
    };
    if store::insert_refund(tx, &refund).await? {
        jobs::enqueue(tx, &refund.company_id, REFUND_JOB, &refund.id, now).await?;
    }
    Ok(())
}

pub async fn refund_job(app: App, job: Job) -> Result<JobResult> {
    let find = async |tx: &mut Tx| store::find_refund(tx, &job.company_id, &job.subject).await;
    let Some(refund) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    if matches!(refund.status, RefundStatus::Done | RefundStatus::Failed) {
        return Ok(JobResult::Done);
    }
    let refund = with_reference(&app, refund).await?;
    let gives_up = match refund.status {
        RefundStatus::Pending => !is_polled(&app, &refund),
        _ => job.failures >= MAX_FAILURES,
    };
    match request_or_poll(&app, &refund).await {
        Ok(seen) => record(&app, refund, seen).await,
        Err(error) if gives_up => {
            let (provider_id, message) = (refund.provider_id.clone(), error.to_string());
            record_status(&app, refund, RefundStatus::Failed, provider_id, message).await
        }
        Err(error) => Err(error),
    }
}

/// Stores the refund's reference before the first request: a retry under another one could refund
/// the charge twice.
async fn with_reference(app: &App, refund: Refund) -> Result<Refund> {
    if refund.refund_ref.is_some() || refund.status != RefundStatus::Requested {
        return Ok(refund);
    }
    let provider = app.plugins.provider(&refund.payment_service, &refund.company_id)?;
    let wanted = match refund.tries {
        1 => refund.id.clone(),
        n => format!("{}-{n}", refund.id),
    };
    let refund_ref = Some(provider.manifest().reference.conform(&wanted));
    let refund = Refund { refund_ref, ..refund };
    let (db, stored) = (app.store.clone(), refund.clone());
    let store = async move |tx: &mut Tx| store::update_refund(tx, &stored, stored.status).await;
    match db.write(store).await? {
        true => Ok(refund),
        false => Err(Error::Unavailable("the refund was changed by another request, try again")),
    }
}

fn is_polled(app: &App, refund: &Refund) -> bool {
    app.clock.now() < refund.created_at.plus_seconds(MAX_POLL_SECONDS)
}

async fn request_or_poll(app: &App, refund: &Refund) -> Result<ProviderRefund> {
    let ChargeVerifier { provider, credentials } =
        ChargeVerifier::open(app, &refund.company_id, &refund.payment_service, &refund.account_id)
            .await?;
    let result = match refund.status {
        RefundStatus::Requested => {
            let order = refund_order(refund);
            provider.start_refund(&credentials, &order).await
        }
        _ => provider.check_refund(&credentials, &refund.provider_id).await,
    };
    result.map_err(|error| error.into_error(&refund.payment_service))
}

fn refund_order(refund: &Refund) -> RefundOrder {
    RefundOrder {
        service_ref: refund.service_ref.clone(),
        transaction_id: refund.transaction_id.clone(),
        refund_ref: refund.refund_ref.as_ref().unwrap_or(&refund.id).clone(),
        amount: Money { minor: refund.amount, currency: refund.currency.clone() },
        reason: "card verification".to_owned(),
    }
}

async fn record(app: &App, refund: Refund, seen: ProviderRefund) -> Result<JobResult> {
    let ProviderRefund { status, provider_id, message } = seen;
    let status = match status {
        ProviderRefundStatus::Done => RefundStatus::Done,
        ProviderRefundStatus::Pending if is_polled(app, &refund) => RefundStatus::Pending,
        ProviderRefundStatus::Pending | ProviderRefundStatus::Failed => RefundStatus::Failed,
    };
    record_status(app, refund, status, provider_id, message).await
}

async fn record_status(
    app: &App,
    refund: Refund,
    status: RefundStatus,
    provider_id: String,
    message: String,
) -> Result<JobResult> {
    let (db, app, was) = (app.store.clone(), app.clone(), refund.status);
    let now = app.clock.now();
    let refund = Refund { status, provider_id, message, updated_at: now, ..refund };
    db.write(async move |tx| {
        let is_news = store::update_refund(tx, &refund, was).await?;
        if is_news && refund.status == RefundStatus::Failed {
            app.metrics.count_alarm("card refund failed");
            let data = json!({ "card": refund.card_id, "refund": refund.id });
            operator_events::emit(tx, &app, &refund.company_id, CARD_REFUND_FAILED, data).await?;
        }
        Ok(match refund.status {
            RefundStatus::Pending => {
                JobResult::RescheduleAt(now.plus_seconds(POLL_INTERVAL_SECONDS))
            }
            _ => JobResult::Done,
        })
    })
    .await
}

/// Requests a failed refund again, for an operator.
pub async fn retry(tx: &mut Tx, app: &App, company_id: &CompanyId, id: &str) -> Result<Refund> {
    let found = store::lock_refund(tx, company_id, id).await?;
    let refund = found.ok_or_else(|| Error::not_found("refund not found"))?;
    if refund.status != RefundStatus::Failed {
        return Err(Error::invalid("only a failed refund can be retried"));
    }
    let now = app.clock.now();
    let refund = Refund {
        status: RefundStatus::Requested,
        refund_ref: None,
        provider_id: String::new(),
        tries: refund.tries + 1,
        updated_at: now,
        ..refund
    };
    store::update_refund(tx, &refund, RefundStatus::Failed).await?;
    jobs::enqueue(tx, company_id, REFUND_JOB, id, now).await?;
    Ok(refund)
}
