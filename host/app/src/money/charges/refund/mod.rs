//! Refunds of charges: debit the ledger, request the refund, record the result.
//!
//! 1. `begin` (in the caller's transaction): writes the refund, debits what the ledger has of the
//!    charge, and enqueues the job `charge.refund`.
//! 2. `advance`: requests the refund, or polls an accepted one, under a lease. The plugin contract
//!    makes a repeated request safe.
//! 3. `record` (one transaction): `judge` decides the next state. The money is credited back only
//!    if there certainly is no refund: the first request certainly did nothing, or the provider
//!    rejected one. After an unknown outcome, only a rejection proves that.
//!
//! A refund that fails after the provider accepted it keeps the money debited and raises an alarm.
//! An operator starts another one.

mod outcome;
mod rows;

use self::rows as store;
pub use self::{
    outcome::{RefundFact, RefundState},
    rows::{
        ListedRefund, Refund, RefundsFilter, extend_lease, find, find_last, find_listed, insert,
        list, list_of_charge,
    },
};
use super::{
    Charge, ChargeId, ChargeOwner, DISPUTES_JOB, Failure, Outcome, OwnerKind, RECONCILE_JOB,
    REFUND_JOB, exceptions, lease, lease::Leased, ledger, model::conflict, sessions, settle,
    store as charge_store,
};
use crate::{
    money::{charges::State as ChargeState, prelude::*},
    operations::operator_events::{self, CARD_REFUND_FAILED, PAYMENT_REFUND_FAILED},
};
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

/// Delay before a refund with an unknown outcome is requested again, by its job or an operator.
const RETRY_SECONDS: i64 = 60;
/// Polling interval of an accepted refund, and the one after `MAX_HOURLY_SECONDS`.
const POLL_INTERVAL_SECONDS: i64 = 3_600;
const LATE_POLL_INTERVAL_SECONDS: i64 = 86_400;
const MAX_HOURLY_SECONDS: i64 = 30 * 86_400;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RefundCause")]
pub enum Cause {
    /// An operator refunded a payment.
    Operator,
    /// The verification charge of a card is always refunded.
    Verification,
}

text_columns!(Cause);

/// The cause and the amount of a refund, and whether it may overdraw the wallet.
#[derive(Clone, Copy, Debug)]
pub struct RefundTerms {
    pub cause: Cause,
    /// `None`: all that is left to refund.
    pub amount: Option<Minor>,
    /// Allows the wallet balance to become negative.
    pub force: bool,
}

impl RefundTerms {
    pub const VERIFICATION: RefundTerms =
        RefundTerms { cause: Cause::Verification, amount: None, force: true };
}

/// Begins a refund of a charge, in the caller's transaction and under the owner's lock. 400 if less
/// than the amount is left, or if the provider does not support refunds of a part.
pub async fn begin(
    tx: &mut Tx,
    app: &App,
    charge: &mut Charge,
    terms: RefundTerms,
) -> Result<Refund> {
    let now = app.clock.now();
    let RefundTerms { cause, force, .. } = terms;
    let provider = app.plugins.provider(&charge.provider, &charge.company_id)?;
    let (left, amount) = (charge.refundable(), choose_amount(charge, &provider, terms.amount)?);
    let mut earlier = store::list_of_charge(tx, &charge.company_id, &charge.id).await?;
    let (released, kept) = release_replaced(tx, app, charge, &mut earlier, amount).await?;
    let (held, fee) = ledger::shares(charge.credited, amount, Minor(left.0 - kept.0));
    let id = app.random.id(now);
    let refund = Refund {
        company_id: charge.company_id.clone(),
        refund_ref: provider.manifest().reference.conform(&id),
        id,
        charge_id: charge.id.clone(),
        number: earlier.last().map_or(1, |last| last.number + 1),
        amount,
        held,
        fee: if charge.in_books { fee } else { Minor(0) },
        fee_bearer: ledger::fee_bearer(app, charge),
        replaces: released > Minor(0),
        currency: charge.taken_currency.clone().unwrap_or_else(|| charge.currency.clone()),
        cause,
        provider_id: String::new(),
        state: RefundState::Requested,
        fence: 0,
        lease_until: None,
        unsure: false,
        message: String::new(),
        last_error: None,
        created_at: now,
        updated_at: now,
    };
    store::insert(tx, &refund).await?;
    // The money released from failed refunds may cover this one.
    let is_covered = force || refund.held.0 + refund.fee.0 <= released.0;
    let overdraft = if is_covered { Overdraft::Allowed } else { Overdraft::Forbidden };
    ledger::hold(tx, app, charge, &refund, overdraft).await?;
    charge.refunded.0 += refund.amount.0;
    charge.updated_at = now;
    charge_store::update(tx, charge).await?;
    let first = if cause == Cause::Operator { now.plus_seconds(RETRY_SECONDS) } else { now };
    jobs::enqueue(tx, &refund.company_id, REFUND_JOB, &refund.id, first).await?;
    Ok(refund)
}

