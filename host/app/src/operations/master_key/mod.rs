//! Master key rotation: reseals values under previous keys and in former contexts.

pub mod api;

use serde::Deserialize;

use crate::state::prelude::*;
use tollhouse_platform::crypto::seal::{SealError, SealedColumn};

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
    pub column: &'static str,
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

/// Company, id and sealed text.
type Row = (String, String, Option<String>);

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
        let count = async |tx: &mut Tx| tx.sql(column.count).all().await;
        let counted: Vec<(String, i64)> = app.store.select(count).await?;
        let rows = |(key, rows)| SealedRows { column: column.name, key, rows };
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
        let most = i64::try_from(left).unwrap_or(i64::MAX);
        let rows = tx.sql(column.page).bind(company_id).bind(id).bind(most);
        let rows: Vec<Row> = rows.all().await?;
        left -= rows.len();
        if left == 0 {
            let last = rows.last().cloned();
            let column = column.name.to_owned();
            step.cursor = last.map(|(company_id, id, _)| Cursor { column, company_id, id });
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
                let resealed = app.sealer.seal(&(column.context)(&company_id, &id), &text);
                let replace = tx.sql(column.replace).bind(&*company_id).bind(&*id);
                // No row: it has changed, so its writer has resealed it.
                let replaced = replace.bind(&*former).bind(&*resealed).affects_one().await?;
                self.resealed += usize::from(replaced);
            }
            Err(error) => self.damaged.push(Damaged { column: column.name, company_id, error }),
        }
        Ok(())
    }
}
