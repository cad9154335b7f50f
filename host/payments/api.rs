//! The requests of the payments section of the specification, and the operator's refund.

use axum::extract::State;
use serde_json::Value;

use super::{
    CHANNELS, Payment, Status,
    flow::{self, Order},
    missing, refund,
    settle::{self, Settled},
    store::{self, Filter, Sort},
};
use crate::{
    app::App,
    companies,
    companies::Company,
    error::{Error, Result},
    events,
    http::{Caller, answer::Answer, body::Fields, path::Path, query::Query},
    listing,
    money::{Minor, Money},
    store::Tx,
    users::{self, User},
};

const FEATURE: &str = "payments";
/// What a currency may be when the provider is not known.
const CURRENCIES: [&str; 2] = ["NGN", "USD"];
/// What the specification lets `payment_service` be. One that is not installed here is a provider that is not configured.
const SPECIFIED_PROVIDERS: [&str; 3] = ["provider_a", "provider_b", "provider_c"];
const STATUSES: [&str; 4] = ["pending", "success", "failed", "refunded"];

pub async fn initialize(
    State(app): State<App>,
    Caller(company): Caller,
    body: Fields,
) -> Result<Answer> {
    company.check_feature(FEATURE)?;
    let order = read(&app, &company, &body)?;
    let payment = flow::initialize(&app, &company, order).await?;
    let user = payment.user_key.clone().map_or(Value::Null, Value::from);
    Answer::data(payment.view(user), "Payment initialized successfully")
}

/// In the order of the specification's table, so that the first offending field is named.
fn read(app: &App, company: &Company, body: &Fields) -> Result<Order> {
    let user_id = body.text("user_id", 100)?;
    let email = body.email("email")?;
    if user_id.is_none() && email.is_none() {
        return Err(body.required("email"));
    }
    let minor = body.amount("amount")?;
    let currency = read_currency(app, company, body)?;
    let reference = body.visible("reference", 100)?;
    let narration = body.text("narration", 500)?.unwrap_or_default();
    let callback_url = events::destination(app, body, "callback_url")?;
    let channels = body.set_of("channels", &CHANNELS)?;
    let checkout = body.nested("checkout")?;
    let success_url =
        checkout.url("success_url")?.ok_or_else(|| checkout.required("success_url"))?;
    let cancel_url = checkout.url("cancel_url")?;
    let provider = read_provider(app, company, body)?;
    let metadata = body.object("metadata")?.unwrap_or_default();
    if body.number("charge")?.is_some_and(|charge| charge != Minor(0)) {
        return Err(Error::invalid("charge is not allowed"));
    }
    let money = Money { minor, currency };
    Ok(Order {
        user_id,
        email,
        money,
        reference,
        narration,
        callback_url,
        channels,
        success_url,
        cancel_url,
        provider,
        metadata,
    })
}

/// A currency of the provider that will be used.
fn read_currency(app: &App, company: &Company, body: &Fields) -> Result<String> {
    let provider = read_provider(app, company, body).ok();
    let provider = provider.and_then(|name| app.plugins.provider(&name));
    let allowed = match &provider {
        Some(provider) => provider.manifest().currencies.iter().map(String::as_str).collect(),
        None => CURRENCIES.to_vec(),
    };
    body.one_of("currency", &allowed)?.ok_or_else(|| body.required("currency"))
}

/// The provider sent, else the company's, else the service's.
fn read_provider(app: &App, company: &Company, body: &Fields) -> Result<String> {
    let installed = app.plugins.names();
    let mut known: Vec<&str> = installed.iter().map(String::as_str).collect();
    known.extend(SPECIFIED_PROVIDERS.iter().filter(|name| !installed.iter().any(|i| i == *name)));
    let sent = body.one_of("payment_service", &known)?;
    let chosen = sent.or_else(|| company.payment_service.clone());
    Ok(chosen.unwrap_or_else(|| app.settings.default_provider.clone()))
}

