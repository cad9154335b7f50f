//! The master key: what is sealed under a former one, or in a former context, is sealed anew.

pub mod api;
mod store;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::store::Row;
use crate::{
    app::{App, SEALED},
    error::{Error, Result},
    seal::{SealError, SealedColumn},
    store::Tx,
};

/// Rows that one call reads, in one transaction: other writers get in between, and some rows hold photos.
const MOST_ROWS: usize = 100;
/// The context under which a cursor is sealed.
const CURSOR: &str = "master_key.cursor";

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

/// A step of a walk through every sealed row.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ResealedRows")]
pub struct Resealed {
    pub resealed: usize,
    /// Rows that do not open although their key is known: they are damaged, and left as they are.
    pub unreadable: usize,
    /// Where the next step goes on; none at the end.
    pub cursor: Option<String>,
    /// Whether every row was read.
    pub done: bool,
}

/// The last row that a walk has read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// `table.column`.
    column: String,
    company_id: String,
    id: String,
}

impl Cursor {
    fn at(column: &SealedColumn, (company_id, id, _): &Row) -> Cursor {
        let text = str::to_owned;
        Cursor { column: text(column.name), company_id: text(company_id), id: text(id) }
    }

    /// As callers see it. Sealed, since an account's id is a part of its notification URL that nobody may guess.
    fn seal(&self, app: &App) -> Result<String> {
        let text = serde_json::to_string(self).map_err(Error::internal)?;
        Ok(app.sealer.seal(CURSOR, &text))
    }

    /// `None` when it is not one that a host with these keys and columns has given.
    fn open(app: &App, sealed: &str) -> Option<Cursor> {
        let text = app.sealer.open(CURSOR, sealed).ok()?;
        let cursor: Cursor = serde_json::from_str(&text).ok()?;
        columns().any(|column| column.name == cursor.column).then_some(cursor)
    }
}

/// What a step has done and where it has got to.
#[derive(Default)]
struct Step {
    resealed: usize,
    damaged: Vec<Damaged>,
    cursor: Option<Cursor>,
}

/// A text that does not open under the key that it names.
struct Damaged {
    column: &'static str,
    company_id: String,
    error: SealError,
}

fn columns() -> impl Iterator<Item = &'static SealedColumn> {
    SEALED.iter().flat_map(|columns| columns.iter())
}

/// Each column in a transaction of its own, since each is a pass through a table.
async fn standing(app: &App) -> Result<Standing> {
    let mut sealed = Vec::new();
    for column in columns() {
        let counted = app.store.select(async |tx| store::count(tx, column).await).await?;
        let rows = |(key, rows)| SealedRows { column: column.name.to_owned(), key, rows };
        sealed.extend(counted.into_iter().map(rows));
    }
    let former = app.sealer.former_key_ids().map(str::to_owned).collect();
    Ok(Standing { key: app.sealer.key_id().to_owned(), former, sealed })
}

/// Reads some rows after the cursor and seals anew those under former keys or in a former context. Safe to repeat, and beside
/// hosts that serve: both keys open a row, and one that changes meanwhile is left alone.
async fn reseal(app: &App, tx: &mut Tx, cursor: Option<Cursor>) -> Result<Step> {
    let mut step = Step::default();
    let has_former_keys = app.sealer.former_key_ids().next().is_some();
    let (begun, mut last) = match cursor {
        Some(Cursor { column, company_id, id }) => (Some(column), (company_id, id)),
        None => Default::default(),
    };
    let is_done = |column: &SealedColumn| begun.as_ref().is_some_and(|begun| begun != column.name);
    let mut left = MOST_ROWS;
    for column in columns().skip_while(|column| is_done(column)) {
        let (company_id, id) = std::mem::take(&mut last);
        if !has_former_keys && column.former_context.is_none() {
            continue;
        }
        let rows = store::page(tx, column, &company_id, &id, left).await?;
        left -= rows.len();
        if left == 0 {
            step.cursor = rows.last().map(|row| Cursor::at(column, row));
        }
        for row in rows {
            step.reseal(app, tx, column, row).await?;
        }
        if left == 0 {
            break;
        }
    }
    Ok(step)
}

impl Step {
    async fn reseal(
        &mut self,
        app: &App,
        tx: &mut Tx,
        column: &SealedColumn,
        (company_id, id, former): Row,
    ) -> Result<()> {
        let row = [&*company_id, &*id];
        let former = former.filter(|text| column.is_stale(&app.sealer, row, text));
        let Some(former) = former else { return Ok(()) };
        match column.open(&app.sealer, row, &former) {
            Ok(text) => {
                let anew = app.sealer.seal(&(column.context)(&company_id, &id), &text);
                let replaced = store::replace(tx, column, &company_id, &id, &former, &anew).await?;
                self.resealed += usize::from(replaced);
            }
            Err(error) => self.damaged.push(Damaged { column: column.name, company_id, error }),
        }
        Ok(())
    }
}
