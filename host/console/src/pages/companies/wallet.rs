//! The wallet of a company: balances and ledger entries.

use askama::Template;
use axum::extract::Path;
use serde_json::json;

use crate::pages::{
    Fact, Parent, Tab, company_name,
    filters::{Filtered, ListQuery},
    tabs,
};
use crate::{
    format::{Cell, Table, column, right},
    page::{Frame, PageResult, render},
    session::Session,
};

#[derive(Template)]
#[template(path = "wallet.html")]
struct WalletPage {
    frame: Frame,
    parent: Option<Parent>,
    tabs: Vec<Tab>,
    balances: Vec<(Cell, Vec<Fact>)>,
    entries: Table,
}

pub async fn show(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let wallet = session.get(&["companies", &company, "wallet"], &[]).await?;
    let list = Filtered::new(&sent, &[]);
    let path = ["companies", &company, "wallet", "entries"];
    let found = session.get(&path, &list.query()).await?;
    let balances = wallet["balances"].as_object().into_iter().flatten();
    let balances = balances.map(|(currency, balance)| {
        let currency = json!(currency);
        let pending = Cell::money(&balance["pending"], &currency);
        (Cell::money(&balance["balance"], &currency), vec![("Pending", pending)])
    });
    let columns = [
        column("Posted", |entry| Cell::time(&entry["created_at"])),
        column("Kind", |entry| Cell::text(&entry["kind"])),
        column("Account", |entry| Cell::text(&entry["account"])),
        column("Reference", |entry| Cell::text(&entry["reference"])),
        right("Amount", |entry| Cell::money(&entry["amount"], &entry["currency"])),
    ];
    let entries =
        Table::new("Ledger entries", &found["docs"], &columns, "There are no entries yet.");
    let page = |page| list.page(&["console", "companies", &company, "wallet"], page);
    render(&WalletPage {
        frame: Frame::new(&session, "Companies", company_name(&session, &company).await?),
        parent: Some(Parent::of_company(&session)),
        tabs: tabs(&session, &company, "Wallet"),
        balances: balances.collect(),
        entries: entries.paged(&found, page),
    })
}
