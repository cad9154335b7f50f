//! Exceptions of reconciliation: differences between a provider's list and the host's records.
//!
//! One row per account, kind and subject. Its excess is how much more money the provider has than
//! the records say. Operators decide about an excess: the company or the service gets or bears it.
//! The ledger account `suspense` holds the undecided part, so that `provider:P` agrees with the
//! provider. If the excess changes or disappears after a decision, the exception is reopened for
//! the rest.

use super::{compare::Recorded, days::Day, store};
use crate::{
    money::{
        charges::{self, Exception, ExceptionState},
        prelude::*,
    },
    tenants::providers::{AccountOwner, Mode},
};
use tollhouse_platform::store::params;

/// The reason for resolving an exception whose subject now agrees.
const AGREES: &str = "the provider's list and the records agree";
/// The reason for resolving an exception about whose excess an operator has already decided.
const DECIDED: &str = "decided before";

/// A difference between a provider's list and the host's records.
#[derive(Clone, Debug)]
pub struct Difference<'d> {
    pub account: &'d Account,
    /// The kind of the exception, and its alarm.
    pub kind: &'static str,
    /// What differs, unique within the kind.
    pub subject: &'d str,
    pub at: Timestamp,
    pub service_ref: &'d str,
    pub charge: Option<&'d Charge>,
    /// What the host has recorded; zero in the listed currency if there is no record.
    pub expected: Recorded,
    /// What the provider lists.
    pub seen: Option<Recorded>,
    /// How much more money the provider has than the records say; negative if it has less.
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

    /// Returns the excess, or zero if there is no ledger: a company's own account has none, nor has
    /// a test account without a charge.
    fn excess_in_ledger(&self) -> Minor {
        let is_in_ledger = match self.charge {
            Some(charge) => charge.in_books,
            None => self.account.owner == AccountOwner::Service(Mode::Live),
        };
        if is_in_ledger { self.excess } else { Minor(0) }
    }
}

/// Raises the difference for each closed day to which its subject belongs: that of `at`, and that
/// of its former time.
pub async fn raise_if_closed(
    tx: &mut Tx,
    app: &App,
    difference: Difference<'_>,
    former: Option<Timestamp>,
) -> Result<()> {
    let account = &difference.account.id;
    // Serializes with closing the day.
    store::lock_listing(tx, account).await?;
    let times = [Some(difference.at), former];
    let mut days: Vec<Timestamp> = times.into_iter().flatten().map(super::day_of).collect();
    days.dedup();
    for day in days {
        if store::find_closed(tx, account, day).await?.is_some() {
            let subject = format!("{}@{}", difference.subject, Day(day).name());
            let of_day = Difference { subject: &subject, at: day, ..difference.clone() };
            raise(tx, app, of_day).await?;
        }
    }
    Ok(())
}

/// Raises an exception, or opens it again if it has changed. A difference that an operator has
/// resolved stays resolved while it is the same.
pub async fn raise(tx: &mut Tx, app: &App, difference: Difference<'_>) -> Result<()> {
    let Difference { account, kind, subject, .. } = difference;
    // Serializes with closing the day.
    store::lock_listing(tx, &account.id).await?;
    let found = match lock(tx, account, kind, subject).await? {
        Some(found) if is_same(&found, &difference) => return Ok(()),
        Some(found) => found,
        None => insert(tx, app, &difference).await?,
    };
    let provider = Ledger::Provider(account.provider.clone());
    let excess = difference.excess_in_ledger();
    let Recorded { money: expected, fees: expected_fees } = difference.expected.clone();
    let mut raised = found;
    if raised.owner != difference.owner() || raised.currency != expected.currency {
        undo(tx, app, &mut raised, provider.clone()).await?;
    }
    move_to(tx, &mut raised, difference.owner()).await?;
    let seen = difference.seen.clone();
    let raised = &mut Exception {
        currency: expected.currency,
        expected: expected.minor,
        expected_fees,
        seen: seen.as_ref().map(|seen| seen.money.minor),
        seen_currency: seen.as_ref().map(|seen| seen.money.currency.clone()),
        seen_fees: seen.and_then(|seen| seen.fees),
        day: Some(super::day_of(difference.at)),
        charge: difference.charge.map(|charge| charge.id.clone()),
        excess,
        ..raised
    };
    if excess != Minor(0) && excess == raised.decided {
        move_suspense(tx, app, raised, provider, Minor(0)).await?;
        return settle(tx, app, raised, DECIDED).await;
    }
    open(tx, app, kind, raised, provider).await
}

