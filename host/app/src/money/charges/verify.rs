//! Verification: queries the provider about charges, on demand, after webhooks and by schedule.

use super::{
    Charge, ChargeId, ChargeOwner, Fact, LANE_SECONDS, Method, Outcome, RECONCILE_JOB, REFUND_JOB,
    State, exceptions, next_check,
    refund::{self, Refund},
    settle,
    state::is_verifiable,
    store,
};
use crate::money::prelude::*;

/// Delay of a check outside the schedule, which has ended.
const RECHECK_SECONDS: i64 = 60;

/// The alarm of a charge without an outcome after its last check.
const UNVERIFIED: &str = "unverified charge";

/// The result of verifying the charges of an owner.
#[derive(Default)]
pub struct Verified {
    /// The charges that their provider knows.
    pub known: Vec<ChargeId>,
    /// The difference of a charge from the requested amount, if no charge settled the owner.
    pub mismatch: Option<String>,
}

/// Queries the provider about a charge and records the result. Returns whether it is known.
#[instrument(target = SPAN_TARGET, name = "charges.verify", skip_all)]
async fn verify_one<O: ChargeOwner>(app: &App, charge: &Charge) -> Result<bool> {
    let verifier = charge.verifier(app).await?;
    let queried_at = app.clock.now();
    let (is_known, fact) = match verifier.fetch(app, charge).await? {
        Some(seen) => (true, Fact::Seen(Box::new(seen))),
        None => (false, Fact::NotFound(queried_at)),
    };
    if !settle::is_ignored::<O>(app, charge, &fact).await? {
        settle::record::<O>(app, charge, fact).await?;
    }
    Ok(is_known)
}

/// Verifies each charge of an owner by itself. Fails if one could not be verified and the owner
/// still has no outcome.
pub async fn verify_all<O: ChargeOwner>(
    app: &App,
    company_id: &CompanyId,
    owner_id: &str,
) -> Result<Verified> {
    let list = async |tx: &mut Tx| store::list(tx, company_id, O::KIND, owner_id).await;
    let now = app.clock.now();
    let mut charges = app.store.select(list).await?;
    if charges.is_empty() || charges.iter().any(|charge| next_check(charge, now).is_none()) {
        charges = adopt_and_schedule::<O>(app, company_id, owner_id).await?.1;
    }
    let (mut verified, mut failure) = (Verified::default(), None);
    for charge in charges.iter().filter(|charge| is_verifiable(charge)) {
        match verify_one::<O>(app, charge).await {
            Ok(true) => verified.known.push(charge.id.clone()),
            Ok(false) => {}
            // Its requests certainly had no effect, and its own job verifies it.
            Err(_) if charge.state == State::Canceled => {}
            Err(error) => failure = Some(error),
        }
    }
    let charges = match failure {
        None => app.store.select(list).await?,
        Some(error) => {
            let (owner, charges) = adopt_and_schedule::<O>(app, company_id, owner_id).await?;
            if owner.is_pending() {
                return Err(error);
            }
            charges
        }
    };
    if !charges.iter().any(|charge| charge.counts) {
        let mismatched = charges.into_iter().find(|charge| charge.state == State::Mismatched);
        verified.mismatch = mismatched.and_then(|charge| charge.mismatch);
    }
    Ok(verified)
}

/// Returns an owner with its charges. Adopts those of a host of the previous version, and schedules
/// another check of those whose schedule has ended.
async fn adopt_and_schedule<O: ChargeOwner>(
    app: &App,
    company_id: &CompanyId,
    owner_id: &str,
) -> Result<(O, Vec<Charge>)> {
    let (db, app) = (app.store.clone(), app.clone());
    let (company_id, owner_id) = (company_id.clone(), owner_id.to_owned());
    db.write(async move |tx| {
        let found = settle::lock::<O>(tx, &app, &company_id, &owner_id).await?;
        let found = found.ok_or_else(|| Error::not_found("record not found"))?;
        let now = app.clock.now();
        for charge in found.1.iter().filter(|charge| next_check(charge, now).is_none()) {
            schedule(tx, charge, now).await?;
        }
        Ok(found)
    })
    .await
}

/// Enqueues the next check of a charge that was requested. After the end of its schedule, it is
/// checked once more, because a success begins another schedule.
pub async fn schedule(tx: &mut Tx, charge: &Charge, now: Timestamp) -> Result<()> {
    let late = charge.taken.is_none().then(|| now.plus_seconds(RECHECK_SECONDS));
    if let Some(at) = next_check(charge, now).or(late).filter(|_| charge.fence > 0) {
        jobs::enqueue(tx, &charge.company_id, RECONCILE_JOB, &charge.id, at).await?;
    }
    Ok(())
}

