//! Companies, the tenants: their API keys and subscriptions.

mod accepted_keys;
pub mod api;
mod fetching;
mod principals;
pub mod routing;
pub mod scopes;
mod signing;
mod store;

use subtle::ConstantTimeEq;
use url::Url;

pub use self::{
    accepted_keys::AcceptedKeys,
    fetching::FetchingCompany,
    principals::AuthenticatedCompany,
    signing::{RotatedSecret, SigningSecret, new_event_secret},
    store::{Company, Key, SEALED, Subscription},
};
use self::{accepted_keys::KnownKey, store::KeyHolder};
use crate::{state::prelude::*, tenants::plans};
use tollhouse_http::{CompanyCall, RequestOrigin};
use tollhouse_platform::{crypto::digest, values::phone};

impl Company {
    /// Returns 403 unless the company's plan includes `feature`.
    pub fn check_feature(&self, feature: &str) -> Result<()> {
        debug_assert!(plans::FEATURES.contains(&feature), "no plan can include {feature}");
        match &self.subscription.features {
            Some(plan) if !plan.0.iter().any(|included| included == feature) => {
                Err(Error::Forbidden(format!("your plan does not include {feature}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the company is a test company, which moves no real money.
    pub fn is_test(&self) -> bool {
        self.server == "test"
    }

    /// Returns 400 unless text messages may go to this number: it begins with one of the company's
    /// prefixes or, if there are none, belongs to its countries (`default` if it names none).
    pub fn check_phone(&self, phone: &str, default: &[String]) -> Result<()> {
        if let Some(Json(allowed)) = &self.sms_prefixes {
            if allowed.iter().any(|prefix| phone.starts_with(&**prefix)) {
                return Ok(());
            }
            let allowed = allowed.join(", ");
            return Err(Error::Invalid(format!(
                "the phone field must begin with one of {allowed}"
            )));
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
        let ended = self.subscription.expires_at.is_some_and(|at| at <= now);
        if !self.subscription.active || ended {
            return Err(Error::Forbidden("active subscription required".to_owned()));
        }
        Ok(())
    }

    /// Returns the secrets that sign events, the current one first.
    pub fn event_secrets(&self, app: &App) -> Result<Vec<String>> {
        self.signing_secret().open(app)
    }
}

/// Checks the URL in a field to which events are sent. Only development mode accepts plain HTTP:
/// otherwise, nothing is delivered over it.
pub fn check_event_url(
    app: &App,
    body: &Fields,
    field: &str,
    url: Option<String>,
) -> Result<Option<String>> {
    url.iter().try_for_each(|url| check_https(app, body, field, url))?;
    Ok(url)
}

/// Like [`check_event_url`], for a required URL.
pub fn check_https(app: &App, body: &Fields, field: &str, url: &str) -> Result<()> {
    let is_https = Url::parse(url).is_ok_and(|url| url.scheme() == "https");
    match is_https || app.settings.service.development {
        true => Ok(()),
        false => Err(body.must_be(field, "an https URL")),
    }
}

/// Returns the company of an API key. 401 if the key is unknown, revoked or expired; 429 beyond its
/// rate limit; 403 if the key's limits forbid the call, the company is suspended or its
/// subscription has ended.
pub async fn authenticate(
    app: &App,
    key: &str,
    call: &CompanyCall,
    origin: &RequestOrigin,
) -> Result<Company> {
    let holder = find_holder(app, &digest(key)).await?;
    call.set_key(&holder.company.id, &holder.key_id);
    app.rate_limits.keys.check(&holder.key_id)?;
    record_use(app, &holder.company.id, &holder.key_id, holder.last_used_at);
    holder.known().check(app, call, origin)?;
    holder.company.check_active(app.clock.now())?;
    Ok(holder.company)
}

/// Returns the holder of a valid API key by the key's digest; otherwise 401.
async fn find_holder(app: &App, digest: &str) -> Result<KeyHolder> {
    let found = app.store.select(async |tx| store::find_by_key(tx, digest).await).await?;
    let now = app.clock.now();
    let known = found.filter(|holder| {
        // The lookup is not constant-time, but it compares digests, so its duration reveals no key.
        let same = bool::from(holder.digest.as_bytes().ct_eq(digest.as_bytes()));
        same && holder.revoked_at.is_none() && holder.expires_at.is_none_or(|at| now < at)
    });
    let accepted = app.slot::<AcceptedKeys>();
    let Some(holder) = known else {
        accepted.reject(digest);
        return Err(Error::Unauthorized("the API key is not valid"));
    };
    accepted.accept(digest, Some(holder.known()));
    Ok(holder)
}

fn record_use(app: &App, company_id: &CompanyId, key_id: &String, last: Option<Timestamp>) {
    let (db, now, used) =
        (app.store.clone(), app.clock.now(), (company_id.clone(), key_id.clone()));
    app.record_use(key_id, last, async move {
        let record =
            async move |tx: &mut Tx| store::record_key_use(tx, &used.0, &used.1, now).await;
        db.write(record).await
    });
}

pub async fn find(app: &App, id: &str) -> Result<Company> {
    app.store.select(async |tx| get(tx, id).await).await
}

/// Returns a company; 404 if it does not exist.
pub async fn get(tx: &mut Tx, id: &str) -> Result<Company> {
    store::find(tx, id).await?.ok_or_else(|| Error::not_found("company not found"))
}

/// Returns a company and locks its row until the transaction ends; 404 if it does not exist.
pub async fn lock(tx: &mut Tx, id: &str) -> Result<Company> {
    store::lock(tx, id).await?.ok_or_else(|| Error::not_found("company not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn company() -> Company {
        let subscription = Subscription { active: true, expires_at: None, features: None };
        Company { active: true, subscription, ..Company::default() }
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
        let subscribed = |active, expires_at: Option<i64>, features: Option<&[&str]>| {
            let features = features.map(|all| Json(all.iter().map(ToString::to_string).collect()));
            let expires_at = expires_at.map(Timestamp);
            Company { subscription: Subscription { active, expires_at, features }, ..company() }
        };
        for (company, allowed) in [
            (company(), true),
            (Company { active: false, ..company() }, false),
            (subscribed(false, None, None), false),
            (subscribed(true, Some(1_000), None), false),
            (subscribed(true, Some(1_001), None), true),
            (subscribed(true, None, Some(&["otp"])), false),
            (subscribed(true, None, Some(&["otp", "payments"])), true),
        ] {
            let checked =
                company.check_active(now).and_then(|()| company.check_feature("payments"));
            assert_eq!(checked.is_ok(), allowed, "{company:?}");
        }
    }
}
