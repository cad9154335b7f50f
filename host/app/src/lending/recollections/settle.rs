//! Settlement of recollections: verify with the provider, then record the outcome.
//!
//! Webhooks, scheduled checks and `verify` all end here. The loan's lock ensures that each effect
//! happens once, even for duplicate or reordered webhooks.

use futures::{FutureExt, future::BoxFuture};
use serde_json::json;
use tracing::instrument;

use super::{
    Recollection, SUBJECT, Status, UnknownChargeStep, charge, create::Attempt, not_found, store,
};
use crate::{
    customers as users,
    lending::{
        loans::{self, Loan, Repayment},
        recollections::RecollectionId,
    },
    money::charges::{self, ChargeVerifier, Transition, decide_transition, is_ours, next_check},
    state::App,
    tenants::wallet::{self, LedgerAccount as Ledger, LedgerTransaction, Overdraft},
    webhooks::{incoming as notifications, outgoing as events},
};
use tollhouse_platform::{
    background::jobs::{Job, JobResult},
    error::{Error, Result},
    store::Tx,
    telemetry::spans::SPAN_TARGET,
    values::money::{Minor, Money},
};
use tollhouse_plugins::{PaymentStatus, ProviderPayment};

/// The result of a verification.
#[derive(Debug)]
pub enum RecollectionVerification {
    /// The current recollection.
    Known(Box<Recollection>),
    /// The charge differs from the requested one and is not a success.
    Mismatch(Box<Recollection>, &'static str),
}

impl RecollectionVerification {
    pub fn into_inner(self) -> Recollection {
        let (RecollectionVerification::Known(recollection)
        | RecollectionVerification::Mismatch(recollection, _)) = self;
        *recollection
    }
}

/// Verifies a recollection with the provider and records the outcome.
#[instrument(target = SPAN_TARGET, name = "recollections.verify", skip_all)]
pub async fn verify(app: &App, recollection: Recollection) -> Result<RecollectionVerification> {
    let Recollection { company_id, id, payment_service, account_id, .. } = &recollection;
    let desk = ChargeVerifier::open(app, company_id, payment_service, account_id).await?;
    let read =
        async |tx: &mut Tx| notifications::list_references(tx, company_id, SUBJECT, id).await;
    let references = app.store.select(read).await?;
    let (mut is_known, mut last) =
        (false, RecollectionVerification::Known(recollection.clone().into()));
    // An abandoned session may have been paid too.
    for service_ref in references {
        if let Some(seen) = desk.fetch(&service_ref).await? {
            is_known = true;
            last = record(app, &recollection, seen).await?;
        }
    }
    if is_known || recollection.status != Status::Pending {
        return Ok(last);
    }
    let settled = match recollection.step_if_unknown(app.clock.now()) {
        UnknownChargeStep::Wait => recollection,
        UnknownChargeStep::ChargeAgain => {
            charge::attempt(app, recollection, Attempt::Retry).await?
        }
        UnknownChargeStep::GiveUp => {
            fail(app, recollection, "the provider could not be reached").await?
        }
    };
    Ok(RecollectionVerification::Known(settled.into()))
}

/// Records the status of a charge that the provider knows.
pub async fn record(
    app: &App,
    recollection: &Recollection,
    seen: ProviderPayment,
) -> Result<RecollectionVerification> {
    let (db, app, before) = (app.store.clone(), app.clone(), recollection.clone());
    db.write(async move |tx| {
        let (loan, mut now) = lock_with_loan(tx, &before).await?;
        let which = (&*before.company_id, SUBJECT, &*before.id);
        if !is_ours(&now.id, true, &seen) {
            if seen.status == PaymentStatus::Success {
                charges::alarm(&app, which, &now.money(), &seen, "foreign payment");
            }
            return Ok(RecollectionVerification::Known(now.into()));
        }
        let mismatch = match decide_transition(now.status.of_charge(), &now.money(), &seen) {
            Transition::Succeeded => {
                if now.status == Status::Failed {
                    let id = now.id.as_str();
                    tracing::warn!(
                        recollection = id,
                        "recollection succeeded after it was recorded as failed"
                    );
                }
                let now = with_provider_result(now, &app, seen);
                return Ok(RecollectionVerification::Known(
                    succeed(tx, &app, loan, now).await?.into(),
                ));
            }
            // Only the current session can fail the recollection.
            Transition::Failed if seen.service_ref == now.service_ref => {
                let now = with_provider_result(now, &app, seen);
                return Ok(RecollectionVerification::Known(
                    record_failure(tx, &app, now).await?.into(),
                ));
            }
            Transition::StillPending if seen.challenge_url.is_some() => {
                now.checkout_url = seen.challenge_url;
                now.message = seen.message;
                now.updated_at = app.clock.now();
                store::update(tx, &now).await?;
                return Ok(RecollectionVerification::Known(now.into()));
            }
            Transition::Reversed => {
                charges::alarm(&app, which, &now.money(), &seen, "repayment reversed");
                return Ok(RecollectionVerification::Known(now.into()));
            }
            // The customer has paid another session too.
            Transition::Unchanged if is_second_payment(&now, &seen) => {
                charges::alarm(&app, which, &now.money(), &seen, "repaid twice");
                return Ok(RecollectionVerification::Known(now.into()));
            }
            Transition::AmountMismatch => "amount mismatch",
            Transition::CurrencyMismatch => "currency mismatch",
            _ => return Ok(RecollectionVerification::Known(now.into())),
        };
        charges::alarm(&app, which, &now.money(), &seen, mismatch);
        now.message = mismatch.to_owned();
        now.updated_at = app.clock.now();
        store::update(tx, &now).await?;
        Ok(RecollectionVerification::Mismatch(now.into(), mismatch))
    })
    .await
}

fn is_second_payment(now: &Recollection, seen: &ProviderPayment) -> bool {
    let is_other = seen.service_ref != now.service_ref;
    is_other && now.status == Status::Success && seen.status == PaymentStatus::Success
}

/// Locks the loan's row and returns the current loan and recollection.
async fn lock_with_loan(tx: &mut Tx, before: &Recollection) -> Result<(Loan, Recollection)> {
    let loan = loans::lock(tx, &before.company_id, &before.loan_id).await?;
    let now = store::find(tx, &before.company_id, &before.id).await?;
    loan.zip(now).ok_or_else(not_found)
}

/// Copies the provider fields that every outcome records.
fn with_provider_result(now: Recollection, app: &App, seen: ProviderPayment) -> Recollection {
    let (at, fees) = (app.clock.now(), charges::fees(&seen));
    Recollection {
        service_ref: seen.service_ref,
        transaction_id: seen.transaction_id,
        fees,
        message: seen.message,
        repaid_at: (seen.status == PaymentStatus::Success).then(|| seen.paid_at.unwrap_or(at)),
        ..now
    }
}

/// Records a success and repays the loan in the caller's transaction.
pub async fn succeed(
    tx: &mut Tx,
    app: &App,
    loan: Loan,
    mut recollection: Recollection,
) -> Result<Recollection> {
    let now = app.clock.now();
    let repayment = Repayment {
        recollection_id: recollection.id.clone(),
        amount: recollection.amount,
        fees: recollection.fees,
        payment_service: recollection.payment_service.clone(),
        payment_channel: recollection.payment_channel.clone(),
        at: recollection.repaid_at.unwrap_or(now),
    };
    let (_, repaid) = loans::apply_repayment(tx, app, loan, &repayment).await?;
    if repaid.overpayment > Minor(0) {
        let more = repaid.overpayment.to_major();
        recollection.message = format!("overpaid by {more} {}", recollection.currency);
    }
    recollection.status = Status::Success;
    recollection.updated_at = now;
    store::update(tx, &recollection).await?;
    credit(tx, app, &recollection).await?;
    emit(tx, app, &recollection, "recollection.success").await?;
    Ok(recollection)
}

/// Credits the net amount of a charge on the service account to the company's wallet.
async fn credit(tx: &mut Tx, app: &App, recollection: &Recollection) -> Result<()> {
    if !recollection.credits_wallet {
        return Ok(());
    }
    let minor = Minor((recollection.amount.0 - recollection.fees.0).max(0));
    let movement = LedgerTransaction {
        key: format!("recollection:{}:success", recollection.id),
        kind: "recollection.success".into(),
        from: Ledger::Provider(recollection.payment_service.clone()),
        to: Ledger::Wallet,
        money: Money { minor, currency: recollection.currency.clone() },
    };
    wallet::post(tx, app, &recollection.company_id, &movement, Overdraft::Allowed).await?;
    Ok(())
}

/// Fails a pending recollection.
pub async fn fail(app: &App, before: Recollection, message: &str) -> Result<Recollection> {
    let (db, app, message) = (app.store.clone(), app.clone(), message.to_owned());
    db.write(async move |tx| {
        let (_, now) = lock_with_loan(tx, &before).await?;
        match now.status {
            Status::Pending => record_failure(tx, &app, Recollection { message, ..now }).await,
            Status::Success | Status::Failed => Ok(now),
        }
    })
    .await
}

async fn record_failure(
    tx: &mut Tx,
    app: &App,
    mut recollection: Recollection,
) -> Result<Recollection> {
    recollection.status = Status::Failed;
    recollection.updated_at = app.clock.now();
    store::update(tx, &recollection).await?;
    if let Some(key) = &recollection.fee_key {
        wallet::refund_fee(tx, app, &recollection.company_id, key).await?;
    }
    emit(tx, app, &recollection, "recollection.failed").await?;
    Ok(recollection)
}

async fn emit(
    tx: &mut Tx,
    app: &App,
    recollection: &Recollection,
    kind: &'static str,
) -> Result<()> {
    let user = users::find_by_id(tx, &recollection.company_id, &recollection.user_key).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    let event = events::Event {
        kind,
        subject_id: recollection.id.to_string(),
        data: json!(recollection.clone().view(user)),
        callback_url: recollection.callback_url.clone(),
    };
    events::emit(tx, app, &recollection.company_id, event).await
}

/// Settles a recollection after a webhook and on schedule.
pub fn settle_job(app: App, job: Job) -> BoxFuture<'static, Result<JobResult>> {
    async move {
        let find = async |tx: &mut Tx| {
            store::find(tx, &job.company_id, &RecollectionId::from(&job.subject)).await
        };
        let Some(recollection) = app.store.select(find).await? else { return Ok(JobResult::Done) };
        let (begun_at, before) = (recollection.checks_start_at(), recollection.status);
        let settled = verify(&app, recollection).await.map(RecollectionVerification::into_inner);
        let status = settled.as_ref().map_or(before, |settled| settled.status);
        match (settled, next_check(status.of_charge(), begun_at, app.clock.now())) {
            (Err(error), None) => charges::retry_or_give_up(&job, error),
            (Err(error), _) => Err(error),
            (Ok(_), Some(next)) => Ok(JobResult::RescheduleAt(next)),
            (Ok(recollection), None) => {
                release_fee(&app, recollection).await?;
                Ok(JobResult::Done)
            }
        }
    }
    .boxed()
}

/// Refunds the collection fee of a charge that is still pending after its last check.
async fn release_fee(app: &App, before: Recollection) -> Result<()> {
    let (db, app) = (app.store.clone(), app.clone());
    db.write(async move |tx| {
        let (_, now) = lock_with_loan(tx, &before).await?;
        match &now.fee_key {
            Some(key) if now.status == Status::Pending => {
                wallet::refund_fee(tx, &app, &now.company_id, key).await
            }
            _ => Ok(()),
        }
    })
    .await
}

#[must_use]
pub fn still_pending() -> Error {
    Error::invalid("payment is still pending")
}