/// Returns whether a row has this difference already, and the host did not resolve it by itself.
fn is_same(found: &Exception, difference: &Difference<'_>) -> bool {
    let Difference { expected, seen, at, .. } = difference;
    let seen_money = found.seen.zip(found.seen_currency.clone());
    let seen_money = seen_money.map(|(minor, currency)| Money { minor, currency });
    let of_host =
        found.state == ExceptionState::Resolved && found.reason.as_deref() == Some(AGREES);
    !of_host
        && (found.expected, &found.currency) == (expected.money.minor, &expected.money.currency)
        && found.expected_fees == expected.fees
        && seen_money.as_ref() == seen.as_ref().map(|seen| &seen.money)
        && found.seen_fees == seen.as_ref().and_then(|seen| seen.fees)
        && found.day == Some(super::day_of(*at))
        && found.excess == difference.excess_in_ledger()
        && found.owner == difference.owner()
}

/// Opens an exception for the undecided part of its excess.
async fn open(
    tx: &mut Tx,
    app: &App,
    kind: &'static str,
    exception: &mut Exception,
    provider: Ledger,
) -> Result<()> {
    app.metrics.count_alarm(kind);
    tracing::error!(
        alarm = kind,
        provider = exception.provider,
        account = exception.account_id,
        subject = exception.subject,
        expected_minor = exception.expected.0,
        seen_minor = exception.seen.map(|seen| seen.0),
        "the provider's list differs"
    );
    (exception.state, exception.reason) = (ExceptionState::Open, None);
    exception.resolved_at = None;
    let target = Minor(exception.excess.0 - exception.decided.0);
    move_suspense(tx, app, exception, provider, target).await?;
    save(tx, exception).await
}

async fn insert(tx: &mut Tx, app: &App, difference: &Difference<'_>) -> Result<Exception> {
    let Difference { account, kind, subject, service_ref, expected, .. } = difference;
    let now = app.clock.now();
    tx.sql(
        "INSERT INTO exceptions (company_id, id, kind, charge_id, expected_minor, currency, state,
             created_at, account_id, subject, listed_ref)
         VALUES ($1, $2, $3, $2, $4, $5, 'open', $6, $7, $8, $9)",
    )
    .params(params![
        difference.owner().column(),
        app.random.id(now),
        kind,
        expected.money.minor,
        &expected.money.currency,
        now,
        &account.id,
        subject,
        service_ref
    ])
    .execute()
    .await?;
    let inserted = charges::find_difference(tx, &account.id, kind, subject).await?;
    inserted.ok_or_else(|| Error::internal("an exception is gone"))
}

async fn lock(
    tx: &mut Tx,
    account: &Account,
    kind: &str,
    subject: &str,
) -> Result<Option<Exception>> {
    let found = charges::find_difference(tx, &account.id, kind, subject).await?;
    match found {
        Some(found) => Ok(charges::lock_exception(tx, &found.owner, &found.id).await?),
        None => Ok(None),
    }
}

/// Records that a subject agrees, and resolves its exception. If an operator has already decided
/// about the excess, that decision is now the difference, so the exception is opened for it.
pub async fn agree(
    tx: &mut Tx,
    app: &App,
    account: &Account,
    kind: &'static str,
    subject: &str,
) -> Result<()> {
    // In this order, as in `raise`.
    store::lock_listing(tx, &account.id).await?;
    let Some(mut found) = lock(tx, account, kind, subject).await? else { return Ok(()) };
    let provider = Ledger::Provider(account.provider.clone());
    let is_open = found.state == ExceptionState::Open;
    match (found.decided == Minor(0), found.excess == Minor(0)) {
        (true, _) if is_open => {
            found.excess = Minor(0);
            move_suspense(tx, app, &mut found, provider, Minor(0)).await?;
            settle(tx, app, &mut found, AGREES).await
        }
        // If the same difference occurs again, it is a new one.
        (true, false) => {
            found.excess = Minor(0);
            save(tx, &found).await
        }
        (false, false) => {
            found.excess = Minor(0);
            (found.seen, found.seen_fees) = (Some(found.expected), found.expected_fees);
            found.seen_currency = Some(found.currency.clone());
            open(tx, app, kind, &mut found, provider).await
        }
        _ => Ok(()),
    }
}

