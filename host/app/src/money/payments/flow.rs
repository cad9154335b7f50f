//! Initializing a payment: record it, open a checkout session, record the session.
//!
//! The payment is committed before the provider is called, so that it can be settled even after a
//! crash. No transaction is open during the call.
//!
//! `record` reserves the `service_ref` in the reference directory: the client's reference if the
//! provider's alphabet takes it and it is free on that account, else a generated one. If the
//! provider returns another reference, `notifications::replace` adds it to the directory, and only
//! the provider's is verified. A payment that the provider finds invalid on its first attempt is
//! deleted, because no client knows it. A second request for a leased payment waits 5 s, then gets
//! 409 with `Retry-After`.

use super::{
    Payment, SETTLE_JOB, Status,
    api::{self, NewPayment},
    find_by_id, lock,
    settle::{self, PaymentVerification, post},
    store,
};
use crate::money::{charges::is_invalid, prelude::*};

/// The request fields that an error of the provider may name.
const FIELDS: [&str; 6] = ["email", "amount", "currency", "channels", "reference", "metadata"];
/// Maximum wait of a second request with the same reference for the checkout URL.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The shortest and the longest polling interval while it waits.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Returns the payment with its checkout URL. The same reference returns or resumes the existing
/// payment; 409 if another request calls the provider for longer than `MAX_WAIT`.
#[instrument(target = SPAN_TARGET, name = "payments.initialize", skip_all)]
pub async fn initialize(app: &App, company: &Company, order: NewPayment) -> Result<Payment> {
    let give_up_at = app.clock.elapsed() + MAX_WAIT;
    loop {
        let (payment, attempt) = record(app, company, order.clone()).await?;
        let payment = match attempt {
            Attempt::First => {
                let leased = leased(&payment);
                Some(leased.hold(app, open_session(app, payment, attempt)).await?)
            }
            Attempt::Retry if needs_session(&payment) => resume(app, payment, give_up_at).await?,
            Attempt::Retry => Some(payment),
        };
        // The other request failed or deleted its payment: try again.
        if let Some(payment) = payment.filter(|payment| !needs_session(payment)) {
            return Ok(payment);
        }
    }
}

fn leased(payment: &Payment) -> Leased {
    let Payment { company_id, id, lease, .. } = payment.clone();
    Leased { table: LeasedTable::Payments, company_id, id: id.to_string(), lease }
}

fn needs_session(payment: &Payment) -> bool {
    payment.status == Status::Pending && payment.checkout.url.is_none()
}

async fn record(app: &App, company: &Company, order: NewPayment) -> Result<(Payment, Attempt)> {
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        if let Some(reference) = &order.reference
            && let Some(existing) = store::find_by_reference(tx, &company.id, reference).await?
        {
            return Ok((existing, Attempt::Retry));
        }
        let user = match &order.user_id {
            Some(user_id) => Some(users::get(tx, &company.id, user_id).await?),
            None => None,
        };
        let account = providers::resolve(tx, &company, &order.payment_service).await?;
        let payment = compose(&app, &company, &order, user.as_ref(), &account)?;
        let payment = reserve_reference(tx, &app, payment).await?;
        if !store::insert(tx, &payment).await? {
            // Another request has just inserted the same reference.
            notifications::release(tx, &payment.account_id, &payment.service_ref).await?;
            let existing = store::find_by_reference(tx, &company.id, &payment.reference).await?;
            let existing = existing
                .ok_or_else(|| Error::internal("payment could neither be inserted nor found"))?;
            return Ok((existing, Attempt::Retry));
        }
        let accounts = [payment.provider_ledger(), Ledger::Pending];
        let (kind, overdraft) = ("payment.pending", Overdraft::Allowed);
        post(tx, &app, &payment, "pending", kind, accounts, overdraft).await?;
        if let Some(at) = next_check(payment.status, payment.created_at, app.clock.now()) {
            jobs::enqueue(tx, &company.id, SETTLE_JOB, &payment.id, at).await?;
        }
        Ok((payment, Attempt::First))
    })
    .await
}

fn compose(
    app: &App,
    company: &Company,
    order: &NewPayment,
    user: Option<&User>,
    account: &Account,
) -> Result<Payment> {
    let now = app.clock.now();
    let on_file = user.and_then(|user| user.email.clone());
    let email = on_file.or_else(|| order.email.clone());
    let email = email.ok_or_else(|| Error::invalid("the email field is required"))?;
    let plugin = app.plugins.provider(&order.payment_service, &company.id)?;
    let reference = order.reference.clone();
    let reference = reference.unwrap_or_else(|| format!("pay-{}", app.random.id(now)));
    let mut metadata = order.metadata.clone().unwrap_or_default();
    metadata.insert("company".to_owned(), company.id.as_str().into());
    metadata.insert("server".to_owned(), company.server.clone().into());
    metadata.insert("event".to_owned(), "payment".into());
    let api::Checkout { success_url, cancel_url } = order.checkout.clone();
    Ok(Payment {
        company_id: company.id.clone(),
        id: app.random.id(now).into(),
        user_key: user.map(|user| user.id.clone()),
        user_id: user.map(|user| user.user_id.clone()),
        email,
        payment_service: order.payment_service.clone(),
        account_id: account.id.clone(),
        credits_wallet: account.is_service_account(),
        amount: order.amount,
        currency: order.currency.clone(),
        service_ref: reference.clone(),
        reference,
        narration: order.narration.clone().unwrap_or_default(),
        metadata: Json(metadata),
        callback_url: order.callback_url.clone(),
        checkout: store::Checkout { success_url, cancel_url, url: None },
        lease: Lease::acquire(app),
        channels: Json(select_channels(&plugin, order)?),
        created_at: now,
        updated_at: now,
        ..Payment::default()
    })
}

