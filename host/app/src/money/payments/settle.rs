//! Settlement of payments: verify with the provider, then record the outcome.
//!
//! Webhooks, scheduled checks and `verify` all end here. The row lock and the unique ledger keys
//! ensure that each effect happens once, even for duplicate or reordered webhooks.

use futures::{FutureExt, future::BoxFuture};
use serde_json::json;
use tracing::instrument;

use super::{Payment, SUBJECT, Status, not_found, refund, store};
use crate::{
    money::{
        charges::{
            self, ChargeVerifier, Transition, decide_transition, is_ours, next_check, without_token,
        },
        payments::PaymentId,
    },
    state::App,
    tenants::{
        providers,
        wallet::{self, LedgerAccount as Ledger, LedgerTransaction, Overdraft},
    },
    webhooks::{incoming as notifications, outgoing as events},
};
use tollhouse_platform::{
    background::jobs::{Job, JobResult},
    error::{Error, Result},
    store::Tx,
    telemetry::spans::SPAN_TARGET,
    values::money::{Minor, Money},
};
use tollhouse_plugins::{Credentials, PaymentStatus, Provider, ProviderPayment};

/// Maximum number of consecutive failures after the last scheduled check, about two days.
const MAX_FAILURES: i64 = 100;

/// The result of a verification.
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
    let desk = ChargeVerifier::open(
        app, &payment.company_id, &payment.payment_service, &payment.account_id,
    )
    .await?;
    let ask = async |service_ref: &str| match desk.fetch(service_ref).await? {
        Some(seen) => record(app, payment, seen, service_ref.to_owned()).await,
        None => Ok(PaymentVerification::Unknown),
    };
    let mut trouble = None;
    for former in former_references(app, payment).await? {
        match ask(&former).await {
            Ok(PaymentVerification::Known(now)) if now.status == Status::Success => {
                return Ok(PaymentVerification::Known(now));
            }
            Ok(_) => {}
            Err(error) => trouble = Some(error),
        }
    }
    let settled = ask(&payment.service_ref).await?;
    let is_settled =
        matches!(&settled, PaymentVerification::Known(now) if now.status != Status::Pending);
    match trouble {
        Some(error) if !is_settled => Err(error),
        _ => Ok(settled),
    }
}

pub fn provider(app: &App, payment: &Payment) -> Result<Provider> {
    app.plugins.provider(&payment.payment_service, &payment.company_id)
}

/// The references of abandoned sessions, one of which the customer may have paid.
async fn former_references(app: &App, payment: &Payment) -> Result<Vec<String>> {
    if !matches!(payment.status, Status::Pending | Status::Failed) {
        return Ok(Vec::new());
    }
    let Payment { company_id, id, service_ref, .. } = payment;
    let read =
        async |tx: &mut Tx| notifications::list_references(tx, company_id, SUBJECT, id).await;
    let mut references = app.store.select(read).await?;
    references.retain(|reference| reference != service_ref);
    Ok(references)
}

/// Opens the credentials under which the payment was created.
pub async fn credentials(app: &App, payment: &Payment) -> Result<Credentials> {
    let account =
        app.store.select(async |tx| providers::find_by_id(tx, &payment.account_id).await).await?;
    let account = account.ok_or_else(|| Error::invalid("payment service key not found"))?;
    account.open_credentials(app)
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
        let found = store::lock(tx, &company_id, &id).await?;
        let payment = found.ok_or_else(not_found)?;
        let is_current = service_ref == payment.service_ref;
        if !is_ours(&payment.id, is_current && payment.checkout_url.is_some(), &seen) {
            if seen.status == PaymentStatus::Success {
                alarm(&app, &payment, &seen, "foreign payment");
            }
            return Ok(PaymentVerification::Known(payment.into()));
        }
        // Only a success of an abandoned session matters.
        if !is_current && seen.status != PaymentStatus::Success {
            return Ok(PaymentVerification::Known(payment.into()));
        }
        let mismatch = match decide_transition(payment.status, &payment.money(), &seen) {
            Transition::Unchanged | Transition::StillPending => {
                return Ok(PaymentVerification::Known(payment.into()));
            }
            Transition::Succeeded => {
                let payment = Payment { service_ref, ..payment };
                return succeed(tx, &app, payment, &seen).await;
            }
            Transition::Failed => return fail(tx, &app, payment, &seen).await,
            Transition::Reversed => return reverse(tx, &app, payment, &seen).await,
            Transition::AmountMismatch => "amount mismatch",
            Transition::CurrencyMismatch => "currency mismatch",
        };
        alarm(&app, &payment, &seen, mismatch);
        let (message, updated_at) = (mismatch.to_owned(), app.clock.now());
        let payment = store::update(tx, &Payment { message, updated_at, ..payment }).await?;
        Ok(PaymentVerification::Mismatch(payment.into(), mismatch))
    })
    .await
}

fn alarm(app: &App, payment: &Payment, seen: &ProviderPayment, what: &'static str) {
    let which = (&*payment.company_id, SUBJECT, &*payment.id);
    charges::alarm(app, which, &payment.money(), seen, what);
}

