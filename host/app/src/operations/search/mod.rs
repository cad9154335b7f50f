//! Search for a record of any company by what a person knows of it.

mod store;

use self::store::{Found, Sought};
use crate::state::prelude::*;
use tollhouse_platform::values::email;

fields! {
    /// What to find.
    Query Search {
        /// Complete e-mail address, phone number in E.164, reference, reference at the provider, or
        /// id of a payment, recollection, user or company; or the name of a company.
        q: Exactly,
    }
}

/// Finds companies, users, payments and recollections, newest first, at most 50.
pub async fn find(
    State(app): State<App>,
    query: Query<Search>,
) -> Result<DataResponse<Vec<Found>>> {
    let q = query.read()?.q.unwrap_or_default();
    let sought = Sought { email: email::comparison_key(&q), text: q.trim().to_owned() };
    let mut found = match sought.text.is_empty() {
        true => Vec::new(),
        false => app.store.read(async |tx| store::find(tx, &sought).await).await?,
    };
    found.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| a.id.cmp(&b.id)));
    found.dedup_by(|a, b| (&a.kind, &a.company, &a.id) == (&b.kind, &b.company, &b.id));
    found.truncate(store::MAX_FOUND);
    DataResponse::data(found, "Search completed successfully")
}
