//! Records the transactions of a page, with the charge, refund or dispute that each one matches.

use super::{
    CLOSED_DAY_CHANGED, Comparison, TransactionKind, claims,
    compare::{self, Recorded},
    differences::{self, Difference},
    store::{self, Listing, ProviderTransaction},
};
use crate::money::{
    charges::{DISPUTES_JOB, RECONCILE_JOB},
    prelude::*,
};
use tollhouse_plugins::ListedTransaction;

/// Records the transactions of a page. Returns whether charges are being verified because
/// transactions do not match.
pub async fn record(
    app: &App,
    account: &Account,
    listing: &Listing,
    page: Vec<ListedTransaction>,
) -> Result<bool> {
    let mut is_verified = false;
    let ids = page.iter().map(|listed| (listed.kind.into(), listed.id.clone())).collect::<Vec<_>>();
    for listed in page {
        is_verified |= record_one(app, account, listing, None, listed).await?;
    }
    let (db, account_id, until) = (app.store.clone(), account.id.clone(), listing.until);
    db.write(async move |tx| -> Result<()> {
        Ok(store::mark_listed(tx, &account_id, &ids, until).await?)
    })
    .await?;
    Ok(is_verified)
}

/// Records the payments of a settlement. If the list of transactions has a payment, only its
/// settlement is recorded, because a settlement shows fewer details.
pub async fn record_contents(
    app: &App,
    account: &Account,
    listing: &Listing,
    settlement: &str,
    page: Vec<ListedTransaction>,
) -> Result<bool> {
    let mut is_verified = false;
    for listed in page {
        let find = async |tx: &mut Tx| store::find_listed(tx, &listed, &account.id).await;
        match app.store.select(find).await? {
            Some(found) if found.settlement_id.as_deref() == Some(settlement) => {}
            Some(found) => {
                let settled =
                    ProviderTransaction { settlement_id: Some(settlement.to_owned()), ..found };
                let db = app.store.clone();
                db.write(async move |tx| -> Result<()> {
                    Ok(store::save_transaction(tx, &settled).await?)
                })
                .await?;
            }
            None => {
                let settlement = Some(settlement.to_owned());
                is_verified |= record_one(app, account, listing, settlement, listed).await?;
            }
        }
    }
    Ok(is_verified)
}

async fn record_one(
    app: &App,
    account: &Account,
    listing: &Listing,
    settlement: Option<String>,
    listed: ListedTransaction,
) -> Result<bool> {
    let kind = TransactionKind::from(listed.kind);
    let find = async |tx: &mut Tx| store::find_transaction(tx, &account.id, kind, &listed.id).await;
    let before = app.store.select(find).await?;
    if before.is_some_and(|before| is_same(&before, &listed, listing)) {
        return Ok(false);
    }
    let (db, app) = (app.store.clone(), app.clone());
    let (account, listed_until) = (account.clone(), listing.until);
    db.write(async move |tx| {
        let (charge, claim) = claims::lock_record(tx, &account, &listed).await?;
        let before = store::find_transaction(tx, &account.id, kind, &listed.id).await?;
        let now = app.clock.now();
        let recorded = claim.as_ref().map(|claim| &claim.recorded);
        let found = compare::compare(&listed, recorded);
        let earlier = before.as_ref();
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
            settlement_id: settlement.or(earlier.and_then(|row| row.settlement_id.clone())),
            company_id: company_of(charge.as_ref()),
            charge_id: charge.as_ref().map(|charge| charge.id.clone()),
            record_id: claim.as_ref().map(|claim| claim.id.clone()),
            // A transaction that differed before differs until the check resolves its exception.
            result: match earlier.map(|row| row.result) {
                Some(before) if before != Comparison::Matched => before,
                _ => found,
            },
            listed_until,
            created_at: earlier.map_or(now, |row| row.created_at),
            updated_at: now,
        };
        store::save_transaction(tx, &transaction).await?;
        raise_if_closed(tx, &app, &account, charge.as_ref(), (earlier, &transaction)).await?;
        if let Some(claim) = &claim {
            let subject = subject_of_record(&claim.id);
            differences::agree(tx, &app, &account, kind.not_listed(), &subject).await?;
        }
        let is_final = matches!(found, Comparison::Matched | Comparison::FeeDiffers);
        match charge.filter(|_| !is_final) {
            Some(charge) => verify(tx, &charge, kind, now).await.map(|()| true),
            None => Ok(false),
        }
    })
    .await
}

pub fn company_of(charge: Option<&Charge>) -> CompanyId {
    let none = || CompanyId::from(Owner::Service.column());
    charge.map_or_else(none, |charge| charge.company_id.clone())
}

/// Returns whether a payment that matched is listed unchanged, and was in the last complete list.
fn is_same(before: &ProviderTransaction, listed: &ListedTransaction, listing: &Listing) -> bool {
    // The record of a refund or dispute may have changed, for example by a retry of the refund.
    before.kind == TransactionKind::Payment
        && before.result == Comparison::Matched
        && Some(before.listed_until) >= listing.listed_at
        && (before.amount, before.fees, before.at) == (listed.amount.minor, listed.fees, listed.at)
        && before.currency == listed.amount.currency
        && before.service_ref == listed.service_ref
}

/// Raises an exception if a transaction was listed, changed or moved after its day was closed.
pub async fn raise_if_closed(
    tx: &mut Tx,
    app: &App,
    account: &Account,
    charge: Option<&Charge>,
    (before, after): (Option<&ProviderTransaction>, &ProviderTransaction),
) -> Result<()> {
    let totals = |row: &ProviderTransaction| {
        (row.amount, row.fees, row.currency.clone(), super::day_of(row.at))
    };
    if before.map(totals) == Some(totals(after)) {
        return Ok(());
    }
    let none = Money { minor: Minor(0), currency: after.currency.clone() };
    let was = before.map_or(Recorded { money: none, fees: None }, ProviderTransaction::recorded);
    let difference = Difference {
        account,
        kind: CLOSED_DAY_CHANGED,
        subject: &after.subject(),
        at: after.at,
        service_ref: &after.service_ref,
        charge,
        expected: was,
        seen: Some(after.recorded()),
        excess: Minor(0),
    };
    differences::raise_if_closed(tx, app, difference, before.map(|before| before.at)).await
}

/// Enqueues the job that queries the provider about a charge, because of a transaction that does
/// not match.
async fn verify(tx: &mut Tx, charge: &Charge, kind: TransactionKind, now: Timestamp) -> Result<()> {
    let job = match kind {
        TransactionKind::Payment | TransactionKind::Refund => RECONCILE_JOB,
        TransactionKind::Dispute => DISPUTES_JOB,
    };
    Ok(jobs::enqueue(tx, &charge.company_id, job, &charge.id, now).await?)
}

/// Returns the subject of the exception for a record that the list lacks.
pub fn subject_of_record(id: &str) -> String {
    format!("record:{id}")
}
