//! Opening the page of a charge while its client waits.

use super::{Response, rejection, send, to_fact};
use crate::{
    money::{
        charges::{Charge, ChargeOwner, Decision, Fact, settle},
        prelude::*,
    },
    tenants::providers::statistics::Statistics,
};
use tollhouse_plugins::Cause;

/// Opens the page of a charge whose lease this request holds. `account` is that of the charge, if
/// the request has just read it. `fields` are the request fields that an error of the provider may
/// name. If the provider certainly did not open a session, a routed owner's next provider is tried.
pub async fn open_page<O: ChargeOwner>(
    app: &App,
    mut owner: O,
    mut charge: Charge,
    account: Option<&Account>,
    fields: &[&str],
) -> Result<O> {
    let (mut account, mut tried) = (account.cloned(), Vec::new());
    loop {
        let started = app.clock.elapsed();
        let response = send(app, &owner, &charge, account.as_ref()).await;
        observe(app, &charge, &response, app.clock.elapsed().saturating_sub(started));
        let fact = to_fact(app, &response, &charge);
        let recorded = match settle::record_session(app, &owner, &charge, &fact).await {
            Ok(None) => settle::record::<O>(app, &charge, fact).await,
            recorded => recorded,
        };
        if recorded.is_err() {
            settle::record::<O>(app, &charge, Fact::Lost).await?;
        }
        let Some(recorded) = recorded? else {
            return Err(Error::not_found("the record was deleted in the meantime"));
        };
        let is_movable = recorded.decision == Decision::Requeue && !is_of_payer(&response);
        let error = match (response, recorded.decision) {
            (_, Decision::Replace | Decision::Supersede) => {
                (owner, charge) = (recorded.owner, recorded.charge);
                continue;
            }
            (Ok(Ok(_)), _) if needs_page(&recorded.owner, &recorded.charge) => {
                return Err(recorded.charge.conflict(app.clock.now()));
            }
            (Ok(Ok(_)), _) => return Ok(recorded.owner),
            (Ok(Err(error)), _) => rejection::client_error(error, &charge, fields),
            (Err(error), _) => error,
        };
        tried.push(charge.provider);
        let failed = &recorded.charge;
        let moved = match is_movable {
            true => fail_over(app, &owner, failed, failed.amount, &tried).await?,
            false => None,
        };
        let Some((moved, next, other)) = moved else { return Err(error) };
        (owner, charge, account) = (moved, next, Some(other));
    }
}

/// Replaces a charge, whose page certainly was not opened, with one at another provider's account.
/// `None`: there is no such account, or something has changed since.
pub(super) async fn fail_over<O: ChargeOwner>(
    app: &App,
    owner: &O,
    charge: &Charge,
    amount: Minor,
    tried: &[String],
) -> Result<Option<(O, Charge, Account)>> {
    let Some(routed) = owner.reroute(app, charge, amount, tried).await? else { return Ok(None) };
    let account = routed.account.clone();
    let (owner, next) = settle::supersede(app, charge, amount, Some(routed)).await?;
    Ok(next.map(|next| (owner, next, account)))
}

/// Records the availability of a provider account, unless the response says nothing about it: the
/// request was invalid, or the payer is the reason for a rejection.
fn observe(
    app: &App,
    charge: &Charge,
    response: &Result<Result<Response, CallError>>,
    took: Duration,
) {
    let ok = match response {
        Ok(Ok(_)) => true,
        Ok(Err(error)) if error.fault.category == FaultCategory::Invalid => return,
        Ok(Err(_)) if is_of_payer(response) => return,
        Ok(Err(_)) | Err(_) => false,
    };
    let statistics = app.slot::<Statistics>();
    statistics.record_session(&charge.account_id, ok, took, app.clock.now());
}

/// Returns whether the payer is the reason for a rejection, so that another provider would not
/// help.
fn is_of_payer(response: &Result<Result<Response, CallError>>) -> bool {
    let Ok(Err(error)) = response else { return false };
    matches!(error.fault.cause(), Some(Cause::PayerBusy | Cause::InsufficientFunds))
}

/// Returns whether the payer has no page of the owner's current charge.
pub(super) fn needs_page<O: ChargeOwner>(owner: &O, charge: &Charge) -> bool {
    owner.is_pending() && charge.session_url.is_none() && !charge.is_received()
}
