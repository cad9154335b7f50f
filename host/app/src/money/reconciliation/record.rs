//! Records the transactions of a page, with the charge, refund or dispute that each one matches.

use super::{
    Comparison, TransactionKind,
    compare::{self, Recorded},
    differences::{self, Difference},
    store::{self, ProviderTransaction},
};
use crate::money::{
    charges::{ChargeId, DISPUTES_JOB, RECONCILE_JOB, RefundState, State as ChargeState},
    disputes::{self, DisputeState},
    prelude::*,
};
use tollhouse_platform::store::Result as StoreResult;
use tollhouse_plugins::{ListedKind, ListedTransaction};

/// The kind of the exception of a change of a closed day.
pub const CLOSED_DAY_CHANGED: &str = "closed_day_changed";

/// Records the transactions of a page: of a period, or of a settlement. Returns whether charges are
/// verified because they do not match.
pub async fn record(
    app: &App,
    account: &Account,
    settlement: Option<&str>,
    page: Vec<ListedTransaction>,
) -> Result<bool> {
    let mut is_verified = false;
    for listed in page {
        is_verified |= record_one(app, account, settlement, listed).await?;
    }
    Ok(is_verified)
}

async fn record_one(
    app: &App,
    account: &Account,
    settlement: Option<&str>,
    listed: ListedTransaction,
) -> Result<bool> {
    let kind = TransactionKind::from(listed.kind);
    let find = async |tx: &mut Tx| store::find_transaction(tx, &account.id, kind, &listed.id).await;
    let before = app.store.select(find).await?;
    if before.as_ref().is_some_and(|before| is_same(before, &listed, settlement)) {
        return Ok(false);
    }
    let (db, app) = (app.store.clone(), app.clone());
    let (account, settlement) = (account.clone(), settlement.map(str::to_owned));
    db.write(async move |tx| {
        let before = store::find_transaction(tx, &account.id, kind, &listed.id).await?;
        let now = app.clock.now();
        let (charge, recorded) = find_record(tx, &account, &listed).await?;
        let found = compare::compare(&listed, recorded.as_ref());
        let transaction = ProviderTransaction {
            account_id: account.id.clone(),
            kind,
            provider_id: listed.id.clone(),
            service_ref: listed.service_ref.clone(),
            transaction_id: listed.transaction_id.clone(),
            amount: listed.amount.minor,
            fees: listed.fees,
            currency: listed.amount.currency.clone(),
            at: listed.at,
            settlement_id: settlement
                .or_else(|| before.as_ref().and_then(|before| before.settlement_id.clone())),
            company_id: charge.as_ref().map_or_else(
                || CompanyId::from(Owner::Service.column()),
                |charge| charge.company_id.clone(),
            ),
            charge_id: charge.as_ref().map(|charge| charge.id.clone()),
            // What differed before differs until the check, which resolves its exception.
            result: match before.as_ref().map(|before| before.result) {
                Some(before) if before != Comparison::Matched => before,
                _ => found,
            },
            created_at: before.as_ref().map_or(now, |before| before.created_at),
            updated_at: now,
        };
        store::save_transaction(tx, &transaction).await?;
        if before.as_ref().is_none_or(|before| changes_day(before, &transaction)) {
            raise_if_closed(tx, &app, &account, charge.as_ref(), &transaction).await?;
        }
        match charge.filter(|_| found == Comparison::NotRecorded) {
            Some(charge) => verify(tx, &charge, kind, now).await,
            None => Ok(false),
        }
    })
    .await
}

/// Returns whether the list shows a transaction as before.
fn is_same(
    before: &ProviderTransaction,
    listed: &ListedTransaction,
    settlement: Option<&str>,
) -> bool {
    let of_settlement = settlement.is_none() || before.settlement_id.as_deref() == settlement;
    of_settlement
        && before.result == Comparison::Matched
        && (before.amount, before.fees, before.at) == (listed.amount.minor, listed.fees, listed.at)
        && before.currency == listed.amount.currency
        && before.service_ref == listed.service_ref
}

/// Returns whether the totals of a day change.
fn changes_day(before: &ProviderTransaction, after: &ProviderTransaction) -> bool {
    (before.amount, before.fees, before.at, before.result)
        != (after.amount, after.fees, after.at, after.result)
        || before.currency != after.currency
}

