//! The master key: what is sealed under a former one is sealed anew under the one that seals now.

pub mod api;
mod store;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    app::{App, SEALED},
    error::Result,
    seal::SealedColumn,
    store::Tx,
};

/// Rows that are sealed anew in one transaction: other writers get in between.
const MOST_ROWS: usize = 500;

/// What is sealed under which key. A key's name is 8 hexadecimal characters of its digest.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MasterKeys")]
pub struct Standing {
    /// The key that seals.
    pub key: String,
    /// Keys that only open what they sealed before.
    pub former: Vec<String>,
    pub sealed: Vec<SealedRows>,
}

/// How many rows of a column are sealed under a key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SealedRows {
    /// `table.column`.
    pub column: String,
    pub key: String,
    pub rows: i64,
}

/// What one transaction has done.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "ResealedRows")]
pub struct Resealed {
    pub resealed: usize,
    /// Rows that do not open although their key is known: they are damaged, and left as they are.
    pub unreadable: usize,
    /// Whether nothing is left under a former key, save what does not open.
    pub done: bool,
}

fn columns() -> impl Iterator<Item = &'static SealedColumn> {
    SEALED.iter().flat_map(|columns| columns.iter())
}

async fn standing(app: &App, tx: &mut Tx) -> Result<Standing> {
    let mut sealed = Vec::new();
    for column in columns() {
        for (key, rows) in store::count(tx, column).await? {
            sealed.push(SealedRows { column: column.name.to_owned(), key, rows });
        }
    }
    let former = app.sealer.former_key_ids().map(str::to_owned).collect();
    Ok(Standing { key: app.sealer.key_id().to_owned(), former, sealed })
}

/// Seals some rows anew. Safe to repeat, and beside hosts that serve: a row is locked while it changes, and both keys open it.
async fn reseal(app: &App, tx: &mut Tx) -> Result<Resealed> {
    let mut all = Resealed::default();
    for column in columns() {
        for key in app.sealer.former_key_ids() {
            let room = MOST_ROWS - all.resealed - all.unreadable;
            for (company, id, sealed) in store::find(tx, column, key, room).await? {
                let context = (column.context)(&company, &id);
                match app.sealer.open(&context, &sealed) {
                    Ok(text) => {
                        let anew = app.sealer.seal(&context, &text);
                        store::replace(tx, column, &company, &id, &anew).await?;
                        all.resealed += 1;
                    }
                    Err(error) => {
                        // Not the row's id: an account's is a part of its notification URL that nobody may guess.
                        tracing::error!(column = column.name, company, %error, "not sealed anew");
                        all.unreadable += 1;
                    }
                }
            }
        }
    }
    all.done = all.resealed == 0 || all.resealed + all.unreadable < MOST_ROWS;
    Ok(all)
}