/// Releases the money that failed refunds still hold, if a refund of `amount` replaces them: it has
/// the same amount, or exceeds what is left without theirs. Returns the released money, and the
/// amount of the failed refunds that keep theirs.
async fn release_replaced(
    tx: &mut Tx,
    app: &App,
    charge: &mut Charge,
    earlier: &mut [Refund],
    amount: Minor,
) -> Result<(Minor, Minor)> {
    let keeps = |refund: &Refund| refund.state.has_failed() && refund.held.0 + refund.fee.0 > 0;
    let kept: i64 = earlier.iter().filter(|refund| keeps(refund)).map(|r| r.amount.0).sum();
    let needs_all = amount.0 > charge.refundable().0 - kept;
    let repeated = earlier.iter().position(|refund| keeps(refund) && refund.amount == amount);
    let (mut released, mut left) = (0, kept);
    for (n, failed) in earlier.iter_mut().enumerate() {
        if keeps(failed) && (needs_all || repeated == Some(n)) {
            released += failed.held.0 + failed.fee.0;
            left -= failed.amount.0;
            ledger::release(tx, app, charge, failed).await?;
            store::update(tx, failed).await?;
        }
    }
    Ok((Minor(released), Minor(left)))
}

/// Returns the amount to refund: the `wanted` one, or what is left of the charge.
fn choose_amount(charge: &Charge, provider: &Provider, wanted: Option<Minor>) -> Result<Minor> {
    let (left, name) = (charge.refundable(), &charge.provider);
    let amount = wanted.unwrap_or(left);
    let currency = charge.taken_currency.as_ref().unwrap_or(&charge.currency);
    let invalid = |message: String| Err(Error::Invalid(message));
    if left == Minor(0) {
        return invalid("the charge has no amount left to refund".to_owned());
    }
    if amount > left {
        let left = left.to_major();
        return invalid(format!(
            "the amount field must be at most {left}, which is left to refund"
        ));
    }
    if wanted.is_some() && amount.0 % currency.unit().0 != 0 {
        return invalid(format!("the amount field must be a whole number of {currency}"));
    }
    let is_part = amount < left || charge.refunded > Minor(0);
    if is_part && !provider.supports_partial_refunds() {
        return invalid(format!("{name} does not support partial refunds"));
    }
    Ok(amount)
}

/// Begins a call under a new fence and lease, unless the refund has an outcome. Returns the refund,
/// and whether the call may begin. 409 if another one may be in progress. `has_notifications`: the
/// plugin reads notifications about refunds.
async fn claim(
    tx: &mut Tx,
    now: Timestamp,
    company_id: &CompanyId,
    id: &str,
    has_notifications: bool,
) -> Result<(Refund, bool)> {
    let found = store::lock(tx, company_id, id).await?;
    let mut refund = found.ok_or_else(|| Error::not_found("refund not found"))?;
    if !refund.is_open() {
        return Ok((refund, false));
    }
    let is_notified = has_notifications && sessions::is_notified(tx, company_id, id).await?;
    let queries = refund.state == RefundState::Pending || is_notified;
    let busy_until = refund.busy_until(queries);
    if busy_until.is_some_and(|until| until > now) {
        const BUSY: &str = "another request for this refund is in progress";
        const UNKNOWN: &str =
            "an earlier request for this refund has an unknown outcome: wait before you repeat it";
        let message = if refund.lease_until.is_some() { BUSY } else { UNKNOWN };
        return Err(conflict(busy_until, now, message));
    }
    refund.claim(now);
    store::update(tx, &refund).await?;
    Ok((refund, true))
}

