//! Settlement of payments: verify with the provider, then record the outcome.
//!
//! Webhooks, scheduled checks and `verify` all end here. The row lock and the unique ledger keys
//! ensure that each effect happens once, even for duplicate or reordered webhooks.

use self::PaymentVerification::{Known, Mismatch, Unknown};
use super::{Payment, PaymentId, Refund, Status, lock, refund, store};
use crate::money::{charges::without_token, prelude::*};

#[derive(Debug)]
pub enum PaymentVerification {
    /// The current payment.
    Known(Box<Payment>),
    /// The provider does not know the payment.
    Unknown,
    /// The charge differs from the requested one and is not a success.
    Mismatch(Box<Payment>, &'static str),
}

/// Verifies a payment with the provider and records the outcome.
#[instrument(target = SPAN_TARGET, name = "payments.verify", skip_all)]
pub async fn verify(app: &App, payment: &Payment) -> Result<PaymentVerification> {
    let verifier = payment.verifier(app).await?;
    let verify_reference = async |service_ref: &str| match verifier.fetch(service_ref).await? {
        Some(seen) => record(app, payment, seen, service_ref.to_owned()).await,
        None => Ok(Unknown),
    };
    let mut last_error = None;
    for former in former_references(app, payment).await? {
        match verify_reference(&former).await {
            Ok(Known(now)) if now.status == Status::Success => {
                return Ok(Known(now));
            }
            Ok(_) => {}
            Err(error) => last_error = Some(error),
        }
    }
    let settled = verify_reference(&payment.service_ref).await?;
    let is_settled = matches!(&settled, Known(now) if now.status != Status::Pending);
    match last_error {
        Some(error) if !is_settled => Err(error),
        _ => Ok(settled),
    }
}

/// The references of abandoned sessions, one of which the customer may have paid.
async fn former_references(app: &App, payment: &Payment) -> Result<Vec<String>> {
    if !matches!(payment.status, Status::Pending | Status::Failed) {
        return Ok(Vec::new());
    }
    let read = async |tx: &mut Tx| notifications::list_references(tx, payment.as_owner()).await;
    let mut references = app.store.select(read).await?;
    references.retain(|reference| *reference != payment.service_ref);
    Ok(references)
}

/// Transaction 3: records the status of the provider's charge with `service_ref`.
async fn record(
    app: &App,
    payment: &Payment,
    seen: ProviderPayment,
    service_ref: String,
) -> Result<PaymentVerification> {
    let (db, app) = (app.store.clone(), app.clone());
    let (company_id, id) = (payment.company_id.clone(), payment.id.clone());
    db.write(async move |tx| {
        let payment = lock(tx, &company_id, &id).await?;
        let is_current = service_ref == payment.service_ref;
        if !is_ours(&payment.id, is_current && payment.checkout.url.is_some(), &seen) {
            if seen.status == PaymentStatus::Success {
                alarm(&app, &payment, &seen, "foreign payment");
            }
            return Ok(Known(payment.into()));
        }
        // Only a success of an abandoned session matters.
        if !is_current && seen.status != PaymentStatus::Success {
            return Ok(Known(payment.into()));
        }
        let settled = match decide_transition(payment.status, &payment.money(), &seen) {
            Transition::Unchanged | Transition::StillPending => payment,
            Transition::Succeeded => {
                succeed(tx, &app, Payment { service_ref, ..payment }, &seen).await?
            }
            Transition::Failed => fail(tx, &app, payment, &seen).await?,
            Transition::Reversed => reverse(tx, &app, payment, &seen).await?,
            Transition::Mismatch(mismatch) => {
                alarm(&app, &payment, &seen, mismatch);
                let (message, updated_at) = (mismatch.to_owned(), app.clock.now());
                let payment = Payment { message, updated_at, ..payment };
                store::update(tx, &payment).await?;
                return Ok(Mismatch(payment.into(), mismatch));
            }
        };
        Ok(Known(settled.into()))
    })
    .await
}

fn alarm(app: &App, payment: &Payment, seen: &ProviderPayment, what: &'static str) {
    charges::alarm(app, payment.as_owner(), &payment.money(), seen, what);
}

async fn succeed(
    tx: &mut Tx,
    app: &App,
    payment: Payment,
    seen: &ProviderPayment,
) -> Result<Payment> {
    if payment.status == Status::Failed {
        tracing::warn!(
            payment = payment.id.as_str(),
            "payment succeeded after it was recorded as failed"
        );
    }
    let payment = Payment {
        status: Status::Success,
        fees: charges::fees(seen),
        paid_at: Some(seen.paid_at.unwrap_or_else(|| app.clock.now())),
        payment_channel: seen.channel.clone(),
        ..with_provider_result(payment, app, seen)
    };
    store::update(tx, &payment).await?;
    release_pending(tx, app, &payment).await?;
    let accounts = [payment.provider_ledger(), Ledger::Wallet];
    post(tx, app, &payment, "success", "payment.success", accounts, Overdraft::Allowed).await?;
    emit(tx, app, &payment, "payment.success").await?;
    Ok(payment)
}

async fn fail(tx: &mut Tx, app: &App, payment: Payment, seen: &ProviderPayment) -> Result<Payment> {
    let payment = Payment { status: Status::Failed, ..with_provider_result(payment, app, seen) };
    store::update(tx, &payment).await?;
    release_pending(tx, app, &payment).await?;
    emit(tx, app, &payment, "payment.failed").await?;
    Ok(payment)
}

/// Records a reversal by the provider and debits the wallet, unless a refund in progress has
/// already done so. The wallet may go negative: the money has already moved.
async fn reverse(
    tx: &mut Tx,
    app: &App,
    payment: Payment,
    seen: &ProviderPayment,
) -> Result<Payment> {
    let refund = store::find_refund(tx, &payment.company_id, &payment.id).await?;
    if !refund.is_some_and(|refund| refund.is_in_progress()) {
        let accounts = [Ledger::Wallet, payment.provider_ledger()];
        post(tx, app, &payment, "reversed", "payment.refund", accounts, Overdraft::Allowed).await?;
    }
    let payment = Payment { status: Status::Refunded, ..with_provider_result(payment, app, seen) };
    store::update(tx, &payment).await?;
    emit(tx, app, &payment, "payment.refunded").await?;
    Ok(payment)
}

/// Copies the provider fields that every outcome records.
fn with_provider_result(payment: Payment, app: &App, seen: &ProviderPayment) -> Payment {
    Payment {
        transaction_id: seen.transaction_id.clone(),
        message: seen.message.clone(),
        payment_response: without_token(seen),
        updated_at: app.clock.now(),
        ..payment
    }
}

/// Posts a ledger transaction of a payment on the service account. The pending balance contains
/// the full amount; all others contain the net amount, which the company receives.
pub async fn post(
    tx: &mut Tx,
    app: &App,
    payment: &Payment,
    key: &str,
    kind: &'static str,
    [from, to]: [Ledger; 2],
    overdraft: Overdraft,
) -> Result<()> {
    if !payment.credits_wallet {
        return Ok(());
    }
    let fees = if [&from, &to].contains(&&Ledger::Pending) { 0 } else { payment.fees.0 };
    let minor = Minor((payment.amount.0 - fees).max(0));
    let movement = LedgerTransaction {
        key: format!("payment:{}:{key}", payment.id),
        kind: kind.into(),
        from,
        to,
        money: Money { minor, currency: payment.currency.clone() },
    };
    wallet::post(tx, app, &payment.company_id, &movement, overdraft).await.map(drop)
}

/// Releases the amount from the pending balance.
pub async fn release_pending(tx: &mut Tx, app: &App, payment: &Payment) -> Result<()> {
    let accounts = [Ledger::Pending, payment.provider_ledger()];
    post(tx, app, payment, "settled", "payment.settled", accounts, Overdraft::Allowed).await
}

pub async fn emit(tx: &mut Tx, app: &App, payment: &Payment, kind: &'static str) -> Result<()> {
    let event = events::Event {
        kind,
        subject_id: payment.id.to_string(),
        data: json!(payment.event_data()),
        callback_url: payment.callback_url.clone(),
    };
    events::emit(tx, app, &payment.company_id, event).await
}

fn outcome_label(checked: &Result<PaymentVerification>) -> &'static str {
    match checked {
        Ok(Known(payment)) if payment.status == Status::Pending => "pending",
        Ok(Known(_)) => "settled",
        Ok(Unknown) => "not_known",
        Ok(Mismatch(..)) => "mismatch",
        Err(_) => "error",
    }
}

