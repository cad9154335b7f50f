//! Days of provider accounts: the provider's lists, compared with the host's records.

use askama::Template;
use axum::extract::{Form as FormBody, Path};
use serde_json::{Value, json};

use super::{Fact, Form, ListPage, Parent, company_cell, exceptions::show_link};
use crate::{
    api::ApiResult,
    format::{Cell, Table, column, money, plain, right},
    page::{Frame, PageResult, render},
    session::Session,
};

const TITLE: &str = "Reconciliation";
const DAYS: &str = "Days of a provider account";

/// Lists the service accounts whose transactions are listed.
pub async fn list(session: Session) -> PageResult {
    let empty = "There are no service accounts whose provider lists transactions.";
    render(&ListPage {
        frame: Frame::new(&session, TITLE, TITLE),
        parent: None,
        form: None,
        filters: Vec::new(),
        views: None,
        table: accounts(&session, None, empty).await?,
    })
}

/// Lists a company's own accounts whose transactions are listed.
pub async fn list_of_company(session: Session, Path(company): Path<String>) -> PageResult {
    let empty = "The company has no account of its own whose provider lists transactions.";
    render(&ListPage {
        frame: Frame::of_company(&session, &company, TITLE, TITLE),
        parent: Parent::of_company(&session),
        form: None,
        filters: Vec::new(),
        views: None,
        table: accounts(&session, Some(&company), empty).await?,
    })
}

/// Returns the path of a company in the interface and in the pages; empty for the service.
fn owner(company: Option<&str>) -> Vec<&str> {
    company.map_or_else(Vec::new, |company| vec!["companies", company])
}

async fn accounts(
    session: &Session,
    company: Option<&str>,
    empty: &'static str,
) -> ApiResult<Table> {
    let owner = owner(company);
    let accounts = session.get(&[&owner[..], &["providers"]].concat(), &[]).await?;
    let accounts = accounts.as_array().into_iter().flatten();
    let accounts: Value =
        accounts.filter(|account| account["reconciled"] == true).cloned().collect();
    let columns = [
        column("Provider", |account| {
            let id = plain(&account["account"]);
            let href = session.href(&[&owner[..], &["reconciliation", &id]].concat(), &[]);
            Cell::link(href, &account["provider"])
        }),
        column("Mode", |account| Cell::text(&account["mode"])),
        column("Account", |account| Cell::code(&account["account"])),
        column("Active", |account| Cell::text(&account["active"])),
    ];
    Ok(Table::new(TITLE, &accounts, &columns, empty))
}

#[derive(Template)]
#[template(path = "account_days.html")]
struct DaysPage {
    frame: Frame,
    parent: Option<Parent>,
    days: Table,
    /// The button that lists the transactions now.
    reconcile: Cell,
}

/// Lists the last days of an account.
pub async fn days(session: Session, Path(account): Path<String>) -> PageResult {
    let action = session.href(&["reconciliation", &account, "reconcile"], &[]);
    render(&DaysPage {
        frame: Frame::new(&session, TITLE, DAYS),
        parent: Some(parent(&session, &["reconciliation"], TITLE)),
        days: list_days(&session, None, &account).await?,
        reconcile: session.button("exceptions.resolve", "Reconcile now", "", action),
    })
}

/// Lists the last days of a company's own account.
pub async fn days_of_company(
    session: Session,
    Path((company, account)): Path<(String, String)>,
) -> PageResult {
    render(&DaysPage {
        frame: Frame::of_company(&session, &company, TITLE, DAYS),
        parent: Some(parent(&session, &["companies", &company, "reconciliation"], TITLE)),
        days: list_days(&session, Some(&company), &account).await?,
        reconcile: Cell::Empty,
    })
}

async fn list_days(session: &Session, company: Option<&str>, account: &str) -> ApiResult<Table> {
    let owner = owner(company);
    let days = session.get(&[&owner[..], &["accounts", account, "days"]].concat(), &[]).await?;
    let columns = [
        column("Day", |day| {
            let name = plain(&day["day"]);
            let path = [&owner[..], &["reconciliation", account, &name]].concat();
            Cell::link(session.href(&path, &[]), &day["day"])
        }),
        right("Listed", |day| Cell::text(&day["listed"])),
        right("Matched", |day| Cell::text(&day["matched"])),
        right("Open exceptions", |day| Cell::text(&day["exceptions"])),
        column("Closed", |day| Cell::time(&day["closed_at"])),
    ];
    Ok(Table::new("Days", &days, &columns, "There are no days."))
}

fn parent(session: &Session, path: &[&str], label: &str) -> Parent {
    Parent { href: session.href(path, &[]), label: label.to_owned() }
}

