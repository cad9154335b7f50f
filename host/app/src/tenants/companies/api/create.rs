//! Creating a company.

use super::super::scopes::KeyLimits;
use super::{check_countries, check_provider, keys::issue_key};
use crate::tenants::{
    companies::{Subscription, new_event_secret, store},
    prelude::*,
};

choices! {
    Server = &["live", "test"];
}

fields! {
    /// A new company.
    Body NewCompany(body, app: &App) {
        name: Text<100>,
        /// `live` for real money, `test` otherwise.
        server: OneOf<Server>,
        /// HTTPS URL that receives events; development mode also accepts HTTP.
        event_url: Option<HttpUrl> => check_event_url(app, body, "event_url", event_url),
        logo: Option<HttpUrl>,
        /// The provider of payments and cards that name none. Default: that of the service.
        payment_service: Option<Text<100>>
            => check_provider(app, body, payment_service),
        /// ISO 3166 codes of the countries in which the company operates, for example `NG`. Text
        /// messages go only to numbers of these countries. Default: the countries of the service.
        #[schemars(extend("minItems" = 1, "items" = { "type": "string", "pattern": "^[A-Z]{2}$" }))]
        countries: Option<Texts> as Option<Json<Vec<String>>> => check_countries(body, countries),
    }
}

/// A created company. The event secret and the API key are returned only once.
#[derive(Serialize, JsonSchema)]
pub struct CreatedCompany {
    #[serde(flatten)]
    company: Company,
    /// Secret that signs the company's events, in the format of Standard Webhooks.
    event_secret: String,
    /// First API key of the company.
    api_key: String,
}

pub async fn create(
    State(app): State<App>,
    actor: Actor,
    body: Body<NewCompany>,
) -> Result<DataResponse<CreatedCompany>> {
    let NewCompany { name, server, event_url, logo, payment_service, countries } =
        NewCompany::read(&body, &app)?;
    let now = app.clock.now();
    let id = CompanyId::from(app.random.id(now));
    let event_secret = new_event_secret(&app.random);
    let company = Company {
        event_secret: store::seal_event_secret(&app.sealer, &id, &event_secret),
        id,
        name,
        server,
        logo,
        event_url,
        payment_service,
        countries,
        active: true,
        subscription: Subscription { active: true, expires_at: None, features: None },
        created_at: now,
        updated_at: now,
        ..Company::default()
    };
    let db = app.store.clone();
    db.write(async move |tx| {
        store::insert(tx, &company).await?;
        let label = Some("first key".to_owned());
        let api_key =
            issue_key(tx, &app, &company, label, KeyLimits::default(), None).await?.api_key;
        let detail = json!({ "name": company.name, "server": company.server });
        audit::record(tx, &app, &actor, &company.id, "company.create", detail).await?;
        let created = CreatedCompany { company, event_secret, api_key };
        DataResponse::data(created, "Company created successfully")
    })
    .await
}