/// Settles a payment, or advances its refund, after a webhook and on schedule.
pub async fn settle_job(app: App, job: Job) -> Result<JobResult> {
    let id = PaymentId::from(&job.subject);
    let read = async |tx: &mut Tx| -> Result<_> {
        let payment = store::find(tx, &job.company_id, &id).await?;
        Ok((payment, store::find_refund(tx, &job.company_id, &id).await?))
    };
    let (Some(payment), refund) = app.store.read(read).await? else {
        return Ok(JobResult::Done);
    };
    if let Some(refund) = refund.filter(Refund::is_in_progress) {
        return refund::resume(&app, &payment, &refund).await;
    }
    let checked = verify(&app, &payment).await;
    app.metrics.count_payment_check(outcome_label(&checked));
    let status = match &checked {
        Ok(Known(payment) | Mismatch(payment, _)) => payment.status,
        Ok(Unknown) | Err(_) => payment.status,
    };
    match (checked, next_check(status, payment.created_at, app.clock.now())) {
        (Ok(_), next) => Ok(next.map_or(JobResult::Done, JobResult::RescheduleAt)),
        (Err(error), None) if job.failures >= charges::MAX_FAILURES => {
            let (payment, error) = (payment.id.as_str(), error.chain());
            tracing::error!(
                payment,
                error,
                "payment could not be verified with the provider; giving up"
            );
            Ok(JobResult::Done)
        }
        (Err(error), _) => Err(error),
    }
}
