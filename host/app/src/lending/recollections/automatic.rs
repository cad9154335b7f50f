//! Automatic collection, at most once per loan, installment and due date, even after crashes. A
//! company with an active collection policy uses `collections` instead.
//!
//! The job `loan.collect` takes the oldest due installment without a row in `collections`, and
//! writes that row, the recollection, its fee and its queued charge in one transaction under the
//! loan's lock. A failure refunds the fee.

use super::{
    CARD, FEATURE, Recollection, create,
    store::{self, InstallmentKey},
};
use crate::{
    lending::{
        collections::{self, InstrumentId, PolicyVersion},
        loans::{self, Installment, Loan, LoanId, uncovered_amount},
    },
    money::prelude::*,
    operations::operator_events::{self, NOT_COLLECTED},
    tenants::wallet::Fee,
};

pub async fn collect_job(app: App, job: Job) -> Result<JobResult> {
    let (company_id, loan_id) = (job.company_id, LoanId::from(job.subject));
    let collect = async |expects_balance: bool| {
        let (host, company_id, loan_id) = (app.clone(), company_id.clone(), loan_id.clone());
        let step = async move |tx: &mut Tx| {
            next_step(tx, &host, &company_id, &loan_id, expects_balance).await
        };
        app.store.write(step).await
    };
    match collect(true).await {
        Err(error) if error.is_not_one_row() => collect(false).await,
        result => result,
    }
}

/// Handles the due installments of a loan. Returns when the next one is due. `expects_balance`: the
/// transaction fails if the balance has become low since the fee was quoted.
async fn next_step(
    tx: &mut Tx,
    app: &App,
    company_id: &CompanyId,
    loan_id: &LoanId,
    expects_balance: bool,
) -> Result<JobResult> {
    let loan = loans::lock(tx, company_id, loan_id).await?;
    // A loan is sent again once it is disbursed, which schedules this job.
    let Some(loan) = loan.filter(|loan| loan.disbursed && !loan.is_paid()) else {
        return Ok(JobResult::Done);
    };
    let policy = collections::find_latest(tx, company_id).await?;
    let reminder = match &policy {
        Some(policy) => collections::remind(tx, app, &loan, policy).await?,
        None => None,
    };
    let result = match policy.filter(PolicyVersion::is_active) {
        Some(policy) => collections::collect(tx, app, &loan, &policy, expects_balance).await?,
        None => collect_once(tx, app, &loan, expects_balance).await?,
    };
    Ok(match (result, reminder) {
        (JobResult::RescheduleAt(at), Some(reminder)) => JobResult::RescheduleAt(at.min(reminder)),
        (_, Some(reminder)) => JobResult::RescheduleAt(reminder),
        (result, None) => result,
    })
}

/// Handles the oldest due installment that is not marked as collected.
async fn collect_once(
    tx: &mut Tx,
    app: &App,
    loan: &Loan,
    expects_balance: bool,
) -> Result<JobResult> {
    let Loan { company_id, id: loan_id, .. } = loan;
    let collected = store::collected_installments(tx, company_id, loan_id).await?;
    let entries = loans::list_installments(tx, company_id, loan_id).await?;
    let waits = |entry: &&Installment| {
        entry.automatic
            && entry.remaining > Minor(0)
            && !collected.contains(&key_of(&entries, entry))
    };
    let mut waiting: Vec<&Installment> = entries.iter().filter(waits).collect();
    waiting.sort_by_key(|entry| (entry.due_at, entry.number));
    let mut waiting = waiting.into_iter();
    let Some(entry) = waiting.next() else { return Ok(JobResult::Done) };
    let now = app.clock.now();
    if entry.due_at > now {
        return Ok(JobResult::RescheduleAt(entry.due_at));
    }
    charges::adopt_lane(tx, app, company_id, loan_id).await?;
    let pending = charges::sum_of_lane(tx, company_id, loan_id).await?;
    let amount = uncovered_amount(&entries, entry.number, pending);
    let company = companies::get(tx, company_id).await?;
    let charged = match amount > Minor(0) {
        true => create_charge(tx, app, &company, loan, amount).await?,
        false => None,
    };
    let id = charged.as_ref().map(|charged| &charged.recollection.id);
    store::record_collection(tx, loan, key_of(&entries, entry), id, now).await?;
    if let Some(charged) = charged {
        charge_fee(tx, app, &company, charged, expects_balance).await?;
    }
    Ok(waiting.next().map_or(JobResult::Done, |next| JobResult::RescheduleAt(next.due_at)))
}

/// Continues the collection of a loan after the reversal of a repayment: it may have ended because
/// the loan was paid. Due installments of the repayment are not charged, as after a reversed
/// attempt: the payer or the company may have wanted the money back.
pub async fn continue_after_reversal(
    tx: &mut Tx,
    app: &App,
    loan: &Loan,
    reversed: &Recollection,
) -> Result<()> {
    let now = app.clock.now();
    let entries = loans::list_installments(tx, &loan.company_id, &loan.id).await?;
    let repaid: Vec<Timestamp> =
        reversed.applied.iter().flat_map(|parts| &parts.0).map(|part| part.due_at).collect();
    for entry in entries.iter().filter(|e| e.due_at <= now && repaid.contains(&e.due_at)) {
        let key = key_of(&entries, entry);
        store::record_collection_if_new(tx, loan, key, &reversed.id, now).await?;
    }
    Ok(jobs::enqueue(tx, &loan.company_id, loans::COLLECT_JOB, &loan.id, now).await?)
}

/// The recollection of an installment, and its fee, which is not charged yet.
pub struct Charged {
    pub recollection: Recollection,
    pub fee: Fee,
}

