//! Operator API for provider accounts. Credentials are accepted and never returned.

use std::collections::HashMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    Account, AccountId, AccountOwner, Mode, not_configured,
    probe::{self, ProbeOutcome},
    store,
};
use crate::{
    operations::audit,
    state::App,
    tenants::companies::{self, Company},
};
use tollhouse_http::{
    request::{
        body::{Body, Fields},
        fields::{Choice, Flag, OneOf, TextsByName, fields},
        path::Path,
    },
    response::DataResponse,
};
use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    store::Tx,
    values::id::CompanyId,
};
use tollhouse_plugins::{Callable, Kind};

pub struct Modes;

impl Choice for Modes {
    const ALL: &'static [&'static str] = &["test", "live"];
}

fields! {
    /// Changes to a provider account.
    Body ProviderAccountChange {
        /// Credentials by name, as the plugin's manifest defines them; `null` removes them.
        credentials: Option<TextsByName>,
        /// `false` deactivates the provider: for the company or, on a service account, for all
        /// companies of the account's mode.
        active: Option<Flag>,
        /// Mode of the service account: `test` or `live`. Default: `test` in development mode,
        /// otherwise `live`. The mode of a company's own account is the company's `server`.
        mode: Option<OneOf<Modes>>,
    }
}

/// A provider account. Its credentials are never returned.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProviderAccount")]
pub struct View {
    provider: String,
    account: AccountId,
    /// Companies with this `server` use the account.
    mode: Mode,
    active: bool,
    has_credentials: bool,
    /// URL to which the provider sends webhooks; `null` for SMS gateways, which send none.
    notification_url: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

const LISTED: &str = "Providers fetched successfully";

/// Specified values of `payment_service`. Those not installed are rejected as not configured.
const SPECIFIED_PROVIDERS: [&str; 3] = ["provider_a", "provider_b", "provider_c"];

/// Returns the requested provider, else the company's default, else the default of the service. 400
/// if the requested one is unknown or deactivated; 503 if it is not ready on this host.
pub fn choose_provider(
    app: &App,
    company: &Company,
    sent: Option<&str>,
    fields: &Fields,
) -> Result<String> {
    if let Some((name, absence)) = sent.and_then(|name| Some((name, app.plugins.absence(name)?))) {
        return Err(absence.of(name));
    }
    let installed = app.plugins.names(Kind::Provider);
    let mut known: Vec<&str> = installed.iter().map(String::as_str).collect();
    known.extend(SPECIFIED_PROVIDERS.iter().filter(|name| !installed.iter().any(|i| i == *name)));
    sent.iter().try_for_each(|name| fields.require_one_of("payment_service", name, &known))?;
    let chosen = sent.map(str::to_owned).or_else(|| company.payment_service.clone());
    Ok(chosen.unwrap_or_else(|| app.settings.default_provider.clone()))
}

/// The account that a request is about, by its owner and mode.
struct Target {
    owner: AccountOwner,
    mode: Mode,
}

impl Target {
    fn service(app: &App, mode: Option<&str>) -> Target {
        let usual = if app.settings.development { Mode::Test } else { Mode::Live };
        let mode = mode.and_then(Mode::from_name).unwrap_or(usual);
        Target { owner: AccountOwner::Service(mode), mode }
    }

    /// Returns 404 for an unknown company and 400 if `mode` differs from the company's.
    async fn company(
        app: &App,
        id: &CompanyId,
        mode: Option<&str>,
        fields: &Fields,
    ) -> Result<Target> {
        let company = companies::find(app, id).await?;
        let (own, sent) = (Mode::of(&company), mode.and_then(Mode::from_name));
        if sent.is_some_and(|sent| sent != own) {
            return Err(fields.must_be("mode", &format!("{}, the mode of the company", own.name())));
        }
        Ok(Target { owner: AccountOwner::Company(company.id), mode: own })
    }
}

pub async fn set_for_service(
    State(app): State<App>,
    Path(provider): Path<String>,
    body: Body<ProviderAccountChange>,
) -> Result<DataResponse<View>> {
    let target = Target::service(&app, body.mode()?.as_deref());
    set(app, target, provider, body).await
}

pub async fn set_for_company(
    State(app): State<App>,
    Path((company, provider)): Path<(CompanyId, String)>,
    body: Body<ProviderAccountChange>,
) -> Result<DataResponse<View>> {
    let target = Target::company(&app, &company, body.mode()?.as_deref(), &body).await?;
    set(app, target, provider, body).await
}

/// Returns the active version, or why there is none; 404 if the plugin is not installed.
fn active_plugin(app: &App, provider: &str) -> Result<Result<Callable>> {
    match (app.plugins.get(provider), app.plugins.absence(provider)) {
        (Some(plugin), _) => Ok(Ok(plugin)),
        (None, Some(absence)) => Ok(Err(absence.of(provider))),
        (None, None) => Err(Error::not_found("provider not found")),
    }
}

/// Changes the fields that the body names; `credentials: null` removes them.
async fn set(
    app: App,
    target: Target,
    provider: String,
    body: Body<ProviderAccountChange>,
) -> Result<DataResponse<View>> {
    let plugin = active_plugin(&app, &provider)?;
    let credentials: Option<HashMap<String, String>> =
        body.credentials()?.map(|pairs| pairs.into_iter().collect());
    if let Some(values) = &credentials {
        // Only an active version defines the credentials.
        plugin?.manifest().check_credentials(values, &app.egress.plugins)?;
    }
    let active = body.active()?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let now = app.clock.now();
        let new = Account {
            owner: target.owner.clone(),
            provider: provider.clone(),
            id: app.random.token("").into(),
            credentials: None,
            active: true,
            created_at: now,
            updated_at: now,
        };
        // Lock before sealing: credentials are sealed under the stored id, not that of `new`.
        let mut account = store::lock_or_insert(tx, &new).await?;
        if body.has("credentials") {
            let json = credentials.map(|values| json!(values).to_string());
            account.credentials = json.map(|json| account.seal_json(&app.sealer, &json));
        }
        account.active = active.unwrap_or(account.active);
        account.updated_at = now;
        store::update(tx, &account).await?;
        let detail = json!({
            "provider": provider,
            "mode": target.mode,
            "active": account.active,
            "credentials_changed": body.has("credentials"),
        });
        audit::record(tx, &app, &target.owner, "provider.set", detail).await?;
        DataResponse::data(view(account, target.mode, &app), "Provider updated successfully")
    })
    .await
}

