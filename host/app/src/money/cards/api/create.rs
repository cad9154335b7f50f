//! Saving a card.

use crate::{
    money::cards::{FEATURE, create as flow, view::Created},
    state::prelude::*,
    tenants::{
        companies::{AuthenticatedCompany, Company},
        providers,
    },
};
use tollhouse_platform::values::money::Currency;

choices! {
    CardCurrency = &["NGN", "USD"];
}

fields! {
    /// A card to save.
    Body NewCard(body, app: &App, company: &Company) {
        /// The `user_id` or internal id of the card's user.
        user_id: Text<100>,
        currency: OneOf<CardCurrency> as Currency => Ok(Currency::from(currency)),
        checkout: Body<Pages>,
        /// The provider. Default: the company's provider, else the service's.
        #[schemars(extend("examples" = ["provider_a"]))]
        payment_service: Option<Text<100>> as String
            => choose_provider(app, company, body, &currency, payment_service.as_deref()),
    }
}

fields! {
    /// Return URLs of the checkout session.
    #[schemars(rename = "CardPages")]
    Body Pages {
        success_url: ReturnUrl,
        cancel_url: Option<ReturnUrl>,
    }
}

fn choose_provider(
    app: &App,
    company: &Company,
    body: &Fields,
    currency: &str,
    sent: Option<&str>,
) -> Result<String> {
    let provider = providers::choose_provider(app, company, sent, body)?;
    if let Ok(plugin) = app.plugins.provider(&provider, &company.id) {
        let takes: Vec<&str> = plugin.manifest().currencies.iter().map(String::as_str).collect();
        body.require_one_of("currency", currency, &takes)?;
        if !plugin.exports("saved-card") {
            return Err(body.must_be("payment_service", "a provider that saves cards"));
        }
    }
    Ok(provider)
}

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewCard>,
) -> Result<DataResponse<Created>> {
    company.check_feature(FEATURE)?;
    let order = NewCard::read(&body, &app, &company)?;
    let card = flow::create(&app, &company, order, run.name("card")).await?;
    DataResponse::data(card.created(), "Card created successfully")
}
