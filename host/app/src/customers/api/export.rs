//! Export of users, and downloads by signed link.

use axum::extract::State;

use super::{
    super::export::{self, Link},
    list::{UserFilter, read_filter},
};
use crate::{state::App, tenants::companies::AuthenticatedCompany};
use tollhouse_http::{
    GetOnly,
    request::{
        fields::fields,
        path::Path,
        query::{AtMost, Exactly, Query},
    },
    response::{Attachment, DataResponse},
};
use tollhouse_platform::error::Result;

fields! {
    /// Limit of an export.
    Query Cap {
        /// Maximum number of users; default: all that match.
        limit: AtMost,
    }
}

pub async fn export(
    State(app): State<App>,
    _: GetOnly,
    AuthenticatedCompany(company): AuthenticatedCompany,
    cap: Query<Cap>,
    query: Query<UserFilter>,
) -> Result<DataResponse<Link>> {
    let most = cap.limit()?.unwrap_or(i64::MAX);
    let (filter, sort) = read_filter(&query, app.clock.now().to_datetime().date_naive())?;
    let link = export::export(&app, &company.id, filter, sort, most).await?;
    DataResponse::data(link, "Users exported successfully")
}

pub async fn sample(
    State(app): State<App>,
    AuthenticatedCompany(_): AuthenticatedCompany,
) -> Result<DataResponse<Link>> {
    DataResponse::data(export::sample(&app), "Sample csv fetched successfully")
}

fields! {
    /// Signature of a download link.
    Query Signed {
        /// Expiry of the link in seconds since the Unix epoch.
        expires: Exactly,
        signature: Exactly,
    }
}

pub async fn fetch(
    State(app): State<App>,
    Path(file): Path<String>,
    query: Query<Signed>,
) -> Result<Attachment> {
    let (expires, signature) = (query.expires()?, query.signature()?);
    let (expires, signature) = (expires.unwrap_or_default(), signature.unwrap_or_default());
    let bytes = export::open(&app, &file, &expires, &signature).await?;
    Ok(Attachment { name: "users.csv", content_type: "text/csv", bytes })
}