/// Verifies a charge after a webhook and on schedule, and wakes its refund.
pub async fn reconcile_job<O: ChargeOwner>(
    app: App,
    job: Job,
    charge: Charge,
) -> Result<JobResult> {
    if !is_verifiable(&charge) {
        return Ok(JobResult::Done);
    }
    if wake_refunds(&app, &charge).await? {
        let next = next_check(&charge, app.clock.now());
        return Ok(next.map_or(JobResult::Done, JobResult::RescheduleAt));
    }
    let verified = verify_one::<O>(&app, &charge).await;
    let read = async |tx: &mut Tx| store::find(tx, &charge.company_id, &charge.id).await;
    let Some(charge) = app.store.select(read).await? else { return Ok(JobResult::Done) };
    app.metrics.count_charge_check(charge.owner_kind.name(), outcome_label(&verified, &charge));
    let now = app.clock.now();
    let next = next_check(&charge, now);
    let may_be_abandoned = charge.lane.is_some() || charge.is_received() && next.is_none();
    if may_be_abandoned && charge.is_undecided() {
        abandon::<O>(&app, &charge, next.is_none()).await?;
    }
    match (verified, next) {
        (Ok(_), next) => Ok(next.map_or(JobResult::Done, JobResult::RescheduleAt)),
        (Err(error), None) if job.failures >= jobs::ABANDON_AFTER_FAILURES => {
            let (company, id) = (charge.company_id.as_str(), charge.id.as_str());
            tracing::error!(
                company,
                charge = id,
                error = error.chain(),
                "charge could not be verified; no further attempts"
            );
            let (db, host) = (app.store.clone(), app.clone());
            db.write(async move |tx| {
                if charge.is_undecided() {
                    exceptions::raise(tx, &host, &charge, UNVERIFIED, None).await?;
                }
                Ok(JobResult::Done)
            })
            .await
        }
        (Err(error), _) => Err(error),
    }
}

fn outcome_label(verified: &Result<bool>, charge: &Charge) -> &'static str {
    match (verified, charge.state) {
        (Err(_), _) => "error",
        (Ok(false), _) => "not_known",
        (Ok(true), State::Mismatched) => "mismatch",
        (Ok(true), _) if charge.is_undecided() => "pending",
        (Ok(true), _) => "settled",
    }
}

/// Enqueues the job of the charge's open refund. Returns whether there is one.
async fn wake_refunds(app: &App, charge: &Charge) -> Result<bool> {
    let (db, now, charge) = (app.store.clone(), app.clock.now(), charge.clone());
    if charge.refunded == Minor(0) {
        return Ok(false);
    }
    db.write(async move |tx| {
        let last = refund::find_last(tx, &charge.company_id, &charge.id).await?;
        let Some(open) = last.filter(Refund::is_open) else { return Ok(false) };
        jobs::enqueue(tx, &charge.company_id, REFUND_JOB, &open.id, now).await?;
        Ok(true)
    })
    .await
}

/// Releases the lane if the payer has not acted in time, and lets the owner refund the fee. The
/// last check raises an exception.
async fn abandon<O: ChargeOwner>(app: &App, charge: &Charge, is_last: bool) -> Result<()> {
    let (db, app, before) = (app.store.clone(), app.clone(), charge.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        let Charge { company_id, owner_id, .. } = &before;
        let found = settle::lock::<O>(tx, &app, company_id, owner_id).await?;
        let Some((owner, charges)) = found else { return Ok(()) };
        let waits = |charge: &Charge| charge.id == before.id && charge.is_undecided();
        let Some(mut charge) = charges.into_iter().find(waits) else { return Ok(()) };
        let is_due = charge.begun_at.is_some_and(|begun| begun.plus_seconds(LANE_SECONDS) <= now);
        if !is_last && !is_due {
            return Ok(());
        }
        // A debit that a bank is processing holds the lane until the last check. A card charge
        // waits for its payer, even if the URL of the page was lost.
        let waits_for_payer = charge.session_url.is_some() || charge.method == Method::Card;
        if charge.holds_lane && (is_last || waits_for_payer) {
            charge.holds_lane = false;
            store::update(tx, &charge).await?;
            settle::wake_lane(tx, &charge, now).await?;
        }
        if is_last {
            exceptions::raise(tx, &app, &charge, UNVERIFIED, None).await?;
        }
        owner.apply(tx, &app, &charge, Outcome::Abandoned).await.map(drop)
    })
    .await
}
