//! Refunds of payments: debit the wallet, request the refund, record the result.
//!
//! 1. `request` (one transaction): locks the payment, which must be `success` (or `refunded` with a
//!    refund that failed later) and whose plugin must offer refunds. Writes the refund, debits the
//!    net amount (400 if the wallet does not cover it, unless forced) and enqueues the settle job.
//! 2. `advance`: calls the provider under a lease. The contract makes a repeated request safe.
//! 3. `record` (one transaction): the provider accepted it, so the payment becomes `refunded` and
//!    the event is written. A pending refund is checked hourly for 30 days. If the first call
//!    certainly did nothing, or the provider refused, the money is credited back. Otherwise the job
//!    repeats the request: once a response was lost, only a refusal proves that there is no refund.
//! 4. A refund that fails after it was accepted keeps the payment `refunded` and the money held,
//!    and raises the alarm `refund failed`. The operator repeats the same request.
//!
//! A refund made at the provider arrives as a webhook: verification sees `reversed`, and
//! `settle::reverse` debits the net amount, covered or not.

use super::{
    Payment, PaymentId, Refund, RefundStatus, SETTLE_JOB, Status, find_by_id, lock,
    settle::{emit, post},
    store,
};
use crate::money::prelude::*;
use tollhouse_plugins::ReferenceRules;

/// Delay before a refund with an unknown outcome is requested again.
const RETRY_SECONDS: i64 = 60;
/// Polling interval of a pending refund.
const POLL_INTERVAL_SECONDS: i64 = 3_600;
/// Polling time of a pending refund, after which an operator is alerted.
const MAX_POLL_SECONDS: i64 = 30 * 86_400;

impl Refund {
    pub fn is_in_progress(&self) -> bool {
        matches!(self.status, RefundStatus::Requested | RefundStatus::Pending)
    }
}

/// Refunds a successful payment in full. `force` lets the wallet go below zero.
#[instrument(target = SPAN_TARGET, name = "payments.refund", skip_all)]
pub async fn refund(
    app: &App,
    company_id: &CompanyId,
    payment_id: &PaymentId,
    force: bool,
) -> Result<Payment> {
    let payment = find_by_id(app, company_id, payment_id).await?;
    // Fails before the wallet is debited if the provider account is gone.
    payment.verifier(app).await?;
    let (payment, refund, attempt) = request(app, &payment, force).await?;
    advance(app, &payment, &refund, attempt).await?;
    find_by_id(app, company_id, payment_id).await
}

/// Transaction 1: records the refund and debits the wallet.
async fn request(app: &App, payment: &Payment, force: bool) -> Result<(Payment, Refund, Attempt)> {
    let (db, app) = (app.store.clone(), app.clone());
    let (company_id, id) = (payment.company_id.clone(), payment.id.clone());
    db.write(async move |tx| {
        let detail = json!({ "payment": id, "force": force });
        audit::record(tx, &app, &company_id, "payment.refund", detail).await?;
        let payment = lock(tx, &company_id, &id).await?;
        let provider = payment.provider(&app)?;
        if !provider.exports("refunds") {
            let message = format!("{} does not support refunds", payment.payment_service);
            return Err(Error::Invalid(message));
        }
        let before = store::find_refund(tx, &company_id, &id).await?;
        match (payment.status, before) {
            // A refund in progress: resume it.
            (Status::Success, Some(refund)) if refund.is_in_progress() => {
                const BUSY: &str = "another request for this refund is in progress";
                let conflict = refund.lease.conflict(app.clock.now(), BUSY);
                let taken = acquire_lease(tx, &app, refund).await?;
                return Ok((payment, taken.ok_or(conflict)?, Attempt::Retry));
            }
            (Status::Success, _) => {}
            // The provider accepted a refund that failed later: retry it without a second debit.
            (Status::Refunded, Some(refund)) if refund.status == RefundStatus::Failed => {}
            _ => return Err(Error::invalid("only successful payment can be refunded")),
        }
        let refund = new_refund(&app, &payment, &provider.manifest().reference);
        store::upsert_refund(tx, &refund).await?;
        if payment.status == Status::Success {
            let cover = if force { Overdraft::Allowed } else { Overdraft::Forbidden };
            let (key, accounts) =
                (ledger_key(&refund), [Ledger::Wallet, payment.provider_ledger()]);
            post(tx, &app, &payment, &key, "payment.refund", accounts, cover).await?;
        }
        let retry = refund.created_at.plus_seconds(RETRY_SECONDS);
        jobs::enqueue(tx, &company_id, SETTLE_JOB, &id, retry).await?;
        Ok((payment, refund, Attempt::First))
    })
    .await
}

