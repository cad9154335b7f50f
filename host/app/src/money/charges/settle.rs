//! Settlement: records a fact about a charge, with everything that follows from it, in one
//! transaction under the owner's lock.

use super::{
    Charge, ChargeOwner, Decision, Fact, Failure, Outcome, OwnerKind, REQUEST_JOB, ReferenceSource,
    State, adopt, decide, fees,
    refund::{self, Cause},
    request::insert_next,
    store,
};
use crate::money::prelude::*;

/// An owner and a charge after a fact was recorded.
pub struct Recorded<O> {
    pub owner: O,
    /// The charge, or the one that replaces it.
    pub charge: Charge,
    pub decision: Decision,
}

/// Locks an owner and returns it with its charges. `None` if it was deleted, or if it has no
/// charges.
pub async fn lock<O: ChargeOwner>(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    owner_id: &str,
) -> Result<Option<(O, Vec<Charge>)>> {
    let Some(owner) = O::lock(tx, company_id, owner_id).await? else { return Ok(None) };
    let charges = store::list(tx, company_id, O::KIND, owner_id).await?;
    if !charges.is_empty() {
        return Ok(Some((owner, charges)));
    }
    // Written by a host of the previous version.
    adopt::adopt(tx, app, company_id, O::KIND, owner_id).await?;
    let charges = store::list(tx, company_id, O::KIND, owner_id).await?;
    Ok((!charges.is_empty()).then_some((owner, charges)))
}

fn gone(charge: &Charge) -> Error {
    Error::not_found(match charge.owner_kind {
        OwnerKind::Payment => "payment not found",
        OwnerKind::Card => "card not found",
        OwnerKind::Recollection => "recollection not found",
    })
}

/// Records a fact about the charge as it was before the request or query. `None`: its owner was
/// deleted.
pub async fn record<O: ChargeOwner>(
    app: &App,
    charge: &Charge,
    fact: Fact,
) -> Result<Option<Recorded<O>>> {
    let (db, app, before) = (app.store.clone(), app.clone(), charge.clone());
    db.write(async move |tx| {
        let Charge { company_id, owner_id, .. } = &before;
        let Some((owner, charges)) = lock::<O>(tx, &app, company_id, owner_id).await? else {
            record_without_owner(tx, &app, &before, &fact).await?;
            return Ok(None);
        };
        let is_settled = charges.iter().any(|other| other.counts && other.id != before.id);
        let last = charges.last().map_or(1, |last| last.number);
        let charge = charges.into_iter().find(|charge| charge.id == before.id);
        let charge = charge.ok_or_else(|| gone(&before))?;
        let decision = decide(&charge, is_settled, before.fence, &fact, app.clock.now());
        let transition = Transition { app: &app, decision, fact: &fact, last };
        let (owner, charge) = transition.apply(tx, owner, charge).await?;
        Ok(Some(Recorded { owner, charge, decision }))
    })
    .await
}

/// Records money that was taken for an owner that no longer exists. A verification charge is
/// refunded.
async fn record_without_owner(tx: &mut Tx, app: &App, before: &Charge, fact: &Fact) -> Result<()> {
    let found = store::lock(tx, &before.company_id, &before.id).await?;
    let (Some(mut charge), Fact::Seen(seen)) = (found, fact) else { return Ok(()) };
    let now = app.clock.now();
    let decision = decide(&charge, true, before.fence, fact, now);
    if !matches!(decision, Decision::Surplus | Decision::Mismatch(_)) {
        return Ok(());
    }
    take(&mut charge, seen, decision, now);
    charge.state = next_state(charge.state, decision);
    (charge.lease_until, charge.holds_lane, charge.updated_at) = (None, false, now);
    charge.transaction_id.clone_from(&seen.transaction_id);
    store::update(tx, &charge).await?;
    alarm(app, &charge, seen, "charge without an owner");
    if charge.owner_kind == OwnerKind::Card {
        refund::begin(tx, app, &mut charge, Cause::Verification, true).await?;
    }
    Ok(())
}

