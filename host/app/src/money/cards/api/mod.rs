//! The card endpoints of the specification, and the operators' view of card refunds.

mod create;
mod edit;
mod read;
mod refunds;
mod verify;

pub use self::{
    create::{NewCard, create},
    edit::{delete, set_default},
    read::{fetch, list},
    refunds::{refunds, retry_refund},
    verify::verify,
};
use super::{Card, not_found, store};
use crate::{money::cards::CardId, state::App, tenants::companies::Company};
use tollhouse_platform::error::Result;

async fn find_or_not_found(app: &App, company: &Company, id: &CardId) -> Result<Card> {
    let found = app.store.select(async |tx| store::find(tx, &company.id, id).await).await?;
    found.ok_or_else(not_found)
}
