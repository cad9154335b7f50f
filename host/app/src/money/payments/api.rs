//! The payment endpoints of the specification, and those for operators.

use std::collections::BTreeSet;

pub use super::timeline::timeline;
use super::{
    Payment, PaymentId, Status, find_by_id, flow, not_found, refund, store,
    view::{Listed, UserId, View},
};
use crate::money::{
    charges::{CHANNELS, Cause, OwnerKind, RefundTerms, choice::StoredChoice},
    prelude::*,
    refunds::PaymentRefund,
    routing::{self, Selection},
};

const FEATURE: &str = "payments";

type PaymentResponse = DataResponse<View<users::View>>;
type ListResponse = DataResponse<ListPage<Listed<users::View>>>;

async fn find_by_reference(app: &App, company_id: &CompanyId, reference: &str) -> Result<Payment> {
    let read = async |tx: &mut Tx| store::find_by_reference(tx, company_id, reference).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

async fn respond_with_user(
    app: &App,
    payment: Payment,
    message: &'static str,
) -> Result<PaymentResponse> {
    let mut user = None;
    if let Some(key) = &payment.user_key {
        let read = async |tx: &mut Tx| users::find_by_id(tx, &payment.company_id, key).await;
        user = app.store.select(read).await?;
    }
    let user = user.map(|user| user.view(app.clock.now()));
    DataResponse::data(payment.view(user), message)
}

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
        /// The payer's phone number, for providers that send a confirmation prompt to the phone.
        /// Default: the user's.
        phone: Option<Phone>,
        amount: Amount,
        /// A currency that the provider supports.
        #[schemars(extend("examples" = ["NGN"]))]
        currency: Text<100> as Currency => check_currency(app, company, body, currency),
        /// A unique reference. Default: generated. The same reference returns the existing payment.
        reference: Option<Visible<100>>,
        narration: Option<Text<500>>,
        /// Additional webhook endpoint for this payment's events: https, except in development.
        callback_url: Option<HttpUrl>
            => check_event_url(app, body, "callback_url", callback_url),
        /// The channels that the checkout page offers. Default: all channels of the provider.
        channels: Option<SomeOf<Channel>>,
        checkout: Body<Checkout>,
        /// The provider. Default: the one that the company's routing policy chooses, else the
        /// company's provider, else the service's.
        #[schemars(extend("examples" = ["provider_a"]))]
        payment_service: Option<Text<100>> as Selection
            => select_provider(app, company, payment_service.as_deref(), body),
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

fn select_provider(
    app: &App,
    company: &Company,
    sent: Option<&str>,
    body: &Fields,
) -> Result<Selection> {
    Selection::new(company, sent, || providers::choose_provider(app, company, sent, body))
}

/// Checks the currency against the provider that will be used.
fn check_currency(
    app: &App,
    company: &Company,
    body: &Fields,
    currency: String,
) -> Result<Currency> {
    let sent = body.text("payment_service", 100);
    let selected = sent.and_then(|sent| select_provider(app, company, sent.as_deref(), body));
    let names = match (selected, &company.routing) {
        (Err(busy @ Error::RetryLater { .. }), _) => return Err(busy),
        (Ok(Selection::Provider(name)), _) => {
            app.plugins.ensure_ready(&name)?;
            vec![name]
        }
        (Ok(Selection::Routed), Some(Json(policy))) => policy.providers(),
        (Ok(Selection::Routed), None) | (Err(_), _) => Vec::new(),
    };
    let plugins = names.iter().filter_map(|name| app.plugins.provider(name, &company.id).ok());
    let plugins: Vec<Provider> = plugins.collect();
    let mut allowed: Vec<&str> = plugins
        .iter()
        .flat_map(|plugin| plugin.manifest().currencies.iter().map(String::as_str))
        .collect();
    if plugins.is_empty() {
        allowed.extend(CURRENCIES);
    }
    let mut seen = BTreeSet::new();
    allowed.retain(|currency| seen.insert(*currency));
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
    DataResponse::data(payment.created(), "Payment initialized successfully")
}

pub async fn fetch(
    State(app): State<App>,
    company: FetchingCompany,
    RecordId(id): RecordId<PaymentId>,
) -> Result<PaymentResponse> {
    let payment = company.find(&app, FEATURE, |company_id| store::by_id(company_id, &id)).await?;
    let payment = payment.ok_or_else(not_found)?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

pub async fn fetch_by_reference(
    State(app): State<App>,
    company: FetchingCompany,
    RecordId(reference): RecordId<String>,
) -> Result<PaymentResponse> {
    let by_reference = |company_id: &CompanyId| store::by_reference(company_id, &reference);
    let payment = company.find(&app, FEATURE, by_reference).await?.ok_or_else(not_found)?;
    respond_with_user(&app, payment, "Payment fetched successfully").await
}

impl Choice for Status {
    const ALL: &'static [&'static str] = &["pending", "success", "failed", "refunded"];
}

fields! {
    /// Filter and order of payments. Default: newest first.
    Query PaymentFilter {
        /// Page number, from 1.
        page: PageNumber,
        /// Maximum number of payments per page; more than 1,000 counts as 1,000.
        limit: Limit<20, 1_000>,
        /// Returns up to `limit` records that follow the record with this id, in the order of
        /// `created_at`. No record is skipped or repeated if others are created meanwhile. Cannot
        /// be combined with `page` or with another order.
        after: Exactly,
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
    query: Query<PaymentFilter>,
) -> Result<ListResponse> {
    company.check_feature(FEATURE)?;
    let company_id = &company.id;
    let filter = query.read()?;
    let page = PageRequest::new(filter.page, filter.limit, filter.after.as_deref())?;
    let (payments, users) = app
        .store
        .read(async |tx| -> Result<_> {
            let mut user_key = None;
            if let Some(user_id) = &filter.user_id {
                let user = users::find(tx, company_id, user_id).await?;
                let Some(user) = user else {
                    return Ok((page.to_list_page(0, Vec::new()), Vec::new()));
                };
                user_key = Some(user.id);
            }
            let payments = store::list(tx, company_id, user_key.as_ref(), &filter, page).await?;
            let payers = payments.docs.iter().filter_map(|payment| payment.user_key.clone());
            let payers = Vec::from_iter(BTreeSet::from_iter(payers));
            let users = users::find_by_ids(tx, company_id, &payers).await?;
            Ok((payments, users))
        })
        .await?;
    let now = app.clock.now();
    let listed = payments.map(|payment| {
        let user = users.iter().find(|user| Some(&user.id) == payment.user_key.as_ref());
        payment.listed(user.cloned().map(|user| user.view(now)))
    });
    DataResponse::data(listed, "Payment listed successfully")
}

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<PaymentResponse> {
    company.check_feature(FEATURE)?;
    let payment = find_by_reference(&app, &company.id, &reference).await?;
    let payment = match payment.status {
        Status::Success | Status::Refunded => payment,
        Status::Pending | Status::Failed => verify_with_provider(&app, payment).await?,
    };
    if payment.status == Status::Pending {
        return Err(Error::invalid("payment still pending"));
    }
    respond_with_user(&app, payment, "Payment verified successfully").await
}

async fn verify_with_provider(app: &App, payment: Payment) -> Result<Payment> {
    let Payment { company_id, id, .. } = &payment;
    match charges::verify_all::<Payment>(app, company_id, id).await?.mismatch {
        Some(mismatch) => Err(Error::Invalid(mismatch)),
        None => find_by_id(app, company_id, id).await,
    }
}

/// Verifies a payment for an operator, even a successful one, which the provider may have reversed.
/// A pending payment is not an error here.
pub async fn verify_of_company(
    State(app): State<App>,
    actor: Actor,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<PaymentResponse> {
    let payment = find_by_id(&app, &company, &payment).await?;
    let (host, db, id) = (app.clone(), app.store.clone(), payment.id.clone());
    db.write(async move |tx| {
        audit::record(tx, &host, &actor, &company, "payment.verify", json!({ "payment": id })).await
    })
    .await?;
    let payment = verify_with_provider(&app, payment).await?;
    respond_with_user(&app, payment, "Payment verified successfully").await
}

fields! {
    /// Options of a refund.
    Body RefundOrder {
        /// The amount, in the payment's currency. Default: the amount that is left to refund.
        amount: Option<Amount>,
        /// The amount already refunded, as known to the caller: 409 if it has changed. Prevents
        /// refunding a part twice.
        already_refunded: Option<NonNegative>,
        /// `true` lets the wallet balance become negative.
        force: Option<Flag>,
    }
}

pub async fn refund(
    State(app): State<App>,
    actor: Actor,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
    body: Body<RefundOrder>,
) -> Result<PaymentResponse> {
    let RefundOrder { amount, already_refunded, force } = body.read()?;
    let force = force.unwrap_or(false);
    companies::find(&app, &company).await?;
    if force {
        let (subject, detail) =
            (ApprovalSubject::ForcedRefunds, json!({ "payment": payment, "amount": amount }));
        // A repeated refund of a part is another refund.
        let action = if amount.is_some() { "payment.refund_part" } else { "payment.refund" };
        approvals::require(&app, &actor, subject, &company, action, &detail).await?;
    }
    let terms = RefundTerms { cause: Cause::Operator, amount, force };
    let refunded =
        refund::refund(&app, &actor, &company, &payment, terms, already_refunded).await?;
    respond_with_user(&app, refunded, "Payment refunded successfully").await
}

/// Returns the last refund of a payment. Its amount is in the payment's currency.
pub async fn fetch_refund(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<DataResponse<PaymentRefund>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        let found = charges::lock::<Payment>(tx, &app, &company, &payment).await?;
        let (_, charges) = found.ok_or_else(not_found)?;
        let mut refund = None;
        for charge in charges {
            refund = charges::find_last_refund(tx, &company, &charge.id).await?.or(refund);
        }
        let refund = refund.ok_or_else(|| Error::not_found("refund not found"))?;
        let refund = PaymentRefund::new(&payment, refund);
        DataResponse::data(refund, "Refund fetched successfully")
    })
    .await
}

/// Returns why each provider of a payment was chosen, oldest first. Empty if the request named the
/// provider, or if it is the default. Members see no estimates.
pub async fn routing(
    State(app): State<App>,
    actor: Actor,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<DataResponse<Vec<StoredChoice>>> {
    let payment = find_by_id(&app, &company, &payment).await?;
    routing::api::list_choices(&app, &actor, &company, OwnerKind::Payment, &payment.id).await
}