/// Requests a refund, or polls an accepted one. Returns the refund, and the error of the call.
pub async fn advance<O: ChargeOwner>(
    app: &App,
    charge: &Charge,
    id: &str,
) -> Result<(Refund, Option<Error>)> {
    let (now, company_id, id) = (app.clock.now(), charge.company_id.clone(), id.to_owned());
    let provider = app.plugins.provider(&charge.provider, &charge.company_id);
    let has_notifications = provider.is_ok_and(|provider| provider.has_session_refunds());
    let claim = async move |tx: &mut Tx| claim(tx, now, &company_id, &id, has_notifications).await;
    let (refund, may_begin) = app.store.write(claim).await?;
    if !may_begin {
        return Ok((refund, None));
    }
    let (fact, error) = send(app, charge, &refund).await.unwrap_or_else(|error| {
        (RefundFact::NotRequested { error: error.to_string() }, Some(error))
    });
    let refund = record::<O>(app, charge, &refund, fact).await?;
    let error = error.or_else(|| {
        (refund.state == RefundState::Refused).then(|| Error::Upstream {
            message: format!("{} refused the refund", charge.provider),
            detail: "the refund failed immediately".to_owned(),
        })
    });
    Ok((refund, error))
}

/// Requests or queries the refund. Returns the resulting fact, and the error of the call. A failed
/// query yields nothing about the refund.
async fn send(app: &App, charge: &Charge, refund: &Refund) -> Result<(RefundFact, Option<Error>)> {
    let ChargeVerifier { provider, credentials } = charge.verifier(app).await?;
    let known = sessions::known_refund(app, &provider, charge, refund).await?;
    // A notification may have the result of a request whose response was lost.
    if refund.state == RefundState::Pending || known.notified.is_some() {
        let queried = provider.query_refund(&credentials, &known).await;
        return Ok(to_fact(charge, queried, |error, _| RefundFact::NotRequested { error }));
    }
    let earlier = earlier_ids(app, &provider, charge, refund).await?;
    let order = SessionRefundOrder {
        session: known.session,
        notification_url: sessions::notification_url(app, charge, &refund.id),
        refund_ref: refund.refund_ref.clone(),
        amount: refund.money(),
        reason: match refund.cause {
            Cause::Operator => "refund".to_owned(),
            Cause::Verification => "card verification".to_owned(),
        },
    };
    // Another host may have claimed the refund since: of two requests, one may be refused.
    if refund.lease_until <= Some(app.clock.now()) {
        return Err(Error::internal("the lease of the refund ended before its request"));
    }
    let call = provider.request_refund(&credentials, &order, earlier);
    let requested = Leased::Refund(Box::new(refund.clone())).hold(app, call).await;
    Ok(to_fact(charge, requested, |error, failed| RefundFact::Failed {
        certainty: failed.certainty,
        rejected: failed.is_rejection(),
        error,
    }))
}

/// Returns the fact and the error of a call.
fn to_fact(
    charge: &Charge,
    result: Result<ProviderRefund, CallError>,
    failed: impl FnOnce(String, &CallError) -> RefundFact,
) -> (RefundFact, Option<Error>) {
    match result {
        Ok(seen) => (RefundFact::Seen(seen), None),
        Err(error) => {
            let reason = format!("{:?} {}", error.fault.category, error.fault.code);
            (failed(reason, &error), Some(error.into_error(&charge.provider)))
        }
    }
}

