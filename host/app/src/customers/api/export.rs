//! Export of users, and downloads by signed link.

use super::{
    super::export::{self, ExportQuery, Link},
    UserFilter,
};
use crate::tenants::prelude::*;
use tollhouse_http::response::Attachment;

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
    let most = cap.read()?.limit.unwrap_or(i64::MAX);
    let today = app.clock.now().to_datetime().date_naive();
    let filter = UserFilter::read(&query, today)?;
    let users = ExportQuery { company_id: company.id, filter, most };
    let link = export::export(&app, users).await?;
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
    let Signed { expires, signature } = query.read()?;
    let (expires, signature) = (expires.unwrap_or_default(), signature.unwrap_or_default());
    let bytes = export::open(&app, &file, &expires, &signature).await?;
    Ok(Attachment { name: "users.csv", bytes })
}
