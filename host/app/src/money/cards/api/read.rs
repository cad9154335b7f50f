//! Fetching and listing cards.

use super::find_or_not_found;
use crate::{
    customers as users,
    money::cards::{Card, CardId, FEATURE, store, view::View},
    state::prelude::*,
    tenants::companies::AuthenticatedCompany,
};
use tollhouse_platform::values::listing::SortOrder;

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(card): Path<CardId>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    DataResponse::data(
        find_or_not_found(&app, &company, &card).await?.view(),
        "Card fetched successfully",
    )
}

fields! {
    /// Filter and order of a user's cards. Default: newest first.
    Query CardFilter {
        /// `true`: only valid cards; `false`: only other cards.
        valid: Truth,
        sort_created_at as "sort-created_at": Direction,
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(user_id): Path<String>,
    query: Query<CardFilter>,
) -> Result<DataResponse<Vec<View>>> {
    company.check_feature(FEATURE)?;
    let CardFilter { valid, sort_created_at } = query.read()?;
    let order = sort_created_at.unwrap_or(SortOrder::Descending);
    let read = async |tx: &mut Tx| -> Result<Vec<Card>> {
        let user = users::find_by_email_or_id(tx, &company.id, &user_id).await?;
        let user = user.ok_or_else(|| Error::not_found("user not found"))?;
        Ok(store::list_for_user(tx, &company.id, &user.id, valid, order).await?)
    };
    let cards = app.store.read(read).await?;
    DataResponse::data(cards.iter().map(Card::view).collect(), "Cards retrieved successfully")
}
