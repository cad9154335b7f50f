//! Initializing a payment: record it with its charge, and open a checkout session.
//!
//! The same reference returns the existing payment. If that has no checkout URL, the request
//! resumes it, see `charges::resume`. A payment that the provider finds invalid on its first attempt
//! is deleted, because no client knows it.

use super::{
    Payment, Status,
    api::{self, NewPayment},
    store,
};
use crate::money::{
    charges::{Method, NewCharge, OwnerKind},
    prelude::*,
};

/// The request fields that an error of the provider may name.
const FIELDS: [&str; 6] = ["email", "amount", "currency", "channels", "reference", "metadata"];

/// Returns the payment with its checkout URL. 409 if another request with the same reference calls
/// the provider for longer than five seconds.
#[instrument(target = SPAN_TARGET, name = "payments.initialize", skip_all)]
pub async fn initialize(app: &App, company: &Company, order: NewPayment) -> Result<Payment> {
    loop {
        let (payment, new) = record(app, company, order.clone()).await?;
        let payment = match new {
            Some(charge) => Some(charges::open_page(app, payment, charge, &FIELDS).await?),
            None if needs_session(&payment) => {
                charges::resume(app, &payment.company_id, &payment.id, &FIELDS).await?
            }
            None => Some(payment),
        };
        if let Some(payment) = payment {
            return Ok(payment);
        }
    }
}

fn needs_session(payment: &Payment) -> bool {
    payment.status == Status::Pending && payment.checkout.url.is_none()
}

/// Records a new payment with its charge, or returns the one with the same reference.
async fn record(
    app: &App,
    company: &Company,
    order: NewPayment,
) -> Result<(Payment, Option<Charge>)> {
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        if let Some(reference) = &order.reference
            && let Some(existing) = store::find_by_reference(tx, &company.id, reference).await?
        {
            return Ok((existing, None));
        }
        let user = match &order.user_id {
            Some(user_id) => Some(users::get(tx, &company.id, user_id).await?),
            None => None,
        };
        let account = providers::resolve(tx, &company, &order.payment_service).await?;
        let mut payment = compose(&app, &company, &order, user.as_ref())?;
        let new = NewCharge {
            company_id: &company.id,
            owner: (OwnerKind::Payment, &payment.id),
            method: Method::Checkout,
            account: &account,
            amount: payment.money(),
            reference: Some(&payment.reference),
            lane: None,
        };
        let charge = charges::prepare(tx, &app, new).await?;
        payment.service_ref.clone_from(&charge.service_ref);
        if !store::insert(tx, &payment, &charge).await? {
            // Another request has just inserted the same reference.
            notifications::release(tx, &charge.account_id, &charge.service_ref).await?;
            let existing = store::find_by_reference(tx, &company.id, &payment.reference).await?;
            let existing = existing
                .ok_or_else(|| Error::internal("payment could neither be inserted nor found"))?;
            return Ok((existing, None));
        }
        charges::insert(tx, &app, &charge).await?;
        charges::begin_pending(tx, &app, &charge).await?;
        Ok((payment, Some(charge)))
    })
    .await
}

fn compose(
    app: &App,
    company: &Company,
    order: &NewPayment,
    user: Option<&User>,
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
        amount: order.amount,
        currency: order.currency.clone(),
        reference,
        narration: order.narration.clone().unwrap_or_default(),
        metadata: Json(metadata),
        callback_url: order.callback_url.clone(),
        checkout: store::Checkout { success_url, cancel_url, url: None },
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
