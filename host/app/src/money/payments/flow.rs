//! Initializing a payment: record it with its charge, and open a checkout session.
//!
//! The same reference returns the existing payment. If that has no checkout URL, the request
//! resumes it, see `charges::resume`. A payment that the provider finds invalid on its first
//! attempt is deleted, because no client knows it.

use super::{
    Payment, Status,
    api::{self, NewPayment},
    store, with_origin,
};
use crate::money::{
    charges::{Method, NewCharge, OwnerKind},
    prelude::*,
    routing::{Payer, Routable},
};

/// The request fields that an error of the provider may name.
const FIELDS: [&str; 7] =
    ["email", "phone", "amount", "currency", "channels", "reference", "metadata"];

/// Returns the payment with its checkout URL. 409 if another request with the same reference calls
/// the provider for longer than five seconds.
#[instrument(target = SPAN_TARGET, name = "payments.initialize", skip_all)]
pub async fn initialize(app: &App, company: &Company, order: NewPayment) -> Result<Payment> {
    loop {
        let payment = match record(app, company, &order).await? {
            Recorded::New(payment, charge, account) => {
                let opened = charges::open_page(app, *payment, *charge, Some(&account), &FIELDS);
                Some(opened.await?)
            }
            Recorded::Existing(payment) if needs_session(&payment) => {
                charges::resume(app, &payment.company_id, &payment.id, &FIELDS).await?
            }
            Recorded::Existing(payment) => Some(*payment),
        };
        if let Some(payment) = payment {
            return Ok(payment);
        }
    }
}

fn needs_session(payment: &Payment) -> bool {
    payment.status == Status::Pending && payment.checkout.url.is_none()
}

/// The payment of a request.
enum Recorded {
    /// With its charge, and the account of the charge.
    New(Box<Payment>, Box<Charge>, Account),
    /// An earlier request had the same reference.
    Existing(Box<Payment>),
}

/// Records a new payment with its charge, or returns the one with the same reference. A reference
/// is usually new, so it is looked up only if the payment cannot be recorded.
async fn record(app: &App, company: &Company, order: &NewPayment) -> Result<Recorded> {
    let mut takes_reference = true;
    loop {
        let recorded = record_new(app, company, order, takes_reference).await;
        let Err(error) = recorded else { return recorded };
        if matches!(error, Error::Database(_) | Error::OutcomeUnknown(_)) {
            return Err(error);
        }
        if let Some(existing) = find_existing(app, company, order).await? {
            return Ok(Recorded::Existing(Box::new(existing)));
        }
        // Another record has the reference at the provider.
        if !error.is_duplicate() || !takes_reference {
            return Err(error);
        }
        takes_reference = false;
    }
}

async fn find_existing(
    app: &App,
    company: &Company,
    order: &NewPayment,
) -> Result<Option<Payment>> {
    let Some(reference) = &order.reference else { return Ok(None) };
    let find = async |tx: &mut Tx| store::find_by_reference(tx, &company.id, reference).await;
    Ok(app.store.select(find).await?)
}

/// Records a payment and its charge, whose reference at the provider is generated unless
/// `takes_reference`. Fails as a duplicate if a reference is taken.
async fn record_new(
    app: &App,
    company: &Company,
    order: &NewPayment,
    takes_reference: bool,
) -> Result<Recorded> {
    let user = match &order.user_id {
        Some(user_id) => {
            let get = async |tx: &mut Tx| users::get(tx, &company.id, user_id).await;
            Some(app.store.read(get).await?)
        }
        None => None,
    };
    let checkout = to_routable(order, user.as_ref());
    let (account, choice) = order.payment_service.account(app, company, &checkout).await?;
    let plugin = app.plugins.provider(&account.provider, &company.id)?;
    let mut payment = compose(app, company, order, user.as_ref(), &plugin)?;
    let new = NewCharge {
        company_id: &company.id,
        owner: (OwnerKind::Payment, &payment.id),
        method: Method::Checkout,
        account: &account,
        choice,
        amount: payment.money(),
        reference: takes_reference.then_some(&*payment.reference),
        lane: None,
    };
    let charge = charges::compose(app, new)?;
    payment.service_ref.clone_from(&charge.service_ref);
    insert(app, &payment, &charge).await?;
    Ok(Recorded::New(Box::new(payment), Box::new(charge), account))
}

