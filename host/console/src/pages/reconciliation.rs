//! Days of provider accounts: what the provider lists, compared with the records.

use askama::Template;
use axum::extract::{Form as FormBody, Path};
use serde_json::{Value, json};

use super::{Fact, Form, ListPage, Parent, company_cell, exceptions::show_link};
use crate::{
    format::{Cell, Table, column, money, plain, right},
    page::{Frame, PageResult, render},
    session::Session,
};

const TITLE: &str = "Reconciliation";

/// Lists the service accounts whose transactions are listed.
pub async fn list(session: Session) -> PageResult {
    let accounts = session.get(&["providers"], &[]).await?;
    let accounts = accounts.as_array().into_iter().flatten();
    let accounts: Value =
        accounts.filter(|account| account["reconciled"] == true).cloned().collect();
    let columns = [
        column("Provider", |account| {
            let href = session.href(&["reconciliation", &plain(&account["account"])], &[]);
            Cell::link(href, &account["provider"])
        }),
        column("Mode", |account| Cell::text(&account["mode"])),
        column("Account", |account| Cell::code(&account["account"])),
        column("Active", |account| Cell::text(&account["active"])),
    ];
    let empty = "There are no service accounts whose provider lists transactions.";
    render(&ListPage {
        frame: Frame::new(&session, TITLE, TITLE),
        parent: None,
        form: None,
        filters: Vec::new(),
        views: None,
        table: Table::new(TITLE, &accounts, &columns, empty),
    })
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
    let days = session.get(&["accounts", &account, "days"], &[]).await?;
    let columns = [
        column("Day", |day| {
            let href = session.href(&["reconciliation", &account, &plain(&day["day"])], &[]);
            Cell::link(href, &day["day"])
        }),
        right("Listed", |day| Cell::text(&day["listed"])),
        right("Matched", |day| Cell::text(&day["matched"])),
        right("Open exceptions", |day| Cell::text(&day["exceptions"])),
        column("Closed", |day| Cell::time(&day["closed_at"])),
    ];
    let action = session.href(&["reconciliation", &account, "reconcile"], &[]);
    render(&DaysPage {
        frame: Frame::new(&session, TITLE, "Days of a provider account"),
        parent: Some(parent(&session, &[])),
        days: Table::new("Days", &days, &columns, "There are no days."),
        reconcile: session.button("exceptions.resolve", "List the transactions now", "", action),
    })
}

fn parent(session: &Session, below: &[&str]) -> Parent {
    let label = if below.is_empty() { TITLE } else { "Days of the account" };
    let href = session.href(&[&["reconciliation"], below].concat(), &[]);
    Parent { href, label: label.to_owned() }
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
        "A later change of a closed day is an exception. A closed day cannot be opened again.";
    let close = match found["closed"].is_null() {
        true => session.button("exceptions.resolve", "Close the day", question, action),
        false => Cell::Empty,
    };
    render(&DayPage {
        frame: Frame::new(&session, TITLE, day.as_str()),
        parent: Some(parent(&session, &[&account])),
        facts: vec![
            ("Provider", Cell::text(&found["payment_service"])),
            ("Listed until", Cell::time(&found["listed_until"])),
            ("Closed", Cell::time(&found["closed"]["at"])),
            ("Closed by", Cell::text(&found["closed"]["by"])),
        ],
        totals: totals(&found["totals"]),
        settlements: settlements(&found["settlements"]),
        exceptions: exceptions(&session, &found["exceptions"]),
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
