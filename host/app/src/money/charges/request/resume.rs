//! Repeated requests for a payment without a page: wait for a concurrent request that opens one, or
//! verify the charge and then open one.
//!
//! If the response with a page URL was lost, no payer has the URL. A prompt whose response was lost
//! may have reached the payer, so no other prompt is sent before it has expired.

use super::{
    super::{
        Charge, ChargeOwner, Fact, State, Turn, model::conflict, sessions, settle, store, verify,
    },
    lease::Leased,
    page::{fail_over, needs_page, open_page},
};
use crate::money::prelude::*;

/// Maximum time that a request waits for another one to open the page.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The shortest and the longest polling interval while it waits.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The conflict of a request while the payer may confirm an earlier session.
const MAYBE_OPEN: &str = "the payer may still confirm an earlier request for this reference";

/// Returns whether the provider still accepts the reference: plugin versions may differ in rules.
fn is_reference_accepted(app: &App, charge: &Charge) -> Result<bool> {
    let provider = app.plugins.provider(&charge.provider, &charge.company_id)?;
    Ok(provider.manifest().reference.accepts(&charge.service_ref))
}

/// The state of an owner that a repeated request names.
enum Claim<O> {
    /// This request may open a page.
    Won(Box<Won<O>>),
    /// Another request is opening a page.
    Busy(Box<Charge>),
    /// The owner needs no page.
    Done(O),
    Deleted,
}

struct Won<O> {
    owner: O,
    charge: Charge,
    /// The amount to request.
    amount: Minor,
    /// Until when the payer may confirm an earlier session.
    open_until: Option<Timestamp>,
}

/// Opens a page for an owner without one, or waits until another request has. `None`: the owner was
/// deleted meanwhile, because its first request was invalid.
pub async fn resume<O: ChargeOwner>(
    app: &App,
    company_id: &CompanyId,
    owner_id: &str,
    fields: &[&str],
) -> Result<Option<O>> {
    let give_up_at = app.clock.elapsed() + MAX_WAIT;
    let mut poll_interval = MIN_POLL_INTERVAL;
    loop {
        match claim_page::<O>(app, company_id, owner_id).await? {
            Claim::Deleted => return Ok(None),
            Claim::Done(owner) => return Ok(Some(owner)),
            Claim::Won(won) => return verify_and_reopen(app, *won, fields).await.map(Some),
            Claim::Busy(charge) => {
                if app.clock.elapsed() >= give_up_at {
                    return Err(charge.conflict(app.clock.now()));
                }
            }
        }
        tokio::time::sleep(poll_interval).await;
        poll_interval = (poll_interval * 2).min(MAX_POLL_INTERVAL);
    }
}

fn is_found_by_state(app: &App, charge: &Charge) -> Result<bool> {
    let provider = app.plugins.provider(&charge.provider, &charge.company_id)?;
    Ok(provider.manifest().sessions.is_found_by_state())
}

/// Returns until when the payer may confirm a session whose response was lost. `None`: no payer has
/// it.
pub(super) fn maybe_open_until(app: &App, charge: &Charge) -> Result<Option<Timestamp>> {
    let provider = app.plugins.provider(&charge.provider, &charge.company_id)?;
    let sessions = &provider.manifest().sessions;
    if !sessions.outlives_response() || !charge.unsure && charge.state == State::Queued {
        return Ok(None);
    }
    // The provider may have received the request at the end of the call.
    let call_s = i64::try_from(provider.max_call_duration().as_secs()).unwrap_or(i64::MAX);
    let seconds = call_s.saturating_add(sessions.expires_s.into());
    Ok(charge.requested_at.map(|at| at.plus_seconds(seconds)))
}

