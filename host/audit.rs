//! What operators did: append-only, in the transaction of what they did. Never holds a secret.

pub mod api;
mod store;

use serde_json::Value;

use crate::{
    app::App,
    clock::Timestamp,
    store::{Result, Tx},
};

/// The company of what concerns the service as a whole.
pub const SERVICE: &str = "";

/// Who acts through the operator interface.
const OPERATOR: &str = "operator";

/// Notes an action on a company, or on the [`SERVICE`].
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
