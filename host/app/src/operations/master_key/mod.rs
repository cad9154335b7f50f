//! Master key rotation: reseals values under previous keys and in former contexts.

pub mod api;
mod store;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::store::Row;
use crate::state::App;
use tollhouse_platform::{
    crypto::seal::{SealError, SealedColumn},
    error::{Error, Result},
    store::Tx,
};

/// Rows per call and transaction: few, to let other writers proceed, and because some hold photos.
const ROWS_PER_STEP: usize = 100;
/// Seal context of cursors.
const CURSOR_CONTEXT: &str = "master_key.cursor";

/// Sealed rows by key. Keys are named by 8 hexadecimal characters of their digests.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MasterKeys")]
pub struct MasterKeyUsage {
    /// Key that seals new values.
    pub key: String,
    /// Previous keys, which only open values.
    pub former: Vec<String>,
    pub sealed: Vec<SealedRows>,
}

/// Number of rows of a column that are sealed under a key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SealedRows {
    /// Name in the form `table.column`.
    pub column: String,
    pub key: String,
    pub rows: i64,
}

/// Result of one step of a master key rotation.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ResealedRows")]
pub struct Resealed {
    pub resealed: usize,
    /// Number of damaged rows, which stay unchanged: their key is known, but does not open them.
    pub unreadable: usize,
    /// Cursor of the next step; `null` at the end.
    pub cursor: Option<String>,
    /// `true` once all rows were read.
    pub done: bool,
}

/// The last row that a rotation has read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// Name in the form `table.column`.
    column: String,
    company_id: String,
    id: String,
}

impl Cursor {
    fn at(column: &SealedColumn, (company_id, id, _): &Row) -> Cursor {
        let text = str::to_owned;
        Cursor { column: text(column.name), company_id: text(company_id), id: text(id) }
    }

    /// Seals the cursor for clients, because the id of a provider account must stay secret.
    fn seal(&self, app: &App) -> Result<String> {
        let text = serde_json::to_string(self).map_err(Error::internal)?;
        Ok(app.sealer.seal(CURSOR_CONTEXT, &text))
    }

    /// Opens a cursor; `None` if no host with these keys and columns issued it.
    fn open(app: &App, sealed: &str) -> Option<Cursor> {
        let text = app.sealer.open(CURSOR_CONTEXT, sealed).ok()?;
        let cursor: Cursor = serde_json::from_str(&text).ok()?;
        columns(app).any(|column| column.name == cursor.column).then_some(cursor)
    }
}

/// Result of a step, and the last row it read.
#[derive(Default)]
struct Step {
    resealed: usize,
    damaged: Vec<Damaged>,
    cursor: Option<Cursor>,
}

/// A value that cannot be opened under the key that it names.
struct Damaged {
    column: &'static str,
    company_id: String,
    error: SealError,
}

fn columns(app: &App) -> impl Iterator<Item = &'static SealedColumn> + use<> {
    app.tables.sealed.iter().flat_map(|columns| columns.iter())
}

/// Counts sealed rows, with one transaction per column, because each scans a table.
async fn count_by_key(app: &App) -> Result<MasterKeyUsage> {
    let mut sealed = Vec::new();
    for column in columns(app) {
        let counted = app.store.select(async |tx| store::count(tx, column).await).await?;
        let rows = |(key, rows)| SealedRows { column: column.name.to_owned(), key, rows };
        sealed.extend(counted.into_iter().map(rows));
    }
    let former = app.sealer.former_key_ids().map(str::to_owned).collect();
    Ok(MasterKeyUsage { key: app.sealer.key_id().to_owned(), former, sealed })
}

/// Reads rows after the cursor and reseals those under previous keys or in a former context. Safe
/// to repeat and while hosts serve: both keys open a row, and a row changed meanwhile is skipped.
async fn reseal(app: &App, tx: &mut Tx, cursor: Option<Cursor>) -> Result<Step> {
    let mut step = Step::default();
    let has_former_keys = app.sealer.former_key_ids().next().is_some();
    let (begun, mut last) = match cursor {
        Some(Cursor { column, company_id, id }) => (Some(column), (company_id, id)),
        None => Default::default(),
    };
    let is_done = |column: &SealedColumn| begun.as_ref().is_some_and(|begun| begun != column.name);
    let mut left = ROWS_PER_STEP;
    for column in columns(app).skip_while(|column| is_done(column)) {
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
