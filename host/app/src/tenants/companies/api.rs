//! Operator API for companies, API keys and subscriptions.

use axum::extract::State;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Company, Key, SECRET_OVERLAP_SECONDS, View, check_event_url, digest, get, store};

use crate::{operations::audit, state::App, tenants::plans};
use tollhouse_http::{
    request::{
        body::{Body, Fields},
        fields::{
            Choice, Flag, HttpUrl, ListOf, NonNegative, OneOf, Text, Texts, Time, Whole, fields,
        },
        path::Path,
        query::{Pages, Query},
    },
    response::{DataResponse, MessageResponse},
};
use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    store::{Json, Tx},
    values::{id::CompanyId, listing::ListPage, phone},
};
use tollhouse_plugins::Kind;

const KEY_PREFIX_CHARACTERS: usize = 12;
/// Default time for which a rotated key stays valid beside its replacement.
const KEY_OVERLAP_SECONDS: i64 = 24 * 3600;
const MOST_OVERLAP_SECONDS: i64 = 30 * 24 * 3600;

pub struct Server;

impl Choice for Server {
    const ALL: &'static [&'static str] = &["live", "test"];
}

fields! {
    /// A new company.
    Body NewCompany {
        name: Text<100>,
        /// `live` for real money, `test` otherwise.
        server: OneOf<Server>,
        /// HTTPS URL that receives events; development mode also accepts HTTP.
        event_url: Option<HttpUrl>,
        logo: Option<HttpUrl>,
        /// ISO 3166 codes of the countries in which the company operates, for example `NG`. Text
        /// messages go only to numbers of these countries. Default: the countries of the service.
        #[schemars(extend("minItems" = 1, "items" = { "type": "string", "pattern": "^[A-Z]{2}$" }))]
        countries: Option<Texts>,
    }
}

/// A created company. The event secret and the API key are returned only once.
#[derive(Serialize, JsonSchema)]
pub struct CreatedCompany {
    #[serde(flatten)]
    company: View,
    /// Secret that signs the company's events, in the format of Standard Webhooks.
    event_secret: String,
    /// First API key of the company.
    api_key: String,
}

pub async fn create(
    State(app): State<App>,
    body: Body<NewCompany>,
) -> Result<DataResponse<CreatedCompany>> {
    let (name, server) = (body.name()?, body.server()?);
    let event_url = check_event_url(&app, &body, "event_url", body.event_url()?)?;
    let logo = body.logo()?;
    let countries = countries_of(&body, body.countries()?)?;
    let now = app.clock.now();
    let id = CompanyId::from(app.random.id(now));
    let secret = new_event_secret(&app);
    let company = Company {
        event_secret: store::seal_event_secret(&app.sealer, &id, &secret),
        id,
        name,
        server,
        logo,
        event_url,
        payment_service: None,
        active: true,
        previous_event_secret: None,
        previous_event_secret_until: None,
        subscription_active: true,
        subscription_expires_at: None,
        features: None,
        low_balance: None,
        countries: countries.map(Json),
        sms_gateway: None,
        sms_sender: None,
        sms_prefixes: None,
        fixed_otp: None,
        created_at: now,
        updated_at: now,
    };
    let (key, text) = new_key(&app, &company, Some("first key".to_owned()), None);
    let db = app.store.clone();
    db.write(async move |tx| {
        store::insert(tx, &company).await?;
        store::insert_key(tx, &company.id, &key, &digest(&text)).await?;
        let detail = json!({ "name": company.name, "server": company.server });
        audit::record(tx, &app, &company.id, "company.create", detail).await?;
        let created =
            CreatedCompany { company: company.view(), event_secret: secret, api_key: text };
        DataResponse::data(created, "Company created successfully")
    })
    .await
}

fn new_event_secret(app: &App) -> String {
    format!("whsec_{}", BASE64.encode(app.random.bytes::<32>()))
}

fn new_key(
    app: &App,
    company: &Company,
    label: Option<String>,
    expires_at: Option<Timestamp>,
) -> (Key, String) {
    let text = app.random.token(&format!("sk_{}_", company.server));
    let key = Key {
        id: app.new_id(),
        prefix: text[..KEY_PREFIX_CHARACTERS].to_owned(),
        label,
        last_used_at: None,
        expires_at,
        revoked_at: None,
        created_at: app.clock.now(),
    };
    (key, text)
}