/// Inserts a payment and its charge, and adds the payment to the pending balance. Fails as a
/// duplicate if a reference is taken.
async fn insert(app: &App, payment: &Payment, charge: &Charge) -> Result<()> {
    let (db, app, payment, charge) =
        (app.store.clone(), app.clone(), payment.clone(), charge.clone());
    db.write(async move |tx| {
        store::insert(tx, &payment, &charge).await?;
        charges::insert_composed(tx, &app, &charge).await?;
        charges::begin_pending(tx, &app, &charge).await
    })
    .await
}

/// Returns the channels of a payment at the provider that the router chose.
pub fn channels_of(app: &App, charge: &Charge) -> Result<Vec<String>> {
    let plugin = app.plugins.provider(&charge.provider, &charge.company_id)?;
    let wanted = charge.choice.as_ref().map(|choice| &*choice.channels);
    select_channels(&plugin, wanted.filter(|wanted| !wanted.is_empty()))
}

fn to_routable(order: &NewPayment, user: Option<&User>) -> Routable {
    let phone = order.phone.as_ref().or_else(|| user?.phone.as_ref());
    Routable {
        amount: Money { minor: order.amount, currency: order.currency.clone() },
        channels: order.channels.clone().unwrap_or_default(),
        payer: Payer { user: user.map(|user| user.id.clone()), has_phone: phone.is_some() },
        saves_card: false,
    }
}

fn compose(
    app: &App,
    company: &Company,
    order: &NewPayment,
    user: Option<&User>,
    plugin: &Provider,
) -> Result<Payment> {
    let now = app.clock.now();
    let on_file = user.and_then(|user| user.email.clone());
    let email = on_file.or_else(|| order.email.clone());
    let email = email.ok_or_else(|| Error::invalid("the email field is required"))?;
    let phone = order.phone.clone().or_else(|| user?.phone.clone());
    if phone.is_none() && plugin.manifest().sessions.push {
        return Err(Error::invalid("the phone field is required"));
    }
    let reference = order.reference.clone();
    let reference = reference.unwrap_or_else(|| format!("pay-{}", app.random.id(now)));
    let metadata = with_origin(order.metadata.clone().unwrap_or_default(), company);
    let api::Checkout { success_url, cancel_url } = order.checkout.clone();
    Ok(Payment {
        company_id: company.id.clone(),
        id: app.random.id(now).into(),
        user_key: user.map(|user| user.id.clone()),
        user_id: user.map(|user| user.user_id.clone()),
        email,
        phone,
        payment_service: plugin.manifest().name.clone(),
        amount: order.amount,
        currency: order.currency.clone(),
        reference,
        narration: order.narration.clone().unwrap_or_default(),
        metadata: Json(metadata),
        callback_url: order.callback_url.clone(),
        checkout: store::Checkout { success_url, cancel_url, ..store::Checkout::default() },
        channels: Json(select_channels(plugin, order.channels.as_deref())?),
        created_at: now,
        updated_at: now,
        ..Payment::default()
    })
}

/// Returns the requested channels that the provider offers; all of its channels if none is
/// requested.
fn select_channels(plugin: &Provider, wanted: Option<&[String]>) -> Result<Vec<String>> {
    let has = &plugin.manifest().channels;
    let Some(wanted) = wanted else { return Ok(has.clone()) };
    let both: Vec<String> =
        wanted.iter().filter(|channel| has.contains(channel)).cloned().collect();
    if both.is_empty() {
        let message = format!("the channels field must be any of {}", has.join(", "));
        return Err(Error::Invalid(message));
    }
    Ok(both)
}
