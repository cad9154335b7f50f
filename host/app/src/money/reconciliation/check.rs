//! Raises and resolves the exceptions of an account after a complete list, in batches.

use super::{
    Comparison, TransactionKind, claims,
    compare::{self, Recorded},
    differences::{self, Difference},
    record::{self, subject_of_record},
    store::{self, GRACE_SECONDS, Listing, ProviderTransaction, UnlistedRecord},
};
use crate::money::{charges::ChargeId, disputes, prelude::*};
use tollhouse_platform::values::listing::Period;
use tollhouse_plugins::{ListedKind, ListedTransaction};

/// Maximum age of a transaction that is compared again because it does not match.
const RECHECK_SECONDS: i64 = 35 * 86_400;
/// How long a listed payment waits for the scheduled verification of its charge.
const VERIFIED_SECONDS: i64 = 4 * 86_400;
/// Maximum number of records of a batch.
const BATCH: i64 = 100;

/// Repeats the comparison of a batch of transactions that did not match. Returns where to continue.
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
        let (charge, claim) = claims::lock_record(tx, &account, &listed.to_listed()).await?;
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
            .filter(|_| concerns_operators(&account, charge.as_ref(), &before, app.clock.now()))
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

/// Returns whether an operator must handle a difference. A charge without an outcome is verified
/// first, on its own schedule. A company may take payments at its own account without this host.
fn concerns_operators(
    account: &Account,
    charge: Option<&Charge>,
    listed: &ProviderTransaction,
    now: Timestamp,
) -> bool {
    match charge {
        Some(charge) => !charge.is_undecided() || listed.at.plus_seconds(VERIFIED_SECONDS) < now,
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

/// Raises the exceptions of a batch of records that the list lacks: first payments, then refunds,
/// then disputes. Before these, exceptions from earlier lists are compared with their records
/// again. Returns where to continue.
pub async fn check_unlisted(
    app: &App,
    account: &Account,
    listing: &Listing,
) -> Result<Option<String>> {
    let after = listing.next_page.clone().unwrap_or_else(|| "earlier:".to_owned());
    let (step, after) = after.split_once(':').unwrap_or_default();
    let from = Timestamp(listing.begun_at.0.max(listing.since.0));
    let period = Period { from, before: listing.until.plus_seconds(-GRACE_SECONDS) };
    let (kind, next_step) = match step {
        "earlier" => return check_earlier(app, account, after).await,
        "payment" => (TransactionKind::Payment, Some("refund:")),
        "refund" => (TransactionKind::Refund, Some("dispute:")),
        _ => (TransactionKind::Dispute, None),
    };
    let list =
        async |tx: &mut Tx| store::list_unlisted(tx, kind, listing, period, after, BATCH).await;
    let found = app.store.select(list).await?;
    let next = match found.last() {
        Some(last) => Some(format!("{step}:{}", last.id)),
        None => next_step.map(str::to_owned),
    };
    for UnlistedRecord { company_id, charge_id, id, .. } in found {
        check_record(app, account, kind, (company_id, charge_id, id)).await?;
    }
    Ok(next)
}

/// Compares the exceptions of records that earlier lists lacked with their records, which may have
/// been reversed since.
async fn check_earlier(app: &App, account: &Account, after: &str) -> Result<Option<String>> {
    let kinds = TransactionKind::ALL.map(|kind| kind.not_listed().to_owned());
    let list = async |tx: &mut Tx| {
        charges::list_unsettled_differences(tx, &account.id, &kinds, after, BATCH).await
    };
    let found = app.store.select(list).await?;
    let Some(last) = found.last() else { return Ok(Some("payment:".to_owned())) };
    let next = format!("earlier:{}", last.id);
    for exception in found {
        let is_kind = |kind: &TransactionKind| kind.not_listed() == exception.kind;
        let Some(kind) = TransactionKind::ALL.into_iter().find(is_kind) else { continue };
        let record = exception.subject.strip_prefix("record:").unwrap_or_default().to_owned();
        if let (Owner::Company(company_id), Some(charge)) = (exception.owner, exception.charge) {
            check_record(app, account, kind, (company_id, charge, record)).await?;
        }
    }
    Ok(Some(next))
}

/// Raises the exception of a record that the list lacks, unless the ledger no longer has it.
async fn check_record(
    app: &App,
    account: &Account,
    kind: TransactionKind,
    (company_id, charge_id, id): (CompanyId, ChargeId, String),
) -> Result<()> {
    let (db, app, account) = (app.store.clone(), app.clone(), account.clone());
    db.write(async move |tx| {
        let Some(charge) = charges::lock_charge(tx, &company_id, &charge_id).await? else {
            return Ok(());
        };
        let subject = subject_of_record(&id);
        let Some(record) = store::find_record(tx, kind, &company_id, &id).await? else {
            return differences::agree(tx, &app, &account, kind.not_listed(), &subject).await;
        };
        let currency = charge.taken_currency.clone().unwrap_or(charge.currency.clone());
        let is_payment = kind == TransactionKind::Payment;
        let excess = match kind {
            TransactionKind::Payment => Minor(-record.booked.0),
            TransactionKind::Refund => record.booked,
            TransactionKind::Dispute => {
                let all = disputes::list_of_charge(tx, &company_id, &charge_id).await?;
                claims::given_for(tx, &charge, &all, &id).await?
            }
        };
        let difference = Difference {
            account: &account,
            kind: kind.not_listed(),
            subject: &subject,
            at: record.at,
            service_ref: &charge.service_ref,
            charge: Some(&charge),
            expected: Recorded {
                money: Money { minor: record.amount, currency },
                fees: charge.fees.filter(|_| is_payment),
            },
            seen: None,
            excess,
        };
        differences::raise(tx, &app, difference).await
    })
    .await
}