/// Charges the fee of a recollection: the last step of a transaction, because all fees of a company
/// lock its balance.
pub async fn charge_fee(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    Charged { recollection, fee }: Charged,
    expects_balance: bool,
) -> Result<()> {
    let Some(key) = recollection.fee_key else { return Ok(()) };
    let fees = [(fee, key)];
    if !expects_balance || !wallet::charge_ample_fees(tx, app, company, &fees).await? {
        let [(fee, key)] = fees;
        wallet::charge_quoted(tx, app, company, &fee, &key).await?;
    }
    Ok(())
}

pub fn key_of(entries: &[Installment], entry: &Installment) -> InstallmentKey {
    let before =
        |other: &&Installment| other.due_at == entry.due_at && other.number <= entry.number;
    let ordinal = i64::try_from(entries.iter().filter(before).count()).unwrap_or(i64::MAX);
    (ordinal, entry.due_at)
}

/// Creates the recollection of a due installment. `None` if it cannot be charged: operators get an
/// event, unless the user has no payment instrument.
async fn create_charge(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    loan: &Loan,
    amount: Minor,
) -> Result<Option<Charged>> {
    let mut new = create::blank(app, loan, amount);
    let created = match select_instrument(tx, company, &mut new).await? {
        Err(Error::NotFound(_)) => return Ok(None),
        Err(obstacle) => Err(obstacle),
        Ok(account) => insert(tx, app, company, new, &account, None).await?,
    };
    match created {
        Ok(charged) => Ok(Some(charged)),
        Err(obstacle) => {
            report_obstacle(tx, app, loan, amount, &obstacle).await?;
            Ok(None)
        }
    }
}

/// Creates the recollection of a due installment with one instrument. Its charge may take a part of
/// the amount, but at least `at_least`. The inner error is the reason why it cannot be charged.
pub async fn charge_instrument(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    loan: &Loan,
    instrument: &InstrumentId,
    amount: Minor,
    at_least: Option<Minor>,
) -> Result<Result<Charged>> {
    let mut new = create::blank(app, loan, amount);
    let selected = match instrument {
        InstrumentId::Card(id) => create::with_card(tx, company, &mut new, Some(id)).await,
        InstrumentId::Mandate(id) => create::with_mandate(tx, company, &mut new, Some(id)).await,
    };
    match failure_reason(selected)? {
        Ok(account) => insert(tx, app, company, new, &account, at_least).await,
        Err(obstacle) => Ok(Err(obstacle)),
    }
}

/// Inserts an automatic recollection with its queued charge. The inner error is the reason why
/// nothing can be charged.
async fn insert(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    mut new: Recollection,
    account: &Account,
    at_least: Option<Minor>,
) -> Result<Result<Charged>> {
    let fee = match quote_fee(tx, app, company, billing_item(&new.payment_channel)).await? {
        Ok(fee) => fee,
        Err(obstacle) => return Ok(Err(obstacle)),
    };
    let Ok(provider) = app.plugins.provider(&new.payment_service, &company.id) else {
        // Retry: another host, or this one later, may serve the plugin.
        let text = format!("plugin {} is not loaded on this host", new.payment_service);
        return Err(Error::internal(text));
    };
    if let Err(obstacle) = charges::check_amount(&provider, &new.money()) {
        return Ok(Err(obstacle));
    }
    new.fee_key = Some(format!("recollection:{}", new.id));
    let (recollection, _) = create::insert_charged(tx, app, new, account, None, at_least).await?;
    Ok(Ok(Charged { recollection, fee }))
}

/// Reports to operators why an installment is not charged.
pub async fn report_obstacle(
    tx: &mut Tx,
    app: &App,
    loan: &Loan,
    amount: Minor,
    obstacle: &Error,
) -> Result<()> {
    let data = json!({ "loan": loan.id, "amount": amount, "reason": obstacle.to_string() });
    Ok(operator_events::emit(tx, app, &loan.company_id, NOT_COLLECTED, data).await?)
}

/// Selects the default card, else the default mandate, and the provider account that charges it.
/// The inner error is the reason why neither is usable.
async fn select_instrument(
    tx: &mut Tx,
    company: &Company,
    new: &mut Recollection,
) -> Result<Result<Account>> {
    let no_card = match failure_reason(create::with_card(tx, company, new, None).await)? {
        Ok(account) => return Ok(Ok(account)),
        Err(reason) => reason,
    };
    let no_mandate = match failure_reason(create::with_mandate(tx, company, new, None).await)? {
        Ok(account) => return Ok(Ok(account)),
        Err(reason) => reason,
    };
    Ok(Err(if matches!(no_card, Error::NotFound(_)) { no_mandate } else { no_card }))
}

/// Returns the billing item of a charge by this channel.
pub fn billing_item(channel: &str) -> &'static str {
    match channel {
        CARD => "recollection.card",
        _ => "recollection.direct_debit",
    }
}

/// Returns why a check failed. An internal error is passed on: the job is retried.
fn failure_reason<T>(checked: Result<T>) -> Result<Result<T>> {
    match checked {
        Ok(passed) => Ok(Ok(passed)),
        Err(
            reason @ (Error::Invalid(_)
            | Error::InsufficientBalance
            | Error::NotFound(_)
            | Error::Forbidden(_)),
        ) => Ok(Err(reason)),
        Err(error) => Err(error),
    }
}

/// Quotes the fee. Checks the company's subscription, plan feature and wallet balance.
async fn quote_fee(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    item: &'static str,
) -> Result<Result<Fee>> {
    let quote = async {
        company.check_active(app.clock.now())?;
        company.check_feature(FEATURE)?;
        let fee = wallet::quote_fee(tx, company, item, 1).await?;
        fee.check_balance().map(|()| fee)
    };
    failure_reason(quote.await)
}