fields! {
    /// A test of a provider account.
    Body ProviderTest {
        /// As for the setup of an account. A company's own account has the mode of its `server`.
        mode: Option<OneOf<Modes>>,
    }
}

/// Result of a provider test.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProviderTested")]
pub struct ProviderTested {
    provider: String,
    account: AccountId,
    mode: Mode,
    outcome: ProbeOutcome,
    /// Fault code of the plugin or the host; empty without a fault.
    code: String,
    /// The outcome as a sentence.
    detail: String,
}

pub async fn test_for_service(
    State(app): State<App>,
    Path(provider): Path<String>,
    body: Body<ProviderTest>,
) -> Result<DataResponse<ProviderTested>> {
    let target = Target::service(&app, body.mode()?.as_deref());
    test(app, target, provider).await
}

pub async fn test_for_company(
    State(app): State<App>,
    Path((company, provider)): Path<(CompanyId, String)>,
    body: Body<ProviderTest>,
) -> Result<DataResponse<ProviderTested>> {
    let target = Target::company(&app, &company, body.mode()?.as_deref(), &body).await?;
    test(app, target, provider).await
}

/// Tests an account. An inactive one is allowed, so that it can be tested before it is used.
async fn test(app: App, target: Target, provider: String) -> Result<DataResponse<ProviderTested>> {
    active_plugin(&app, &provider)??;
    let find = async |tx: &mut Tx| store::find(tx, &target.owner, &provider).await;
    let account = app.store.select(find).await?;
    let account =
        account.filter(|account| account.credentials.is_some()).ok_or_else(not_configured)?;
    let (outcome, code) = probe::probe(&app, &account).await?;
    let (db, mode) = (app.store.clone(), target.mode);
    db.write(async move |tx| {
        let detail = json!({ "provider": provider, "mode": mode, "outcome": outcome });
        audit::record(tx, &app, &target.owner, "provider.test", detail).await?;
        let detail = outcome.detail(&provider);
        let account = account.id;
        let tested = ProviderTested { provider, account, mode, outcome, code, detail };
        DataResponse::data(tested, "Provider tested successfully")
    })
    .await
}

pub async fn list_for_service(State(app): State<App>) -> Result<DataResponse<Vec<View>>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        let live = store::list(tx, &AccountOwner::Service(Mode::Live)).await?.into_iter();
        let test = store::list(tx, &AccountOwner::Service(Mode::Test)).await?.into_iter();
        let live = live.map(|account| (account, Mode::Live));
        Ok(live.chain(test.map(|account| (account, Mode::Test))).collect::<Vec<_>>())
    };
    let mut accounts = app.store.read(read).await?;
    accounts.sort_by(|(one, _), (other, _)| one.provider.cmp(&other.provider));
    let accounts = accounts.into_iter().map(|(account, mode)| view(account, mode, &app));
    DataResponse::data(accounts.collect(), LISTED)
}

pub async fn list_for_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Vec<View>>> {
    let mode = Mode::of(&companies::find(&app, &company).await?);
    let accounts = app
        .store
        .select(async |tx| store::list(tx, &AccountOwner::Company(company.clone())).await)
        .await?;
    let accounts = accounts.into_iter().map(|account| view(account, mode, &app));
    DataResponse::data(accounts.collect(), LISTED)
}

fn view(account: Account, mode: Mode, app: &App) -> View {
    View {
        notification_url: account.notification_url(app),
        has_credentials: account.credentials.is_some(),
        provider: account.provider,
        account: account.id,
        mode,
        active: account.active,
        created_at: account.created_at,
        updated_at: account.updated_at,
    }
}