/// Raises an exception if a transaction was listed, or changed, after its day was closed.
pub async fn raise_if_closed(
    tx: &mut Tx,
    app: &App,
    account: &Account,
    charge: Option<&Charge>,
    transaction: &ProviderTransaction,
) -> Result<()> {
    // Serializes with closing the day.
    store::lock_listing(tx, &account.id).await?;
    let day = super::day_of(transaction.at);
    if store::find_closed(tx, &account.id, day).await?.is_none() {
        return Ok(());
    }
    let currency = transaction.currency.clone();
    let difference = Difference {
        account,
        kind: CLOSED_DAY_CHANGED,
        subject: &transaction.subject(),
        at: transaction.at,
        service_ref: &transaction.service_ref,
        charge,
        expected: Money { minor: Minor(0), currency: currency.clone() },
        seen: Some(&Money { minor: transaction.amount, currency }),
        excess: Minor(0),
    };
    differences::raise(tx, app, difference).await
}

/// Enqueues the job that queries the provider about a charge, because of a transaction that it does
/// not have. Returns whether the query can find the transaction.
async fn verify(
    tx: &mut Tx,
    charge: &Charge,
    kind: TransactionKind,
    now: Timestamp,
) -> Result<bool> {
    let job = match kind {
        TransactionKind::Payment | TransactionKind::Refund => RECONCILE_JOB,
        TransactionKind::Dispute => DISPUTES_JOB,
    };
    jobs::enqueue(tx, &charge.company_id, job, &charge.id, now).await?;
    Ok(true)
}

/// Returns the charge of a listed transaction, and what the host has recorded of the transaction.
pub async fn find_record(
    tx: &mut Tx,
    account: &Account,
    listed: &ListedTransaction,
) -> StoreResult<(Option<Charge>, Option<Recorded>)> {
    let Some(charge) = find_charge(tx, account, listed).await? else { return Ok((None, None)) };
    let recorded = match listed.kind {
        ListedKind::Payment => payment(&charge),
        ListedKind::Refund => refund(tx, &charge, listed).await?,
        ListedKind::Dispute => dispute(tx, &charge, listed).await?,
    };
    Ok((Some(charge), recorded))
}

async fn find_charge(
    tx: &mut Tx,
    account: &Account,
    listed: &ListedTransaction,
) -> StoreResult<Option<Charge>> {
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
    let Some((company_id, id)) = found else { return Ok(None) };
    charges::find(tx, &company_id, &ChargeId::from(id)).await
}

fn payment(charge: &Charge) -> Option<Recorded> {
    let (minor, currency) = (charge.taken?, charge.taken_currency.clone()?);
    Some(Recorded { money: Money { minor, currency }, fees: charge.fees })
}

/// Returns the refund with this id or, because its response was lost, one of the same amount
/// without an id. A reversal is a refund that the host did not request.
async fn refund(
    tx: &mut Tx,
    charge: &Charge,
    listed: &ListedTransaction,
) -> StoreResult<Option<Recorded>> {
    let refunds = charges::list_of_charge(tx, &charge.company_id, &charge.id).await?;
    let is_made = |state| !matches!(state, RefundState::Refused | RefundState::Failed);
    let made: Vec<_> = refunds.into_iter().filter(|refund| is_made(refund.state)).collect();
    let named = made.iter().find(|refund| refund.provider_id == listed.id);
    let unnamed = || {
        made.iter().find(|refund| refund.provider_id.is_empty() && refund.money() == listed.amount)
    };
    if let Some(refund) = named.or_else(unnamed) {
        return Ok(Some(Recorded { money: refund.money(), fees: None }));
    }
    let requested: i64 = made.iter().map(|refund| refund.amount.0).sum();
    let reversed = Minor(charge.taken.unwrap_or_default().0 - requested);
    let is_reversal = charge.state == ChargeState::Reversed && reversed > Minor(0);
    let currency = charge.taken_currency.clone().filter(|_| is_reversal);
    Ok(currency.map(|currency| Recorded { money: Money { minor: reversed, currency }, fees: None }))
}

async fn dispute(
    tx: &mut Tx,
    charge: &Charge,
    listed: &ListedTransaction,
) -> StoreResult<Option<Recorded>> {
    let found = disputes::list_of_charge(tx, &charge.company_id, &charge.id).await?;
    let lost = found
        .into_iter()
        .find(|dispute| dispute.provider_id == listed.id && dispute.state == DisputeState::Lost);
    Ok(lost.map(|dispute| Recorded {
        money: Money { minor: dispute.amount, currency: dispute.currency },
        fees: None,
    }))
}
