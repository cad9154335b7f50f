//! Starting a payment: record it, ask the provider for a checkout page, record the answer.
//!
//! The payment is committed before the provider hears of it, so whatever happens then, it can be found and settled. No
//! transaction is open while the provider is asked.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    Payment, SETTLE_JOB, SUBJECT, Status, next_check,
    settle::{self, Settled},
    store,
};
use crate::{
    app::App,
    clock::Timestamp,
    companies::Company,
    error::{Error, Result},
    jobs,
    money::Money,
    notifications::{self, Belongs},
    plugins::{CallError, Certainty, CheckoutOrder, CheckoutSession, FaultCategory, Provider},
    providers::{self, Account},
    store::{Json, Tx},
    users::{self, User},
    wallet::{self, Account as Ledger, Cover, Movement},
};

/// How long whoever starts a payment at the provider is left alone: longer than two plugin calls may take.
const STARTING_SECONDS: i64 = 70;
/// How often a second caller with the same reference looks whether the first has its URL.
const LOOK: Duration = Duration::from_millis(100);

/// A payment as it is asked for, its fields checked one by one.
#[derive(Clone, Debug)]
pub struct Order {
    pub user_id: Option<String>,
    pub email: Option<String>,
    pub money: Money,
    pub reference: Option<String>,
    pub narration: String,
    pub callback_url: Option<String>,
    pub channels: Option<Vec<String>>,
    pub success_url: String,
    pub cancel_url: Option<String>,
    pub provider: String,
    pub metadata: Map<String, Value>,
}

/// What is found in the database under an order's reference.
enum Recorded {
    New(Box<Payment>),
    Existing(Box<Payment>),
}

/// The payment with its checkout URL. The same reference gives the existing payment; one that never got its URL resumes.
pub async fn initialize(app: &App, company: &Company, order: Order) -> Result<Payment> {
    match record(app, company, order).await? {
        Recorded::New(payment) => start(app, *payment, Attempt::First).await,
        Recorded::Existing(payment) if needs_start(&payment) => resume(app, *payment).await,
        Recorded::Existing(payment) => Ok(*payment),
    }
}

fn needs_start(payment: &Payment) -> bool {
    payment.status == Status::Pending && payment.checkout_url.is_none()
}

// ---- transaction 1: the attempt -----------------------------------------------------------------

async fn record(app: &App, company: &Company, order: Order) -> Result<Recorded> {
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        if let Some(reference) = &order.reference
            && let Some(existing) = store::by_reference(tx, &company.id, reference).await?
        {
            return Ok(Recorded::Existing(existing.into()));
        }
        let user = payer(tx, &company, &order).await?;
        let account = providers::resolve(tx, &company.id, &order.provider).await?;
        let payment = compose(&app, &company, &order, user.as_ref(), &account)?;
        let payment = reserve_reference(tx, &app, payment).await?;
        match store::insert(tx, &payment).await? {
            Some(payment) => {
                expect_money(tx, &app, &payment).await?;
                schedule_check(tx, &payment, app.clock.now()).await?;
                Ok(Recorded::New(payment.into()))
            }
            // Somebody else was quicker with the same reference.
            None => {
                notifications::release(tx, &payment.account_id, &payment.service_ref).await?;
                let existing = store::by_reference(tx, &company.id, &payment.reference).await?;
                let existing = existing.ok_or_else(|| Error::internal("a reference came and went"));
                existing.map(|payment| Recorded::Existing(payment.into()))
            }
        }
    })
    .await
}

async fn payer(tx: &mut Tx, company: &Company, order: &Order) -> Result<Option<User>> {
    let Some(user_id) = &order.user_id else { return Ok(None) };
    let user = users::find(tx, &company.id, user_id).await?;
    user.map(Some).ok_or_else(|| Error::not_found("user not found"))
}

