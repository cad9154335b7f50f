//! Listing recollections.

use crate::{
    customers as users,
    lending::{
        loans::LoanId,
        recollections::{FEATURE, store, view::View},
    },
    state::prelude::*,
    tenants::companies::AuthenticatedCompany,
};

fields! {
    /// Filter and order of recollections. Default: newest first.
    Query RecollectionFilter {
        /// Page number, from 1.
        page: PageNumber,
        /// Maximum number of recollections per page; more than 1,000 counts as 1,000.
        limit: Limit<20, 1_000>,
        /// The `user_id` or internal id of the borrower.
        user_id: Exactly,
        /// The loan's id.
        loan: Exactly,
        /// A day in UTC, or the first and last day of a range.
        date_created_at as "date-created_at": Days,
        /// Takes precedence over `sort-updated_at`.
        sort_created_at as "sort-created_at": Direction,
        sort_updated_at as "sort-updated_at": Direction,
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    query: Query<RecollectionFilter>,
) -> Result<DataResponse<ListPage<View<LoanId>>>> {
    company.check_feature(FEATURE)?;
    let filter = query.read()?;
    let page = PageRequest { number: filter.page, limit: filter.limit };
    let read = async |tx: &mut Tx| -> Result<_> {
        let mut user_key = None;
        if let Some(user_id) = &filter.user_id {
            let user = users::find(tx, &company.id, user_id).await?;
            let Some(user) = user else { return Ok((0, Vec::new(), Vec::new())) };
            user_key = Some(user.id);
        }
        let (total, found) = store::list(tx, &company.id, user_key.as_ref(), &filter, page).await?;
        let mut keys: Vec<_> = found.iter().map(|found| found.user_key.clone()).collect();
        keys.sort();
        keys.dedup();
        let users = users::find_by_ids(tx, &company.id, &keys).await?;
        Ok((total, found, users))
    };
    let (total, found, users) = app.store.read(read).await?;
    let now = app.clock.now();
    let docs = found.into_iter().map(|found| {
        let user = users.iter().find(|user| user.id == found.user_key);
        found.view(user.cloned().map(|user| user.view(now)))
    });
    DataResponse::data(
        page.to_list_page(total, docs.collect()),
        "Recollections fetched successfully",
    )
}