fn ledger_key(refund: &Refund) -> String {
    format!("refund:{}", refund.id)
}

fn new_refund(app: &App, payment: &Payment, rules: &ReferenceRules) -> Refund {
    let now = app.clock.now();
    let id = app.random.id(now);
    Refund {
        company_id: payment.company_id.clone(),
        payment_id: payment.id.clone(),
        refund_ref: Some(rules.conform(&id)),
        id,
        status: RefundStatus::Requested,
        amount: payment.amount,
        provider_id: String::new(),
        message: String::new(),
        lease: Lease::acquire(app),
        created_at: now,
        updated_at: now,
    }
}

/// Acquires the lease. `None`: another request holds it, or the refund is no longer requested.
async fn acquire_lease(tx: &mut Tx, app: &App, refund: Refund) -> Result<Option<Refund>> {
    let is_free = refund.lease.is_free(app.clock.now());
    if !is_free || refund.status != RefundStatus::Requested {
        return Ok(None);
    }
    let refund = Refund { lease: Lease::acquire(app), ..refund };
    store::upsert_refund(tx, &refund).await?;
    Ok(Some(refund))
}

/// Resumes a refund in progress, for the job.
pub async fn resume(app: &App, payment: &Payment, refund: &Refund) -> Result<JobResult> {
    if refund.status != RefundStatus::Requested {
        return advance(app, payment, refund, Attempt::Retry).await;
    }
    let (db, host, refund) = (app.store.clone(), app.clone(), refund.clone());
    let taken = db.write(async move |tx| match lock_current(tx, &refund).await? {
        Some((_, refund)) => acquire_lease(tx, &host, refund).await,
        None => Ok(None),
    });
    match taken.await? {
        Some(refund) => advance(app, payment, &refund, Attempt::Retry).await,
        None => Ok(JobResult::RescheduleAt(app.clock.now().plus_seconds(RETRY_SECONDS))),
    }
}

/// Locks the payment and returns it with the refund, if the refund's status is still the same.
async fn lock_current(tx: &mut Tx, refund: &Refund) -> Result<Option<(Payment, Refund)>> {
    let (company_id, payment_id) = (&refund.company_id, &refund.payment_id);
    let payment = lock(tx, company_id, payment_id).await?;
    let found = store::find_refund(tx, company_id, payment_id).await?;
    let found = found.filter(|found| found.id == refund.id && found.status == refund.status);
    Ok(found.map(|refund| (payment, refund)))
}

/// Like `lock_current`, but `None` without the lease: another request may have made the refund
/// since.
async fn lock_if_leased(tx: &mut Tx, refund: &Refund) -> Result<Option<(Payment, Refund)>> {
    let current = lock_current(tx, refund).await?;
    Ok(current.filter(|(_, now)| now.lease.is_held_as(&refund.lease)))
}

/// Requests or polls the refund at the provider.
async fn advance(
    app: &App,
    payment: &Payment,
    refund: &Refund,
    attempt: Attempt,
) -> Result<JobResult> {
    let ChargeVerifier { provider, credentials } = payment.verifier(app).await?;
    let is_requested = refund.status == RefundStatus::Requested;
    let result = if is_requested {
        let order = refund_order(payment, refund);
        let Refund { company_id, payment_id, lease, .. } = refund.clone();
        let id = payment_id.to_string();
        let leased = Leased { table: LeasedTable::Refunds, company_id, id, lease };
        leased.hold(app, provider.start_refund(&credentials, &order)).await
    } else {
        provider.check_refund(&credentials, &refund.provider_id).await
    };
    match result {
        Ok(seen) => record(app, payment, refund, seen).await,
        Err(error) => {
            if is_requested && proves_no_refund(&error, attempt) {
                let reason = format!("{:?} {}", error.fault.category, error.fault.code);
                record_rejection(app, refund, reason).await?;
            } else if is_requested {
                release_lease(app, refund).await?;
            }
            Err(error.into_error(&payment.payment_service))
        }
    }
}

