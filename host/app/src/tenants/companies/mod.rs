//! Companies, the tenants: their API keys and subscriptions.

mod accepted_keys;
pub mod api;
pub mod audit;
mod event_url;
mod principals;
mod store;

use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use self::store::KeyHolder;
pub use self::{
    accepted_keys::AcceptedKeys,
    event_url::check_event_url,
    principals::AuthenticatedCompany,
    store::{Company, Key, SEALED},
};
use crate::{state::App, tenants::plans};
use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    store::{Json, Tx},
    values::{id::CompanyId, money::Minor, phone},
};

/// Time for which the previous event secret also signs events.
const SECRET_OVERLAP_SECONDS: i64 = 24 * 3600;

impl Company {
    /// Returns 403 unless the company's plan includes `feature`.
    pub fn check_feature(&self, feature: &str) -> Result<()> {
        debug_assert!(plans::FEATURES.contains(&feature), "no plan can include {feature}");
        match &self.features {
            Some(plan) if !plan.0.iter().any(|included| included == feature) => {
                Err(Error::Forbidden(format!("your plan does not include {feature}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the company is a test company, which moves no real money.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.server == "test"
    }

    /// Returns 400 unless text messages may go to this number: it begins with one of the company's
    /// prefixes or, if there are none, belongs to its countries (`default` if it names none).
    pub fn check_phone(&self, phone: &str, default: &[String]) -> Result<()> {
        if let Some(Json(allowed)) = &self.sms_prefixes {
            return match allowed.iter().any(|prefix| phone.starts_with(&**prefix)) {
                true => Ok(()),
                false => {
                    let allowed = allowed.join(", ");
                    Err(Error::invalid(format!("the phone field must begin with one of {allowed}")))
                }
            };
        }
        let countries =
            self.countries.as_ref().map_or(default, |Json(countries)| countries.as_slice());
        match phone::belongs_to(phone, countries) {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "the phone field must be a number in one of these countries: {}",
                countries.join(", ")
            ))),
        }
    }

    /// Returns 403 if the company is suspended or its subscription has ended.
    pub fn check_active(&self, now: Timestamp) -> Result<()> {
        if !self.active {
            return Err(Error::Forbidden("the company is suspended".to_owned()));
        }
        let ended = self.subscription_expires_at.is_some_and(|at| at <= now);
        if !self.subscription_active || ended {
            return Err(Error::Forbidden("active subscription required".to_owned()));
        }
        Ok(())
    }

    /// The representation for operators, without the event secrets.
    #[must_use]
    pub fn view(&self) -> View {
        View {
            id: self.id.clone(),
            name: self.name.clone(),
            server: self.server.clone(),
            logo: self.logo.clone(),
            event_url: self.event_url.clone(),
            payment_service: self.payment_service.clone(),
            low_balance: self.low_balance,
            countries: self.countries.as_ref().map(|countries| countries.0.clone()),
            sms_gateway: self.sms_gateway.clone(),
            sms_sender: self.sms_sender.clone(),
            sms_prefixes: self.sms_prefixes.as_ref().map(|prefixes| prefixes.0.clone()),
            fixed_otp: self.fixed_otp.clone(),
            active: self.active,
            subscription: Subscription {
                active: self.subscription_active,
                expires_at: self.subscription_expires_at,
                features: self.features.as_ref().map(|plan| plan.0.clone()),
            },
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    /// Returns the secrets that sign events, the current one first. A previous secret that cannot
    /// be opened is omitted: receivers that know the current one still accept the events.
    pub fn event_secrets(&self, app: &App) -> Result<Vec<String>> {
        let mut secrets = vec![self.open_event_secret(&app.sealer)?];
        if self.previous_event_secret_until.is_some_and(|until| until > app.clock.now()) {
            match self.open_previous_event_secret(&app.sealer) {
                Ok(previous) => secrets.extend(previous),
                Err(error) => tracing::warn!(
                    company = self.id.as_str(),
                    %error,
                    "previous event secret cannot be opened; events are signed without it"
                ),
            }
        }
        Ok(secrets)
    }
}

/// A company.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Company")]
pub struct View {
    id: CompanyId,
    name: String,
    /// `live` or `test`.
    server: String,
    logo: Option<String>,
    /// URL that receives events.
    event_url: Option<String>,
    /// Provider that is used if a request names none; `null`: the default of the service.
    payment_service: Option<String>,
    /// Balance below which operators receive an event. 0: disabled; `null`: the service's default.
    low_balance: Option<Minor>,
    /// ISO 3166 codes of the countries in which the company operates. Text messages go only to
    /// numbers of these countries. `null`: the countries of the service.
    countries: Option<Vec<String>>,
    /// SMS gateway that is tried first; `null`: the default of the service.
    sms_gateway: Option<String>,
    /// Sender of text messages; `null`: the default of the gateway account.
    sms_sender: Option<String>,
    /// Allowed prefixes of phone numbers, in place of the rule by country; `null`: no prefixes.
    sms_prefixes: Option<Vec<String>>,
    /// Fixed one-time password of a test company.
    fixed_otp: Option<String>,
    /// `false` if the company is suspended.
    active: bool,
    subscription: Subscription,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Subscription of a company.
#[derive(Debug, Serialize, JsonSchema)]
struct Subscription {
    active: bool,
    /// `null`: no end.
    expires_at: Option<Timestamp>,
    /// Features of the plan; `null`: all.
    features: Option<Vec<String>>,
}

/// Returns the company of an API key. 401 if the key is unknown, revoked or expired; 429 beyond its
/// rate limit; 403 if the company is suspended or its subscription has ended.
pub async fn authenticate(app: &App, key: &str) -> Result<Company> {
    let digest = digest(key);
    let found = app.store.select(async |tx| store::find_by_key(tx, &digest).await).await?;
    let now = app.clock.now();
    let known = found.filter(|holder| {
        // The lookup is not constant-time, but it compares digests, so its duration reveals no key.
        let same = bool::from(holder.digest.as_bytes().ct_eq(digest.as_bytes()));
        same && holder.revoked_at.is_none() && holder.expires_at.is_none_or(|at| now < at)
    });
    app.slot::<AcceptedKeys>().record(&digest, known.is_some());
    let holder = known.ok_or(Error::Unauthorized("the API key is not valid"))?;
    app.rate_limits.keys.check(&holder.key_id)?;
    record_key_use(app, &holder, now);
    holder.company.check_active(now)?;
    Ok(holder.company)
}

/// Records the use of a key in the background, at most once a minute.
fn record_key_use(app: &App, holder: &KeyHolder, now: Timestamp) {
    const MINUTE_MS: i64 = 60_000;
    let lately = holder.last_used_at.is_some_and(|at| now.0 - at.0 < MINUTE_MS);
    if lately || app.rate_limits.key_uses.check(&holder.key_id).is_err() {
        return;
    }
    let (db, company_id, id) =
        (app.store.clone(), holder.company.id.clone(), holder.key_id.clone());
    app.tasks.spawn(async move {
        let noted =
            db.write(async move |tx| store::record_key_use(tx, &company_id, &id, now).await);
        if let Err(error) = noted.await {
            tracing::warn!(%error, "last use of an API key could not be recorded");
        }
    });
}

pub async fn find(app: &App, id: &str) -> Result<Company> {
    app.store.select(async |tx| get(tx, id).await).await
}

/// Returns a company; 404 if it does not exist.
pub async fn get(tx: &mut Tx, id: &str) -> Result<Company> {
    store::find(tx, id).await?.ok_or_else(|| Error::not_found("company not found"))
}

/// Digests a key for storage. A plain hash is safe because a key has at least 160 random bits.
fn digest(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn company() -> Company {
        Company {
            id: "c".into(),
            name: "Acme".into(),
            server: "test".into(),
            logo: None,
            event_url: None,
            payment_service: None,
            active: true,
            event_secret: String::new(),
            previous_event_secret: None,
            previous_event_secret_until: None,
            subscription_active: true,
            subscription_expires_at: None,
            features: None,
            low_balance: None,
            countries: None,
            sms_gateway: None,
            sms_sender: None,
            sms_prefixes: None,
            fixed_otp: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        }
    }

    #[test]
    fn phone_must_match_a_prefix_or_without_prefixes_a_country() {
        let default = ["NG".to_owned()];
        let some =
            |texts: &[&str]| Some(Json(texts.iter().map(|text| (*text).to_owned()).collect()));
        for (countries, sms_prefixes, phone, fine) in [
            (None, None, "+2348012345678", true),
            (None, None, "+12025550123", false),
            (None, None, "+881612345678", false),
            (some(&["US", "GH"]), None, "+12025550123", true),
            (some(&["US", "GH"]), None, "+18765550123", false),
            (some(&["US", "GH"]), None, "+2348012345678", false),
            (some(&["GH"]), some(&["+"]), "+881612345678", true),
            (None, some(&["+234", "+233"]), "+2348012345678", true),
            (None, some(&["+234", "+233"]), "+233201234567", true),
            (some(&["US"]), some(&["+234"]), "+12025550123", false),
            (None, some(&[]), "+2348012345678", false),
        ] {
            let company = Company { countries, sms_prefixes, ..company() };
            let checked = company.check_phone(phone, &default);
            assert_eq!(checked.is_ok(), fine, "{company:?} {phone}");
        }
    }

    #[test]
    fn inactive_companies_and_missing_features_are_rejected() {
        let now = Timestamp(1_000);
        let plan =
            |features: &[&str]| Some(Json(features.iter().map(|f| (*f).to_owned()).collect()));
        for (company, allowed) in [
            (company(), true),
            (Company { active: false, ..company() }, false),
            (Company { subscription_active: false, ..company() }, false),
            (Company { subscription_expires_at: Some(Timestamp(1_000)), ..company() }, false),
            (Company { subscription_expires_at: Some(Timestamp(1_001)), ..company() }, true),
            (Company { features: plan(&["otp"]), ..company() }, false),
            (Company { features: plan(&["otp", "payments"]), ..company() }, true),
        ] {
            let checked =
                company.check_active(now).and_then(|()| company.check_feature("payments"));
            assert_eq!(checked.is_ok(), allowed, "{company:?}");
        }
    }
}
