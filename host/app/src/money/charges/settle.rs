//! Settlement: records a fact about a charge, with everything that follows from it, in one
//! transaction under the owner's lock.

use super::{
    Charge, ChargeOwner, Decision, Fact, Failure, Outcome, OwnerKind, REQUEST_JOB, ReferenceSource,
    Rejection, State, adopt,
    choice::{self, Routed},
    decide, exceptions, ledger,
    refund::{self, RefundTerms},
    request::insert_next,
    sessions,
    state::RejectionReason,
    store,
};
use crate::money::prelude::*;

/// Resolves the exceptions of a charge that was reversed.
const RETURNED: &str = "the provider returned the money";

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
    let charges = store::lock_all(tx, company_id, O::KIND, owner_id).await?;
    if !charges.is_empty() {
        return Ok(Some((owner, charges)));
    }
    // Written by a host of the previous version.
    adopt::adopt(tx, app, company_id, O::KIND, owner_id).await?;
    let charges = store::lock_all(tx, company_id, O::KIND, owner_id).await?;
    Ok((!charges.is_empty()).then_some((owner, charges)))
}

/// Returns whether the fact has no effect on the charge, neither as it was before nor as it is now.
/// Reads without locks: a concurrent change counts as later than the fact.
pub async fn is_ignored<O: ChargeOwner>(app: &App, before: &Charge, fact: &Fact) -> Result<bool> {
    let is_ignored = |charge: &Charge, is_settled| {
        decide(charge, is_settled, before.fence, fact, app.clock.now()) == Decision::Ignore
    };
    if !is_ignored(before, false) {
        return Ok(false);
    }
    let list =
        async |tx: &mut Tx| store::list(tx, &before.company_id, O::KIND, &before.owner_id).await;
    let charges = app.store.select(list).await?;
    let is_settled = charges.iter().any(|other| other.counts && other.id != before.id);
    let found = charges.iter().find(|charge| charge.id == before.id);
    Ok(found.is_some_and(|charge| is_ignored(charge, is_settled)))
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
        let last = charges.last().cloned().ok_or_else(|| gone(&before))?;
        let charge = charges.into_iter().find(|charge| charge.id == before.id);
        let charge = charge.ok_or_else(|| gone(&before))?;
        let decision = decide(&charge, is_settled, before.fence, &fact, app.clock.now());
        let transition = Transition { app: &app, decision, fact: &fact, last: &last, is_settled };
        let (owner, charge) = transition.apply(tx, owner, charge).await?;
        Ok(Some(Recorded { owner, charge, decision }))
    })
    .await
}