pub async fn verify(
    State(app): State<App>,
    Caller(company): Caller,
    Path(reference): Path<String>,
) -> Result<Answer> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| store::by_reference(tx, &company.id, &reference).await;
    let payment = app.store.select(read).await?.ok_or_else(missing)?;
    let payment = match payment.status {
        Status::Success | Status::Refunded => payment,
        Status::Pending | Status::Failed => match settle::verify(&app, &payment).await? {
            Settled::Known(payment) => *payment,
            Settled::Unknown => payment,
            Settled::Mismatch(_, what) => return Err(Error::invalid(what)),
        },
    };
    if payment.status == Status::Pending {
        return Err(Error::invalid("payment still pending"));
    }
    populated(&app, &payment, "Payment verified successfully").await
}

pub async fn fetch(
    State(app): State<App>,
    Caller(company): Caller,
    Path(id): Path<String>,
) -> Result<Answer> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| store::find(tx, &company.id, &id).await;
    let payment = app.store.select(read).await?.ok_or_else(missing)?;
    populated(&app, &payment, "Payment fetched successfully").await
}

pub async fn fetch_by_reference(
    State(app): State<App>,
    Caller(company): Caller,
    Path(reference): Path<String>,
) -> Result<Answer> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| store::by_reference(tx, &company.id, &reference).await;
    let payment = app.store.select(read).await?.ok_or_else(missing)?;
    populated(&app, &payment, "Payment fetched successfully").await
}

async fn populated(app: &App, payment: &Payment, message: &'static str) -> Result<Answer> {
    let mut users = Vec::new();
    if let Some(id) = &payment.user_key {
        let id = std::slice::from_ref(id);
        let read = async |tx: &mut Tx| users::find_all(tx, &payment.company_id, id).await;
        users = app.store.select(read).await?;
    }
    Answer::data(payment.view(payment.populated(&users, app.clock.now())), message)
}

pub async fn list(State(app): State<App>, Caller(company): Caller, query: Query) -> Result<Answer> {
    company.check_feature(FEATURE)?;
    let page = query.page(20, 1_000)?;
    let text = |name: &str| query.text(name).map(str::to_owned);
    let filter = Filter {
        status: query.one_of("status", &STATUSES)?,
        user_id: text("user_id"),
        provider: text("provider"),
        payment_channel: text("payment_channel"),
        created: query.days("created_at")?,
        paid: query.days("paid_at")?,
    };
    let (created, updated) = (query.order("sort-created_at")?, query.order("sort-updated_at")?);
    let sort = match (created, updated) {
        (None, Some(order)) => Sort::Updated(order),
        (Some(order), _) => Sort::Created(order),
        (None, None) => Sort::Created(listing::Order::Descending),
    };
    let (total, payments, users) = app
        .store
        .read(async |tx| -> Result<_> {
            let (total, payments) = store::list(tx, &company.id, &filter, sort, page).await?;
            let users = users_of(tx, &company.id, &payments).await?;
            Ok((total, payments, users))
        })
        .await?;
    let now = app.clock.now();
    let docs = payments.iter().map(|p| p.view_without_response(p.populated(&users, now)));
    Answer::data(page.of(total, docs.collect()), "Payment listed successfully")
}

async fn users_of(
    tx: &mut Tx,
    company_id: &str,
    payments: &[Payment],
) -> crate::store::Result<Vec<User>> {
    let mut ids: Vec<String> = payments.iter().filter_map(|p| p.user_key.clone()).collect();
    ids.sort();
    ids.dedup();
    users::find_all(tx, company_id, &ids).await
}

/// The operator's refund of a successful payment: `{force?}`.
pub async fn refund(
    State(app): State<App>,
    Path((company, payment)): Path<(String, String)>,
    body: Fields,
) -> Result<Answer> {
    let force = body.boolean("force")?.unwrap_or(false);
    companies::find(&app, &company).await?;
    let refunded = refund::refund(&app, &company, &payment, force).await?;
    populated(&app, &refunded, "Payment refunded successfully").await
}

/// How a refund stands, in the payment's currency.
pub async fn fetch_refund(
    State(app): State<App>,
    Path((company, payment)): Path<(String, String)>,
) -> Result<Answer> {
    let read = async |tx: &mut Tx| -> Result<_> {
        store::find(tx, &company, &payment).await?.ok_or_else(missing)?;
        let refund = store::refund(tx, &company, &payment).await?;
        refund.ok_or_else(|| Error::not_found("refund not found"))
    };
    let refund = app.store.read(read).await?;
    Answer::data(refund, "Refund fetched successfully")
}
