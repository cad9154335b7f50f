//! Settlement of recollections: verify with the provider, then record the outcome.
//!
//! Webhooks, scheduled checks and `verify` all end here. The loan's lock ensures that each effect
//! happens once, even for duplicate or reordered webhooks.

use super::{
    CHARGE_RETRY_SECONDS, Recollection, RecollectionId, Status, charge, lock_with_loan, store,
};
use crate::{
    lending::loans::{self, Loan},
    money::prelude::*,
};

/// A recollection after a verification. With a mismatch, the charge differs from the requested one
/// and is not a success.
pub type Verified = (Recollection, Option<&'static str>);

/// Verifies a recollection with the provider and records the outcome.
#[instrument(target = SPAN_TARGET, name = "recollections.verify", skip_all)]
pub async fn verify(app: &App, recollection: Recollection) -> Result<Verified> {
    let verifier = recollection.verifier(app).await?;
    let owner = recollection.as_owner();
    let read = async |tx: &mut Tx| notifications::list_references(tx, owner).await;
    let references = app.store.select(read).await?;
    let (mut is_known, mut last) = (false, (recollection.clone(), None));
    // An abandoned session may have been paid too.
    for service_ref in references {
        if let Some(seen) = verifier.fetch(&service_ref).await? {
            is_known = true;
            last = record(app, &recollection, seen).await?;
        }
    }
    if is_known || recollection.status != Status::Pending {
        return Ok(last);
    }
    let repeats = recollection.created_at.plus_seconds(CHARGE_RETRY_SECONDS) > app.clock.now();
    let settled = match (recollection.is_charge(), repeats) {
        // The customer may still pay in the checkout session.
        (false, _) => recollection,
        (true, true) => charge::attempt(app, recollection, Attempt::Retry).await?,
        (true, false) => fail(app, recollection, "the provider could not be reached").await?,
    };
    Ok((settled, None))
}

/// Records the status of a charge that the provider knows.
pub async fn record(
    app: &App,
    recollection: &Recollection,
    seen: ProviderPayment,
) -> Result<Verified> {
    let (db, app, before) = (app.store.clone(), app.clone(), recollection.clone());
    db.write(async move |tx| {
        let (loan, mut now) = lock_with_loan(tx, &before).await?;
        if !is_ours(&now.id, true, &seen) {
            if seen.status == PaymentStatus::Success {
                charges::alarm(&app, now.as_owner(), &now.money(), &seen, "foreign payment");
            }
            return Ok((now, None));
        }
        let now = match decide_transition(now.status.of_charge(), &now.money(), &seen) {
            Transition::Succeeded => {
                if now.status == Status::Failed {
                    let id = now.id.as_str();
                    tracing::warn!(
                        recollection = id,
                        "recollection succeeded after it was recorded as failed"
                    );
                }
                succeed(tx, &app, loan, with_provider_result(now, &app, seen)).await?
            }
            // Only the current session can fail the recollection.
            Transition::Failed if seen.service_ref == now.service_ref => {
                record_failure(tx, &app, with_provider_result(now, &app, seen)).await?
            }
            Transition::StillPending if seen.challenge_url.is_some() => {
                now.checkout.url = seen.challenge_url;
                now.message = seen.message;
                now.updated_at = app.clock.now();
                store::update(tx, &now).await?;
                now
            }
            Transition::Reversed => {
                charges::alarm(&app, now.as_owner(), &now.money(), &seen, "repayment reversed");
                now
            }
            // The customer has paid another session too.
            Transition::Unchanged if is_second_payment(&now, &seen) => {
                charges::alarm(&app, now.as_owner(), &now.money(), &seen, "repaid twice");
                now
            }
            Transition::Mismatch(mismatch) => {
                charges::alarm(&app, now.as_owner(), &now.money(), &seen, mismatch);
                now.message = mismatch.to_owned();
                now.updated_at = app.clock.now();
                store::update(tx, &now).await?;
                return Ok((now, Some(mismatch)));
            }
            _ => now,
        };
        Ok((now, None))
    })
    .await
}

fn is_second_payment(now: &Recollection, seen: &ProviderPayment) -> bool {
    let is_other = seen.service_ref != now.service_ref;
    is_other && now.status == Status::Success && seen.status == PaymentStatus::Success
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
    let repaid_at = recollection.repaid_at.unwrap_or(now);
    let overpayment = loans::apply_repayment(tx, app, loan, &recollection, repaid_at).await?;
    if overpayment > Minor(0) {
        let more = overpayment.to_major();
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
    let overdraft = Overdraft::Allowed;
    wallet::post(tx, app, &recollection.company_id, &movement, overdraft).await.map(drop)
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
pub async fn settle_job(app: App, job: Job) -> Result<JobResult> {
    let id = RecollectionId::from(&job.subject);
    let find = async |tx: &mut Tx| store::find(tx, &job.company_id, &id).await;
    let Some(recollection) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    let (begun_at, before) = (recollection.checks_start_at(), recollection.status);
    let settled = verify(&app, recollection).await.map(|(settled, _)| settled);
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
