//! The job that lists the transactions and settlements of a provider account.

use super::{
    ACCOUNT_JOB, check, record, settlements,
    store::{self, Listing, OVERLAP_SECONDS, Step},
};
use crate::money::prelude::*;
use tollhouse_platform::values::listing::Period;
use tollhouse_plugins::{Credentials, TransactionFilter, TransactionPage};

/// Time between two lists.
const INTERVAL_SECONDS: i64 = 86_400;
/// Time for the jobs that verify the charges of transactions that do not match.
const VERIFICATION_SECONDS: i64 = 30;
/// How far back the list of settlements reaches for those that were not paid out yet.
const PENDING_SECONDS: i64 = 35 * 86_400;
/// Time after which a run of the job begins no other call. Including the last call, the run is
/// shorter than the job's lease.
const RUN: Duration = Duration::from_secs(30);
/// Maximum number of pages of a list.
const MAX_PAGES: i64 = 100_000;

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
    let Some(mut listing) = begin_or_resume(&app, &source.account).await? else {
        return Ok(next);
    };
    let begun = app.clock.elapsed();
    while app.clock.elapsed() - begun < RUN {
        if listing.step == Step::Done {
            return Ok(next);
        }
        if listing.step == Step::Check && listing.check_at > app.clock.now() {
            return Ok(JobResult::RescheduleAt(listing.check_at));
        }
        let advanced = match advance(&app, &source, &listing).await {
            Ok(advanced) => advanced,
            // An operator must correct the credentials; the call has raised its alarm.
            Err(ListError::Call(error)) if error.fault.category == FaultCategory::Misconfigured => {
                return Ok(next);
            }
            // Another version of the plugin may have returned the cursor.
            Err(ListError::Call(error)) if error.fault.category == FaultCategory::Invalid => {
                restart_step(&app, &listing).await?;
                return Err(error.into_error(&source.account.provider));
            }
            Err(ListError::Call(error)) => return Err(error.into_error(&source.account.provider)),
            Err(ListError::Endless) => {
                restart_step(&app, &listing).await?;
                return Err(Error::internal("a list has no end"));
            }
            Err(ListError::Other(error)) => return Err(error),
        };
        // Another run has continued the list.
        if !update(&app, &listing, &advanced).await? {
            return Ok(next);
        }
        listing = advanced;
    }
    Ok(JobResult::RescheduleAt(app.clock.now()))
}

