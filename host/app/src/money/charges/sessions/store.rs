//! The table of plugin data about charges and refunds.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD as BASE64};

use crate::state::storage::*;
use tollhouse_plugins::PluginData;

/// Plugin data of a charge or refund, and the status page of a charge.
#[derive(Clone, Debug, FromRow)]
pub struct Row {
    pub company_id: CompanyId,
    /// The id of the charge or refund.
    pub id: String,
    /// Sealed. The data that the plugin returned with the session or refund.
    pub state: Option<String>,
    /// Sealed. The data of the last notification.
    pub notified: Option<String>,
    /// Number of notifications.
    pub revision: i64,
    /// The instruction on the page of a charge.
    pub prompt: Option<String>,
    pub success_url: Option<String>,
    pub cancel_url: Option<String>,
}

impl Row {
    pub fn new(company_id: &CompanyId, id: &str) -> Row {
        Row {
            company_id: company_id.clone(),
            id: id.to_owned(),
            state: None,
            notified: None,
            revision: 0,
            prompt: None,
            success_url: None,
            cancel_url: None,
        }
    }
}

pub const SEALED: [SealedColumn; 2] = [
    sealed_column!(charge_sessions(company_id, id).state, seal_context),
    sealed_column!(charge_sessions(company_id, id).notified, seal_context),
];

fn seal_context(company_id: &str, id: &str) -> String {
    format!("charge_sessions/{company_id}/{id}")
}

pub fn seal(app: &App, company_id: &CompanyId, id: &str, data: &PluginData) -> String {
    app.sealer.seal(&seal_context(company_id, id), &BASE64.encode(&data.0))
}

/// Opens what [`seal`] sealed.
pub fn open(
    app: &App,
    company_id: &CompanyId,
    id: &str,
    sealed: &str,
) -> tollhouse_platform::error::Result<PluginData> {
    use tollhouse_platform::error::Error;
    let text = app.sealer.open(&seal_context(company_id, id), sealed).map_err(Error::internal)?;
    Ok(PluginData(BASE64.decode(text).map_err(Error::internal)?.into()))
}

/// Writes the data returned with a session or refund. A notification may have arrived before it.
pub async fn insert(tx: &mut Tx, row: &Row) -> Result<()> {
    tx.defer(
        "INSERT INTO charge_sessions (company_id, id, state, prompt, success_url, cancel_url,
             revision)
         VALUES ($1, $2, $3, $4, $5, $6, 0)
         ON CONFLICT (company_id, id) DO UPDATE SET
             state = COALESCE(excluded.state, charge_sessions.state), prompt = excluded.prompt,
             success_url = excluded.success_url, cancel_url = excluded.cancel_url",
    )
    .params(params![
        &row.company_id, &row.id, &row.state, &row.prompt, &row.success_url, &row.cancel_url
    ])
    .execute()
    .await
}

/// Writes a state, unless there is one.
pub async fn insert_missing_state(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    state: &str,
) -> Result<()> {
    tx.sql(
        "INSERT INTO charge_sessions (company_id, id, state, revision) VALUES ($1, $2, $3, 0)
         ON CONFLICT (company_id, id) DO UPDATE
             SET state = COALESCE(charge_sessions.state, excluded.state)",
    )
    .params(params![company_id, id, state])
    .execute()
    .await
}

/// Writes the data of a notification. Returns `false` if another one was recorded since `revision`.
pub async fn set_notified(
    tx: &mut Tx,
    company_id: &CompanyId,
    id: &str,
    notified: &str,
    revision: i64,
) -> Result<bool> {
    tx.sql(
        "INSERT INTO charge_sessions (company_id, id, notified, revision) VALUES ($1, $2, $3, 1)
         ON CONFLICT (company_id, id) DO UPDATE SET notified = excluded.notified,
             revision = charge_sessions.revision + 1
         WHERE charge_sessions.revision = $4",
    )
    .params(params![company_id, id, notified, revision])
    .affects_one()
    .await
}

pub async fn find(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Row>> {
    tx.sql("SELECT * FROM charge_sessions WHERE company_id = $1 AND id = $2")
        .params(params![company_id, id])
        .optional()
        .await
}