/// Returns the provider's ids of the charge's other refunds if this one refunds only a part.
async fn earlier_ids(
    app: &App,
    provider: &Provider,
    charge: &Charge,
    refund: &Refund,
) -> Result<Option<Vec<String>>> {
    if charge.taken == Some(refund.amount) {
        return Ok(None);
    }
    let list = async |tx: &mut Tx| store::list_of_charge(tx, &charge.company_id, &charge.id).await;
    let all = app.store.select(list).await?.into_iter();
    let made = all.filter(|other| other.id != refund.id && !other.state.has_failed());
    let ids: Vec<String> = made.map(|other| other.provider_id).collect();
    match provider.supports_partial_refunds() {
        true => Ok(Some(ids)),
        // A dispute took the rest: the provider knows no other refund.
        false if ids.is_empty() => Ok(None),
        false => {
            let name = &charge.provider;
            Err(Error::Invalid(format!("{name} no longer supports partial refunds")))
        }
    }
}

/// Records the result of a call for a refund.
async fn record<O: ChargeOwner>(
    app: &App,
    charge: &Charge,
    before: &Refund,
    fact: RefundFact,
) -> Result<Refund> {
    let (db, app) = (app.store.clone(), app.clone());
    let (charge, before) = (charge.clone(), before.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        let found = settle::lock::<O>(tx, &app, &charge.company_id, &charge.owner_id).await?;
        // Locked on its own: the owner may have been deleted.
        let charge = charge_store::lock(tx, &charge.company_id, &charge.id).await?;
        let mut charge = charge.ok_or_else(|| Error::not_found("charge not found"))?;
        let refund = store::lock(tx, &before.company_id, &before.id).await?;
        let mut refund = refund.ok_or_else(|| Error::not_found("refund not found"))?;
        let (is_current, was) = (refund.fence == before.fence, refund.state);
        let updated_at = refund.updated_at;
        if let RefundFact::Seen(seen) = &fact {
            sessions::insert_refund(tx, &app, &refund, seen).await?;
        }
        refund.record(is_current, fact, now);
        let late_at = refund.created_at.plus_seconds(MAX_HOURLY_SECONDS);
        if refund.state == RefundState::Pending && updated_at < late_at && now >= late_at {
            raise_alarm(&app, &charge, "refund still pending");
        }
        if refund.state.has_failed() && was != refund.state {
            charge.refunded.0 -= refund.amount.0;
            // Money that a reversal or a replaced refund may have returned stays debited.
            let keeps_money = refund.replaces || charge.state == ChargeState::Reversed;
            if refund.state == RefundState::Refused && !keeps_money {
                ledger::release(tx, &app, &mut charge, &mut refund).await?;
            }
            charge_store::refresh_disputed(tx, &mut charge).await?;
            if charge.disputed > Minor(0) {
                jobs::enqueue(tx, &charge.company_id, DISPUTES_JOB, &charge.id, now).await?;
            }
            if !charge.counts {
                exceptions::reopen(tx, &charge).await?;
            }
            charge_store::update(tx, &charge).await?;
        }
        // While the refund was open, a reversal was ignored as its effect.
        let may_be_reversed = refund.state.has_failed() || charge.refundable() > Minor(0);
        if was.is_open() && !refund.is_open() && may_be_reversed {
            jobs::enqueue(tx, &charge.company_id, RECONCILE_JOB, &charge.id, now).await?;
        }
        store::update(tx, &refund).await?;
        report(tx, &app, &charge, &refund, was).await?;
        if let Some(found) = found {
            apply_to_owner::<O>(tx, &app, found, &charge, (was, refund.state)).await?;
        }
        Ok(refund)
    })
    .await
}

/// Applies the change of a refund to the owner of its charge.
async fn apply_to_owner<O: ChargeOwner>(
    tx: &mut Tx,
    app: &App,
    (owner, charges): (O, Vec<Charge>),
    charge: &Charge,
    (was, is): (RefundState, RefundState),
) -> Result<()> {
    if !charge.counts {
        return match is {
            RefundState::Done => end_owner::<O>(tx, app, owner, &charges, charge).await,
            _ => Ok(()),
        };
    }
    let is_accepted = |state| matches!(state, RefundState::Pending | RefundState::Done);
    let outcome = match (is_accepted(is), is_accepted(was)) {
        // The company keeps the rest if it wins an open dispute.
        (true, false)
            if charge.refundable() == Minor(0)
                && !charge_store::is_disputed(tx, &charge.company_id, &charge.id).await? =>
        {
            Outcome::Refunded
        }
        (true, false) => Outcome::PartlyRefunded,
        (false, true) => Outcome::RefundFailed,
        _ => return Ok(()),
    };
    owner.apply(tx, app, charge, outcome).await.map(drop)
}

