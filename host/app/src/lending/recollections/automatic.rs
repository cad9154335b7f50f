//! Automatic collection: at most once per loan, installment and due date, even after crashes.
//!
//! The job `loan.collect` takes the oldest due installment without a row in `collections`, and
//! writes that row, the recollection, its fee and its queued charge in one transaction under the
//! loan's lock. A failure refunds the fee.

use super::{
    CARD, FEATURE, Recollection, create,
    store::{self, InstallmentKey},
};
use crate::{
    lending::loans::{self, Installment, Loan, LoanId, uncovered_amount},
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

/// Handles the oldest due installment that is not marked. Returns when the next one is due.
/// `expects_balance`: the transaction fails if the balance has become low since the fee was quoted.
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
        true => create_charge(tx, app, &company, &loan, amount).await?,
        false => None,
    };
    let id = charged.as_ref().map(|(new, _)| &new.id);
    store::record_collection(tx, &loan, key_of(&entries, entry), id, now).await?;
    // Last, because all fees of a company lock its balance.
    if let Some((Recollection { fee_key: Some(key), .. }, fee)) = charged {
        let fees = [(fee, key)];
        if !expects_balance || !wallet::charge_ample_fees(tx, app, &company, &fees).await? {
            let [(fee, key)] = fees;
            wallet::charge_quoted(tx, app, &company, &fee, &key).await?;
        }
    }
    Ok(waiting.next().map_or(JobResult::Done, |next| JobResult::RescheduleAt(next.due_at)))
}

fn key_of(entries: &[Installment], entry: &Installment) -> InstallmentKey {
    let before =
        |other: &&Installment| other.due_at == entry.due_at && other.number <= entry.number;
    let ordinal = i64::try_from(entries.iter().filter(before).count()).unwrap_or(i64::MAX);
    (ordinal, entry.due_at)
}

/// Creates the recollection of a due installment, and quotes its fee. `None` if it cannot be
/// charged: operators get an event, unless the user has no payment instrument.
async fn create_charge(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    loan: &Loan,
    amount: Minor,
) -> Result<Option<(Recollection, Fee)>> {
    let mut new = create::blank(app, loan, amount);
    let chargeable = match select_instrument(tx, company, &mut new).await? {
        Err(Error::NotFound(_)) => return Ok(None),
        Err(obstacle) => Err(obstacle),
        Ok(account) => {
            let quoted = quote_fee(tx, app, company, billing_item(&new)).await?;
            quoted.map(|fee| (account, fee))
        }
    };
    let (account, fee) = match chargeable {
        Ok(chargeable) => chargeable,
        Err(obstacle) => return report(tx, app, loan, amount, &obstacle).await.map(|()| None),
    };
    let Ok(provider) = app.plugins.provider(&new.payment_service, &company.id) else {
        // Retry: another host, or this one later, may serve the plugin.
        let text = format!("plugin {} is not loaded on this host", new.payment_service);
        return Err(Error::internal(text));
    };
    if let Err(obstacle) = charges::check_amount(&provider, &new.money()) {
        return report(tx, app, loan, amount, &obstacle).await.map(|()| None);
    }
    new.fee_key = Some(format!("recollection:{}", new.id));
    let (new, _) = create::insert(tx, app, new, Some(&account), None).await?;
    Ok(Some((new, fee)))
}

/// Reports to operators why an installment is not charged.
async fn report(
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

fn billing_item(new: &Recollection) -> &'static str {
    match &*new.payment_channel {
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
