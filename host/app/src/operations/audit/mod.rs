//! Audit log: actions of operators, refused requests and reads of personal data. A change and its
//! entry are committed together. Never contains secrets.

mod actor;
pub mod chain;
mod store;

use std::collections::BTreeMap;

pub use self::{
    actor::{Actor, ActorParts},
    chain::ChainEnd,
    store::{AuditEntry, list_of_payment, record},
};
use crate::state::prelude::*;

fields! {
    /// Page and filter of an audit log.
    Query AuditFilter {
        /// Page number, counted from 1.
        page: PageNumber,
        /// Entries per page; more than 1,000 counts as 1,000.
        limit: Limit<50, 1_000>,
        /// Id of a request, as in `x-request-id`.
        request_id: Exactly,
    }
}

pub async fn of_service(
    State(app): State<App>,
    query: Query<AuditFilter>,
) -> Result<DataResponse<ListPage<AuditEntry>>> {
    list(&app, &Owner::Service, &query).await
}

/// Returns a page of the log of a company or of the service.
pub async fn list(
    app: &App,
    owner: &Owner,
    query: &Query<AuditFilter>,
) -> Result<DataResponse<ListPage<AuditEntry>>> {
    let AuditFilter { page, limit, request_id } = query.read()?;
    let page = PageRequest { number: page, limit };
    let list = async |tx: &mut Tx| store::list(tx, owner, request_id.as_deref(), page).await;
    let entries = app.store.read(list).await?;
    DataResponse::data(entries, "Audit log fetched successfully")
}

fields! {
    /// Range of the entries of an audit log.
    Query ChainRange {
        /// Number of the last entry that you have; default: 0.
        after: Position,
        /// Maximum number of entries; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// Entries of an audit log in their order, to export or verify it.
#[derive(Serialize, JsonSchema)]
pub struct ChainPart {
    entries: Vec<AuditEntry>,
    /// End of the chain.
    end: ChainEnd,
    /// Number of entries written by versions that did not number them. They are not part of the
    /// chain.
    unnumbered: i64,
}

pub async fn chain_of_service(
    State(app): State<App>,
    query: Query<ChainRange>,
) -> Result<DataResponse<ChainPart>> {
    read_chain(&app, &Owner::Service, &query).await
}

/// Returns entries of the chain of a company or of the service.
pub async fn read_chain(
    app: &App,
    owner: &Owner,
    query: &Query<ChainRange>,
) -> Result<DataResponse<ChainPart>> {
    let ChainRange { after, limit } = query.read()?;
    let read = async |tx: &mut Tx| -> Result<ChainPart> {
        // The end first: entries may be added before the next statement, but not removed.
        let end = store::find_end(tx, owner).await?;
        let unnumbered = store::count_unnumbered(tx, owner).await?;
        let entries = store::list_after(tx, owner, after, limit).await?;
        Ok(ChainPart { entries, end, unnumbered })
    };
    DataResponse::data(app.store.read(read).await?, "Audit log fetched successfully")
}

/// Returns the changed fields, each with its values before and after.
pub fn changes(before: &impl Serialize, after: &impl Serialize) -> Value {
    let fields = |value: Value| match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let [before, after] = [json!(before), json!(after)].map(fields);
    let mut changed = BTreeMap::new();
    for field in before.keys().chain(after.keys()) {
        let values = [&before, &after].map(|fields| fields.get(field).unwrap_or(&Value::Null));
        if values[0] != values[1] && field != "updated_at" {
            changed.insert(field, json!({ "before": values[0], "after": values[1] }));
        }
    }
    json!(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_name_only_the_fields_that_differ() {
        let before = json!({ "name": "Acme", "active": true, "logo": null, "updated_at": 1 });
        let after = json!({ "name": "Acme", "active": false, "plan": "x", "updated_at": 2 });
        let expected = json!({
            "active": { "before": true, "after": false },
            "plan": { "before": null, "after": "x" },
        });
        assert_eq!(changes(&before, &after), expected);
        assert_eq!(changes(&before, &before), json!({}));
    }
}