/// Records the session of a payment's first charge, without locks. `None`: the response is not such
/// a session, or something has changed since the request. The caller then uses [`record`].
pub async fn record_session<O: ChargeOwner>(
    app: &App,
    owner: &O,
    charge: &Charge,
    fact: &Fact,
) -> Result<Option<Recorded<O>>> {
    let Fact::Session(session) = fact else { return Ok(None) };
    let now = app.clock.now();
    let decision = decide(charge, false, charge.fence, fact, now);
    // While a payment has one charge, every change of the payment also changes that charge.
    let is_simple = (O::KIND, charge.number, decision) == (OwnerKind::Payment, 1, Decision::Open);
    if !is_simple || session.service_ref != charge.service_ref {
        return Ok(None);
    }
    let (before, mut charge) = (charge.clone(), charge.clone());
    charge.record(decision, fact, now);
    let (db, session) = (app.store.clone(), session.clone());
    let (owner, opened, app) = (owner.clone(), charge.clone(), app.clone());
    let written = db.write(async move |tx| -> Result<O> {
        // The owner first, like `lock`.
        let owner = owner.apply(tx, &app, &opened, Outcome::Session(&session)).await?;
        store::open(tx, &before, &opened).await?;
        sessions::insert(tx, &app, &owner, &opened, &session).await?;
        Ok(owner)
    });
    match written.await {
        Ok(owner) => Ok(Some(Recorded { owner, charge, decision })),
        Err(error) if error.is_not_one_row() => Ok(None),
        // Recording a session twice has no effect.
        Err(Error::OutcomeUnknown(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Records money that was taken for an owner that no longer exists. A verification charge is
/// refunded.
async fn record_without_owner(tx: &mut Tx, app: &App, before: &Charge, fact: &Fact) -> Result<()> {
    let found = store::lock(tx, &before.company_id, &before.id).await?;
    let (Some(mut charge), Fact::Seen(seen)) = (found, fact) else { return Ok(()) };
    let now = app.clock.now();
    let decision = decide(&charge, true, before.fence, fact, now);
    match decision {
        Decision::Surplus | Decision::Mismatch(_) => {
            let before = charge.clone();
            charge.record(decision, fact, now);
            ledger::post_taken(tx, app, &before, &mut charge, seen).await?;
            exceptions::raise(tx, app, &charge, "charge without an owner", Some(seen)).await?;
        }
        Decision::Reverse => {
            charge.record(decision, fact, now);
            ledger::reverse(tx, app, &mut charge).await?;
            exceptions::close(tx, app, &charge, RETURNED).await?;
        }
        _ => return Ok(()),
    }
    store::update(tx, &charge).await?;
    let is_card = charge.owner_kind == OwnerKind::Card;
    if is_card && charge.state != State::Reversed && charge.refundable() > Minor(0) {
        refund::begin(tx, app, &mut charge, RefundTerms::VERIFICATION).await?;
    }
    Ok(())
}

struct Transition<'t> {
    app: &'t App,
    decision: Decision,
    fact: &'t Fact,
    /// The owner's last charge, at whose account its pending balance is.
    last: &'t Charge,
    /// Another charge settled the owner.
    is_settled: bool,
}

impl Transition<'_> {
    async fn apply<O: ChargeOwner>(
        self,
        tx: &mut Tx,
        owner: O,
        mut charge: Charge,
    ) -> Result<(O, Charge)> {
        let app = self.app;
        let (now, before) = (app.clock.now(), charge.clone());
        match (self.decision, self.fact) {
            (Decision::Ignore, fact) => {
                if let Fact::Session(session) = fact {
                    sessions::keep_state(tx, app, &charge, session).await?;
                }
                return Ok((owner, charge));
            }
            (Decision::Foreign, Fact::Seen(seen)) => {
                exceptions::raise(tx, app, &charge, "foreign payment", Some(seen)).await?;
                return Ok((owner, charge));
            }
            (Decision::Forget, _) => {
                ledger::end_pending(tx, app, &charge).await?;
                notifications::release(tx, &charge.account_id, &charge.service_ref).await?;
                choice::delete(tx, &charge).await?;
                store::delete(tx, &charge).await?;
                let owner = owner.apply(tx, app, &charge, Outcome::Forgotten).await?;
                return Ok((owner, charge));
            }
            (Decision::Open, Fact::Session(session)) => {
                keep_reference(tx, app, &mut charge, &session.service_ref).await?;
            }
            // The provider uses the reference for another charge.
            (Decision::Replace, _) => {
                notifications::release(tx, &charge.account_id, &charge.service_ref).await?;
            }
            _ => {}
        }
        charge.record(self.decision, self.fact, now);
        self.post(tx, &before, &mut charge).await?;
        store::update(tx, &charge).await?;
        if let (Decision::Open, Fact::Session(session)) = (self.decision, self.fact) {
            sessions::insert(tx, app, &owner, &charge, session).await?;
        }
        if matches!(self.decision, Decision::Replace | Decision::Supersede) {
            let next = insert_next(tx, app, &charge, self.last.number + 1, charge.amount).await?;
            return Ok((owner, next));
        }
        let is_unknown =
            matches!((self.decision, self.fact), (Decision::Requeue, Fact::NotFound(_)));
        if before.holds_lane && !charge.holds_lane || is_unknown {
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
            (Decision::Open, _) if self.is_settled => return Ok(owner),
            (Decision::Open, Fact::Session(session)) => Outcome::Session(session),
            (Decision::Open, Fact::Seen(seen)) => Outcome::Pending(seen),
            (Decision::Reverse, Fact::Seen(seen)) if charge.counts => Outcome::Reversed(seen),
            (Decision::Fail | Decision::Reverse, _) if !charge.ends_owner(self.is_settled) => {
                return Ok(owner);
            }
            (Decision::Fail | Decision::Reverse, Fact::Seen(seen)) => {
                Outcome::Failed(Failure::Seen(seen))
            }
            (Decision::Fail, Fact::Rejected(Rejection::Invalid | Rejection::Refused, reason)) => {
                Outcome::Failed(match reason {
                    Some(RejectionReason { message, decline: Some(decline) }) => {
                        Failure::Declined(message, *decline)
                    }
                    Some(RejectionReason { message, .. }) => Failure::Message(message),
                    None => Failure::Message(&refused),
                })
            }
            (Decision::Fail, _) => Outcome::Failed(Failure::Message(unreachable)),
            (Decision::Succeed, Fact::Seen(seen)) => Outcome::Succeeded(seen),
            (Decision::Surplus, Fact::Seen(seen)) => {
                let alarm = match charge.owner_kind {
                    OwnerKind::Recollection => "repaid twice",
                    OwnerKind::Payment | OwnerKind::Card => "paid twice",
                };
                exceptions::raise(tx, app, charge, alarm, Some(seen)).await?;
                Outcome::Surplus
            }
            (Decision::Mismatch(what), Fact::Seen(seen)) => {
                exceptions::raise(tx, app, charge, what, Some(seen)).await?;
                if self.is_settled && charge.owner_kind != OwnerKind::Card {
                    return Ok(owner);
                }
                Outcome::Mismatched(what)
            }
            _ => return Ok(owner),
        };
        owner.apply(tx, app, charge, outcome).await
    }

    /// Posts the ledger transactions of the decision.
    async fn post(&self, tx: &mut Tx, before: &Charge, charge: &mut Charge) -> Result<()> {
        let app = self.app;
        let ends = match self.decision {
            Decision::Succeed => true,
            Decision::Fail | Decision::Reverse => charge.ends_owner(self.is_settled),
            _ => false,
        };
        match (self.decision, self.fact) {
            (Decision::Succeed, Fact::Seen(seen)) => {
                ledger::post_taken(tx, app, before, charge, seen).await?;
                Ok(exceptions::close(tx, app, charge, "the charge succeeded").await?)
            }
            (Decision::Surplus, Fact::Seen(seen)) => {
                ledger::post_taken(tx, app, before, charge, seen).await?;
                Ok(exceptions::close(tx, app, charge, "the requested amount was paid").await?)
            }
            (Decision::Mismatch(_), Fact::Seen(seen)) => {
                ledger::post_taken(tx, app, before, charge, seen).await
            }
            (Decision::Reverse, _) => {
                ledger::reverse(tx, app, charge).await?;
                Ok(exceptions::close(tx, app, charge, RETURNED).await?)
            }
            _ => Ok(()),
        }?;
        // Last, because it is deferred.
        if ends { ledger::end_pending(tx, app, self.last).await } else { Ok(()) }
    }
}

/// Records the reference that the provider returned with a session.
async fn keep_reference(tx: &mut Tx, app: &App, charge: &mut Charge, new: &str) -> Result<()> {
    let Charge { account_id, service_ref, .. } = &*charge;
    let owner = charge.as_owner();
    let now = app.clock.now();
    let id = Some(&*charge.id);
    if !notifications::replace(tx, account_id, service_ref, new, owner, id, now).await? {
        let message = format!("{} returned an unusable response", charge.provider);
        let detail = "its reference belongs to another record".to_owned();
        return Err(Error::Upstream { message, detail });
    }
    if charge.service_ref != *new {
        charge.service_ref = new.to_owned();
        charge.reference_source = ReferenceSource::Provider;
    }
    Ok(())
}

/// Enqueues the request of the lane's next charge, if one is queued. Requires the lock under which
/// charges are queued in the lane (the loan's). Without it, a charge that is queued concurrently
/// would never be requested.
pub async fn wake_lane(tx: &mut Tx, charge: &Charge, now: Timestamp) -> Result<()> {
    let Charge { company_id, lane: Some(lane), .. } = charge else { return Ok(()) };
    if store::is_any_queued(tx, company_id, lane).await? {
        jobs::enqueue(tx, company_id, REQUEST_JOB, lane, now).await?;
    }
    Ok(())
}

/// Cancels a queued charge that its owner no longer wants. The owner fails with this message.
pub async fn cancel<O: ChargeOwner>(
    tx: &mut Tx,
    app: &App,
    owner: O,
    mut charge: Charge,
    message: &str,
) -> Result<O> {
    let now = app.clock.now();
    charge.cancel(now);
    store::update(tx, &charge).await?;
    wake_lane(tx, &charge, now).await?;
    owner.apply(tx, app, &charge, Outcome::Failed(Failure::Message(message))).await
}

/// Replaces a page that no payer has with one under another reference, perhaps at another account.
/// `None`: another request has claimed the charge, or the owner no longer needs a page.
pub async fn supersede<O: ChargeOwner>(
    app: &App,
    charge: &Charge,
    amount: Minor,
    other: Option<Routed>,
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
        let now = app.clock.now();
        match charge.is_certain() {
            true => charge.replace(now),
            false => charge.supersede(now),
        }
        store::update(tx, &charge).await?;
        let Some(Routed { account, choice }) = other else {
            let next = insert_next(tx, &app, &charge, last + 1, amount).await?;
            return Ok((owner, Some(next)));
        };
        let at_account = Charge {
            provider: account.provider.clone(),
            account_id: account.id.clone(),
            in_books: account.is_service_account(),
            choice: Some(choice),
            ..charge.clone()
        };
        let next = insert_next(tx, &app, &at_account, last + 1, amount).await?;
        ledger::move_pending(tx, &app, &charge, &next).await?;
        let owner = owner.apply(tx, &app, &next, Outcome::Moved).await?;
        Ok((owner, Some(next)))
    })
    .await
}
