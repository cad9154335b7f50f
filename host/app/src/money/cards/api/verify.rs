//! Verifying a card.

use super::find_or_not_found;
use crate::{
    money::cards::{Card, CardId, FEATURE, Status, confirm, view::View},
    state::prelude::*,
    tenants::companies::AuthenticatedCompany,
};

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(card): Path<CardId>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let card = find_or_not_found(&app, &company, &card).await?;
    match card.status {
        Status::Pending => {}
        Status::Valid => return Err(Error::invalid("card already verified")),
        Status::Failed | Status::Duplicate | Status::Unusable => return Err(not_verified(card)),
    }
    let mismatch = confirm::verify(&app, &card).await?;
    let card = find_or_not_found(&app, &company, &card.id).await?;
    match (card.status, mismatch) {
        (Status::Pending, Some(mismatch)) => Err(Error::invalid(mismatch)),
        (Status::Pending, None) => Err(Error::invalid("payment still pending")),
        (Status::Valid, _) => DataResponse::data(card.view(), "Card verified successfully"),
        (Status::Failed | Status::Duplicate | Status::Unusable, _) => Err(not_verified(card)),
    }
}

/// The error for a verification that did not yield a valid card.
fn not_verified(card: Card) -> Error {
    let message = card.message.filter(|message| !message.is_empty());
    Error::Invalid(message.unwrap_or_else(|| "card verification failed".to_owned()))
}
