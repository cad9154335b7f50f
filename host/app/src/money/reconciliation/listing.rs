//! The job that lists the transactions and settlements of a provider account.

use super::{
    ACCOUNT_JOB, check, record, settlements,
    store::{self, Listing, Step},
};
use crate::money::prelude::*;
use tollhouse_platform::values::listing::Period;
use tollhouse_plugins::{Credentials, TransactionFilter};

/// Time between two lists.
const INTERVAL_SECONDS: i64 = 86_400;
/// How far a list reaches back before the one before it, and the first one before its time:
/// providers list some transactions late.
const OVERLAP_SECONDS: i64 = 3 * 86_400;
/// Time for the jobs that verify the charges of what does not match.
const VERIFICATION_SECONDS: i64 = 30;
/// Maximum number of pages that one run of the job lists.
const PAGES_PER_RUN: usize = 50;

/// An account whose transactions are listed.
pub struct Source {
    pub account: Account,
    pub plugin: Provider,
    credentials: Credentials,
}

impl Source {
    /// `None` if the account is not usable, or if its plugin has no settlements.
    async fn open(app: &App, account_id: &str) -> Result<Option<Source>> {
        let find = async |tx: &mut Tx| providers::find_by_id(tx, account_id).await;
        let is_usable = |account: &Account| account.active && account.credentials.is_some();
        let found = app.store.select(find).await?.filter(is_usable);
        let Some(account) = found else { return Ok(None) };
        let owner = Owner::from(&account.owner);
        let plugin = app.plugins.provider(&account.provider, owner.column())?;
        if !plugin.has_settlements() {
            return Ok(None);
        }
        let credentials = account.open_credentials(app)?;
        Ok(Some(Source { account, plugin, credentials }))
    }
}

/// Continues the list of an account, or begins the next one.
pub async fn account_job(app: App, job: Job) -> Result<JobResult> {
    let Some(source) = Source::open(&app, &job.subject).await? else {
        return Ok(JobResult::Done);
    };
    let next = JobResult::RescheduleAt(app.clock.now().plus_seconds(INTERVAL_SECONDS));
    let mut listing = begin_or_resume(&app, &source.account).await?;
    for _ in 0..PAGES_PER_RUN {
        listing = match advance(&app, &source, listing).await {
            Ok(listing) if listing.step == Step::Done => return Ok(next),
            Ok(listing) if listing.step == Step::Check && listing.check_at > app.clock.now() => {
                return Ok(JobResult::RescheduleAt(listing.check_at));
            }
            Ok(listing) => listing,
            // Until an operator corrects the credentials; the call has raised its alarm.
            Err(ListError::Call(error)) if error.fault.category == FaultCategory::Misconfigured => {
                return Ok(next);
            }
            Err(ListError::Call(error)) => return Err(error.into_error(&source.account.provider)),
            Err(ListError::Other(error)) => return Err(error),
        };
    }
    Ok(JobResult::RescheduleAt(app.clock.now()))
}

enum ListError {
    Call(CallError),
    Other(Error),
}

impl From<CallError> for ListError {
    fn from(error: CallError) -> ListError {
        ListError::Call(error)
    }
}

impl From<Error> for ListError {
    fn from(error: Error) -> ListError {
        ListError::Other(error)
    }
}

/// Returns the list in progress, or the next one.
async fn begin_or_resume(app: &App, account: &Account) -> Result<Listing> {
    let find = async |tx: &mut Tx| store::find_listing(tx, &account.id).await;
    let found = app.store.select(find).await?;
    let now = app.clock.now();
    let listing = match found {
        Some(found) if found.step != Step::Done => return Ok(found),
        Some(found) => Listing {
            since: found.until.plus_seconds(-OVERLAP_SECONDS),
            until: now,
            step: Step::Transactions,
            next_page: None,
            check_at: now,
            ..found
        },
        None => Listing {
            account_id: account.id.clone(),
            begun_at: now,
            since: now.plus_seconds(-OVERLAP_SECONDS),
            until: now,
            step: Step::Transactions,
            next_page: None,
            check_at: now,
            listed_at: None,
        },
    };
    save(app, &listing).await?;
    Ok(listing)
}