#[derive(Template)]
#[template(path = "account_day.html")]
struct DayPage {
    frame: Frame,
    parent: Option<Parent>,
    facts: Vec<Fact>,
    totals: Table,
    settlements: Table,
    exceptions: Table,
    /// The button that closes the day.
    close: Cell,
}

/// Shows a day of an account.
pub async fn show(session: Session, Path((account, day)): Path<(String, String)>) -> PageResult {
    let found = session.get(&["accounts", &account, "days", &day], &[]).await?;
    let action = session.href(&["reconciliation", &account, &day, "close"], &[]);
    let question =
        "A later change to a closed day is an exception. A closed day cannot be reopened.";
    let close = match found["closed"].is_null() {
        true => session.button("exceptions.resolve", "Close the day", question, action),
        false => Cell::Empty,
    };
    let frame = Frame::new(&session, TITLE, day.as_str());
    let parent = parent(&session, &["reconciliation", &account], DAYS);
    show_day(&session, &found, (frame, parent), close)
}

/// Shows a day of a company's own account.
pub async fn show_of_company(
    session: Session,
    Path((company, account, day)): Path<(String, String, String)>,
) -> PageResult {
    let source = ["companies", &company, "accounts", &account, "days", &day];
    let found = session.get(&source, &[]).await?;
    let frame = Frame::of_company(&session, &company, TITLE, day.as_str());
    let days = ["companies", &company, "reconciliation", &account];
    show_day(&session, &found, (frame, parent(&session, &days, DAYS)), Cell::Empty)
}

fn show_day(
    session: &Session,
    found: &Value,
    (frame, parent): (Frame, Parent),
    close: Cell,
) -> PageResult {
    render(&DayPage {
        frame,
        parent: Some(parent),
        facts: vec![
            ("Provider", Cell::text(&found["payment_service"])),
            ("Listed until", Cell::time(&found["listed_until"])),
            ("Closed", Cell::time(&found["closed"]["at"])),
            ("Closed by", Cell::text(&found["closed"]["by"])),
        ],
        totals: totals(&found["totals"]),
        settlements: settlements(&found["settlements"]),
        exceptions: exceptions(session, &found["exceptions"]),
        close,
    })
}

fn totals(totals: &Value) -> Table {
    let columns = [
        column("Kind", |total| Cell::text(&total["kind"])),
        right("Listed", |total| Cell::text(&total["listed"])),
        right("Matched", |total| Cell::text(&total["matched"])),
        money("Amount", "amount", "currency"),
        money("Fees", "fees", "currency"),
    ];
    Table::new("Transactions", totals, &columns, "The provider lists no transactions of this day.")
}

fn settlements(settlements: &Value) -> Table {
    let columns = [
        column("Settlement", |settlement| Cell::code(&settlement["id"])),
        column("State", |settlement| Cell::state(&settlement["state"])),
        money("Gross", "gross", "currency"),
        money("Fees", "fees", "currency"),
        money("Deductions", "deductions", "currency"),
        money("Paid out", "amount", "currency"),
    ];
    Table::new(
        "Settlements",
        settlements,
        &columns,
        "The provider lists no settlements of this day.",
    )
}

fn exceptions(session: &Session, exceptions: &Value) -> Table {
    let columns = [
        column("Kind", |exception| Cell::state(&exception["kind"])),
        column("Company", |exception| company_cell(session, &exception["company"])),
        column("Reference", |exception| Cell::code(&exception["service_ref"])),
        money("Recorded", "expected", "currency"),
        money("At the provider", "seen", "seen_currency"),
        money("In suspense", "suspense", "currency"),
        column("Owner", |exception| Cell::text(&exception["owner"])),
        column("", |exception| show_link(session, exception)),
    ];
    Table::new("Open exceptions", exceptions, &columns, "There are no open exceptions.")
}

/// Lists the transactions of an account now.
pub async fn reconcile(
    session: Session,
    Path(account): Path<String>,
    FormBody(sent): FormBody<Form>,
) -> PageResult {
    session.check_form(&sent.form_token)?;
    session.post(&["accounts", &account, "reconcile"], &json!({})).await?;
    session.redirect(&["reconciliation", &account])
}

/// Closes a day.
pub async fn close(
    session: Session,
    Path((account, day)): Path<(String, String)>,
    FormBody(sent): FormBody<Form>,
) -> PageResult {
    session.check_form(&sent.form_token)?;
    session.post(&["accounts", &account, "days", &day, "close"], &json!({})).await?;
    session.redirect(&["reconciliation", &account, &day])
}
