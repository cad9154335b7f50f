//! Operator API for companies: their data, API keys, subscriptions and audit logs.

mod create;
mod edit;
mod keys;

pub use self::{
    create::create,
    edit::{change, edit, rotate_event_secret, subscribe},
    keys::{create_key, list_keys, revoke_key, rotate_key},
};
use super::{Company, find, store};
use crate::{
    operations::audit::{AuditEntry, AuditFilter, ChainPart, ChainRange},
    tenants::prelude::*,
};
use tollhouse_platform::values::phone;
use tollhouse_plugins::PluginKind;

/// Checks that the list is not empty and that each country has phone numbers.
fn check_countries(body: &Fields, codes: Option<Vec<String>>) -> Result<Option<Json<Vec<String>>>> {
    match &codes {
        Some(codes) if codes.is_empty() || !codes.iter().all(|code| phone::has_numbers(code)) => {
            Err(body.must_be("countries", "a list of ISO 3166 country codes, such as NG"))
        }
        _ => Ok(codes.map(Json)),
    }
}

/// Returns 400 unless the provider is installed.
fn check_provider(app: &App, body: &Fields, name: Option<String>) -> Result<Option<String>> {
    let installed = app.plugins.names(PluginKind::Provider);
    let installed: Vec<&str> = installed.iter().map(String::as_str).collect();
    name.iter().try_for_each(|name| body.require_one_of("payment_service", name, &installed))?;
    Ok(name)
}

pub async fn list(
    State(app): State<App>,
    query: Query<Pages>,
) -> Result<DataResponse<ListPage<Company>>> {
    let page = PageRequest::from(query.read()?);
    let companies = app.store.read(async |tx| store::list(tx, page).await).await?;
    DataResponse::data(companies, "Companies fetched successfully")
}

pub async fn fetch(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Company>> {
    DataResponse::data(find(&app, &company).await?, "Company fetched successfully")
}

/// Lists the audit log of a company.
pub async fn audit_log(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<AuditFilter>,
) -> Result<DataResponse<ListPage<AuditEntry>>> {
    find(&app, &company).await?;
    audit::list(&app, &company.into(), &query).await
}

/// Reads the audit log of a company in order.
pub async fn audit_chain(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<ChainRange>,
) -> Result<DataResponse<ChainPart>> {
    find(&app, &company).await?;
    audit::read_chain(&app, &company.into(), &query).await
}
