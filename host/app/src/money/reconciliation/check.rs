//! Raises and resolves the exceptions of an account after a complete list, in batches.

use super::{
    Comparison, DISPUTE_NOT_LISTED, PAYMENT_NOT_LISTED, REFUND_NOT_LISTED, TransactionKind,
    compare::{self, Recorded},
    differences::{self, Difference},
    record::{self, subject_of_record},
    store::{self, Listing, ProviderTransaction, UnlistedRecord},
};
use crate::money::prelude::*;
use tollhouse_platform::values::listing::Period;
use tollhouse_plugins::{ListedKind, ListedTransaction};

/// Records younger than this may be in the next list.
const GRACE_SECONDS: i64 = 86_400;
/// How long a transaction that does not match is compared again.
const RECHECK_SECONDS: i64 = 35 * 86_400;
/// Maximum number of records of a batch.
const BATCH: i64 = 100;

/// Compares a batch of the transactions again that did not match. Returns where to continue.
pub async fn check_listed(
    app: &App,
    account: &Account,
    listing: &Listing,
) -> Result<Option<String>> {
    let after = listing.next_page.clone().unwrap_or_default();
    let (kind, id) = after.split_once(':').unwrap_or_default();
    let since = listing.until.plus_seconds(-RECHECK_SECONDS);
    let list =
        async |tx: &mut Tx| store::list_differing(tx, &account.id, (kind, id), since, BATCH).await;
    let found = app.store.select(list).await?;
    let next = found.last().map(ProviderTransaction::subject);
    for transaction in found {
        check_one(app, account, transaction).await?;
    }
    Ok(next)
}

async fn check_one(app: &App, account: &Account, listed: ProviderTransaction) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| {
        let (charge, claim) = record::lock_record(tx, &account, &listed.to_listed()).await?;
        let (kind, id) = (listed.kind, &listed.provider_id);
        let found = store::find_transaction(tx, &account.id, kind, id).await?;
        let Some(before) = found else { return Ok(()) };
        let listed = before.to_listed();
        let recorded = claim.as_ref().map(|claim| &claim.recorded);
        let result = compare::compare(&listed, recorded);
        for former in Comparison::DIFFERENT.into_iter().filter(|former| *former != result) {
            let Some(kind) = former.exception(before.kind) else { continue };
            differences::agree(tx, &app, &account, kind, &before.subject()).await?;
        }
        if let Some(kind) = result
            .exception(before.kind)
            .filter(|_| concerns_operators(&account, charge.as_ref(), result))
        {
            let none = Money { minor: Minor(0), currency: listed.amount.currency.clone() };
            let difference = Difference {
                account: &account,
                kind,
                subject: &before.subject(),
                at: before.at,
                service_ref: &before.service_ref,
                charge: charge.as_ref(),
                expected: recorded.cloned().unwrap_or(Recorded { money: none, fees: None }),
                seen: Some(before.recorded()),
                excess: compare::excess(&listed, recorded),
            };
            differences::raise(tx, &app, difference).await?;
        }
        let after = ProviderTransaction {
            result,
            company_id: record::company_of(charge.as_ref()),
            charge_id: charge.as_ref().map(|charge| charge.id.clone()),
            record_id: claim.map(|claim| claim.id),
            ..before.clone()
        };
        if after == before {
            return Ok(());
        }
        let after = ProviderTransaction { updated_at: app.clock.now(), ..after };
        store::save_transaction(tx, &after).await?;
        record::raise_if_closed(tx, &app, &account, charge.as_ref(), (Some(&before), &after)).await
    })
    .await
}

/// Returns whether a difference is for an operator. A charge without an outcome is verified on its
/// own schedule. Through its own account, a company may take payments without this host.
fn concerns_operators(account: &Account, charge: Option<&Charge>, result: Comparison) -> bool {
    match charge {
        Some(charge) => result != Comparison::NotRecorded || !charge.is_undecided(),
        None => account.is_service_account(),
    }
}

impl ProviderTransaction {
    /// The subject of its exceptions.
    pub fn subject(&self) -> String {
        format!("{}:{}", <&str>::from(self.kind), self.provider_id)
    }

    pub fn recorded(&self) -> Recorded {
        let money = Money { minor: self.amount, currency: self.currency.clone() };
        Recorded { money, fees: self.fees }
    }

    fn to_listed(&self) -> ListedTransaction {
        ListedTransaction {
            kind: match self.kind {
                TransactionKind::Payment => ListedKind::Payment,
                TransactionKind::Refund => ListedKind::Refund,
                TransactionKind::Dispute => ListedKind::Dispute,
            },
            id: self.provider_id.clone(),
            service_ref: self.service_ref.clone(),
            transaction_id: self.transaction_id.clone(),
            amount: Money { minor: self.amount, currency: self.currency.clone() },
            fees: self.fees,
            at: self.at,
        }
    }
}

/// Raises the exceptions of a batch of records that the list lacks: of payments, then of refunds,
/// then of disputes. Returns where to continue.
pub async fn check_unlisted(
    app: &App,
    account: &Account,
    listing: &Listing,
) -> Result<Option<String>> {
    let after = listing.next_page.clone().unwrap_or_else(|| "payment:".to_owned());
    let (kind, after) = after.split_once(':').unwrap_or_default();
    let from = Timestamp(listing.begun_at.0.max(listing.since.0));
    let period = Period { from, before: listing.until.plus_seconds(-GRACE_SECONDS) };
    let list = async |tx: &mut Tx| match kind {
        "payment" => store::list_unlisted_charges(tx, listing, period, after, BATCH).await,
        "refund" => store::list_unlisted_refunds(tx, listing, period, after, BATCH).await,
        _ => store::list_unlisted_disputes(tx, listing, period, after, BATCH).await,
    };
    let found = app.store.select(list).await?;
    let next = match (found.last(), kind) {
        (Some(last), _) => Some(format!("{kind}:{}", last.id)),
        (None, "payment") => Some("refund:".to_owned()),
        (None, "refund") => Some("dispute:".to_owned()),
        (None, _) => None,
    };
    let exception = match kind {
        "payment" => PAYMENT_NOT_LISTED,
        "refund" => REFUND_NOT_LISTED,
        _ => DISPUTE_NOT_LISTED,
    };
    for record in found {
        raise_unlisted(app, account, exception, record).await?;
    }
    Ok(next)
}

async fn raise_unlisted(
    app: &App,
    account: &Account,
    kind: &'static str,
    record: UnlistedRecord,
) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| {
        let UnlistedRecord { company_id, id, charge_id, amount, at } = record;
        let Some(charge) = charges::lock_charge(tx, &company_id, &charge_id).await? else {
            return Ok(());
        };
        let currency = charge.taken_currency.clone().unwrap_or(charge.currency.clone());
        let is_payment = kind == PAYMENT_NOT_LISTED;
        let fees = charge.fees.filter(|_| is_payment);
        let difference = Difference {
            account: &account,
            kind,
            subject: &subject_of_record(&id),
            at,
            service_ref: &charge.service_ref,
            charge: Some(&charge),
            expected: Recorded { money: Money { minor: amount, currency }, fees },
            seen: None,
            excess: match is_payment {
                true => Minor(fees.unwrap_or_default().0 - amount.0),
                false => amount,
            },
        };
        differences::raise(tx, &app, difference).await
    })
    .await
}
