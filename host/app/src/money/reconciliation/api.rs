//! Operator endpoints of reconciliation.

use super::{
    ACCOUNT_JOB,
    days::{self, Day, Report, Summary},
};
use crate::{money::prelude::*, tenants::providers::AccountOwner};

/// 404 if there is no such account.
async fn find(app: &App, id: &str) -> Result<Account> {
    let read = async |tx: &mut Tx| providers::find_by_id(tx, id).await;
    let found = app.store.select(read).await?;
    found.ok_or_else(not_found)
}

/// 404 unless it is the company's own account.
async fn find_own(app: &App, company: CompanyId, id: &str) -> Result<Account> {
    let account = find(app, id).await?;
    match account.owner == AccountOwner::Company(company) {
        true => Ok(account),
        false => Err(not_found()),
    }
}

fn not_found() -> Error {
    Error::not_found("provider account not found")
}

fields! {
    /// The days to list.
    Query DayList {
        /// The last day, like 2026-11-27. Default: today, in UTC.
        until: Exactly,
    }
}

pub async fn list(
    State(app): State<App>,
    Path(account): Path<String>,
    query: Query<DayList>,
) -> Result<DataResponse<Vec<Summary>>> {
    let account = find(&app, &account).await?;
    list_days(&app, &account, query.read()?).await
}

/// Lists the days of a company's own account.
pub async fn list_of_company(
    State(app): State<App>,
    Path((company, account)): Path<(CompanyId, String)>,
    query: Query<DayList>,
) -> Result<DataResponse<Vec<Summary>>> {
    let account = find_own(&app, company, &account).await?;
    list_days(&app, &account, query.read()?).await
}

async fn list_days(
    app: &App,
    account: &Account,
    DayList { until }: DayList,
) -> Result<DataResponse<Vec<Summary>>> {
    let last = match until {
        Some(text) => Day::parse(&text)
            .map_err(|_| Error::invalid("the until field must be a day like 2026-11-27"))?,
        None => Day(super::day_of(app.clock.now())),
    };
    let days = app.store.read(async |tx: &mut Tx| days::list(tx, account, last).await).await?;
    DataResponse::data(days, "Days fetched successfully")
}

pub async fn fetch(
    State(app): State<App>,
    Path((account, day)): Path<(String, String)>,
) -> Result<DataResponse<Report>> {
    let (account, day) = (find(&app, &account).await?, Day::parse(&day)?);
    let read = async |tx: &mut Tx| days::report(tx, &account, day).await;
    DataResponse::data(app.store.read(read).await?, "Day fetched successfully")
}

/// Returns a day of a company's own account. Members do not see the names and notes of operators.
pub async fn fetch_of_company(
    State(app): State<App>,
    actor: Actor,
    Path((company, account, day)): Path<(CompanyId, String, String)>,
) -> Result<DataResponse<Report>> {
    let (account, day) = (find_own(&app, company, &account).await?, Day::parse(&day)?);
    let read = async |tx: &mut Tx| days::report(tx, &account, day).await;
    let report = app.store.read(read).await?.visible_to(&actor);
    DataResponse::data(report, "Day fetched successfully")
}

pub async fn close(
    State(app): State<App>,
    actor: Actor,
    Path((account, day)): Path<(String, String)>,
) -> Result<DataResponse<Report>> {
    let (account, day) = (find(&app, &account).await?, Day::parse(&day)?);
    let db = app.store.clone();
    db.write(async move |tx| {
        days::close(tx, &app, &actor, &account, day).await?;
        let detail = json!({ "account": account.id, "day": day.name() });
        let owner = Owner::from(&account.owner);
        audit::record(tx, &app, &actor, owner, "day.close", detail).await?;
        DataResponse::data(days::report(tx, &account, day).await?, "Day closed successfully")
    })
    .await
}

/// Lists the transactions of an account now, instead of at the daily time.
pub async fn reconcile(
    State(app): State<App>,
    actor: Actor,
    Path(account): Path<String>,
) -> Result<MessageResponse> {
    let account = find(&app, &account).await?;
    if !account.active || account.credentials.is_none() {
        return Err(providers::deactivated(&account.provider));
    }
    let plugin = app.plugins.provider(&account.provider, Owner::from(&account.owner).column())?;
    if !plugin.has_settlements() {
        return Err(Error::Invalid(format!("{} does not list settlements", account.provider)));
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let owner = Owner::from(&account.owner);
        let company = CompanyId::from(owner.column());
        jobs::enqueue(tx, &company, ACCOUNT_JOB, &account.id, app.clock.now()).await?;
        let detail = json!({ "account": account.id });
        audit::record(tx, &app, &actor, owner, "account.reconcile", detail).await?;
        Ok(MessageResponse("Reconciliation started successfully"))
    })
    .await
}
