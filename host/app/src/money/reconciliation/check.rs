//! Raises and resolves the exceptions of an account after a complete list.

use super::{
    Comparison, TransactionKind, compare,
    differences::{self, Difference},
    record,
    store::{self, Listing, ProviderTransaction, UnlistedRefund},
};
use crate::money::prelude::*;
use tollhouse_plugins::{ListedKind, ListedTransaction};

/// Records younger than this may be in the next list.
const GRACE_SECONDS: i64 = 86_400;
/// Maximum number of records per query.
const BATCH: i64 = 500;

const PAYMENT_NOT_LISTED: &str = "payment_not_listed";
const REFUND_NOT_LISTED: &str = "refund_not_listed";

pub async fn check(app: &App, account: &Account, listing: &Listing) -> Result<()> {
    check_listed(app, account).await?;
    let from = Timestamp(listing.begun_at.0.max(listing.since.plus_seconds(-GRACE_SECONDS).0));
    let period = (from, listing.until.plus_seconds(-GRACE_SECONDS));
    check_charges(app, account, period).await?;
    check_refunds(app, account, period).await
}

/// Compares the transactions again that did not match.
async fn check_listed(app: &App, account: &Account) -> Result<()> {
    let mut after = (String::new(), String::new());
    loop {
        let list = async |tx: &mut Tx| {
            store::list_differing(tx, &account.id, (&after.0, &after.1), BATCH).await
        };
        let found = app.store.select(list).await?;
        let Some(last) = found.last() else { return Ok(()) };
        after = (<&str>::from(last.kind).to_owned(), last.provider_id.clone());
        for transaction in found {
            check_one(app, account, transaction).await?;
        }
    }
}

async fn check_one(app: &App, account: &Account, before: ProviderTransaction) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| {
        let listed = before.to_listed();
        let (charge, recorded) = record::find_record(tx, &account, &listed).await?;
        // Serializes with changes of the charge.
        if let Some(charge) = &charge {
            charges::lock_charge(tx, &charge.company_id, &charge.id).await?;
        }
        let result = compare::compare(&listed, recorded.as_ref());
        let subject = before.subject();
        for former in [Comparison::NotRecorded, Comparison::AmountDiffers, Comparison::FeeDiffers] {
            if let Some(kind) = former.exception(before.kind).filter(|_| former != result) {
                differences::close(tx, &app, &account, kind, &subject).await?;
            }
        }
        if let Some(kind) = result.exception(before.kind) {
            let none = Money { minor: Minor(0), currency: listed.amount.currency.clone() };
            let difference = Difference {
                account: &account,
                kind,
                subject: &subject,
                at: listed.at,
                service_ref: &listed.service_ref,
                charge: charge.as_ref(),
                expected: recorded.as_ref().map_or(none, |recorded| recorded.money.clone()),
                seen: Some(&listed.amount),
                excess: compare::excess(&listed, recorded.as_ref()),
            };
            differences::raise(tx, &app, difference).await?;
        }
        if result == before.result {
            return Ok(());
        }
        let after = ProviderTransaction {
            result,
            company_id: charge
                .as_ref()
                .map_or(before.company_id.clone(), |charge| charge.company_id.clone()),
            charge_id: charge.as_ref().map(|charge| charge.id.clone()),
            updated_at: app.clock.now(),
            ..before
        };
        store::save_transaction(tx, &after).await?;
        record::raise_if_closed(tx, &app, &account, charge.as_ref(), &after).await
    })
    .await
}

impl ProviderTransaction {
    /// The subject of its exceptions.
    pub fn subject(&self) -> String {
        format!("{}:{}", <&str>::from(self.kind), self.provider_id)
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

/// Raises an exception for each charge that the list lacks, and resolves those of charges that it
/// has by now.
async fn check_charges(app: &App, account: &Account, period: (Timestamp, Timestamp)) -> Result<()> {
    let open = async |tx: &mut Tx| {
        charges::list_open_differences(tx, &account.id, Some(PAYMENT_NOT_LISTED), None).await
    };
    for exception in app.store.select(open).await? {
        let (owner, charge) = (&exception.owner, &exception.subject);
        let find =
            async |tx: &mut Tx| store::is_charge_listed(tx, &account.id, owner, charge).await;
        if app.store.select(find).await? {
            close(app, account, PAYMENT_NOT_LISTED, exception.subject).await?;
        }
    }
    let list =
        async |tx: &mut Tx| store::list_unlisted_charges(tx, &account.id, period, BATCH).await;
    for charge in app.store.select(list).await? {
        let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
        db.write(async move |tx| {
            let Some(charge) = charges::lock_charge(tx, &charge.company_id, &charge.id).await?
            else {
                return Ok(());
            };
            let currency = charge.taken_currency.clone().unwrap_or(charge.currency.clone());
            let taken = charge.taken.unwrap_or_default();
            let difference = Difference {
                account: &account,
                kind: PAYMENT_NOT_LISTED,
                subject: &charge.id,
                at: charge.settled_at.unwrap_or(charge.updated_at),
                service_ref: &charge.service_ref,
                charge: Some(&charge),
                expected: Money { minor: taken, currency },
                seen: None,
                excess: Minor(charge.fees.unwrap_or_default().0 - taken.0),
            };
            differences::raise(tx, &app, difference).await
        })
        .await?;
    }
    Ok(())
}

/// The same for refunds.
async fn check_refunds(app: &App, account: &Account, period: (Timestamp, Timestamp)) -> Result<()> {
    let open = async |tx: &mut Tx| {
        charges::list_open_differences(tx, &account.id, Some(REFUND_NOT_LISTED), None).await
    };
    for exception in app.store.select(open).await? {
        let (kind, id) = (TransactionKind::Refund, exception.subject.clone());
        let find = async |tx: &mut Tx| store::find_transaction(tx, &account.id, kind, &id).await;
        if app.store.select(find).await?.is_some() {
            close(app, account, REFUND_NOT_LISTED, exception.subject).await?;
        }
    }
    let list =
        async |tx: &mut Tx| store::list_unlisted_refunds(tx, &account.id, period, BATCH).await;
    for refund in app.store.select(list).await? {
        let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
        db.write(async move |tx| {
            let UnlistedRefund { company_id, charge_id, provider_id, amount, updated_at } = refund;
            let found = charges::lock_charge(tx, &company_id, &charge_id).await?;
            let Some(charge) = found else { return Ok(()) };
            let currency = charge.taken_currency.clone().unwrap_or(charge.currency.clone());
            let difference = Difference {
                account: &account,
                kind: REFUND_NOT_LISTED,
                subject: &provider_id,
                at: updated_at,
                service_ref: &charge.service_ref,
                charge: Some(&charge),
                expected: Money { minor: amount, currency },
                seen: None,
                excess: amount,
            };
            differences::raise(tx, &app, difference).await
        })
        .await?;
    }
    Ok(())
}

async fn close(app: &App, account: &Account, kind: &'static str, subject: String) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| differences::close(tx, &app, &account, kind, &subject).await).await
}
