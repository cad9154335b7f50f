//! The statement of a company's wallet for a month.

use askama::Template;
use axum::extract::Path;

use crate::{
    format::{Cell, Table, column, money, right},
    page::{Frame, PageResult, render},
    pages::{
        Fact, Parent, company_frame,
        lists::{Declared, Filter, List, ListQuery, Paging, is_export},
    },
    session::Session,
};

const FILTERS: Declared = &[("month", "Month (YYYY-MM)", &[]), ("currency", "Currency", &[])];

#[derive(Template)]
#[template(path = "statement.html")]
struct StatementPage {
    frame: Frame,
    parent: Option<Parent>,
    filters: Vec<Filter>,
    facts: Vec<Fact>,
    table: Table,
}

pub async fn show(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let source = ["companies", &company, "statement"];
    let list = List {
        title: "Statement",
        source: &source,
        paging: Paging::WholeField("lines"),
        filters: FILTERS,
        columns: vec![
            column("Kind", |line| Cell::text(&line["kind"])),
            right("Transactions", |line| Cell::text(&line["number"])),
            money("Amount", "amount", "currency"),
        ],
        empty: "The wallet has no transactions in this month.",
    };
    if is_export(&sent) {
        return Ok(list.export(&session, &sent).await?);
    }
    let (filters, table, found) = list.fetch(&session, &sent).await?;
    let balance = |field: &str| Cell::money(&found[field], &found["currency"]);
    let facts = vec![
        ("Month", Cell::text(&found["month"])),
        ("Opening balance", balance("opening_balance")),
        ("Closing balance", balance("closing_balance")),
    ];
    render(&StatementPage {
        frame: company_frame(&session, &company, "Statement").await?,
        parent: Parent::of_company(&session),
        filters,
        facts,
        table,
    })
}