struct Transition<'t> {
    app: &'t App,
    decision: Decision,
    fact: &'t Fact,
    /// The number of the owner's last charge.
    last: i64,
}

impl Transition<'_> {
    async fn apply<O: ChargeOwner>(
        self,
        tx: &mut Tx,
        owner: O,
        mut charge: Charge,
    ) -> Result<(O, Charge)> {
        let app = self.app;
        let (now, held_lane) = (app.clock.now(), charge.holds_lane);
        match (self.decision, self.fact) {
            (Decision::Ignore, _) => return Ok((owner, charge)),
            (Decision::Foreign, Fact::Seen(seen)) => {
                alarm(app, &charge, seen, "foreign payment");
                return Ok((owner, charge));
            }
            (Decision::Replace | Decision::Supersede, _) => {
                return self.replace(tx, owner, charge).await;
            }
            (Decision::Forget, _) => {
                self.post(tx, &mut charge).await?;
                notifications::release(tx, &charge.account_id, &charge.service_ref).await?;
                store::delete(tx, &charge).await?;
                let owner = owner.apply(tx, app, &charge, Outcome::Forgotten).await?;
                return Ok((owner, charge));
            }
            (Decision::Open, Fact::Session(session)) => {
                keep_session(tx, app, &mut charge, session).await?;
            }
            (Decision::Succeed | Decision::Surplus | Decision::Mismatch(_), Fact::Seen(seen)) => {
                take(&mut charge, seen, self.decision, now);
            }
            _ => {}
        }
        charge.state = next_state(charge.state, self.decision);
        charge.unsure |= self.decision == Decision::Unsure;
        charge.lease_until = None;
        charge.holds_lane &= charge.is_undecided();
        charge.updated_at = now;
        if let Fact::Seen(seen) = self.fact {
            charge.session_url = charge.session_url.or_else(|| seen.challenge_url.clone());
            if !seen.transaction_id.is_empty() {
                charge.transaction_id.clone_from(&seen.transaction_id);
            }
        }
        self.post(tx, &mut charge).await?;
        store::update(tx, &charge).await?;
        let is_unknown = matches!((self.decision, self.fact), (Decision::Requeue, Fact::NotFound));
        if held_lane && !charge.holds_lane || is_unknown {
            wake_lane(tx, &charge, now).await?;
        }
        let owner = self.apply_to_owner(tx, owner, &charge).await?;
        Ok((owner, charge))
    }

    /// Applies the outcome to the owner.
    async fn apply_to_owner<O: ChargeOwner>(
        self,
        tx: &mut Tx,
        owner: O,
        charge: &Charge,
    ) -> Result<O> {
        let app = self.app;
        let unreachable = "the provider could not be reached";
        let refused = format!("{} refused the charge", charge.provider);
        let outcome = match (self.decision, self.fact) {
            (Decision::Open, Fact::Session(session)) => Outcome::Session(session),
            (Decision::Open, Fact::Seen(seen)) => Outcome::Pending(seen),
            (Decision::Fail, _) if charge.superseded => return Ok(owner),
            (Decision::Fail, Fact::Seen(seen)) => Outcome::Failed(Failure::Seen(seen)),
            (Decision::Fail, Fact::Rejected(_)) => Outcome::Failed(Failure::Message(&refused)),
            (Decision::Fail, _) => Outcome::Failed(Failure::Message(unreachable)),
            (Decision::Succeed, Fact::Seen(seen)) => Outcome::Succeeded(seen),
            (Decision::Surplus, Fact::Seen(seen)) => {
                let what = match charge.owner_kind {
                    OwnerKind::Recollection => "repaid twice",
                    OwnerKind::Payment | OwnerKind::Card => "paid twice",
                };
                alarm(app, charge, seen, what);
                Outcome::Surplus(seen)
            }
            (Decision::Mismatch(what), Fact::Seen(seen)) => {
                alarm(app, charge, seen, what);
                Outcome::Mismatched(what)
            }
            (Decision::Reverse, Fact::Seen(seen)) if charge.counts => Outcome::Reversed(seen),
            _ => return Ok(owner),
        };
        owner.apply(tx, app, charge, outcome).await
    }

    /// Posts what the ledger has of the charge from now on. Balances are locked in the order
    /// `pending`, `provider`, `wallet`, as when a payment is initialized.
    async fn post(&self, tx: &mut Tx, charge: &mut Charge) -> Result<()> {
        let provider = Ledger::Provider(charge.provider.clone());
        let ends = match self.decision {
            Decision::Succeed | Decision::Forget => true,
            Decision::Fail => !charge.superseded,
            _ => false,
        };
        if ends && charge.owner_kind == OwnerKind::Payment {
            let accounts = [Ledger::Pending, provider.clone()];
            post(tx, self.app, charge, "settled", "settled", accounts, charge.amount).await?;
        }
        match (self.decision, self.fact) {
            (Decision::Succeed, Fact::Seen(seen)) if charge.owner_kind != OwnerKind::Card => {
                let net = Minor((charge.amount.0 - fees(seen).0).max(0));
                let accounts = [provider, Ledger::Wallet];
                if post(tx, self.app, charge, "success", "success", accounts, net).await? {
                    charge.credited = net;
                }
            }
            (Decision::Reverse, _) if charge.counts => {
                let accounts = [Ledger::Wallet, provider];
                let credited = std::mem::take(&mut charge.credited);
                post(tx, self.app, charge, "reversed", "refund", accounts, credited).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Inserts the charge that follows one whose reference cannot be used.
    async fn replace<O: ChargeOwner>(
        self,
        tx: &mut Tx,
        owner: O,
        mut charge: Charge,
    ) -> Result<(O, Charge)> {
        let now = self.app.clock.now();
        (charge.lease_until, charge.updated_at) = (None, now);
        if self.decision == Decision::Replace {
            // The provider uses it for another charge.
            notifications::release(tx, &charge.account_id, &charge.service_ref).await?;
            (charge.state, charge.holds_lane) = (State::Canceled, false);
        } else {
            charge.superseded = true;
        }
        store::update(tx, &charge).await?;
        let (number, amount) = (self.last + 1, charge.amount);
        let next = insert_next(tx, self.app, &charge, number, amount).await?;
        Ok((owner, next))
    }
}

fn next_state(state: State, decision: Decision) -> State {
    match decision {
        // A webhook may have settled the charge before the response with its session.
        Decision::Open if matches!(state, State::Requested | State::Queued) => State::Open,
        Decision::Requeue => State::Queued,
        Decision::Fail => State::Failed,
        Decision::Succeed | Decision::Surplus => State::Succeeded,
        Decision::Mismatch(_) => State::Mismatched,
        Decision::Reverse => State::Reversed,
        _ => state,
    }
}

/// Records the session, and the reference that the provider returned.
async fn keep_session(
    tx: &mut Tx,
    app: &App,
    charge: &mut Charge,
    session: &CheckoutSession,
) -> Result<()> {
    let Charge { account_id, service_ref, .. } = &*charge;
    let (owner, new) = (charge.as_owner(), &session.service_ref);
    let now = app.clock.now();
    if !notifications::replace(tx, account_id, service_ref, new, owner, &charge.id, now).await? {
        let message = format!("{} returned an unusable response", charge.provider);
        let detail = "its reference belongs to another record".to_owned();
        return Err(Error::Upstream { message, detail });
    }
    if charge.service_ref != *new {
        charge.service_ref.clone_from(new);
        charge.reference_source = ReferenceSource::Provider;
    }
    charge.session_url = Some(session.url.clone());
    Ok(())
}

/// Records the amount that the provider took.
fn take(charge: &mut Charge, seen: &ProviderPayment, decision: Decision, now: Timestamp) {
    let requested = seen.requested.as_ref().unwrap_or(&seen.amount);
    charge.taken = Some(requested.minor.min(seen.amount.minor));
    charge.taken_currency = Some(seen.amount.currency.clone());
    charge.counts = decision == Decision::Succeed;
    charge.settled_at = charge.settled_at.or(Some(now));
    charge.mismatch = match decision {
        Decision::Mismatch(what) => Some(what.to_owned()),
        _ => None,
    };
}

/// Posts a ledger transaction of a charge on the service account. Returns `false` if the charge has
/// no ledger, or if the key was posted before.
pub async fn post(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    key: &str,
    kind: &str,
    [from, to]: [Ledger; 2],
    minor: Minor,
) -> Result<bool> {
    if !charge.in_books {
        return Ok(false);
    }
    let owner = charge.owner_kind.name();
    let movement = LedgerTransaction {
        key: format!("{owner}:{}:{key}", charge.owner_id),
        kind: format!("{owner}.{kind}").into(),
        from,
        to,
        money: Money { minor, currency: charge.currency.clone() },
    };
    let posted = wallet::post(tx, app, &charge.company_id, &movement, Overdraft::Allowed).await?;
    Ok(posted == PostOutcome::Posted)
}

pub async fn wake_lane(tx: &mut Tx, charge: &Charge, now: Timestamp) -> Result<()> {
    match &charge.lane {
        Some(lane) => Ok(jobs::enqueue(tx, &charge.company_id, REQUEST_JOB, lane, now).await?),
        None => Ok(()),
    }
}

/// Cancels a queued charge that its owner no longer wants. The owner fails with this message.
pub async fn cancel<O: ChargeOwner>(
    tx: &mut Tx,
    app: &App,
    owner: O,
    charge: Charge,
    message: &str,
) -> Result<O> {
    let now = app.clock.now();
    let charge = Charge { state: State::Canceled, holds_lane: false, updated_at: now, ..charge };
    store::update(tx, &charge).await?;
    wake_lane(tx, &charge, now).await?;
    owner.apply(tx, app, &charge, Outcome::Failed(Failure::Message(message))).await
}

/// Replaces a page that no payer has by one under another reference. `None`: another request has
/// claimed the charge, or the owner needs no page any longer.
pub async fn supersede<O: ChargeOwner>(
    app: &App,
    charge: &Charge,
    amount: Minor,
) -> Result<(O, Option<Charge>)> {
    let (db, app, before) = (app.store.clone(), app.clone(), charge.clone());
    db.write(async move |tx| {
        let Charge { company_id, owner_id, .. } = &before;
        let found = lock::<O>(tx, &app, company_id, owner_id).await?;
        let (owner, charges) = found.ok_or_else(|| gone(&before))?;
        let last = charges.last().map_or(1, |last| last.number);
        let is_ours = |charge: &Charge| {
            charge.id == before.id && charge.fence == before.fence && charge.session_url.is_none()
        };
        let current = charges.into_iter().find(is_ours).filter(|_| owner.is_pending());
        let Some(mut charge) = current else { return Ok((owner, None)) };
        (charge.superseded, charge.lease_until) = (true, None);
        charge.updated_at = app.clock.now();
        store::update(tx, &charge).await?;
        let next = insert_next(tx, &app, &charge, last + 1, amount).await?;
        Ok((owner, Some(next)))
    })
    .await
}

/// Raises an operator alarm about a charge that differs from the requested one.
fn alarm(app: &App, charge: &Charge, seen: &ProviderPayment, what: &'static str) {
    app.metrics.count_alarm(what);
    let (company, subject, id) = charge.as_owner();
    tracing::error!(
        alarm = what,
        company,
        subject,
        id,
        asked_minor = charge.amount.0,
        asked_currency = charge.currency.as_str(),
        seen_minor = seen.amount.minor.0,
        seen_currency = seen.amount.currency.as_str(),
        "charge at the provider differs from the requested one"
    );
}
