//! Setting up accounts at providers, for operators. Credentials go in and never come out.

use std::collections::HashMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Account, SERVICE, seal_context, store};
use crate::{
    app::App,
    audit,
    clock::Timestamp,
    companies::{self, Company},
    error::{Error, Result},
    http::{
        answer::Answer,
        body::{Body, Fields},
        fields::{Flag, TextsByName, fields},
        path::Path,
    },
    plugins::Kind,
};

fields! {
    /// An account at a provider.
    Body ProviderAccountChange {
        /// What the plugin's manifest asks for; `null` takes them away.
        credentials: Option<TextsByName>,
        /// `false` switches the provider off: for the company, or for everyone.
        active: Option<Flag>,
    }
}

/// An account at a provider. Its credentials are not shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProviderAccount")]
pub struct View {
    provider: String,
    account: String,
    active: bool,
    has_credentials: bool,
    /// Where the provider sends its notifications; `null` for an SMS gateway, which sends none.
    notification_url: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// What the specification lets `payment_service` be. One that is not installed here is a provider that is not configured.
const SPECIFIED: [&str; 3] = ["provider_a", "provider_b", "provider_c"];

/// The provider sent, else the company's, else the service's. 400 when the one sent is none.
pub fn chosen(app: &App, company: &Company, sent: Option<&str>, fields: &Fields) -> Result<String> {
    if let Some((name, absence)) = sent.and_then(|name| Some((name, app.plugins.absence(name)?))) {
        return Err(absence.of(name));
    }
    let installed = app.plugins.names(Kind::Provider);
    let mut known: Vec<&str> = installed.iter().map(String::as_str).collect();
    known.extend(SPECIFIED.iter().filter(|name| !installed.iter().any(|i| i == *name)));
    sent.iter().try_for_each(|name| fields.must_be_among("payment_service", name, &known))?;
    let chosen = sent.map(str::to_owned).or_else(|| company.payment_service.clone());
    Ok(chosen.unwrap_or_else(|| app.settings.default_provider.clone()))
}

pub async fn set_for_service(
    State(app): State<App>,
    Path(provider): Path<String>,
    body: Body<ProviderAccountChange>,
) -> Result<Answer<View>> {
    set(app, SERVICE.to_owned(), provider, body).await
}

pub async fn set_for_company(
    State(app): State<App>,
    Path((company, provider)): Path<(String, String)>,
    body: Body<ProviderAccountChange>,
) -> Result<Answer<View>> {
    companies::find(&app, &company).await?;
    set(app, company, provider, body).await
}

/// Leaves what the body does not name; `credentials: null` takes them away.
async fn set(
    app: App,
    company: String,
    provider: String,
    body: Body<ProviderAccountChange>,
) -> Result<Answer<View>> {
    let plugin = match (app.plugins.get(&provider), app.plugins.absence(&provider)) {
        (Some(plugin), _) => Ok(plugin),
        (None, Some(absence)) => Err(absence.of(&provider)),
        (None, None) => return Err(Error::not_found("provider not found")),
    };
    let credentials: Option<HashMap<String, String>> =
        body.credentials()?.map(|pairs| pairs.into_iter().collect());
    if let Some(values) = &credentials {
        // Which there are, a version that serves says.
        plugin?.manifest().check_credentials(values)?;
    }
    let active = body.active()?;
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
        Answer::data(view(account, &app), "Provider updated successfully")
    })
    .await
}

pub async fn list_for_service(State(app): State<App>) -> Result<Answer<Vec<View>>> {
    list(&app, SERVICE).await
}

pub async fn list_for_company(
    State(app): State<App>,
    Path(company): Path<String>,
) -> Result<Answer<Vec<View>>> {
    companies::find(&app, &company).await?;
    list(&app, &company).await
}

async fn list(app: &App, company: &str) -> Result<Answer<Vec<View>>> {
    let accounts = app.store.select(async |tx| store::list(tx, company).await).await?;
    let accounts = accounts.into_iter().map(|account| view(account, app));
    Answer::data(accounts.collect(), "Providers fetched successfully")
}

fn view(account: Account, app: &App) -> View {
    View {
        notification_url: account.notification_url(app),
        has_credentials: account.credentials.is_some(),
        provider: account.provider,
        account: account.id,
        active: account.active,
        created_at: account.created_at,
        updated_at: account.updated_at,
    }
}