async fn claim_page<O: ChargeOwner>(
    app: &App,
    company_id: &CompanyId,
    owner_id: &str,
) -> Result<Claim<O>> {
    let (db, app) = (app.store.clone(), app.clone());
    let (company_id, owner_id) = (company_id.clone(), owner_id.to_owned());
    db.write(async move |tx| {
        let now = app.clock.now();
        let Some((owner, charges)) = settle::lock::<O>(tx, &app, &company_id, &owner_id).await?
        else {
            return Ok(Claim::Deleted);
        };
        let Some(current) = charges.into_iter().rev().find(|charge| !charge.superseded) else {
            return Ok(Claim::Done(owner));
        };
        if current.state == State::Mismatched {
            return Err(Error::Invalid(current.mismatch.unwrap_or_default()));
        }
        if !current.is_undecided() || !needs_page(&owner, &current) {
            return Ok(Claim::Done(owner));
        }
        if current.is_leased(now) {
            return Ok(Claim::Busy(Box::new(current)));
        }
        let open_until = maybe_open_until(&app, &current)?.filter(|until| *until > now);
        if open_until.is_some() && is_found_by_state(&app, &current)? {
            return Err(conflict(open_until, now, MAYBE_OPEN));
        }
        let amount = match owner.turn(tx, &app, &current).await? {
            Turn::Go(amount) | Turn::GoAt(amount, _) => amount,
            Turn::Withdraw(message) => return Err(Error::invalid(message)),
            Turn::Wait => return Ok(Claim::Busy(Box::new(current))),
        };
        let mut charge = current;
        charge.claim(now);
        store::update(tx, &charge).await?;
        verify::schedule(tx, &charge, now).await?;
        Ok(Claim::Won(Box::new(Won { owner, charge, amount, open_until })))
    })
    .await
}

/// Verifies the charges of an owner and opens another page, unless the verification has settled it.
async fn verify_and_reopen<O: ChargeOwner>(app: &App, won: Won<O>, fields: &[&str]) -> Result<O> {
    let Won { owner, charge, amount, open_until } = won;
    let verified = verify::verify_all::<O>(app, &charge.company_id, &charge.owner_id);
    let verified = Leased::Charge(Box::new(charge.clone())).hold(app, verified).await;
    if verified.is_err() {
        settle::record::<O>(app, &charge, Fact::Lost).await?;
    }
    let verified = verified?;
    if let Some(mismatch) = verified.mismatch {
        return Err(Error::Invalid(mismatch));
    }
    let is_known = verified.known.contains(&charge.id);
    // If the provider reports that it has no session, another provider may open one.
    let may_move = !is_known && open_until.is_none();
    if may_move && let Some(moved) = fail_over(app, &owner, &charge, amount, &[]).await? {
        let (owner, next, other) = moved;
        return open_page(app, owner, next, Some(&other), fields).await;
    }
    let provider = app.plugins.provider(&charge.provider, &charge.company_id)?;
    if is_known && provider.manifest().sessions.push {
        return adopt_prompt(app, charge).await;
    }
    // A late notification of the earlier session must find a charge of its own.
    let is_repeatable = !charge.unsure || !is_found_by_state(app, &charge)?;
    if !is_known && is_repeatable && amount == charge.amount && is_reference_accepted(app, &charge)?
    {
        return open_page(app, owner, charge, None, fields).await;
    }
    if open_until.is_some() {
        settle::record::<O>(app, &charge, Fact::Lost).await?;
        return Err(conflict(open_until, app.clock.now(), MAYBE_OPEN));
    }
    // No payer has the earlier session, so another one is safe. A reference that violates the
    // provider's current rules cannot be sent again.
    match settle::supersede::<O>(app, &charge, amount, None).await? {
        (owner, Some(next)) => open_page(app, owner, next, None, fields).await,
        (owner, None) => Ok(owner),
    }
}

/// Assigns the page of a prompt to a charge whose payer received a prompt although the response was
/// lost, unless the verification has settled the owner.
async fn adopt_prompt<O: ChargeOwner>(app: &App, charge: Charge) -> Result<O> {
    let (db, host, before) = (app.store.clone(), app.clone(), charge.clone());
    let find = db.write(async move |tx| {
        let Charge { company_id, owner_id, .. } = &before;
        settle::lock::<O>(tx, &host, company_id, owner_id).await
    });
    let gone = || Error::not_found("the record was deleted in the meantime");
    let (owner, _) = find.await?.ok_or_else(gone)?;
    if !owner.is_pending() {
        return Ok(owner);
    }
    let session = CheckoutSession {
        url: sessions::page_url(app, &charge),
        prompt: Some(sessions::PROMPT.to_owned()),
        service_ref: charge.service_ref.clone(),
        raw: "{}".to_owned(),
        ..CheckoutSession::default()
    };
    let fact = Fact::Session(Box::new(session));
    let recorded = settle::record::<O>(app, &charge, fact).await?;
    Ok(recorded.ok_or_else(gone)?.owner)
}
