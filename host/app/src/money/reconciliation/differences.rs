//! Exceptions of reconciliation: differences between a provider's list and the host's records.
//!
//! One row per account, kind and subject. While it is open, the ledger account `suspense` has what
//! the provider has more than the ledger, so that `provider:P` agrees with the provider.

use crate::money::{
    charges::{self, Exception},
    prelude::*,
};
use tollhouse_platform::store::params;

/// Resolves the exceptions of what agrees now.
const AGREES: &str = "the provider's list and the records agree";

/// A difference between a provider's list and the host's records.
#[derive(Clone, Debug)]
pub struct Difference<'d> {
    pub account: &'d Account,
    /// The kind of the exception.
    pub kind: &'static str,
    /// What differs, unique within the kind.
    pub subject: &'d str,
    pub at: Timestamp,
    pub service_ref: &'d str,
    pub charge: Option<&'d Charge>,
    /// What the host has recorded; zero in the listed currency if there is no record.
    pub expected: Money,
    /// What the provider lists.
    pub seen: Option<&'d Money>,
    /// What the provider has more of the money than the ledger.
    pub excess: Minor,
}

impl Difference<'_> {
    /// Returns the owner of the ledger: the charge's company, else the owner of the account.
    fn owner(&self) -> Owner {
        match self.charge {
            Some(charge) => Owner::from(&charge.company_id),
            None => Owner::from(&self.account.owner),
        }
    }

    /// A company's own account has no ledger.
    fn is_in_ledger(&self) -> bool {
        self.charge.map_or(self.account.is_service_account(), |charge| charge.in_books)
    }
}

/// Raises an exception, or raises it again if the amounts have changed since. A difference that an
/// operator has resolved stays resolved while it is the same.
pub async fn raise(tx: &mut Tx, app: &App, difference: Difference<'_>) -> Result<()> {
    if !insert(tx, app, &difference).await? {
        return Ok(());
    }
    let Difference { account, kind, subject, .. } = difference;
    app.metrics.count_alarm(kind);
    tracing::error!(
        alarm = kind,
        provider = account.provider,
        account = &*account.id,
        subject,
        expected_minor = difference.expected.minor.0,
        seen_minor = difference.seen.map(|seen| seen.minor.0),
        "the provider's list differs"
    );
    if difference.is_in_ledger() {
        let found = find(tx, account, kind, subject).await?;
        let mut raised = found.ok_or_else(|| Error::internal("an exception is gone"))?;
        let target = difference.excess;
        move_suspense(tx, app, &mut raised, Ledger::Provider(account.provider.clone()), target)
            .await?;
    }
    Ok(())
}

async fn insert(tx: &mut Tx, app: &App, difference: &Difference<'_>) -> Result<bool> {
    let now = app.clock.now();
    let id = app.random.id(now);
    let (seen_minor, seen_currency) =
        difference.seen.map(|seen| (seen.minor, &seen.currency)).unzip();
    tx.sql(
        "INSERT INTO exceptions (company_id, id, kind, charge_id, expected_minor, currency,
             seen_minor, seen_currency, state, created_at, account_id, subject, day, listed_ref,
             listed_charge_id)
         VALUES ($1, $2, $3, $2, $4, $5, $6, $7, 'open', $8, $9, $10, $11, $12, $13)
         ON CONFLICT (account_id, kind, subject) WHERE account_id <> '' DO UPDATE SET
             state = 'open', reason = NULL, resolved_at = NULL, expected_minor = $4,
             currency = $5, seen_minor = $6, seen_currency = $7
         WHERE exceptions.expected_minor <> $4 OR exceptions.seen_minor IS DISTINCT FROM $6
             OR exceptions.state = 'resolved' AND exceptions.reason = $14",
    )
    .params(params![
        difference.owner().column(),
        id,
        difference.kind,
        difference.expected.minor,
        &difference.expected.currency,
        seen_minor,
        seen_currency,
        now,
        &difference.account.id,
        difference.subject,
        super::day_of(difference.at),
        difference.service_ref,
        difference.charge.map(|charge| &charge.id),
        AGREES
    ])
    .affects_one()
    .await
    .map_err(Error::from)
}

async fn find(
    tx: &mut Tx,
    account: &Account,
    kind: &str,
    subject: &str,
) -> Result<Option<Exception>> {
    Ok(charges::find_difference(tx, &account.id, kind, subject).await?)
}

/// Resolves an exception of what agrees now, if one is open, and returns its money.
pub async fn close(
    tx: &mut Tx,
    app: &App,
    account: &Account,
    kind: &str,
    subject: &str,
) -> Result<()> {
    let Some(mut found) = find(tx, account, kind, subject).await? else { return Ok(()) };
    if !charges::resolve_exception(tx, app, &found, AGREES).await? {
        return Ok(());
    }
    let provider = Ledger::Provider(account.provider.clone());
    move_suspense(tx, app, &mut found, provider, Minor(0)).await
}

/// Moves money between another ledger account and `suspense`, so that `suspense` has `target`
/// because of the exception.
async fn move_suspense(
    tx: &mut Tx,
    app: &App,
    exception: &mut Exception,
    other: Ledger,
    target: Minor,
) -> Result<()> {
    let change = target.0 - exception.suspense.0;
    if change == 0 {
        return Ok(());
    }
    exception.postings += 1;
    exception.suspense = target;
    let (from, to) = match change > 0 {
        true => (other, Ledger::Suspense),
        false => (Ledger::Suspense, other),
    };
    let transaction = LedgerTransaction {
        key: exception.ledger_key(exception.postings),
        kind: "difference".into(),
        from,
        to,
        money: Money { minor: Minor(change.abs()), currency: exception.currency.clone() },
    };
    let owner = CompanyId::from(exception.owner.column());
    wallet::post(tx, app, &owner, &transaction, Overdraft::Forbidden).await?;
    tx.sql("UPDATE exceptions SET suspense_minor = $3, postings = $4 WHERE company_id = $1 AND id = $2")
        .params(params![&owner, &exception.id, exception.suspense, exception.postings])
        .execute()
        .await
        .map_err(Error::from)
}

/// What an operator decides about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The company gets what the provider has more, or bears what it has less.
    Company,
    /// The service keeps it, or bears it.
    Service,
    /// The records are right: the money in suspense goes back.
    Nothing,
}

/// Moves the money of a resolved difference. 400 if no company owns it, or if the wallet does not
/// cover it.
pub async fn resolve(
    tx: &mut Tx,
    app: &App,
    exception: &mut Exception,
    remedy: Remedy,
) -> Result<()> {
    let other = match remedy {
        Remedy::Company if exception.owner == Owner::Service => {
            return Err(Error::invalid("this difference belongs to no company"));
        }
        Remedy::Company => Ledger::Wallet,
        Remedy::Service => Ledger::Fees,
        Remedy::Nothing => Ledger::Provider(exception.provider.clone()),
    };
    move_suspense(tx, app, exception, other, Minor(0)).await
}
