//! Creating a company.

use super::{check_countries, keys::new_key, secret::new_event_secret};
use crate::{
    operations::audit,
    state::prelude::*,
    tenants::companies::{Company, View, check_event_url, digest, store},
};
use tollhouse_platform::values::id::CompanyId;

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
    let NewCompany { name, server, event_url, logo, countries } = NewCompany::read(&body, &app)?;
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
        countries,
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
