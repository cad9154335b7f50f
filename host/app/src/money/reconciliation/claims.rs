//! The record that a listed transaction matches: a charge, a refund or a dispute.

use super::{TransactionKind, compare::Recorded, store};
use crate::money::{
    charges::{ChargeId, Refund, State as ChargeState},
    disputes::{self, Dispute, DisputeState},
    prelude::*,
};
use tollhouse_platform::store::Result as StoreResult;
use tollhouse_plugins::{ListedKind, ListedTransaction};

/// The record id of a reversal, which is listed as a refund that the host did not request.
const REVERSAL: &str = "reversal";

/// The record that a listed transaction matches.
pub struct Claim {
    /// The id of the charge, refund or dispute.
    pub id: String,
    pub recorded: Recorded,
}

/// Locks the charge of a listed transaction. Returns it with the record that the transaction
/// matches.
pub async fn lock_record(
    tx: &mut Tx,
    account: &Account,
    listed: &ListedTransaction,
) -> StoreResult<(Option<Charge>, Option<Claim>)> {
    let Some((company_id, id)) = find_charge(tx, account, listed).await? else {
        return Ok((None, None));
    };
    let Some(charge) = charges::lock_charge(tx, &company_id, &ChargeId::from(id)).await? else {
        return Ok((None, None));
    };
    let claim = match listed.kind {
        ListedKind::Payment => payment(&charge, listed),
        ListedKind::Refund => refund(tx, &charge, listed).await?,
        ListedKind::Dispute => dispute(tx, &charge, listed).await?,
    };
    // A second payment under a reference, or a second refund, matches nothing.
    let is_taken = match &claim {
        Some(claim) => {
            store::is_claimed(tx, &charge, (listed.kind.into(), &listed.id), &claim.id).await?
        }
        None => false,
    };
    Ok((Some(charge), claim.filter(|_| !is_taken)))
}

async fn find_charge(
    tx: &mut Tx,
    account: &Account,
    listed: &ListedTransaction,
) -> StoreResult<Option<(CompanyId, String)>> {
    let id = &account.id;
    let mut found = match listed.service_ref.is_empty() {
        false => notifications::charge_of(tx, id, &listed.service_ref).await?,
        true => None,
    };
    if found.is_none() && listed.kind != ListedKind::Payment {
        found = store::charge_of_payment(tx, id, &listed.transaction_id).await?;
    }
    if found.is_none() && listed.kind == ListedKind::Refund {
        found = store::charge_of_refund(tx, id, &listed.id).await?;
    }
    if found.is_none() && listed.kind == ListedKind::Dispute {
        found = store::charge_of_dispute(tx, id, &listed.id).await?;
    }
    Ok(found)
}

/// Returns the charge if it took money, and if the provider's ids, where known, are the same.
fn payment(charge: &Charge, listed: &ListedTransaction) -> Option<Claim> {
    let ids = [&charge.transaction_id, &listed.transaction_id];
    if ids[0] != ids[1] && ids.iter().all(|id| !id.is_empty()) {
        return None;
    }
    let (minor, currency) = (charge.taken?, charge.taken_currency.clone()?);
    let recorded = Recorded { money: Money { minor, currency }, fees: charge.fees };
    Some(Claim { id: charge.id.to_string(), recorded })
}

/// Returns the refund with this id or, because its response was lost, one of the same amount
/// without an id. A reversal is a refund that the host did not request.
async fn refund(
    tx: &mut Tx,
    charge: &Charge,
    listed: &ListedTransaction,
) -> StoreResult<Option<Claim>> {
    let refunds = charges::list_refunds_of_charge(tx, &charge.company_id, &charge.id).await?;
    let made: Vec<&Refund> = refunds.iter().filter(|refund| is_made(refund)).collect();
    let claim =
        |id: &str, money| Claim { id: id.to_owned(), recorded: Recorded { money, fees: None } };
    if let Some(named) = made.iter().find(|refund| refund.provider_id == listed.id) {
        return Ok(Some(claim(&named.id, named.money())));
    }
    for unnamed in made.iter().filter(|refund| refund.provider_id.is_empty()) {
        let is_free =
            !store::is_claimed(tx, charge, (TransactionKind::Refund, &listed.id), &unnamed.id)
                .await?;
        if is_free && unnamed.money() == listed.amount {
            return Ok(Some(claim(&unnamed.id, unnamed.money())));
        }
    }
    let disputes = disputes::list_of_charge(tx, &charge.company_id, &charge.id).await?;
    let reversed = reversed(charge, &made, &disputes);
    let is_reversal = reversed > Minor(0);
    let currency = charge.taken_currency.clone().filter(|_| is_reversal);
    Ok(currency.map(|currency| claim(REVERSAL, Money { minor: reversed, currency })))
}

/// Returns whether the ledger has the refund. It may still have a failed one, because the provider
/// may have made it.
fn is_made(refund: &Refund) -> bool {
    !refund.state.has_failed() || refund.held.0 + refund.fee.0 > 0
}

