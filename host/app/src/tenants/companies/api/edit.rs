//! Changes to a company: its fields, its subscription and its event secret.

use super::{check_countries, check_provider};
use crate::{
    tenants::prelude::*,
    tenants::{
        companies::{lock, new_event_secret, store},
        plans,
    },
};
use tollhouse_plugins::PluginKind;

choices! {
    Feature = &plans::FEATURES;
}

fields! {
    /// Changes to a company. `null` or `""` clears an optional field.
    Body CompanyChange(body, app: &App) {
        name: Changeable<Text<100>>,
        logo: Clearable<HttpUrl>,
        /// HTTPS URL that receives events; development mode also accepts HTTP. Setting it enables a
        /// disabled webhook endpoint again.
        event_url: Clearable<HttpUrl>
            => event_url.try_map(|url| check_event_url(app, body, "event_url", url)),
        /// Installed provider that is used if a request names none.
        payment_service: Clearable<Text<100>>
            => payment_service.try_map(|name| check_provider(app, body, name)),
        /// Balance below which operators receive an event. 0: disabled; `null`: service default.
        low_balance: Clearable<NonNegative>,
        /// ISO 3166 codes of the countries in which the company operates, for example `NG`. Text
        /// messages go only to numbers of these countries. `null`: the countries of the service.
        #[schemars(extend("minItems" = 1, "items" = { "type": "string", "pattern": "^[A-Z]{2}$" }))]
        countries: Clearable<Texts> as Change<Json<Vec<String>>>
            => countries.try_map(|codes| check_countries(body, codes)),
        /// Installed SMS gateway that is tried first.
        sms_gateway: Clearable<Text<100>>
            => sms_gateway.try_map(|name| check_gateway(app, body, name)),
        /// Sender of text messages: a name or number that the gateway account may use.
        sms_sender: Clearable<Text<20>>,
        /// Allowed prefixes of phone numbers, for example `+234`; they replace the rule by country.
        /// `+` allows all numbers; `null` restores the rule by country.
        sms_prefixes: Clearable<Texts> as Change<Json<Vec<String>>>
            => sms_prefixes.try_map(|prefixes| check_prefixes(body, prefixes)),
        /// Fixed one-time password of a test company: 4 to 8 digits, repeated or cut as needed.
        #[schemars(extend("pattern" = "^([0-9]{4,8})?$"))]
        fixed_otp: Clearable<Text<8>>
            => fixed_otp.try_map(|code| check_fixed_otp(body, code)),
        /// `false` suspends the company.
        active: Option<Flag>,
    }
}

fn check_gateway(app: &App, body: &Fields, name: Option<String>) -> Result<Option<String>> {
    let Some(name) = name else { return Ok(None) };
    app.plugins.ensure_ready(&name)?;
    match app.plugins.get(&name) {
        Some(plugin) if plugin.manifest().kind == PluginKind::Sms => Ok(Some(name)),
        _ => Err(body.must_be("sms_gateway", "an installed SMS gateway")),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn check_prefixes(
    body: &Fields,
    prefixes: Option<Vec<String>>,
) -> Result<Option<Json<Vec<String>>>> {
    let is_prefix = |text: &String| {
        let digits = |rest: &str| is_digits(rest) && !rest.starts_with('0');
        text == "+" || text.len() <= 16 && text.strip_prefix('+').is_some_and(digits)
    };
    match prefixes.iter().flatten().all(is_prefix) {
        true => Ok(prefixes.map(Json)),
        false => Err(body.must_be("sms_prefixes", "a list of E.164 number prefixes, such as +234")),
    }
}

fn check_fixed_otp(body: &Fields, code: Option<String>) -> Result<Option<String>> {
    match code.iter().all(|code| code.len() >= 4 && is_digits(code)) {
        true => Ok(code),
        false => Err(body.must_be("fixed_otp", "4 to 8 digits")),
    }
}

pub async fn edit(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    body: Body<CompanyChange>,
) -> Result<DataResponse<Company>> {
    let new = CompanyChange::read(&body, &app)?;
    let edited = change(app, actor, company, "company.edit", async move |tx, app, company| {
        if matches!(new.fixed_otp, Change::To(Some(_))) && !company.is_test() {
            return Err(body.must_be("fixed_otp", "omitted: the company is live"));
        }
        if let Change::To(Some(url)) = &new.event_url {
            (app.tables.on_event_url_set)(tx, &company.id, url).await?;
        }
        company.name = new.name.unwrap_or_else(|| company.name.clone());
        new.logo.apply(&mut company.logo);
        new.event_url.apply(&mut company.event_url);
        new.payment_service.apply(&mut company.payment_service);
        new.low_balance.apply(&mut company.low_balance);
        new.countries.apply(&mut company.countries);
        new.sms_gateway.apply(&mut company.sms_gateway);
        new.sms_sender.apply(&mut company.sms_sender);
        new.sms_prefixes.apply(&mut company.sms_prefixes);
        new.fixed_otp.apply(&mut company.fixed_otp);
        company.active = new.active.unwrap_or(company.active);
        Ok(())
    });
    DataResponse::data(edited.await?, "Company updated successfully")
}

fields! {
    /// Changes to a subscription.
    Body SubscriptionChange {
        active: Option<Flag>,
        /// Time at which the subscription ends; `null` for no end.
        expires_at: Clearable<Time>,
        /// Features of the plan; `null` for all.
        features: Clearable<ListOf<Feature>>,
    }
}

/// Changes the named fields only.
pub async fn subscribe(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    body: Body<SubscriptionChange>,
) -> Result<DataResponse<Company>> {
    let new = body.read()?;
    let edited = change(app, actor, company, "company.subscription", async move |_, _, company| {
        let subscription = &mut company.subscription;
        subscription.active = new.active.unwrap_or(subscription.active);
        new.expires_at.apply(&mut subscription.expires_at);
        if let Change::To(features) = new.features {
            subscription.features = features.map(Json);
        }
        Ok(())
    });
    DataResponse::data(edited.await?, "Subscription updated successfully")
}

/// A new event secret.
#[derive(Serialize, JsonSchema)]
pub struct NewEventSecret {
    event_secret: String,
}

/// Replaces the event secret. The previous secret also signs events for one more day.
pub async fn rotate_event_secret(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<NewEventSecret>> {
    let event_secret = new_event_secret(&app.random);
    let new = event_secret.clone();
    change(app, actor, company, "company.event_secret.rotate", async move |_, app, company| {
        let rotated = company.signing_secret().rotate(app, &new);
        company.event_secret = rotated.current;
        company.previous_event_secret = rotated.previous;
        company.previous_event_secret_until = Some(rotated.previous_until);
        Ok(())
    })
    .await?;
    DataResponse::data(NewEventSecret { event_secret }, "Event secret rotated successfully")
}

/// Changes a company under its row lock, and records the changed fields in the audit log.
pub async fn change<F>(
    app: App,
    actor: Actor,
    id: CompanyId,
    action: &'static str,
    edit: F,
) -> Result<Company>
where
    F: AsyncFnOnce(&mut Tx, &App, &mut Company) -> Result<()> + Clone + Send + 'static,
{
    let db = app.store.clone();
    db.write(async move |tx| {
        let before = lock(tx, &id).await?;
        let mut company = before.clone();
        edit(tx, &app, &mut company).await?;
        company.updated_at = app.clock.now();
        store::update(tx, &company).await?;
        let changes = audit::changes(&before, &company);
        audit::record(tx, &app, &actor, &id, action, changes).await?;
        Ok(company)
    })
    .await
}