/// Ends the owner of a mismatched charge as failed if all that was taken was refunded.
async fn end_owner<O: ChargeOwner>(
    tx: &mut Tx,
    app: &App,
    owner: O,
    charges: &[Charge],
    charge: &Charge,
) -> Result<()> {
    let is_settled = charges.iter().any(|other| other.counts);
    let is_returned = charge.taken == Some(charge.refunded);
    if !owner.is_pending() || !is_returned || !charge.ends_owner(is_settled) {
        return Ok(());
    }
    let (Some(what), Some(last)) = (&charge.mismatch, charges.last()) else { return Ok(()) };
    ledger::end_pending(tx, app, last).await?;
    owner.apply(tx, app, charge, Outcome::Failed(Failure::Message(what))).await.map(drop)
}

/// Reports to operators, once, that a refund needs attention.
async fn report(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    refund: &Refund,
    was: RefundState,
) -> Result<()> {
    use RefundState::{Failed, Refused, Stalled};
    let needs_attention = match refund.state {
        Failed | Stalled => true,
        // The operator who refunds a payment receives the error.
        Refused => charge.owner_kind == OwnerKind::Card || !charge.counts,
        _ => false,
    };
    if refund.state == was || !needs_attention {
        return Ok(());
    }
    let (kind, alarm, owner) = match charge.owner_kind {
        OwnerKind::Card => (CARD_REFUND_FAILED, "card refund failed", "card"),
        kind => (PAYMENT_REFUND_FAILED, "refund failed", kind.name()),
    };
    raise_alarm(app, charge, alarm);
    let data = json!({ owner: charge.owner_id, "refund": refund.id });
    operator_events::emit(tx, app, &charge.company_id, kind, data).await?;
    Ok(())
}

/// Raises an alarm about a notification of a failed refund: the provider may have made it.
pub fn report_late_notification(app: &App, charge: &Charge, refund: &Refund) {
    if refund.state.has_failed() {
        raise_alarm(app, charge, "notification of a failed refund");
    }
}

fn raise_alarm(app: &App, charge: &Charge, alarm: &'static str) {
    app.metrics.count_alarm(alarm);
    let (company, subject, id) = charge.as_owner();
    tracing::error!(alarm, company, subject, id, "refund requires attention");
}

pub async fn refund_job<O: ChargeOwner>(app: App, charge: Charge, job: Job) -> Result<JobResult> {
    let (refund, error) = match advance::<O>(&app, &charge, &job.subject).await {
        Err(Error::InProgress { retry_after_s, .. }) => {
            let at = app.clock.now().plus_seconds(retry_after_s.into());
            return Ok(JobResult::PostponeTo(at));
        }
        advanced => advanced?,
    };
    let now = app.clock.now();
    match (refund.state, error) {
        (RefundState::Requested | RefundState::Pending | RefundState::Stalled, Some(error)) => {
            Err(error)
        }
        (RefundState::Pending, None) => {
            let is_late = now >= refund.created_at.plus_seconds(MAX_HOURLY_SECONDS);
            let seconds = if is_late { LATE_POLL_INTERVAL_SECONDS } else { POLL_INTERVAL_SECONDS };
            Ok(JobResult::RescheduleAt(now.plus_seconds(seconds)))
        }
        // An outdated response changed nothing.
        (RefundState::Requested | RefundState::Stalled, None) => {
            Ok(JobResult::RescheduleAt(now.plus_seconds(RETRY_SECONDS)))
        }
        (RefundState::Done | RefundState::Refused | RefundState::Failed, _) => Ok(JobResult::Done),
    }
}