/// Resolves an exception without an operator.
async fn settle(tx: &mut Tx, app: &App, exception: &mut Exception, reason: &str) -> Result<()> {
    (exception.state, exception.reason) = (ExceptionState::Resolved, Some(reason.to_owned()));
    exception.resolved_at = Some(app.clock.now());
    save(tx, exception).await
}

/// Reverses the entry in suspense of an exception that moves to another ledger or currency. For an
/// exception of the service, also reverses what the service bore or kept. What a company got or
/// bore stays booked.
async fn undo(tx: &mut Tx, app: &App, exception: &mut Exception, provider: Ledger) -> Result<()> {
    move_suspense(tx, app, exception, provider.clone(), Minor(0)).await?;
    let decided = std::mem::take(&mut exception.decided);
    if exception.owner == Owner::Service && decided != Minor(0) {
        move_suspense(tx, app, exception, Ledger::Fees, decided).await?;
        move_suspense(tx, app, exception, provider, Minor(0)).await?;
    }
    Ok(())
}

/// Moves a row to the ledger of another owner, because its charge is now known.
async fn move_to(tx: &mut Tx, exception: &mut Exception, owner: Owner) -> Result<()> {
    if exception.owner == owner {
        return Ok(());
    }
    tx.sql("UPDATE exceptions SET company_id = $3 WHERE company_id = $1 AND id = $2")
        .params(params![exception.owner.column(), &exception.id, owner.column()])
        .execute()
        .await?;
    exception.owner = owner;
    Ok(())
}

async fn save(tx: &mut Tx, exception: &Exception) -> Result<()> {
    tx.sql(
        "UPDATE exceptions SET state = $3, reason = $4, resolved_at = $5, expected_minor = $6,
             currency = $7, expected_fees_minor = $8, seen_minor = $9, seen_currency = $10,
             seen_fees_minor = $11, day = $12, listed_charge_id = $13, excess_minor = $14,
             decided_minor = $15, suspense_minor = $16, postings = $17
         WHERE company_id = $1 AND id = $2",
    )
    .params(params![
        exception.owner.column(),
        &exception.id,
        exception.state,
        &exception.reason,
        exception.resolved_at,
        exception.expected,
        &exception.currency,
        exception.expected_fees,
        exception.seen,
        &exception.seen_currency,
        exception.seen_fees,
        exception.day,
        &exception.charge,
        exception.excess,
        exception.decided,
        exception.suspense,
        exception.postings
    ])
    .execute()
    .await
    .map_err(Error::from)
}

/// Moves money between another ledger account and `suspense`, so that `suspense` holds `target` for
/// the exception. The caller saves the exception.
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
    match wallet::post(tx, app, &owner, &transaction, Overdraft::Forbidden).await? {
        PostOutcome::Posted => Ok(()),
        PostOutcome::Duplicate => Err(Error::internal("a difference was posted before")),
    }
}

/// What an operator decides about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The company gets the surplus at the provider, or bears the deficit.
    Company,
    /// The service keeps the surplus, or bears the deficit.
    Service,
    /// The records are right: the entry in suspense is reversed.
    Nothing,
}

/// Returns 400 if there is no money to decide about, or if no company owns it.
pub fn check_remedy(exception: &Exception, remedy: Remedy) -> Result<()> {
    if remedy != Remedy::Nothing && exception.suspense == Minor(0) {
        return Err(Error::invalid(
            "this difference has no money in suspense: the action must be none",
        ));
    }
    if remedy == Remedy::Company && exception.owner == Owner::Service {
        return Err(Error::invalid("this difference belongs to no company"));
    }
    Ok(())
}

/// Moves the money of a difference that is resolved. 400 if the wallet does not cover it.
pub async fn resolve(
    tx: &mut Tx,
    app: &App,
    exception: &mut Exception,
    remedy: Remedy,
) -> Result<()> {
    let amount = exception.suspense;
    let other = match remedy {
        Remedy::Company => Ledger::Wallet,
        Remedy::Service => Ledger::Fees,
        Remedy::Nothing => Ledger::Provider(exception.provider.clone()),
    };
    move_suspense(tx, app, exception, other, Minor(0)).await?;
    if remedy != Remedy::Nothing {
        exception.decided.0 += amount.0;
    }
    save(tx, exception).await
}
