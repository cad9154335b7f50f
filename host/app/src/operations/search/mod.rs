//! Search across all companies by exact e-mail address, phone number, reference, id, amount or last
//! four digits.

mod amount;
mod store;

use self::{
    amount::SearchAmount,
    store::{SearchResult, SearchTerm},
};
use crate::{
    operations::{
        audit::Actor,
        operators::permissions::{AUDIT_READ, REQUESTS_READ},
    },
    state::prelude::*,
};
use tollhouse_platform::values::email;

fields! {
    /// A search across all companies.
    Query Search {
        /// A complete e-mail address; a phone number in E.164 format; a reference of a payment or
        /// recollection; a service reference of a payment; the id of a payment, user or company; a
        /// company name; the last four digits of a saved card; an amount of payments and
        /// recollections, such as `2500.50` or `2500.50 NGN`; or the id of a request, which finds
        /// entries of audit logs and API logs with the permission to read these.
        q: Exactly,
    }
}

/// Finds companies, users, payments, recollections and entries of audit logs and API logs, newest
/// first, at most 50.
pub async fn find(
    State(app): State<App>,
    actor: Actor,
    query: Query<Search>,
) -> Result<DataResponse<Vec<SearchResult>>> {
    let q = query.read()?.q.unwrap_or_default();
    let term = SearchTerm {
        email: email::comparison_key(&q),
        amount: SearchAmount::parse(&q),
        text: q.trim().to_owned(),
        in_audit_logs: actor.permissions.contains(AUDIT_READ),
        in_api_logs: actor.permissions.contains(REQUESTS_READ),
    };
    let mut found = match term.text.is_empty() {
        true => Vec::new(),
        false => app.store.read(async |tx| store::find(tx, &term).await).await?,
    };
    found.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| a.id.cmp(&b.id)));
    found.dedup_by(|a, b| (&a.kind, &a.company, &a.id) == (&b.kind, &b.company, &b.id));
    found.truncate(store::MAX_RESULTS);
    DataResponse::data(found, "Search completed successfully")
}