fn compose(
    app: &App,
    company: &Company,
    order: &Order,
    user: Option<&User>,
    account: &Account,
) -> Result<Payment> {
    let now = app.clock.now();
    let on_file = user.and_then(|user| user.email.clone());
    let email = on_file.or_else(|| order.email.clone());
    let email = email.ok_or_else(|| Error::invalid("the email field is required"))?;
    let plugin = provider(app, &order.provider)?;
    let reference = order.reference.clone();
    let reference = reference.unwrap_or_else(|| format!("pay-{}", app.random.id(now)));
    let mut metadata = order.metadata.clone();
    metadata.insert("company".to_owned(), company.id.clone().into());
    metadata.insert("server".to_owned(), company.server.clone().into());
    metadata.insert("event".to_owned(), "payment".into());
    Ok(Payment {
        company_id: company.id.clone(),
        id: app.random.id(now),
        user_key: user.map(|user| user.id.clone()),
        user_id: user.map(|user| user.user_id.clone()),
        email,
        payment_service: order.provider.clone(),
        account_id: account.id.clone(),
        credits_wallet: account.is_services(),
        amount: order.money.minor,
        fees: crate::money::Minor(0),
        currency: order.money.currency.clone(),
        service_ref: reference.clone(),
        reference,
        status: Status::Pending,
        narration: order.narration.clone(),
        payment_response: String::new(),
        metadata: Json(metadata),
        transaction_id: String::new(),
        message: String::new(),
        callback_url: order.callback_url.clone(),
        success_url: order.success_url.clone(),
        cancel_url: order.cancel_url.clone(),
        checkout_url: None,
        starting_until: Some(now.plus_seconds(STARTING_SECONDS)),
        channels: Json(offered(&plugin, order)?),
        paid_at: None,
        payment_channel: String::new(),
        created_at: now,
        updated_at: now,
    })
}

/// What of the wanted channels the provider has; all that it has when none were named.
fn offered(plugin: &Provider, order: &Order) -> Result<Vec<String>> {
    let has = &plugin.manifest().channels;
    let Some(wanted) = &order.channels else { return Ok(has.clone()) };
    let both: Vec<String> =
        wanted.iter().filter(|channel| has.contains(channel)).cloned().collect();
    if both.is_empty() {
        let message = format!("the channels field must be any of {}", has.join(", "));
        return Err(Error::Invalid(message));
    }
    Ok(both)
}

/// The caller's reference goes to the provider when it takes its characters and it is free there; else one of ours.
async fn reserve_reference(tx: &mut Tx, app: &App, mut payment: Payment) -> Result<Payment> {
    let rules = settle::provider(app, &payment)?.manifest().reference.clone();
    if !rules.accept(&payment.reference) || !reserve(tx, &payment).await? {
        payment.service_ref = format!("pay-{}", app.new_id());
        if !reserve(tx, &payment).await? {
            return Err(Error::internal("a new reference is taken"));
        }
    }
    Ok(payment)
}

async fn reserve(tx: &mut Tx, payment: &Payment) -> Result<bool> {
    let belongs = Belongs {
        company_id: payment.company_id.clone(),
        subject: SUBJECT.to_owned(),
        subject_id: payment.id.clone(),
    };
    let Payment { account_id, service_ref, created_at, .. } = payment;
    Ok(notifications::reserve(tx, account_id, service_ref, &belongs, *created_at).await?)
}

/// The wallet's pending transaction of a payment on the service's account.
async fn expect_money(tx: &mut Tx, app: &App, payment: &Payment) -> Result<()> {
    if !payment.credits_wallet {
        return Ok(());
    }
    let movement = Movement {
        key: format!("payment:{}:pending", payment.id),
        kind: "payment.pending",
        from: Ledger::Provider(payment.payment_service.clone()),
        to: Ledger::Pending,
        money: payment.money(),
    };
    wallet::post(tx, app, &payment.company_id, &movement, Cover::Waived).await?;
    Ok(())
}

