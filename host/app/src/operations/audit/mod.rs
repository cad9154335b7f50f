//! Audit log: operator actions, appended in the transaction of the action. Never contains secrets.

pub mod api;
mod store;

pub use self::store::AuditEntry;

use serde_json::Value;

use crate::state::App;
use tollhouse_platform::{
    clock::Timestamp,
    store::{Result, Tx},
    values::id::Owner,
};

/// Actor of requests to the operator API.
const OPERATOR: &str = "operator";

/// Records an action on a company or on the service.
pub async fn record(
    tx: &mut Tx,
    app: &App,
    owner: impl Into<Owner>,
    action: &str,
    detail: Value,
) -> Result<()> {
    let now: Timestamp = app.clock.now();
    store::insert(tx, &app.random.id(now), &owner.into(), OPERATOR, action, detail, now).await
}
