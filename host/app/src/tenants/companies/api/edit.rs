//! Editing and suspending a company.

use super::{change, check_countries};
use crate::{
    state::prelude::*,
    tenants::companies::{Company, View, check_event_url},
};
use tollhouse_platform::values::id::CompanyId;
use tollhouse_plugins::PluginKind;

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

fn check_provider(app: &App, body: &Fields, name: Option<String>) -> Result<Option<String>> {
    let installed = app.plugins.names(PluginKind::Provider);
    let installed: Vec<&str> = installed.iter().map(String::as_str).collect();
    let check = |name: &String| body.require_one_of("payment_service", name, &installed);
    name.iter().try_for_each(check)?;
    Ok(name)
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
    Path(company): Path<CompanyId>,
    body: Body<CompanyChange>,
) -> Result<DataResponse<View>> {
    let new = CompanyChange::read(&body, &app)?;
    change(app, company, "company.edit", async move |tx, app, company| {
        if matches!(new.fixed_otp, Change::To(Some(_))) && !company.is_test() {
            return Err(body.must_be("fixed_otp", "omitted: the company is live"));
        }
        if let Change::To(Some(url)) = &new.event_url {
            (app.tables.on_event_url_set)(tx, &company.id, url).await?;
        }
        new.apply(company);
        Ok(())
    })
    .await?
    .to_response("Company updated successfully")
}

impl CompanyChange {
    fn apply(self, company: &mut Company) {
        company.name = self.name.unwrap_or_else(|| company.name.clone());
        self.logo.apply(&mut company.logo);
        self.event_url.apply(&mut company.event_url);
        self.payment_service.apply(&mut company.payment_service);
        self.low_balance.apply(&mut company.low_balance);
        self.countries.apply(&mut company.countries);
        self.sms_gateway.apply(&mut company.sms_gateway);
        self.sms_sender.apply(&mut company.sms_sender);
        self.sms_prefixes.apply(&mut company.sms_prefixes);
        self.fixed_otp.apply(&mut company.fixed_otp);
        company.active = self.active.unwrap_or(company.active);
    }
}
