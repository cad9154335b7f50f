//! Setting the default card, and deleting a card.

use crate::{
    customers as users,
    money::cards::{Card, CardId, FEATURE, cleanup, not_found, store, view::View},
    state::prelude::*,
    tenants::companies::AuthenticatedCompany,
};

pub async fn set_default(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(card): Path<CardId>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let found = store::find(tx, &company.id, &card).await?.ok_or_else(not_found)?;
        users::lock(tx, &company.id, &found.user_key).await?;
        let mut card = store::find(tx, &company.id, &card).await?.ok_or_else(not_found)?;
        if !card.is_valid() {
            return Err(Error::invalid("only validated card can be set as default"));
        }
        let now = app.clock.now();
        for other in
            store::list_other_valid(tx, &card).await?.into_iter().filter(|card| card.is_default)
        {
            store::update(tx, &Card { is_default: false, updated_at: now, ..other }).await?;
        }
        if !card.is_default {
            card.is_default = true;
            card.updated_at = now;
            store::update(tx, &card).await?;
        }
        DataResponse::data(card.view(), "Default card set successfully")
    })
    .await
}

fields! {
    /// Options for deleting a card.
    Query Deleting {
        /// `true` allows deleting the default card.
        delete_default: Truth,
    }
}

pub async fn delete(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(card): Path<CardId>,
    query: Query<Deleting>,
) -> Result<MessageResponse> {
    company.check_feature(FEATURE)?;
    let default_too = query.read()?.delete_default.unwrap_or(false);
    let db = app.store.clone();
    db.write(async move |tx| cleanup::delete(tx, &app, &company.id, &card, default_too).await)
        .await?;
    Ok(MessageResponse("Card deleted successfully"))
}
