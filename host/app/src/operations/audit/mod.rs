//! Audit log: operator actions, appended in the transaction of the action. Never contains secrets.

pub mod api;
mod store;

pub use self::store::AuditEntry;

use serde_json::Value;

use crate::state::App;
use tollhouse_platform::{
    clock::Timestamp,
    store::{Result, Tx},
};

/// `company_id` of entries about the service as a whole.
pub const SERVICE: &str = "";

/// Actor of requests to the operator API.
const OPERATOR: &str = "operator";

/// Records an action on a company, or on the [`SERVICE`].
pub async fn record(
    tx: &mut Tx,
    app: &App,
    company_id: &str,
    action: &str,
    detail: Value,
) -> Result<()> {
    let now: Timestamp = app.clock.now();
    store::insert(tx, &app.random.id(now), company_id, OPERATOR, action, detail, now).await
}
