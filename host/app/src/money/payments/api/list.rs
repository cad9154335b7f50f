//! Listing payments, for their company and for operators.

use super::FEATURE;
use crate::{
    customers::{self as users, User},
    money::payments::{Payment, Status, store, view::Listed as ListedPayment},
    state::prelude::*,
    tenants::companies::{self, AuthenticatedCompany},
};
use tollhouse_platform::values::id::CompanyId;

type ListResponse = DataResponse<ListPage<ListedPayment<users::View>>>;

impl Choice for Status {
    const ALL: &'static [&'static str] = &["pending", "success", "failed", "refunded"];
}

fields! {
    /// Filter and order of payments. Default: newest first.
    Query PaymentFilter {
        /// Page number, from 1.
        page: PageNumber,
        /// Maximum number of payments per page; more than 1,000 counts as 1,000.
        limit: Limit<20, 1_000>,
        status: OneOf<Status>,
        /// The `user_id` or internal id of the user who pays.
        user_id: Exactly,
        provider: Exactly,
        /// The payment channel that the customer used.
        payment_channel: Exactly,
        /// A day in UTC, or the first and last day of a range.
        created_at: Days,
        /// A day in UTC, or the first and last day of a range.
        paid_at: Days,
        /// Takes precedence over `sort-updated_at`.
        sort_created_at as "sort-created_at": Direction,
        sort_updated_at as "sort-updated_at": Direction,
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    query: Query<PaymentFilter>,
) -> Result<ListResponse> {
    company.check_feature(FEATURE)?;
    list_for(&app, &company.id, &query).await
}

async fn list_for(
    app: &App,
    company_id: &CompanyId,
    query: &Query<PaymentFilter>,
) -> Result<ListResponse> {
    let filter = query.read()?;
    let page = PageRequest { number: filter.page, limit: filter.limit };
    let (total, payments, users) = app
        .store
        .read(async |tx| -> Result<_> {
            let mut user_key = None;
            if let Some(user_id) = &filter.user_id {
                let user = users::find(tx, company_id, user_id).await?;
                let Some(user) = user else { return Ok((0, Vec::new(), Vec::new())) };
                user_key = Some(user.id);
            }
            let (total, payments) =
                store::list(tx, company_id, user_key.as_ref(), &filter, page).await?;
            let users = users_of(tx, company_id, &payments).await?;
            Ok((total, payments, users))
        })
        .await?;
    let now = app.clock.now();
    let docs = payments.into_iter().map(|payment| payment.listed(&users, now));
    DataResponse::data(page.to_list_page(total, docs.collect()), "Payment listed successfully")
}

async fn users_of(
    tx: &mut Tx,
    company_id: &CompanyId,
    payments: &[Payment],
) -> tollhouse_platform::store::Result<Vec<User>> {
    let mut ids: Vec<_> = payments.iter().filter_map(|p| p.user_key.clone()).collect();
    ids.sort();
    ids.dedup();
    users::find_by_ids(tx, company_id, &ids).await
}

pub async fn list_of_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<PaymentFilter>,
) -> Result<ListResponse> {
    companies::find(&app, &company).await?;
    list_for(&app, &company, &query).await
}
