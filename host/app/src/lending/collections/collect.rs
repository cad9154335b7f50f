//! Collects the due installments of a loan by the company's policy.
//!
//! One run makes at most one attempt: its recollection, fee and queued charge are written in one
//! transaction under the loan's lock, as without a policy. The outcome of the attempt wakes the
//! job.

use super::{
    decide::{Attempt, Due, Instrument, InstrumentId, Reason, Step, next_step},
    policy::InstrumentKind,
    store::{self, NewAttempt, PolicyVersion},
};
use crate::{
    lending::{
        loans::{self, Installment, Loan, uncovered_amount},
        mandates,
        recollections::{
            CARD, Charged, DIRECT_DEBIT, InstallmentKey, billing_item, charge_fee,
            charge_instrument, key_of, record_collection_if_new, report_obstacle,
        },
    },
    money::{cards, prelude::*},
};

/// A loan with the inputs of the decisions about its installments.
struct Collection<'a> {
    app: &'a App,
    company: &'a Company,
    loan: &'a Loan,
    version: &'a PolicyVersion,
    entries: Vec<Installment>,
    /// The offset from UTC in the user's country.
    offset_minutes: i64,
    now: Timestamp,
}

/// The result of a run for an installment.
enum Progress {
    /// An attempt was made; its fee is not charged yet.
    Charged(Box<Charged>),
    /// No attempt was made: decide again at this time.
    Wait(Timestamp),
    Nothing,
}

/// Handles the installments of a loan that the caller has locked. Returns when to decide again.
pub async fn collect(
    tx: &mut Tx,
    app: &App,
    loan: &Loan,
    version: &PolicyVersion,
    expects_balance: bool,
) -> Result<JobResult> {
    let company = companies::get(tx, &loan.company_id).await?;
    let user = users::find_by_id(tx, &loan.company_id, &loan.user_key).await?;
    let country = user.and_then(|user| user.country_code);
    let collection = Collection {
        app,
        company: &company,
        loan,
        version,
        entries: loans::list_installments(tx, &loan.company_id, &loan.id).await?,
        offset_minutes: version.policy.offset_minutes(country.as_deref()),
        now: app.clock.now(),
    };
    let mut history = store::history(tx, &loan.company_id, &loan.id).await?;
    let instruments = instruments(tx, &company, loan).await?;
    let is_open = |entry: &&Installment| entry.automatic && entry.remaining > Minor(0);
    let mut open: Vec<&Installment> = collection.entries.iter().filter(is_open).collect();
    open.sort_by_key(|entry| (entry.due_at, entry.number));
    charges::adopt_lane(tx, app, &loan.company_id, &loan.id).await?;
    let mut next: Option<Timestamp> = None;
    for entry in open {
        let key = key_of(&collection.entries, entry);
        let of_entry = history.extract_if(.., |row| row.key() == key);
        let attempts: Vec<Attempt> = of_entry.map(store::HistoryRow::attempt).collect();
        match collection.advance(tx, entry, key, &attempts, instruments.clone()).await? {
            Progress::Charged(charged) => {
                charge_fee(tx, app, &company, *charged, expects_balance).await?;
                return Ok(JobResult::RescheduleAt(collection.now));
            }
            Progress::Wait(at) => next = Some(next.map_or(at, |next| next.min(at))),
            Progress::Nothing => {}
        }
    }
    Ok(next.map_or(JobResult::Done, JobResult::RescheduleAt))
}

/// Returns the usable instruments of the borrower in the currency of the loan, in the order of
/// preference within their kind.
async fn instruments(tx: &mut Tx, company: &Company, loan: &Loan) -> Result<Vec<Instrument>> {
    let Loan { company_id, user_key, currency, .. } = loan;
    let mut found = Vec::new();
    let cards = cards::list_valid(tx, company_id, user_key).await?;
    let cards: Vec<_> = cards.into_iter().filter(|card| card.currency == *currency).collect();
    if !cards.is_empty() {
        let fee = price(tx, company, CARD).await?;
        found.extend(cards.into_iter().map(|card| {
            let kind = match card.is_default {
                true => InstrumentKind::DefaultCard,
                false => InstrumentKind::OtherCards,
            };
            Instrument { kind, id: InstrumentId::Card(card.id), fee }
        }));
    }
    let mandates = mandates::list_usable(tx, company_id, user_key).await?;
    let mandates: Vec<_> = mandates.into_iter().filter(|one| one.currency == *currency).collect();
    if !mandates.is_empty() {
        let fee = price(tx, company, DIRECT_DEBIT).await?;
        found.extend(mandates.into_iter().map(|mandate| Instrument {
            kind: InstrumentKind::Mandates,
            id: InstrumentId::Mandate(mandate.id),
            fee,
        }));
    }
    Ok(found)
}