async fn schedule_check(tx: &mut Tx, payment: &Payment, now: Timestamp) -> Result<()> {
    if let Some(at) = next_check(payment.status, payment.created_at, now) {
        jobs::wake(tx, &payment.company_id, SETTLE_JOB, &payment.id, at).await?;
    }
    Ok(())
}

// ---- the provider, then transaction 2: the answer -----------------------------------------------

/// What an error at the provider leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// The caller has not heard of the payment yet: what the provider finds invalid is as if it was never asked for.
    First,
    /// The payment is known: it stays.
    Resumed,
}

async fn start(app: &App, mut payment: Payment, attempt: Attempt) -> Result<Payment> {
    let plugin = settle::provider(app, &payment)?;
    let credentials = settle::credentials(app, &payment).await?;
    let mut result = plugin.start_checkout(&credentials, &order_of(&payment)).await;
    if result.as_ref().is_err_and(is_duplicate_reference) {
        // The provider has seen this reference before, and not from this payment.
        payment = rename(app, payment, attempt).await?;
        result = plugin.start_checkout(&credentials, &order_of(&payment)).await;
    }
    match result {
        Ok(session) => keep_session(app, payment, session).await,
        Err(error) if error.fault.category == FaultCategory::Invalid => {
            end_attempt(app, &payment, attempt == Attempt::First).await?;
            Err(invalid_at_provider(&error, &payment.payment_service))
        }
        Err(error) => {
            end_attempt(app, &payment, false).await?;
            Err(error.into_error(&payment.payment_service))
        }
    }
}

fn order_of(payment: &Payment) -> CheckoutOrder {
    CheckoutOrder {
        service_ref: payment.service_ref.clone(),
        amount: payment.money(),
        email: payment.email.clone(),
        customer_name: None,
        narration: payment.narration.clone(),
        channels: payment.channels.0.clone(),
        success_url: payment.success_url.clone(),
        cancel_url: payment.cancel_url.clone(),
        metadata: Value::Object(payment.metadata.0.clone()).to_string(),
        save_instrument: false,
    }
}

fn is_duplicate_reference(error: &CallError) -> bool {
    error.fault.code == "duplicate-reference" && error.certainty == Certainty::NotDone
}

/// Gives the payment another reference at the provider. The old one still belongs to a resumed payment, which may have begun
/// under it; to a first attempt it never did.
async fn rename(app: &App, payment: Payment, attempt: Attempt) -> Result<Payment> {
    let (db, app) = (app.store.clone(), app.clone());
    db.write(async move |tx| {
        let mut payment = locked(tx, &payment).await?;
        if attempt == Attempt::First {
            notifications::release(tx, &payment.account_id, &payment.service_ref).await?;
        }
        payment.service_ref = format!("pay-{}", app.new_id());
        if !reserve(tx, &payment).await? {
            return Err(Error::internal("a new reference is taken"));
        }
        let now = app.clock.now();
        payment.starting_until = Some(now.plus_seconds(STARTING_SECONDS));
        payment.updated_at = now;
        Ok(store::update(tx, &payment).await?)
    })
    .await
}

async fn keep_session(app: &App, payment: Payment, session: CheckoutSession) -> Result<Payment> {
    let (db, now) = (app.store.clone(), app.clock.now());
    db.write(async move |tx| {
        let mut payment = locked(tx, &payment).await?;
        if session.service_ref != payment.service_ref {
            payment.service_ref = session.service_ref;
            if !reserve(tx, &payment).await? {
                return Err(taken_elsewhere(&payment));
            }
        }
        payment.checkout_url = Some(session.url);
        payment.starting_until = None;
        // A notification may have been quicker than the provider's answer.
        if payment.status == Status::Pending {
            payment.payment_response = session.raw;
        }
        payment.updated_at = now;
        Ok(store::update(tx, &payment).await?)
    })
    .await
}

