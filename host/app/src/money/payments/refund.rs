//! Refunds of payments by operators, see `charges::refund`.

use super::{Payment, PaymentId, Status, find_by_id, not_found};
use crate::money::{
    charges::{Refund, RefundTerms, State as ChargeState},
    prelude::*,
};

/// Refunds `terms.amount` of a successful payment, or what is left of it. An open refund is
/// requested again.
#[instrument(target = SPAN_TARGET, name = "payments.refund", skip_all)]
pub async fn refund(
    app: &App,
    actor: &Actor,
    company_id: &CompanyId,
    payment_id: &PaymentId,
    terms: RefundTerms,
    already_refunded: Option<Minor>,
) -> Result<Payment> {
    // Fails before the wallet is debited if the provider account is gone.
    let payment = find_by_id(app, company_id, payment_id).await?;
    ChargeVerifier::open(app, company_id, &payment.payment_service, &payment.account_id).await?;
    let (charge, refund) = request(app, actor, payment, terms, already_refunded).await?;
    match charges::advance_refund::<Payment>(app, &charge, &refund.id).await? {
        (_, Some(error)) => Err(error),
        (_, None) => find_by_id(app, company_id, payment_id).await,
    }
}

/// Records the refund and debits the wallet.
async fn request(
    app: &App,
    actor: &Actor,
    payment: Payment,
    terms: RefundTerms,
    already_refunded: Option<Minor>,
) -> Result<(Charge, Refund)> {
    let (db, app, actor) = (app.store.clone(), app.clone(), actor.clone());
    let Payment { company_id, id, payment_service, .. } = payment;
    db.write(async move |tx| {
        let found = charges::lock::<Payment>(tx, &app, &company_id, &id).await?;
        let (payment, charges) = found.ok_or_else(not_found)?;
        if !app.plugins.provider(&payment_service, &company_id)?.supports_refunds() {
            return Err(Error::Invalid(format!("{payment_service} does not support refunds")));
        }
        let rejected = || Error::invalid("only successful payment can be refunded");
        let is_refundable =
            |charge: &Charge| charge.counts && charge.state == ChargeState::Succeeded;
        let charge = charges.into_iter().find(is_refundable);
        let mut charge = charge.ok_or_else(rejected)?;
        check_refunded(&payment, already_refunded)?;
        if charges::is_disputed(tx, &company_id, &charge.id).await? {
            return Err(Error::invalid("the payment is disputed: answer the dispute instead"));
        }
        let last = charges::find_last_refund(tx, &company_id, &charge.id).await?;
        let open = match (payment.status, last) {
            (Status::Success, last) => last.filter(Refund::is_open),
            // The provider accepted a refund that failed later: the wallet was debited for it.
            (Status::Refunded, Some(refund)) if refund.state.has_failed() => {
                if terms.amount.is_some_and(|amount| amount != charge.refundable()) {
                    let message =
                        "the refund of the remaining amount failed: repeat it without an amount";
                    return Err(Error::invalid(message));
                }
                None
            }
            _ => return Err(rejected()),
        };
        let refund = match open {
            Some(refund) => continue_refund(&charge, refund, terms.amount)?,
            None => charges::begin_refund(tx, &app, &mut charge, terms).await?,
        };
        let RefundTerms { force, .. } = terms;
        let detail = json!({ "payment": id, "amount": refund.amount, "force": force });
        audit::record(tx, &app, &actor, &company_id, "payment.refund", detail).await?;
        Ok((charge, refund))
    })
    .await
}

/// Rejects a request that is based on an outdated refunded amount, for example a form that is
/// submitted twice.
fn check_refunded(payment: &Payment, already_refunded: Option<Minor>) -> Result<()> {
    let is_known = payment.status != Status::Success
        || already_refunded.is_none_or(|known| known == payment.refunded);
    if !is_known {
        let (refunded, currency) = (payment.refunded.to_major(), &payment.currency);
        return Err(Error::Conflict(format!("{refunded} {currency} has already been refunded")));
    }
    Ok(())
}

/// Returns the open refund. 409 if the caller wants another amount, because the next refund cannot
/// begin until the open one ends.
fn continue_refund(charge: &Charge, open: Refund, amount: Option<Minor>) -> Result<Refund> {
    let wanted = amount.unwrap_or(Minor(charge.refundable().0 + open.amount.0));
    if wanted != open.amount {
        let (amount, currency) = (open.amount.to_major(), &open.currency);
        let message = format!("a refund of {amount} {currency} is in progress: wait until it ends");
        return Err(Error::Conflict(message));
    }
    Ok(open)
}