/// The requested channels that the provider offers; without a request, all of its channels.
fn select_channels(plugin: &Provider, order: &NewPayment) -> Result<Vec<String>> {
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

/// Reserves the client's reference if the provider accepts it and it is free, else a generated one.
async fn reserve_reference(tx: &mut Tx, app: &App, payment: Payment) -> Result<Payment> {
    if is_reference_accepted(app, &payment)? && reserve(tx, &payment).await? {
        return Ok(payment);
    }
    reserve_generated(tx, app, payment).await
}

/// Returns whether the provider still accepts the reference: plugin versions may differ in rules.
fn is_reference_accepted(app: &App, payment: &Payment) -> Result<bool> {
    Ok(payment.provider(app)?.manifest().reference.accepts(&payment.service_ref))
}

async fn reserve_generated(tx: &mut Tx, app: &App, mut payment: Payment) -> Result<Payment> {
    let provider = payment.provider(app)?;
    payment.service_ref = provider.manifest().reference.conform(&format!("pay-{}", app.new_id()));
    match reserve(tx, &payment).await? {
        true => Ok(payment),
        false => Err(Error::internal("generated reference is already taken")),
    }
}

async fn reserve(tx: &mut Tx, payment: &Payment) -> Result<bool> {
    let Payment { account_id, service_ref, created_at, .. } = payment;
    Ok(notifications::reserve(tx, account_id, service_ref, payment.as_owner(), *created_at).await?)
}

async fn open_session(app: &App, mut payment: Payment, attempt: Attempt) -> Result<Payment> {
    let ChargeVerifier { provider, credentials } = payment.verifier(app).await?;
    let mut result = provider.start_checkout(&credentials, &checkout_order(&payment)).await;
    if result.as_ref().is_err_and(is_duplicate_reference) {
        // The provider already knows this reference from another charge.
        payment = match reassign_reference(app, &payment, attempt).await? {
            Some(payment) => payment,
            None => return find_by_id(app, &payment.company_id, &payment.id).await,
        };
        result = provider.start_checkout(&credentials, &checkout_order(&payment)).await;
    }
    match result {
        Ok(session) => record_session(app, payment, session).await,
        Err(error) if is_invalid(&error) => {
            end_attempt(app, &payment, attempt == Attempt::First).await?;
            Err(charges::client_error(error, &payment.payment_service, &FIELDS))
        }
        Err(error) => {
            end_attempt(app, &payment, false).await?;
            Err(error.into_error(&payment.payment_service))
        }
    }
}

fn checkout_order(payment: &Payment) -> CheckoutOrder {
    let mut metadata = payment.metadata.0.clone();
    metadata.insert(METADATA_KEY.to_owned(), payment.id.as_str().into());
    CheckoutOrder {
        service_ref: payment.service_ref.clone(),
        amount: payment.money(),
        email: payment.email.clone(),
        customer_name: None,
        narration: payment.narration.clone(),
        channels: payment.channels.0.clone(),
        success_url: payment.checkout.success_url.clone(),
        cancel_url: payment.checkout.cancel_url.clone(),
        metadata: Value::Object(metadata).to_string(),
        save_instrument: false,
    }
}

fn is_duplicate_reference(error: &CallError) -> bool {
    error.fault.code == "duplicate-reference" && error.certainty == Certainty::NotDone
}

/// Assigns another reference at the provider. A known payment keeps the old one in the directory,
/// because it may have a session under it; a first attempt cannot.
async fn reassign_reference(
    app: &App,
    payment: &Payment,
    attempt: Attempt,
) -> Result<Option<Payment>> {
    let (db, app, payment) = (app.store.clone(), app.clone(), payment.clone());
    db.write(async move |tx| {
        let Some(payment) = lock_if_leased(tx, &payment).await? else { return Ok(None) };
        if attempt == Attempt::First {
            notifications::release(tx, &payment.account_id, &payment.service_ref).await?;
        }
        let payment = reserve_generated(tx, &app, payment).await?;
        store::update(tx, &payment).await?;
        Ok(Some(payment))
    })
    .await
}

/// Locks the payment. `None` if the lease is lost or the payment needs no session any longer.
async fn lock_if_leased(tx: &mut Tx, payment: &Payment) -> Result<Option<Payment>> {
    let now = lock(tx, &payment.company_id, &payment.id).await?;
    let is_ours = now.lease.is_held_as(&payment.lease);
    Ok((is_ours && needs_session(&now)).then_some(now))
}

async fn record_session(app: &App, payment: Payment, session: CheckoutSession) -> Result<Payment> {
    let (db, now) = (app.store.clone(), app.clock.now());
    db.write(async move |tx| {
        let before = payment;
        let mut payment = lock(tx, &before.company_id, &before.id).await?;
        // Another request has resumed the payment; no client has received this session's URL.
        if payment.checkout.url.is_some() || !payment.lease.is_held_as(&before.lease) {
            return Ok(payment);
        }
        let Payment { account_id, service_ref, .. } = &payment;
        let (owner, new) = (payment.as_owner(), session.service_ref);
        if !notifications::replace(tx, account_id, service_ref, &new, owner, now).await? {
            let message = format!("{} returned an unusable response", payment.payment_service);
            let detail = "its reference belongs to another record".to_owned();
            return Err(Error::Upstream { message, detail });
        }
        payment.service_ref = new;
        payment.checkout.url = Some(session.url);
        payment.lease = Lease::default();
        // A webhook may have settled the payment before this response.
        if payment.status == Status::Pending {
            payment.payment_response = session.raw;
        }
        payment.updated_at = now;
        store::update(tx, &payment).await?;
        Ok(payment)
    })
    .await
}

/// Releases the lease after a failed attempt. `forget` deletes the payment: no client knows it.
async fn end_attempt(app: &App, payment: &Payment, forget: bool) -> Result<()> {
    let (db, app, payment) = (app.store.clone(), app.clone(), payment.clone());
    db.write(async move |tx| {
        let Some(mut payment) = lock_if_leased(tx, &payment).await? else { return Ok(()) };
        if forget {
            settle::release_pending(tx, &app, &payment).await?;
            notifications::release(tx, &payment.account_id, &payment.service_ref).await?;
            return Ok(store::delete(tx, &payment).await?);
        }
        payment.lease = Lease::default();
        payment.updated_at = app.clock.now();
        Ok(store::update(tx, &payment).await?)
    })
    .await
}

/// Resumes a payment without a checkout URL, or waits for the lease holder. `None`: it was deleted.
async fn resume(app: &App, payment: Payment, give_up_at: Duration) -> Result<Option<Payment>> {
    match acquire_lease(app, &payment).await? {
        Some(payment) => {
            leased(&payment).hold(app, verify_and_reopen(app, payment)).await.map(Some)
        }
        None => wait_for_lease_holder(app, &payment, give_up_at).await,
    }
}

/// Verifies the payment and opens another session, unless the verification has settled it.
async fn verify_and_reopen(app: &App, payment: Payment) -> Result<Payment> {
    let settled = settle::verify(app, &payment).await;
    if settled.is_err() {
        end_attempt(app, &payment, false).await?;
    }
    let again = match settled? {
        PaymentVerification::Unknown if is_reference_accepted(app, &payment)? => {
            let (db, payment) = (app.store.clone(), payment.clone());
            db.write(async move |tx| lock_if_leased(tx, &payment).await).await?
        }
        // No client has the URL of an earlier session, so another one is safe. A reference that
        // violates the provider's current rules cannot be sent again.
        _ => reassign_reference(app, &payment, Attempt::Retry).await?,
    };
    match again {
        Some(payment) => open_session(app, payment, Attempt::Retry).await,
        None => find_by_id(app, &payment.company_id, &payment.id).await,
    }
}

/// Acquires the lease. `None`: another request holds it, or the payment needs no session.
async fn acquire_lease(app: &App, payment: &Payment) -> Result<Option<Payment>> {
    let (db, app, payment) = (app.store.clone(), app.clone(), payment.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        let found = store::lock(tx, &payment.company_id, &payment.id).await?;
        let Some(found) = found.filter(|found| needs_session(found) && found.lease.is_free(now))
        else {
            return Ok(None);
        };
        let taken = Payment { lease: Lease::acquire(&app), ..found };
        store::update(tx, &taken).await?;
        Ok(Some(taken))
    })
    .await
}

/// Waits for the other request's URL or the end of its lease. `None`: the payment was deleted.
async fn wait_for_lease_holder(
    app: &App,
    payment: &Payment,
    give_up_at: Duration,
) -> Result<Option<Payment>> {
    let Payment { company_id, id, .. } = payment;
    let mut look = MIN_POLL_INTERVAL;
    loop {
        let found = app.store.select(async |tx| store::find(tx, company_id, id).await).await?;
        let now = app.clock.now();
        let waits = |found: &&Payment| needs_session(found) && !found.lease.is_free(now);
        let Some(other) = found.as_ref().filter(waits) else { return Ok(found) };
        if app.clock.elapsed() >= give_up_at {
            return Err(other.lease.conflict(now, charges::IN_PROGRESS));
        }
        tokio::time::sleep(look).await;
        look = (look * 2).min(MAX_POLL_INTERVAL);
    }
}