/// After a lost response, only a rejection by the provider proves that there is no refund.
fn proves_no_refund(error: &CallError, attempt: Attempt) -> bool {
    let refused = error.fault.category == FaultCategory::Refused;
    error.certainty == Certainty::NotDone && (attempt == Attempt::First || refused)
}

/// Releases the lease after an unknown outcome.
async fn release_lease(app: &App, refund: &Refund) -> Result<()> {
    let (db, refund) = (app.store.clone(), refund.clone());
    db.write(async move |tx| {
        if let Some((_, refund)) = lock_if_leased(tx, &refund).await? {
            store::upsert_refund(tx, &Refund { lease: Lease::default(), ..refund }).await?;
        }
        Ok(())
    })
    .await
}

fn refund_order(payment: &Payment, refund: &Refund) -> RefundOrder {
    RefundOrder {
        service_ref: payment.service_ref.clone(),
        transaction_id: payment.transaction_id.clone(),
        refund_ref: refund.refund_ref.as_ref().unwrap_or(&refund.id).clone(),
        amount: payment.money(),
        reason: "refund".to_owned(),
    }
}

/// Transaction 2: records the provider's result.
async fn record(
    app: &App,
    payment: &Payment,
    refund: &Refund,
    seen: ProviderRefund,
) -> Result<JobResult> {
    if seen.status == ProviderRefundStatus::Failed && refund.status == RefundStatus::Requested {
        record_rejection(app, refund, seen.message).await?;
        let message = format!("{} refused the refund", payment.payment_service);
        let detail = "the refund failed immediately".to_owned();
        return Err(Error::Upstream { message, detail });
    }
    let (db, app, refund) = (app.store.clone(), app.clone(), refund.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        let Some((payment, refund)) = lock_current(tx, &refund).await? else {
            return Ok(JobResult::RescheduleAt(now.plus_seconds(RETRY_SECONDS)));
        };
        let status = match seen.status {
            ProviderRefundStatus::Pending => RefundStatus::Pending,
            ProviderRefundStatus::Done => RefundStatus::Done,
            ProviderRefundStatus::Failed => RefundStatus::Failed,
        };
        let watched = now < refund.created_at.plus_seconds(MAX_POLL_SECONDS);
        match status {
            RefundStatus::Failed => alarm(&app, &payment, "refund failed"),
            RefundStatus::Pending if !watched => alarm(&app, &payment, "refund still pending"),
            _ => {}
        }
        let refund = Refund {
            status,
            provider_id: seen.provider_id,
            message: seen.message,
            lease: Lease::default(),
            updated_at: now,
            ..refund
        };
        store::upsert_refund(tx, &refund).await?;
        if payment.status == Status::Success {
            let payment = Payment { status: Status::Refunded, updated_at: now, ..payment };
            store::update(tx, &payment).await?;
            emit(tx, &app, &payment, "payment.refunded").await?;
        }
        Ok(match status {
            RefundStatus::Pending if watched => {
                JobResult::RescheduleAt(now.plus_seconds(POLL_INTERVAL_SECONDS))
            }
            _ => JobResult::Done,
        })
    })
    .await
}

fn alarm(app: &App, payment: &Payment, what: &'static str) {
    app.metrics.count_alarm(what);
    let (company, payment) = (payment.company_id.as_str(), &payment.id);
    tracing::error!(alarm = what, company, payment = payment.as_str(), "refund requires attention");
}

/// Records a rejected refund and credits the wallet again.
async fn record_rejection(app: &App, refund: &Refund, reason: String) -> Result<()> {
    let (db, app, refund) = (app.store.clone(), app.clone(), refund.clone());
    db.write(async move |tx| {
        let Some((payment, refund)) = lock_if_leased(tx, &refund).await? else { return Ok(()) };
        let refund = Refund {
            status: RefundStatus::Failed,
            message: reason,
            lease: Lease::default(),
            updated_at: app.clock.now(),
            ..refund
        };
        store::upsert_refund(tx, &refund).await?;
        if payment.status == Status::Success {
            let key = format!("{}:refused", ledger_key(&refund));
            let (kind, accounts) =
                ("payment.refund.refused", [payment.provider_ledger(), Ledger::Wallet]);
            post(tx, &app, &payment, &key, kind, accounts, Overdraft::Allowed).await?;
        }
        Ok(())
    })
    .await
}