enum ListError {
    Call(CallError),
    /// The plugin returns pages without end.
    Endless,
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

/// Returns the list in progress, or the next one. `None`: another run has begun it.
async fn begin_or_resume(app: &App, account: &Account) -> Result<Option<Listing>> {
    let find = async |tx: &mut Tx| store::find_listing(tx, &account.id).await;
    let found = app.store.select(find).await?;
    let now = app.clock.now();
    let begin = |begun_at: Timestamp, since: Timestamp, listed_at| Listing {
        account_id: account.id.clone(),
        begun_at,
        since: since.plus_seconds(-OVERLAP_SECONDS),
        until: now,
        step: Step::Transactions,
        next_page: None,
        pages: 0,
        check_at: now,
        listed_at,
    };
    match found {
        Some(found) if found.step != Step::Done => Ok(Some(found)),
        Some(found) => {
            let next = begin(found.begun_at, found.until, found.listed_at);
            Ok(update(app, &found, &next).await?.then_some(next))
        }
        None => {
            let (db, first) = (app.store.clone(), begin(now, now, None));
            db.write(async move |tx| Ok(store::insert_listing(tx, &first).await?.then_some(first)))
                .await
        }
    }
}

async fn update(app: &App, before: &Listing, after: &Listing) -> Result<bool> {
    let (db, before, after) = (app.store.clone(), before.clone(), after.clone());
    db.write(async move |tx| Ok(store::update_listing(tx, &before, &after).await?)).await
}

async fn restart_step(app: &App, listing: &Listing) -> Result<()> {
    let restarted = Listing { next_page: None, pages: 0, ..listing.clone() };
    update(app, listing, &restarted).await.map(drop)
}

/// Records the next page, or the next batch of a check.
async fn advance(app: &App, source: &Source, listing: &Listing) -> Result<Listing, ListError> {
    let Source { account, plugin, credentials } = source;
    let cursor = &listing.next_page;
    let period = Period { from: listing.since, before: listing.until };
    match listing.step {
        Step::Transactions => {
            let filter = TransactionFilter::Period(period);
            let page = plugin.list_transactions(credentials, &filter, cursor).await?;
            let is_verified = record::record(app, account, listing, page.transactions).await?;
            let listing = delay_check(app, listing, is_verified);
            turn_page(app, listing, page.next, Step::Settlements)
        }
        Step::Settlements => {
            let since = listing.until.plus_seconds(-PENDING_SECONDS);
            let find = async |tx: &mut Tx| {
                store::oldest_pending_settlement(tx, &account.id, since, listing.until).await
            };
            let pending = app.store.select(find).await.map_err(Error::from)?;
            let from = pending.map_or(period.from, |at| at.min(period.from));
            let period = Period { from, ..period };
            let page = plugin.list_settlements(credentials, &period, cursor).await?;
            settlements::record(app, account, page.settlements).await?;
            turn_page(app, listing.clone(), page.next, Step::Contents)
        }
        Step::Contents => list_contents(app, source, listing).await,
        Step::Check => {
            let next = check::check_listed(app, account, listing).await?;
            Ok(continue_at(listing.clone(), next, Step::Unlisted))
        }
        Step::Unlisted => {
            let next = check::check_unlisted(app, account, listing).await?;
            let listed_at = if next.is_none() { Some(listing.until) } else { listing.listed_at };
            Ok(continue_at(Listing { listed_at, ..listing.clone() }, next, Step::Done))
        }
        Step::Done => Ok(listing.clone()),
    }
}

/// Records the next page of the payments of a settlement.
async fn list_contents(
    app: &App,
    source: &Source,
    listing: &Listing,
) -> Result<Listing, ListError> {
    let Source { account, plugin, credentials } = source;
    let find = async |tx: &mut Tx| store::next_settlement(tx, &account.id).await;
    let found = app.store.select(find).await.map_err(Error::from)?;
    let Some(settlement) = found else {
        return Ok(continue_at(listing.clone(), None, Step::Check));
    };
    let id = settlement.provider_id.clone();
    let filter = TransactionFilter::Settlement(id.clone());
    // `next_page` has the settlement's id, a line break and the plugin's cursor.
    let cursor = listing.next_page.as_ref().and_then(|next| next.split_once('\n'));
    let cursor = cursor.filter(|(of, _)| *of == id).map(|(_, cursor)| cursor.to_owned());
    let page = match plugin.list_transactions(credentials, &filter, &cursor).await {
        Ok(page) => page,
        // The settlement has no payments, so it differs.
        Err(error) if error.fault.category == FaultCategory::NotFound => {
            TransactionPage { transactions: Vec::new(), next: None }
        }
        Err(error) => return Err(error.into()),
    };
    let is_verified =
        record::record_contents(app, account, listing, &id, page.transactions).await?;
    if page.next.is_none() {
        settlements::compare(app, account, settlement).await?;
    }
    let next = page.next.map(|next| format!("{id}\n{next}"));
    turn_page(app, delay_check(app, listing, is_verified), next, Step::Contents)
}

/// Continues with the next page of the step, or with the step after it. Fails if a plugin returns
/// cursors without end: an incomplete list must not count as complete.
fn turn_page(
    app: &App,
    listing: Listing,
    next: Option<String>,
    after: Step,
) -> Result<Listing, ListError> {
    let is_same = next.is_some() && next == listing.next_page;
    if is_same || listing.pages >= MAX_PAGES {
        app.metrics.count_alarm("list without end");
        tracing::error!(
            alarm = "list without end",
            account = &*listing.account_id,
            "a plugin returns pages without end"
        );
        return Err(ListError::Endless);
    }
    let pages = listing.pages + 1;
    Ok(continue_at(Listing { pages, ..listing }, next, after))
}

/// Continues the step at `next` or, if there is none, with the step `after`.
fn continue_at(listing: Listing, next: Option<String>, after: Step) -> Listing {
    let step = if next.is_some() { listing.step } else { after };
    Listing { step, next_page: next, ..listing }
}

/// Delays the check if charges are verified first.
fn delay_check(app: &App, listing: &Listing, is_verified: bool) -> Listing {
    let check_at = match is_verified {
        true => app.clock.now().plus_seconds(VERIFICATION_SECONDS),
        false => listing.check_at,
    };
    Listing { check_at, ..listing.clone() }
}

/// Enqueues the daily job of each account whose plugin has settlements. Deletes nothing.
pub async fn sweep(app: App) -> Result<u64> {
    providers::enqueue_jobs(&app, ACCOUNT_JOB, |plugin| plugin.has_settlements()).await?;
    Ok(0)
}
