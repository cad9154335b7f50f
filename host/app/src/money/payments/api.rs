//! The payment endpoints of the specification, and the operator's refund.

use axum::extract::State;
use serde_json::json;

use super::{
    CHANNELS, Payment, Refund, Status, flow, not_found, refund,
    settle::{self, PaymentVerification},
    store::{self, Filter},
    view::{Listed as ListedPayment, UserId, View},
};
use crate::{
    customers as users,
    customers::User,
    money::payments::PaymentId,
    operations::audit,
    state::App,
    tenants::{
        companies::{self, AuthenticatedCompany, Company, check_event_url},
        providers,
    },
};
use tollhouse_http::{
    IdempotentRequest,
    request::{
        body::Body,
        fields::{
            Amount, Choice, Decimal, Email, Flag, HttpUrl, Object, OneOf, ReturnUrl, SomeOf, Text,
            Visible, fields,
        },
        path::Path,
        query::{Days, Direction, Exactly, Limit, PageNumber, Query},
    },
    response::DataResponse,
};
use tollhouse_platform::{
    error::{Error, Result},
    store::Tx,
    values::{
        id::CompanyId,
        listing::{ListPage, PageRequest, TimeSort},
        money::{Minor, Money},
    },
};

const FEATURE: &str = "payments";
/// The accepted currencies when the provider is unknown.
const CURRENCIES: [&str; 2] = ["NGN", "USD"];

pub struct Channel;

impl Choice for Channel {
    const ALL: &'static [&'static str] = &CHANNELS;
}

fields! {
    /// A payment to initialize.
    #[schemars(extend("anyOf" = [
        { "required": ["user_id"], "properties": { "user_id": { "type": "string", "minLength": 1 } } },
        { "required": ["email"], "properties": { "email": { "type": "string", "minLength": 1 } } },
    ]))]
    Body NewPayment {
        /// The user who pays, by `user_id` or internal id. The user's e-mail address takes
        /// precedence over `email`.
        user_id: Option<Text<100>>,
        email: Option<Email>,
        amount: Amount,
        /// A currency that the provider supports.
        #[schemars(extend("examples" = ["NGN"]))]
        currency: Text<100>,
        /// A unique reference, else generated. The same reference returns the existing payment.
        reference: Option<Visible<100>>,
        narration: Option<Text<500>>,
        /// Additional webhook endpoint for this payment's events: https, except in development.
        callback_url: Option<HttpUrl>,
        /// The channels that the checkout page offers. Default: all channels of the provider.
        channels: Option<SomeOf<Channel>>,
        checkout: Body<Checkout>,
        /// The provider. Default: the company's provider, else the service's.
        #[schemars(extend("examples" = ["provider_a"]))]
        payment_service: Option<Text<100>>,
        metadata: Option<Object>,
        /// Must be 0.
        #[schemars(extend("const" = 0))]
        charge: Option<Decimal>,
    }
}

fields! {
    /// Return URLs of the checkout session.
    Body Checkout {
        success_url: ReturnUrl,
        cancel_url: Option<ReturnUrl>,
    }
}

pub async fn initialize(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewPayment>,
) -> Result<DataResponse<View<UserId>>> {
    company.check_feature(FEATURE)?;
    let mut order = read(&app, &company, &body)?;
    order.reference = order.reference.or_else(|| run.name("pay"));
    let payment = flow::initialize(&app, &company, order).await?;
    DataResponse::data(payment.view(), "Payment initialized successfully")
}

