//! Initializing a payment.

use super::FEATURE;
use crate::{
    money::payments::{
        CHANNELS, flow,
        view::{UserId, View},
    },
    state::prelude::*,
    tenants::{
        companies::{AuthenticatedCompany, Company, check_event_url},
        providers::choose_provider,
    },
};
use tollhouse_platform::values::money::{Currency, Minor};

/// The accepted currencies when the provider is unknown.
const CURRENCIES: [&str; 2] = ["NGN", "USD"];

choices! {
    Channel = &CHANNELS;
}

fields! {
    /// A payment to initialize.
    #[schemars(extend("anyOf" = [
        { "required": ["user_id"], "properties": { "user_id": { "type": "string", "minLength": 1 } } },
        { "required": ["email"], "properties": { "email": { "type": "string", "minLength": 1 } } },
    ]))]
    Body NewPayment(body, app: &App, company: &Company) {
        /// The user who pays, by `user_id` or internal id. The user's e-mail address takes
        /// precedence over `email`.
        user_id: Option<Text<100>>,
        email: Option<Email> => match (&user_id, &email) {
            (None, None) => Err(body.required("email")),
            _ => Ok(email),
        },
        amount: Amount,
        /// A currency that the provider supports.
        #[schemars(extend("examples" = ["NGN"]))]
        currency: Text<100> as Currency => check_currency(app, company, body, currency),
        /// A unique reference, else generated. The same reference returns the existing payment.
        reference: Option<Visible<100>>,
        narration: Option<Text<500>>,
        /// Additional webhook endpoint for this payment's events: https, except in development.
        callback_url: Option<HttpUrl>
            => check_event_url(app, body, "callback_url", callback_url),
        /// The channels that the checkout page offers. Default: all channels of the provider.
        channels: Option<SomeOf<Channel>>,
        checkout: Body<Checkout>,
        /// The provider. Default: the company's provider, else the service's.
        #[schemars(extend("examples" = ["provider_a"]))]
        payment_service: Option<Text<100>> as String
            => choose_provider(app, company, payment_service.as_deref(), body),
        metadata: Option<Object>,
        /// Must be 0.
        #[schemars(extend("const" = 0))]
        charge: Option<Decimal> => match charge {
            None | Some(Minor(0)) => Ok(charge),
            Some(_) => Err(Error::invalid("charge is not allowed")),
        },
    }
}

fields! {
    /// Return URLs of the checkout session.
    Body Checkout {
        success_url: ReturnUrl,
        cancel_url: Option<ReturnUrl>,
    }
}

/// Checks the currency against the provider that will be used.
fn check_currency(
    app: &App,
    company: &Company,
    body: &Fields,
    currency: String,
) -> Result<Currency> {
    let sent = body.text("payment_service", 100);
    let provider = sent.and_then(|sent| choose_provider(app, company, sent.as_deref(), body));
    let provider = match provider {
        Err(busy @ Error::RetryLater { .. }) => return Err(busy),
        chosen => chosen.ok(),
    };
    if let Some(name) = &provider {
        app.plugins.ensure_ready(name)?;
    }
    let provider = provider.and_then(|name| app.plugins.provider(&name, &company.id).ok());
    let allowed = match &provider {
        Some(provider) => provider.manifest().currencies.iter().map(String::as_str).collect(),
        None => CURRENCIES.to_vec(),
    };
    body.require_one_of("currency", &currency, &allowed)?;
    Ok(currency.into())
}

pub async fn initialize(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewPayment>,
) -> Result<DataResponse<View<UserId>>> {
    company.check_feature(FEATURE)?;
    let mut order = NewPayment::read(&body, &app, &company)?;
    order.reference = order.reference.or_else(|| run.name("pay"));
    let payment = flow::initialize(&app, &company, order).await?;
    DataResponse::data(payment.view(), "Payment initialized successfully")
}