/// Returns the part of a reversed charge that none of these refunds and disputes returned.
fn reversed(charge: &Charge, refunds: &[&Refund], disputes: &[Dispute]) -> Minor {
    if charge.state != ChargeState::Reversed {
        return Minor(0);
    }
    let refunds = refunds.iter().map(|refund| refund.amount.0);
    let lost = lost_disputes(charge, disputes).map(|dispute| dispute.amount.0);
    let taken = charge.taken.unwrap_or_default();
    Minor((taken.0 - refunds.sum::<i64>() - lost.sum::<i64>()).max(0))
}

/// Returns the lost disputes in the currency of the charge.
fn lost_disputes<'d>(
    charge: &'d Charge,
    disputes: &'d [Dispute],
) -> impl Iterator<Item = &'d Dispute> {
    disputes.iter().filter(|dispute| {
        dispute.state == DisputeState::Lost
            && Some(&dispute.currency) == charge.taken_currency.as_ref()
    })
}

/// Returns the lost dispute with this id. On the service account, its amount is what the ledger has
/// given to the provider for it.
async fn dispute(
    tx: &mut Tx,
    charge: &Charge,
    listed: &ListedTransaction,
) -> StoreResult<Option<Claim>> {
    let disputes = disputes::list_of_charge(tx, &charge.company_id, &charge.id).await?;
    let is_lost = |one: &&Dispute| one.provider_id == listed.id && one.state == DisputeState::Lost;
    let Some(lost) = disputes.iter().find(is_lost) else { return Ok(None) };
    let minor = match charge.in_books {
        true => given_for(tx, charge, &disputes, &lost.id).await?,
        false => lost.amount,
    };
    let money = Money { minor, currency: lost.currency.clone() };
    Ok(Some(Claim { id: lost.id.clone(), recorded: Recorded { money, fees: None } }))
}

/// Returns what the ledger has given to the provider for a lost dispute. `disputes` must be all
/// disputes of the charge.
pub async fn given_for(
    tx: &mut Tx,
    charge: &Charge,
    disputes: &[Dispute],
    dispute_id: &str,
) -> StoreResult<Minor> {
    let mut returns = Returns::default();
    for refund in charges::list_refunds_of_charge(tx, &charge.company_id, &charge.id).await? {
        let listed = (TransactionKind::Refund, "");
        match !refund.state.has_failed()
            || store::is_claimed(tx, charge, listed, &refund.id).await?
        {
            true => returns.refunded += refund.amount.0,
            false => returns.kept += refund.held.0 + refund.fee.0,
        }
    }
    Ok(share_of_dispute(charge, &returns, disputes, dispute_id))
}

/// The amounts of a charge that refunds have returned, in minor units.
#[derive(Default)]
struct Returns {
    /// By refunds that did not fail, or that the provider lists.
    refunded: i64,
    /// What the ledger has given to the provider for other refunds.
    kept: i64,
}

/// Returns what the ledger has given to the provider for a lost dispute: for the dispute itself,
/// and by a reversal or by failed refunds.
fn share_of_dispute(
    charge: &Charge,
    returns: &Returns,
    disputes: &[Dispute],
    dispute_id: &str,
) -> Minor {
    let own = |dispute: &Dispute| dispute.lost.0 + dispute.fee.0;
    let lost: Vec<&Dispute> = lost_disputes(charge, disputes).collect();
    let Some(n) = lost.iter().position(|dispute| dispute.id == dispute_id) else {
        // In another currency.
        let found = disputes.iter().find(|dispute| dispute.id == dispute_id);
        return Minor(found.map_or(0, own));
    };
    let amounts: Vec<[i64; 2]> =
        lost.iter().map(|dispute| [dispute.amount.0, own(dispute)]).collect();
    let all_own: i64 = lost.into_iter().map(own).sum();
    let rest = match charge.state {
        ChargeState::Reversed => charge.taken.unwrap_or_default().0 - returns.refunded - all_own,
        _ => returns.kept,
    };
    Minor(shares(rest, &amounts)[n])
}

/// Distributes `rest` among disputes, oldest first. Each is given as its amount and the share that
/// it already has. None gets more than its amount.
fn shares(mut rest: i64, disputes: &[[i64; 2]]) -> Vec<i64> {
    let share = |[amount, own]: &[i64; 2]| {
        let more = rest.min(amount - own).max(0);
        rest -= more;
        own + more
    };
    disputes.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn the_oldest_dispute_has_a_reversal_first() {
        for (rest, disputes, expected) in [
            (0, vec![[100, 100]], vec![100]),
            (100, vec![[100, 0]], vec![100]),
            (40, vec![[100, 50]], vec![90]),
            // Never more than the amount, or less than what it has.
            (500, vec![[100, 50]], vec![100]),
            (-20, vec![[100, 50]], vec![50]),
            (0, vec![[40, 40], [100, 60]], vec![40, 60]),
            (100, vec![[100, 0], [100, 0]], vec![100, 0]),
            (30, vec![[20, 0], [100, 70]], vec![20, 80]),
        ] {
            assert_eq!(shares(rest, &disputes), expected, "{rest} {disputes:?}");
        }
    }
}