/// Validates the fields in the specification's order: the error names the first invalid one.
fn read(app: &App, company: &Company, body: &Body<NewPayment>) -> Result<flow::PaymentRequest> {
    let (user_id, email) = (body.user_id()?, body.email()?);
    if user_id.is_none() && email.is_none() {
        return Err(body.required("email"));
    }
    let minor = body.amount()?;
    let currency = read_currency(app, company, body)?;
    let reference = body.reference()?;
    let narration = body.narration()?.unwrap_or_default();
    let callback_url = check_event_url(app, body, "callback_url", body.callback_url()?)?;
    let channels = body.channels()?;
    let checkout = body.checkout()?;
    let (success_url, cancel_url) = (checkout.success_url()?, checkout.cancel_url()?);
    let provider = read_provider(app, company, body)?;
    let metadata = body.metadata()?.unwrap_or_default();
    if body.charge()?.is_some_and(|charge| charge != Minor(0)) {
        return Err(Error::invalid("charge is not allowed"));
    }
    let money = Money { minor, currency: currency.into() };
    Ok(flow::PaymentRequest {
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

/// Validates the currency against the provider that will be used.
fn read_currency(app: &App, company: &Company, body: &Body<NewPayment>) -> Result<String> {
    let provider = match read_provider(app, company, body) {
        Err(busy @ Error::RetryLater { .. }) => return Err(busy),
        chosen => chosen.ok(),
    };
    if let Some(name) = &provider {
        app.plugins.must_be_ready(name)?;
    }
    let provider = provider.and_then(|name| app.plugins.provider(&name, &company.id).ok());
    let allowed = match &provider {
        Some(provider) => provider.manifest().currencies.iter().map(String::as_str).collect(),
        None => CURRENCIES.to_vec(),
    };
    let currency = body.currency()?;
    body.require_one_of("currency", &currency, &allowed)?;
    Ok(currency)
}

fn read_provider(app: &App, company: &Company, body: &Body<NewPayment>) -> Result<String> {
    providers::choose_provider(app, company, body.payment_service()?.as_deref(), body)
}

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<DataResponse<View<users::View>>> {
    company.check_feature(FEATURE)?;
    let payment =
        verify_unless_final(&app, find_by_reference(&app, &company.id, &reference).await?).await?;
    if payment.status == Status::Pending {
        return Err(Error::invalid("payment still pending"));
    }
    respond_with_user(&app, payment, "Payment verified successfully").await
}

/// Verifies a payment with the provider, unless its status is final.
async fn verify_unless_final(app: &App, payment: Payment) -> Result<Payment> {
    match payment.status {
        Status::Success | Status::Refunded => Ok(payment),
        Status::Pending | Status::Failed => match settle::verify(app, &payment).await? {
            PaymentVerification::Known(payment) => Ok(*payment),
            PaymentVerification::Unknown => Ok(payment),
            PaymentVerification::Mismatch(_, what) => Err(Error::invalid(what)),
        },
    }
}

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(id): Path<PaymentId>,
) -> Result<DataResponse<View<users::View>>> {
    company.check_feature(FEATURE)?;
    let payment = find_by_id(&app, &company.id, &id).await?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

pub async fn fetch_by_reference(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<DataResponse<View<users::View>>> {
    company.check_feature(FEATURE)?;
    let payment = find_by_reference(&app, &company.id, &reference).await?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

async fn find_by_id(app: &App, company_id: &CompanyId, id: &PaymentId) -> Result<Payment> {
    let read = async |tx: &mut Tx| store::find(tx, company_id, id).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

async fn find_by_reference(app: &App, company_id: &CompanyId, reference: &str) -> Result<Payment> {
    let read = async |tx: &mut Tx| store::find_by_reference(tx, company_id, reference).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

async fn respond_with_user(
    app: &App,
    payment: Payment,
    message: &'static str,
) -> Result<DataResponse<View<users::View>>> {
    let mut users = Vec::new();
    if let Some(id) = &payment.user_key {
        let id = std::slice::from_ref(id);
        let read = async |tx: &mut Tx| users::find_by_ids(tx, &payment.company_id, id).await;
        users = app.store.select(read).await?;
    }
    DataResponse::data(payment.view_with_user(&users, app.clock.now()), message)
}

impl Choice for Status {
    const ALL: &'static [&'static str] = &["pending", "success", "failed", "refunded"];
}

fields! {
    /// Filter and order of payments. Default: newest first.
    Query Wanted {
        /// Page number, from 1.
        page: PageNumber,
        /// Maximum number of payments per page; more than 1,000 counts as 1,000.
        limit: Limit<20, 1_000>,
        status: OneOf<Status>,
        /// The `user_id` or internal id of the user who pays.
        user_id: Exactly,
        provider: Exactly,
        /// The payment channel that the customer used.
        payment_channel: Exactly,
        /// A day in UTC, or the first and last day of a range.
        created_at: Days,
        /// A day in UTC, or the first and last day of a range.
        paid_at: Days,
        /// Takes precedence over `sort-updated_at`.
        sort_created_at as "sort-created_at": Direction,
        sort_updated_at as "sort-updated_at": Direction,
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    query: Query<Wanted>,
) -> Result<DataResponse<ListPage<ListedPayment<users::View>>>> {
    company.check_feature(FEATURE)?;
    list_for(&app, &company.id, &query).await
}

async fn list_for(
    app: &App,
    company_id: &CompanyId,
    query: &Query<Wanted>,
) -> Result<DataResponse<ListPage<ListedPayment<users::View>>>> {
    let page = PageRequest { number: query.page()?, limit: query.limit()? };
    let filter = Filter {
        status: query.status()?,
        user_key: None,
        provider: query.provider()?,
        payment_channel: query.payment_channel()?,
        created: query.created_at()?,
        paid: query.paid_at()?,
    };
    let sort = TimeSort::new(query.sort_created_at()?, query.sort_updated_at()?);
    let user_id = query.user_id()?;
    let (total, payments, users) = app
        .store
        .read(async |tx| -> Result<_> {
            let mut filter = filter;
            if let Some(user_id) = &user_id {
                let user = users::find(tx, company_id, user_id).await?;
                let Some(user) = user else { return Ok((0, Vec::new(), Vec::new())) };
                filter.user_key = Some(user.id);
            }
            let (total, payments) = store::list(tx, company_id, &filter, sort, page).await?;
            let users = users_of(tx, company_id, &payments).await?;
            Ok((total, payments, users))
        })
        .await?;
    let now = app.clock.now();
    let docs = payments.into_iter().map(|payment| payment.listed(&users, now));
    DataResponse::data(page.to_list_page(total, docs.collect()), "Payment listed successfully")
}

async fn users_of(
    tx: &mut Tx,
    company_id: &CompanyId,
    payments: &[Payment],
) -> tollhouse_platform::store::Result<Vec<User>> {
    let mut ids: Vec<_> = payments.iter().filter_map(|p| p.user_key.clone()).collect();
    ids.sort();
    ids.dedup();
    users::find_by_ids(tx, company_id, &ids).await
}

pub async fn list_of_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<Wanted>,
) -> Result<DataResponse<ListPage<ListedPayment<users::View>>>> {
    companies::find(&app, &company).await?;
    list_for(&app, &company, &query).await
}

pub async fn fetch_of_company(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<DataResponse<View<users::View>>> {
    let payment = find_by_id(&app, &company, &payment).await?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

pub async fn fetch_of_company_by_reference(
    State(app): State<App>,
    Path((company, reference)): Path<(CompanyId, String)>,
) -> Result<DataResponse<View<users::View>>> {
    let payment = find_by_reference(&app, &company, &reference).await?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

/// Verifies a payment for an operator. A pending payment is not an error here.
pub async fn verify_of_company(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<DataResponse<View<users::View>>> {
    let payment = find_by_id(&app, &company, &payment).await?;
    let (asked, db, noted) = (app.clone(), app.store.clone(), payment.id.clone());
    db.write(async move |tx| {
        audit::record(tx, &asked, &company, "payment.verify", json!({ "payment": noted })).await
    })
    .await?;
    let payment = verify_unless_final(&app, payment).await?;
    respond_with_user(&app, payment, "Payment verified successfully").await
}

fields! {
    /// Options of a refund.
    Body RefundOrder {
        /// `true` lets the wallet balance become negative.
        force: Option<Flag>,
    }
}

pub async fn refund(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
    body: Body<RefundOrder>,
) -> Result<DataResponse<View<users::View>>> {
    let force = body.force()?.unwrap_or(false);
    companies::find(&app, &company).await?;
    let refunded = refund::refund(&app, &company, &payment, force).await?;
    respond_with_user(&app, refunded, "Payment refunded successfully").await
}

/// Returns the refund of a payment. Its amount is in the payment's currency.
pub async fn fetch_refund(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<DataResponse<Refund>> {
    let read = async |tx: &mut Tx| -> Result<_> {
        store::find(tx, &company, &payment).await?.ok_or_else(not_found)?;
        let refund = store::find_refund(tx, &company, &payment).await?;
        refund.ok_or_else(|| Error::not_found("refund not found"))
    };
    let refund = app.store.read(read).await?;
    DataResponse::data(refund, "Refund fetched successfully")
}