pub async fn list(
    State(app): State<App>,
    query: Query<Pages>,
) -> Result<DataResponse<ListPage<View>>> {
    let page = query.read()?;
    let read = async |tx: &mut Tx| store::list(tx, page).await;
    let (total, companies) = app.store.read(read).await?;
    let companies = companies.iter().map(Company::view).collect();
    DataResponse::data(page.to_list_page(total, companies), "Companies fetched successfully")
}

pub async fn fetch(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<View>> {
    let company = super::find(&app, &company).await?;
    DataResponse::data(company.view(), "Company fetched successfully")
}

fields! {
    /// Changes to a company. `null` or `""` clears an optional field.
    Body CompanyChange {
        name: Option<Text<100>>,
        logo: Option<HttpUrl>,
        /// HTTPS URL that receives events; development mode also accepts HTTP. Setting it enables a
        /// disabled webhook endpoint again.
        event_url: Option<HttpUrl>,
        /// Installed provider that is used if a request names none.
        payment_service: Option<Text<100>>,
        /// Balance below which operators receive an event. 0: disabled; `null`: service default.
        low_balance: Option<NonNegative>,
        /// ISO 3166 codes of the countries in which the company operates, for example `NG`. Text
        /// messages go only to numbers of these countries. `null`: the countries of the service.
        #[schemars(extend("minItems" = 1, "items" = { "type": "string", "pattern": "^[A-Z]{2}$" }))]
        countries: Option<Texts>,
        /// Installed SMS gateway that is tried first.
        sms_gateway: Option<Text<100>>,
        /// Sender of text messages: a name or number that the gateway account may use.
        sms_sender: Option<Text<20>>,
        /// Allowed prefixes of phone numbers, for example `+234`; they replace the rule by country.
        /// `+` allows all numbers; `null` restores the rule by country.
        sms_prefixes: Option<Texts>,
        /// Fixed one-time password of a test company: 4 to 8 digits, repeated or cut as needed.
        #[schemars(extend("pattern" = "^([0-9]{4,8})?$"))]
        fixed_otp: Option<Text<8>>,
        /// `false` suspends the company.
        active: Option<Flag>,
    }
}

pub async fn edit(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    body: Body<CompanyChange>,
) -> Result<DataResponse<View>> {
    let name = body.name()?;
    if body.has("name") && name.is_none() {
        return Err(body.required("name"));
    }
    let logo = body.logo()?;
    let event_url = check_event_url(&app, &body, "event_url", body.event_url()?)?;
    let installed = app.plugins.names(Kind::Provider);
    let installed: Vec<&str> = installed.iter().map(String::as_str).collect();
    let payment_service = body.payment_service()?;
    let check = |name: &String| body.require_one_of("payment_service", name, &installed);
    payment_service.iter().try_for_each(check)?;
    let sms = read_sms(&app, &body)?;
    let (low_balance, active) = (body.low_balance()?, body.active()?);
    let event_url_set = app.tables.on_event_url_set;
    change(app, company, "company.edit", async move |tx, _, company| {
        sms.apply(&body, company)?;
        company.name = name.unwrap_or_else(|| company.name.clone());
        company.active = active.unwrap_or(company.active);
        if body.has("logo") {
            company.logo = logo;
        }
        if body.has("payment_service") {
            company.payment_service = payment_service;
        }
        if body.has("low_balance") {
            company.low_balance = low_balance;
        }
        if body.has("event_url") {
            if let Some(url) = &event_url {
                event_url_set(tx, &company.id, url).await?;
            }
            company.event_url = event_url;
        }
        Ok(())
    })
    .await?
    .to_response("Company updated successfully")
}

/// Checks that the list is not empty and that each country has phone numbers.
fn countries_of(body: &Fields, codes: Option<Vec<String>>) -> Result<Option<Vec<String>>> {
    match &codes {
        Some(codes) if codes.is_empty() || !codes.iter().all(|code| phone::has_numbers(code)) => {
            Err(body.must_be("countries", "a list of ISO 3166 country codes, such as NG"))
        }
        _ => Ok(codes),
    }
}

/// The part of a [`CompanyChange`] that concerns text messages and one-time passwords.
#[derive(Clone)]
struct SmsChange {
    countries: Option<Vec<String>>,
    gateway: Option<String>,
    sender: Option<String>,
    prefixes: Option<Vec<String>>,
    fixed_otp: Option<String>,
}

fn read_sms(app: &App, body: &Body<CompanyChange>) -> Result<SmsChange> {
    let countries = countries_of(body, body.countries()?)?;
    let gateway = body.sms_gateway()?;
    if let Some(name) = &gateway {
        app.plugins.must_be_ready(name)?;
    }
    if gateway.as_ref().is_some_and(|name| {
        app.plugins.get(name).is_none_or(|plugin| plugin.manifest().kind != Kind::Sms)
    }) {
        return Err(body.must_be("sms_gateway", "an installed SMS gateway"));
    }
    let sender = body.sms_sender()?;
    let prefixes = body.sms_prefixes()?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_prefix = |text: &String| {
        let digits = |rest: &str| is_digits(rest) && !rest.starts_with('0');
        text == "+" || text.len() <= 16 && text.strip_prefix('+').is_some_and(digits)
    };
    if prefixes.iter().flatten().any(|prefix| !is_prefix(prefix)) {
        return Err(body.must_be("sms_prefixes", "a list of E.164 number prefixes, such as +234"));
    }
    let fixed_otp = body.fixed_otp()?;
    if fixed_otp.as_ref().is_some_and(|code| code.len() < 4 || !is_digits(code)) {
        return Err(body.must_be("fixed_otp", "4 to 8 digits"));
    }
    Ok(SmsChange { countries, gateway, sender, prefixes, fixed_otp })
}

impl SmsChange {
    fn apply(self, body: &Body<CompanyChange>, company: &mut Company) -> Result<()> {
        if self.fixed_otp.is_some() && !company.is_test() {
            return Err(body.must_be("fixed_otp", "omitted: the company is live"));
        }
        if body.has("sms_gateway") {
            company.sms_gateway = self.gateway;
        }
        if body.has("sms_sender") {
            company.sms_sender = self.sender;
        }
        if body.has("countries") {
            company.countries = self.countries.map(Json);
        }
        if body.has("sms_prefixes") {
            company.sms_prefixes = self.prefixes.map(Json);
        }
        if body.has("fixed_otp") {
            company.fixed_otp = self.fixed_otp;
        }
        Ok(())
    }
}

/// A new event secret.
#[derive(Serialize, JsonSchema)]
pub struct NewEventSecret {
    event_secret: String,
}

/// Replaces the event secret. The previous secret also signs events for one more day.
pub async fn rotate_event_secret(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<NewEventSecret>> {
    let secret = new_event_secret(&app);
    let new = secret.clone();
    change(app, company, "company.event_secret.rotate", async move |_, app, company| {
        company.rotate_event_secret(&app.sealer, &new);
        let until = app.clock.now().plus_seconds(SECRET_OVERLAP_SECONDS);
        company.previous_event_secret_until = Some(until);
        Ok(())
    })
    .await?;
    DataResponse::data(NewEventSecret { event_secret: secret }, "Event secret rotated successfully")
}

pub struct Feature;

impl Choice for Feature {
    const ALL: &'static [&'static str] = &plans::FEATURES;
}

fields! {
    /// Changes to a subscription.
    Body SubscriptionChange {
        active: Option<Flag>,
        /// Time at which the subscription ends; `null` for no end.
        expires_at: Option<Time>,
        /// Features of the plan; `null` for all.
        features: Option<ListOf<Feature>>,
    }
}

/// Changes the named fields only.
pub async fn subscribe(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    body: Body<SubscriptionChange>,
) -> Result<DataResponse<View>> {
    let (active, expires_at, features) = (body.active()?, body.expires_at()?, body.features()?);
    change(app, company, "company.subscription", async move |_, _, company| {
        company.subscription_active = active.unwrap_or(company.subscription_active);
        if body.has("expires_at") {
            company.subscription_expires_at = expires_at;
        }
        if body.has("features") {
            company.features = features.map(Json);
        }
        Ok(())
    })
    .await?
    .to_response("Subscription updated successfully")
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

fields! {
    /// A new API key.
    Body NewKey {
        /// Purpose of the key.
        label: Option<Text<100>>,
        /// Expiry of the key; must be in the future.
        expires_at: Option<Time>,
    }
}

/// A created API key. The key itself is returned only once.
#[derive(Serialize, JsonSchema)]
pub struct CreatedKey {
    #[serde(flatten)]
    key: Key,
    api_key: String,
}

pub async fn create_key(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    body: Body<NewKey>,
) -> Result<DataResponse<CreatedKey>> {
    let (label, expires_at) = (body.label()?, body.expires_at()?);
    if expires_at.is_some_and(|at| at <= app.clock.now()) {
        return Err(body.must_be("expires_at", "in the future"));
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let company = get(tx, &company).await?;
        let (key, text) = new_key(&app, &company, label, expires_at);
        store::insert_key(tx, &company.id, &key, &digest(&text)).await?;
        let detail = json!({ "key": key.id, "label": key.label });
        audit::record(tx, &app, &company.id, "key.create", detail).await?;
        DataResponse::data(CreatedKey { key, api_key: text }, "Key created successfully")
    })
    .await
}

fields! {
    /// Rotation of an API key.
    Body KeyRotation {
        /// Time for which the previous key stays valid: at most 30 days; default one day.
        overlap_seconds: Option<Whole<0, MOST_OVERLAP_SECONDS>>,
        /// Expiry of the new key; must be in the future.
        expires_at: Option<Time>,
    }
}

/// The replacement of a rotated API key. The key itself is returned only once.
#[derive(Serialize, JsonSchema)]
pub struct RotatedKey {
    #[serde(flatten)]
    key: Key,
    api_key: String,
    /// The previous key with its expiry.
    replaces: Key,
}

pub async fn rotate_key(
    State(app): State<App>,
    Path((company, former)): Path<(CompanyId, String)>,
    body: Body<KeyRotation>,
) -> Result<DataResponse<RotatedKey>> {
    let overlap = body.overlap_seconds()?.unwrap_or(KEY_OVERLAP_SECONDS);
    let (now, expires_at) = (app.clock.now(), body.expires_at()?);
    if expires_at.is_some_and(|at| at <= now) {
        return Err(body.must_be("expires_at", "in the future"));
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let company = get(tx, &company).await?;
        let replaced = store::lock_key(tx, &company.id, &former).await?;
        let mut replaced = replaced.ok_or_else(|| Error::not_found("key not found"))?;
        if replaced.revoked_at.is_some() || replaced.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::invalid("the key was revoked or has expired: create another"));
        }
        let end = now.plus_seconds(overlap);
        let end = replaced.expires_at.map_or(end, |at| at.min(end));
        store::expire_key(tx, &company.id, &replaced.id, end).await?;
        replaced.expires_at = Some(end);
        let (key, text) = new_key(&app, &company, replaced.label.clone(), expires_at);
        store::insert_key(tx, &company.id, &key, &digest(&text)).await?;
        let detail = json!({ "key": key.id, "replaces": replaced.id, "until": end });
        audit::record(tx, &app, &company.id, "key.rotate", detail).await?;
        DataResponse::data(
            RotatedKey { key, api_key: text, replaces: replaced },
            "Key rotated successfully",
        )
    })
    .await
}

pub async fn list_keys(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Vec<Key>>> {
    let keys = app
        .store
        .read(async |tx| -> Result<_> {
            get(tx, &company).await?;
            Ok(store::list_keys(tx, &company).await?)
        })
        .await?;
    DataResponse::data(keys, "Keys fetched successfully")
}

/// Revokes a key, effective from the next request.
pub async fn revoke_key(
    State(app): State<App>,
    Path((company, key)): Path<(CompanyId, String)>,
) -> Result<MessageResponse> {
    let db = app.store.clone();
    db.write(async move |tx| {
        get(tx, &company).await?;
        if store::revoke_key(tx, &company, &key, app.clock.now()).await? == 0 {
            return Err(Error::not_found("key not found"));
        }
        audit::record(tx, &app, &company, "key.revoke", json!({ "key": key })).await?;
        Ok(MessageResponse("Key revoked successfully"))
    })
    .await
}
