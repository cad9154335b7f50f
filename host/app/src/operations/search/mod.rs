//! Search across all companies by exact e-mail address, phone number, reference, id or last four
//! digits.

mod store;

use self::store::{SearchResult, SearchTerm};
use crate::state::prelude::*;
use tollhouse_platform::values::email;

fields! {
    /// What to find.
    Query Search {
        /// A complete e-mail address; a phone number in E.164; a reference of a payment or
        /// recollection; a service reference of a payment; the id of a payment, user or company; a
        /// company name; or the last four digits of a saved card.
        q: Exactly,
    }
}

/// Finds companies, users, payments and recollections, newest first, at most 50.
pub async fn find(
    State(app): State<App>,
    query: Query<Search>,
) -> Result<DataResponse<Vec<SearchResult>>> {
    let q = query.read()?.q.unwrap_or_default();
    let term = SearchTerm { email: email::comparison_key(&q), text: q.trim().to_owned() };
    let mut found = match term.text.is_empty() {
        true => Vec::new(),
        false => app.store.read(async |tx| store::find(tx, &term).await).await?,
    };
    found.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| a.id.cmp(&b.id)));
    found.dedup_by(|a, b| (&a.kind, &a.company, &a.id) == (&b.kind, &b.company, &b.id));
    found.truncate(store::MAX_RESULTS);
    DataResponse::data(found, "Search completed successfully")
}
