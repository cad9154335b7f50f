//! The wallet of a company: balances and ledger entries.

pub mod statement;

use askama::Template;
use axum::extract::Path;
use serde_json::json;

use crate::{
    format::{Cell, Table, column, money},
    page::{Frame, PageResult, render},
    pages::{
        Fact, Parent, company_frame,
        lists::{List, ListQuery, Paging, is_export},
    },
    session::Session,
};

#[derive(Template)]
#[template(path = "wallet.html")]
struct WalletPage {
    frame: Frame,
    parent: Option<Parent>,
    balances: Vec<(Cell, Vec<Fact>)>,
    entries: Table,
}

pub async fn show(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let wallet = session.get(&["companies", &company, "wallet"], &[]).await?;
    let balances = wallet["balances"].as_object().into_iter().flatten();
    let balances = balances.map(|(currency, balance)| {
        let currency = json!(currency);
        let money = |field: &str| Cell::money(&balance[field], &currency);
        let mut facts = vec![("Pending", money("pending")), ("Disputed", money("disputed"))];
        if balance["owed"].as_f64().is_some_and(|owed| owed > 0.0) {
            facts.push(("Owed", money("owed")));
        }
        (money("balance"), facts)
    });
    let list = List {
        title: "Ledger entries",
        source: &["companies", &company, "wallet", "entries"],
        paging: Paging::Numbered,
        filters: &[],
        columns: vec![
            column("Posted", |entry| Cell::time(&entry["created_at"])),
            column("Kind", |entry| Cell::text(&entry["kind"])),
            column("Account", |entry| Cell::text(&entry["account"])),
            column("Reference", |entry| Cell::text(&entry["reference"])),
            money("Amount", "amount", "currency"),
        ],
        empty: "There are no entries yet.",
    };
    if is_export(&sent) {
        return Ok(list.export(&session, &sent).await?);
    }
    let (_, entries, _) = list.fetch(&session, &sent).await?;
    render(&WalletPage {
        frame: company_frame(&session, &company, "Wallet").await?,
        parent: Parent::of_company(&session),
        balances: balances.collect(),
        entries,
    })
}