async fn save(app: &App, listing: &Listing) -> Result<()> {
    let (db, listing) = (app.store.clone(), listing.clone());
    db.write(async move |tx| Ok(store::save_listing(tx, &listing).await?)).await
}

/// Records the next page, or ends the step.
async fn advance(app: &App, source: &Source, listing: Listing) -> Result<Listing, ListError> {
    let Source { account, plugin, credentials } = source;
    let cursor = &listing.next_page;
    let period = Period { from: listing.since, before: listing.until };
    let listing = match listing.step {
        Step::Transactions => {
            let filter = TransactionFilter::Period(period);
            let page = plugin.list_transactions(credentials, &filter, cursor).await?;
            let next = next_page(app, &listing, page.next);
            let is_verified = record::record(app, account, None, page.transactions).await?;
            turn_page(delay_check(app, listing, is_verified), next, Step::Settlements)
        }
        Step::Settlements => {
            let page = plugin.list_settlements(credentials, &period, cursor).await?;
            let next = next_page(app, &listing, page.next);
            settlements::record(app, account, page.settlements).await?;
            turn_page(listing, next, Step::Contents)
        }
        Step::Contents => list_contents(app, source, listing).await?,
        Step::Check => {
            check::check(app, account, &listing).await?;
            Listing { step: Step::Done, listed_at: Some(listing.until), ..listing }
        }
        Step::Done => listing,
    };
    save(app, &listing).await?;
    Ok(listing)
}

/// Records the next page of the payments of a settlement.
async fn list_contents(app: &App, source: &Source, listing: Listing) -> Result<Listing, ListError> {
    let Source { account, plugin, credentials } = source;
    let find = async |tx: &mut Tx| store::next_settlement(tx, &account.id).await;
    let found = app.store.select(find).await.map_err(Error::from)?;
    let Some(settlement) = found else { return Ok(turn_page(listing, None, Step::Check)) };
    let id = settlement.provider_id.clone();
    let filter = TransactionFilter::Settlement(id.clone());
    let page = plugin.list_transactions(credentials, &filter, &listing.next_page).await?;
    let next = next_page(app, &listing, page.next);
    let is_verified = record::record(app, account, Some(&id), page.transactions).await?;
    if next.is_none() {
        settlements::compare(app, account, settlement).await?;
    }
    Ok(turn_page(delay_check(app, listing, is_verified), next, Step::Contents))
}

/// Returns the cursor of the next page. A plugin that returns the cursor it was given would list its
/// page for ever.
fn next_page(app: &App, listing: &Listing, next: Option<String>) -> Option<String> {
    if next.is_some() && next == listing.next_page {
        app.metrics.count_alarm("list without end");
        tracing::error!(
            alarm = "list without end",
            account = &*listing.account_id,
            "a plugin returned the cursor of the same page"
        );
        return None;
    }
    next
}

/// Continues with the next page of the step, or with the step after it.
fn turn_page(listing: Listing, next: Option<String>, after: Step) -> Listing {
    let step = if next.is_some() { listing.step } else { after };
    Listing { step, next_page: next, ..listing }
}

/// Delays the check if charges are verified first.
fn delay_check(app: &App, listing: Listing, is_verified: bool) -> Listing {
    match is_verified {
        true => {
            let check_at = app.clock.now().plus_seconds(VERIFICATION_SECONDS);
            Listing { check_at, ..listing }
        }
        false => listing,
    }
}

/// Enqueues the daily job of each account whose plugin has settlements. Deletes nothing.
pub async fn sweep(app: App) -> Result<u64> {
    providers::enqueue_jobs(&app, ACCOUNT_JOB, |plugin| plugin.has_settlements()).await?;
    Ok(0)
}
