//! Operator API for companies, API keys and subscriptions.

mod create;
mod edit;
mod keys;
mod read;
mod secret;
mod subscription;

pub use self::{
    create::create,
    edit::edit,
    keys::{create_key, list_keys, revoke_key, rotate_key},
    read::{fetch, list},
    secret::rotate_event_secret,
    subscription::subscribe,
};
use super::{Company, View, store};
use crate::{operations::audit, state::prelude::*};
use tollhouse_platform::values::{id::CompanyId, phone};

/// Checks that the list is not empty and that each country has phone numbers.
fn check_countries(body: &Fields, codes: Option<Vec<String>>) -> Result<Option<Json<Vec<String>>>> {
    match &codes {
        Some(codes) if codes.is_empty() || !codes.iter().all(|code| phone::has_numbers(code)) => {
            Err(body.must_be("countries", "a list of ISO 3166 country codes, such as NG"))
        }
        _ => Ok(codes.map(Json)),
    }
}

impl Company {
    fn to_response(&self, message: &'static str) -> Result<DataResponse<View>> {
        DataResponse::data(self.view(), message)
    }
}

/// Changes a company under its row lock and records the resulting company in the audit log.
async fn change<F>(app: App, id: CompanyId, action: &'static str, edit: F) -> Result<Company>
where
    F: AsyncFnOnce(&mut Tx, &App, &mut Company) -> Result<()> + Clone + Send + 'static,
{
    let db = app.store.clone();
    db.write(async move |tx| {
        let company = store::lock(tx, &id).await?;
        let mut company = company.ok_or_else(|| Error::not_found("company not found"))?;
        edit(tx, &app, &mut company).await?;
        company.updated_at = app.clock.now();
        store::update(tx, &company).await?;
        audit::record(tx, &app, &id, action, json!(company.view())).await?;
        Ok(company)
    })
    .await
}
