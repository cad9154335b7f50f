//! Setting up accounts at providers, for operators. Credentials go in and never come out.

use std::collections::HashMap;

use axum::extract::State;
use serde_json::{Value, json};

use super::{Account, SERVICE, seal_context, store};
use crate::{
    app::App,
    audit, companies,
    error::{Error, Result},
    http::{answer::Answer, body::Fields, path::Path},
};

pub async fn set_for_service(
    State(app): State<App>,
    Path(provider): Path<String>,
    body: Fields,
) -> Result<Answer> {
    set(app, SERVICE.to_owned(), provider, body).await
}

pub async fn set_for_company(
    State(app): State<App>,
    Path((company, provider)): Path<(String, String)>,
    body: Fields,
) -> Result<Answer> {
    companies::find(&app, &company).await?;
    set(app, company, provider, body).await
}

/// Leaves what the body does not name; `credentials: null` takes them away.
async fn set(app: App, company: String, provider: String, body: Fields) -> Result<Answer> {
    let plugin = app.plugins.provider(&provider);
    let plugin = plugin.ok_or_else(|| Error::not_found("provider not found"))?;
    let credentials: Option<HashMap<String, String>> =
        body.texts("credentials")?.map(|pairs| pairs.into_iter().collect());
    if let Some(values) = &credentials {
        plugin.manifest().check_credentials(values)?;
    }
    let active = body.boolean("active")?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let now = app.clock.now();
        let new = Account {
            company_id: company.clone(),
            provider: provider.clone(),
            id: app.random.token(""),
            credentials: None,
            active: true,
            created_at: now,
            updated_at: now,
        };
        // Locked before anything is sealed: credentials open only under the id that the account keeps.
        let mut account = store::lock(tx, &new).await?;
        if body.has("credentials") {
            let json = credentials.map(|values| json!(values).to_string());
            let context = seal_context(&account.id);
            account.credentials = json.map(|json| app.sealer.seal(&context, &json));
        }
        account.active = active.unwrap_or(account.active);
        account.updated_at = now;
        store::update(tx, &account).await?;
        let detail = json!({
            "provider": provider,
            "active": account.active,
            "credentials_changed": body.has("credentials"),
        });
        audit::record(tx, &app, &company, "provider.set", detail).await?;
        Answer::data(view(&account, &app), "Provider updated successfully")
    })
    .await
}

pub async fn list_for_service(State(app): State<App>) -> Result<Answer> {
    list(&app, SERVICE).await
}

pub async fn list_for_company(
    State(app): State<App>,
    Path(company): Path<String>,
) -> Result<Answer> {
    companies::find(&app, &company).await?;
    list(&app, &company).await
}

async fn list(app: &App, company: &str) -> Result<Answer> {
    let accounts = app.store.select(async |tx| store::list(tx, company).await).await?;
    let accounts: Vec<Value> = accounts.iter().map(|account| view(account, app)).collect();
    Answer::data(accounts, "Providers fetched successfully")
}

fn view(account: &Account, app: &App) -> Value {
    json!({
        "provider": account.provider,
        "account": account.id,
        "active": account.active,
        "has_credentials": account.credentials.is_some(),
        "notification_url": account.notification_url(app),
        "created_at": account.created_at,
        "updated_at": account.updated_at,
    })
}