fn taken_elsewhere(payment: &Payment) -> Error {
    let message = format!("{} gave an unusable answer", payment.payment_service);
    Error::Upstream { message, detail: "its reference belongs to another record".to_owned() }
}

/// Nobody is at the provider any more. With `forget`, the payment goes: it was refused before anyone heard of it.
async fn end_attempt(app: &App, payment: &Payment, forget: bool) -> Result<()> {
    let (db, app, payment) = (app.store.clone(), app.clone(), payment.clone());
    db.write(async move |tx| {
        let mut payment = locked(tx, &payment).await?;
        if forget {
            settle::release_pending(tx, &app, &payment).await?;
            notifications::release(tx, &payment.account_id, &payment.service_ref).await?;
            return Ok(store::delete(tx, &payment).await?);
        }
        payment.starting_until = None;
        payment.updated_at = app.clock.now();
        store::update(tx, &payment).await?;
        Ok(())
    })
    .await
}

fn invalid_at_provider(error: &CallError, provider: &str) -> Error {
    let named = error.fault.details.iter().find(|(name, _)| name == "field");
    // Only names of our own fields are repeated.
    let ours = ["email", "amount", "currency", "channels", "reference", "metadata"];
    match named {
        Some((_, field)) if ours.contains(&&**field) => {
            Error::Invalid(format!("the {field} field must be one that {provider} accepts"))
        }
        _ => Error::Invalid(format!("{provider} does not accept this payment")),
    }
}

// ---- the same reference again -------------------------------------------------------------------

/// Goes on with a payment that never got its URL: asks the provider what it knows, and begins again if that is nothing.
async fn resume(app: &App, payment: Payment) -> Result<Payment> {
    let Some(payment) = take_over(app, &payment).await? else {
        return wait_for_the_other(app, &payment).await;
    };
    match settle::verify(app, &payment).await {
        Ok(Settled::Unknown) => start(app, payment, Attempt::Resumed).await,
        Ok(Settled::Known(payment)) if needs_start(&payment) => {
            // The provider has a session whose URL was never heard of: nobody can pay it, so another one is safe.
            let payment = rename(app, *payment, Attempt::Resumed).await?;
            start(app, payment, Attempt::Resumed).await
        }
        Ok(Settled::Known(payment) | Settled::Mismatch(payment, _)) => {
            end_attempt(app, &payment, false).await?;
            Ok(*payment)
        }
        Err(error) => {
            end_attempt(app, &payment, false).await?;
            Err(error)
        }
    }
}

/// `None` while somebody else is at the provider for this payment.
async fn take_over(app: &App, payment: &Payment) -> Result<Option<Payment>> {
    let (db, now, payment) = (app.store.clone(), app.clock.now(), payment.clone());
    db.write(async move |tx| {
        let mut payment = locked(tx, &payment).await?;
        if !needs_start(&payment) || payment.starting_until.is_some_and(|until| until > now) {
            return Ok(None);
        }
        payment.starting_until = Some(now.plus_seconds(STARTING_SECONDS));
        Ok(Some(store::update(tx, &payment).await?))
    })
    .await
}

async fn wait_for_the_other(app: &App, payment: &Payment) -> Result<Payment> {
    let mut payment = payment.clone();
    for _ in 0..STARTING_SECONDS * 10 {
        let Payment { company_id, id, .. } = &payment;
        let found = app.store.read(async |tx| store::find(tx, company_id, id).await).await?;
        payment = found.ok_or_else(|| Error::not_found("payment not found"))?;
        if !needs_start(&payment) || payment.starting_until.is_none() {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(payment)
}

async fn locked(tx: &mut Tx, payment: &Payment) -> Result<Payment> {
    let found = store::lock(tx, &payment.company_id, &payment.id).await?;
    found.ok_or_else(|| Error::not_found("payment not found"))
}

fn provider(app: &App, name: &str) -> Result<Provider> {
    app.plugins.provider(name).ok_or_else(|| Error::invalid("payment service key not found"))
}
