//! The recollection endpoints of the specification.

mod create;
mod fetch;
mod list;
mod verify;

pub use self::{
    create::{NewRecollection, Pages, create},
    fetch::{fetch, fetch_by_reference},
    list::{RecollectionFilter, list},
    verify::verify,
};
use super::{Recollection, user_of, view::View};
use crate::{lending::loans::LoanId, state::App};
use tollhouse_http::response::DataResponse;
use tollhouse_platform::error::Result;

async fn respond_with_user(
    app: &App,
    recollection: Recollection,
    message: &str,
) -> Result<DataResponse<View<LoanId>>> {
    let user = user_of(app, &recollection).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    DataResponse::data(recollection.view(user), message)
}