async fn succeed(
    tx: &mut Tx,
    app: &App,
    payment: Payment,
    seen: &ProviderPayment,
) -> Result<PaymentVerification> {
    if payment.status == Status::Failed {
        tracing::warn!(
            payment = payment.id.as_str(),
            "payment succeeded after it was recorded as failed"
        );
    }
    let now = app.clock.now();
    let payment = Payment {
        status: Status::Success,
        fees: charges::fees(seen),
        paid_at: Some(seen.paid_at.unwrap_or(now)),
        payment_channel: seen.channel.clone(),
        ..with_provider_result(payment, app, seen)
    };
    let payment = store::update(tx, &payment).await?;
    release_pending(tx, app, &payment).await?;
    credit(tx, app, &payment).await?;
    emit(tx, app, &payment, "payment.success").await?;
    Ok(PaymentVerification::Known(payment.into()))
}

async fn fail(
    tx: &mut Tx,
    app: &App,
    payment: Payment,
    seen: &ProviderPayment,
) -> Result<PaymentVerification> {
    let payment = Payment { status: Status::Failed, ..with_provider_result(payment, app, seen) };
    let payment = store::update(tx, &payment).await?;
    release_pending(tx, app, &payment).await?;
    emit(tx, app, &payment, "payment.failed").await?;
    Ok(PaymentVerification::Known(payment.into()))
}

/// Records a reversal by the provider. The wallet may go negative: the money has already moved.
async fn reverse(
    tx: &mut Tx,
    app: &App,
    payment: Payment,
    seen: &ProviderPayment,
) -> Result<PaymentVerification> {
    refund::debit_net_amount(tx, app, &payment, Overdraft::Allowed).await?;
    let payment = Payment { status: Status::Refunded, ..with_provider_result(payment, app, seen) };
    let payment = store::update(tx, &payment).await?;
    emit(tx, app, &payment, "payment.refunded").await?;
    Ok(PaymentVerification::Known(payment.into()))
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

/// Returns the net amount that a success on the service account credits to the company.
pub fn net_amount(payment: &Payment) -> Money {
    let minor = Minor((payment.amount.0 - payment.fees.0).max(0));
    Money { minor, currency: payment.currency.clone() }
}

async fn credit(tx: &mut Tx, app: &App, payment: &Payment) -> Result<()> {
    if !payment.credits_wallet {
        return Ok(());
    }
    let movement = LedgerTransaction {
        key: format!("payment:{}:success", payment.id),
        kind: "payment.success".into(),
        from: Ledger::Provider(payment.payment_service.clone()),
        to: Ledger::Wallet,
        money: net_amount(payment),
    };
    wallet::post(tx, app, &payment.company_id, &movement, Overdraft::Allowed).await?;
    Ok(())
}

/// Releases the amount from the pending balance.
pub async fn release_pending(tx: &mut Tx, app: &App, payment: &Payment) -> Result<()> {
    if !payment.credits_wallet {
        return Ok(());
    }
    let movement = LedgerTransaction {
        key: format!("payment:{}:settled", payment.id),
        kind: "payment.settled".into(),
        from: Ledger::Pending,
        to: Ledger::Provider(payment.payment_service.clone()),
        money: payment.money(),
    };
    wallet::post(tx, app, &payment.company_id, &movement, Overdraft::Allowed).await?;
    Ok(())
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

/// The outcome label of the metric.
fn outcome_label(checked: &Result<PaymentVerification>) -> &'static str {
    match checked {
        Ok(PaymentVerification::Known(payment)) if payment.status == Status::Pending => "pending",
        Ok(PaymentVerification::Known(_)) => "settled",
        Ok(PaymentVerification::Unknown) => "not_known",
        Ok(PaymentVerification::Mismatch(..)) => "mismatch",
        Err(_) => "error",
    }
}

// ---- job ----------------------------------------------------------------------------------------

/// Settles a payment, or advances its refund, after a webhook and on schedule.
pub fn settle_job(app: App, job: Job) -> BoxFuture<'static, Result<JobResult>> {
    async move {
        let id = PaymentId::from(&job.subject);
        let (payment, refund) = app
            .store
            .read(async |tx| -> Result<_> {
                let payment = store::find(tx, &job.company_id, &id).await?;
                let refund = store::find_refund(tx, &job.company_id, &id).await?;
                Ok((payment, refund))
            })
            .await?;
        let Some(payment) = payment else { return Ok(JobResult::Done) };
        if let Some(refund) = refund.filter(super::Refund::is_in_progress) {
            return refund::resume(&app, &payment, &refund).await;
        }
        let checked = verify(&app, &payment).await;
        app.metrics.alarms.count_payment_check(outcome_label(&checked));
        let status = match &checked {
            Ok(PaymentVerification::Known(payment) | PaymentVerification::Mismatch(payment, _)) => {
                payment.status
            }
            Ok(PaymentVerification::Unknown) | Err(_) => payment.status,
        };
        match (checked, next_check(status, payment.created_at, app.clock.now())) {
            (Ok(_), next) => Ok(next.map_or(JobResult::Done, JobResult::RescheduleAt)),
            (Err(error), None) if job.failures >= MAX_FAILURES => {
                let (payment, error) = (payment.id, error.chain());
                tracing::error!(
                    payment = payment.as_str(),
                    error,
                    "payment could not be verified with the provider; giving up"
                );
                Ok(JobResult::Done)
            }
            (Err(error), _) => Err(error),
        }
    }
    .boxed()
}