/// Returns the fee for a charge by this channel. Without the plan's feature there is none, and no
/// charge: [`charge_instrument`] reports it.
pub async fn price(tx: &mut Tx, company: &Company, channel: &str) -> Result<Minor> {
    match wallet::quote_fee(tx, company, billing_item(channel), 1).await {
        Ok(fee) => Ok(fee.amount()),
        Err(Error::Forbidden(_)) => Ok(Minor(0)),
        Err(error) => Err(error),
    }
}

impl Collection<'_> {
    /// Makes the next attempt for an installment, if its time has come.
    async fn advance(
        &self,
        tx: &mut Tx,
        entry: &Installment,
        key: InstallmentKey,
        attempts: &[Attempt],
        mut instruments: Vec<Instrument>,
    ) -> Result<Progress> {
        let due = Due { due_at: entry.due_at, offset_minutes: self.offset_minutes };
        let mut obstacle = None;
        loop {
            let policy = &self.version.policy;
            let (id, day, reason) = match next_step(policy, due, attempts, &instruments, self.now) {
                Step::Stop(_) => break,
                Step::Charge { at, .. } | Step::Wait(at) if at > self.now => {
                    self.report(tx, key, obstacle).await?;
                    return Ok(Progress::Wait(at));
                }
                Step::Wait(_) => break,
                Step::Charge { instrument, day, reason, .. } => (instrument, day, reason),
            };
            let Loan { company_id, id: loan_id, .. } = self.loan;
            let pending = charges::sum_of_lane(tx, company_id, loan_id).await?;
            let amount = uncovered_amount(&self.entries, entry.number, pending);
            if amount <= Minor(0) {
                // Another charge covers it. If that fails, the installment can be charged on the
                // next day.
                instruments.clear();
                continue;
            }
            let at_least = policy.min_partial_debit;
            let (app, company, loan) = (self.app, self.company, self.loan);
            match charge_instrument(tx, app, company, loan, &id, amount, at_least).await? {
                Ok(charged) => {
                    self.record(tx, key, attempts, &charged, (day, reason)).await?;
                    return Ok(Progress::Charged(Box::new(charged)));
                }
                Err(error) => {
                    instruments.retain(|one| one.id != id);
                    obstacle = Some((day, amount, error));
                }
            }
        }
        self.report(tx, key, obstacle).await?;
        Ok(Progress::Nothing)
    }

    async fn record(
        &self,
        tx: &mut Tx,
        key: InstallmentKey,
        attempts: &[Attempt],
        charged: &Charged,
        (day, reason): (i64, Reason),
    ) -> Result<()> {
        let number = i64::try_from(attempts.len() + 1).unwrap_or(i64::MAX);
        let attempt = NewAttempt {
            key,
            attempt: number,
            recollection_id: &charged.recollection.id,
            policy_version: self.version.version,
            day,
            reason,
            fee: charged.fee.amount(),
        };
        record_collection_if_new(tx, self.loan, key, &charged.recollection.id, self.now).await?;
        Ok(store::insert_attempt(tx, self.loan, &attempt, self.now).await?)
    }

    /// Reports to operators why no instrument could be charged, once a day of the policy.
    async fn report(
        &self,
        tx: &mut Tx,
        key: InstallmentKey,
        obstacle: Option<(i64, Minor, Error)>,
    ) -> Result<()> {
        let Some((day, amount, error)) = obstacle else { return Ok(()) };
        let kind = format!("not_collected.{day}");
        match store::insert_report(tx, self.loan, key, &kind, self.now).await? {
            true => report_obstacle(tx, self.app, self.loan, amount, &error).await,
            false => Ok(()),
        }
    }
}
