//! Saving a card: record it, open a checkout session for a verification charge, record the session.
//!
//! The card is committed before the provider is called, so that a charge is found even after a
//! crash. No transaction is open during the call.

use super::{
    CONFIRM_JOB, Card, Status,
    api::{NewCard, Pages},
    lock_any, not_found, store,
    store::{CardDetails, Checkout},
};
use crate::money::prelude::*;

#[instrument(target = SPAN_TARGET, name = "cards.create", skip_all)]
pub async fn create(
    app: &App,
    company: &Company,
    order: NewCard,
    run: Option<String>,
) -> Result<Card> {
    let card = record(app, company, order, run).await?;
    // An earlier run of the request has completed this.
    if card.checkout.url.is_some() || card.status != Status::Pending {
        return Ok(card);
    }
    let verifier = card.verifier(app).await?;
    let session =
        verifier.provider.start_checkout(&verifier.credentials, &checkout_order(&card)).await;
    match session {
        Ok(session) => record_session(app, card, session).await,
        Err(error) => {
            Err(charges::client_error(error, &card.payment_service, &["email", "currency"]))
        }
    }
}

/// Transaction 1: records the attempt. If an earlier run of the request left a card without a
/// checkout URL, it starts over under a new reference: no client has received the former session.
async fn record(app: &App, company: &Company, order: NewCard, run: Option<String>) -> Result<Card> {
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        let user = users::get(tx, &company.id, &order.user_id).await?;
        let no_email = || Error::invalid("email address not found for this user");
        let email = user.email.clone().ok_or_else(no_email)?;
        let account = providers::resolve(tx, &company, &order.payment_service).await?;
        let plugin = app.plugins.provider(&order.payment_service, &company.id)?;
        let now = app.clock.now();
        let service_ref = format!("card-{}", app.random.id(now));
        let service_ref = plugin.manifest().reference.conform(&service_ref);
        let Pages { success_url, cancel_url } = order.checkout;
        let new = Card {
            company_id: company.id.clone(),
            id: app.random.id(now).into(),
            user_key: user.id,
            user_id: user.user_id,
            run,
            payment_service: order.payment_service,
            account_id: account.id,
            amount: app.settings.card_charge(&order.currency),
            currency: order.currency,
            charge_email: email.clone(),
            details: CardDetails { email, ..CardDetails::default() },
            service_ref,
            checkout: Checkout { success_url, cancel_url, url: None },
            created_at: now,
            updated_at: now,
            ..Card::default()
        };
        let card = match store::insert(tx, &new).await? {
            true => new,
            false => find_or_restart(tx, &new).await?,
        };
        if card.checkout.url.is_none() {
            reserve(tx, &card).await?;
        }
        if let Some(at) = next_check(card.status.of_charge(), card.created_at, now) {
            jobs::enqueue(tx, &card.company_id, CONFIRM_JOB, &card.id, at).await?;
        }
        Ok(card)
    })
    .await
}

async fn find_or_restart(tx: &mut Tx, new: &Card) -> Result<Card> {
    let run = new.run.as_deref().unwrap_or_default();
    let found = store::find_by_run(tx, &new.company_id, run).await?.ok_or_else(not_found)?;
    if found.checkout.url.is_some() {
        return Ok(found);
    }
    let card = Card { service_ref: new.service_ref.clone(), updated_at: new.updated_at, ..found };
    store::update(tx, &card).await?;
    Ok(card)
}

async fn reserve(tx: &mut Tx, card: &Card) -> Result<()> {
    let Card { account_id, service_ref, updated_at, .. } = card;
    match notifications::reserve(tx, account_id, service_ref, card.as_owner(), *updated_at).await? {
        true => Ok(()),
        false => Err(Error::internal("generated reference is already taken")),
    }
}

fn checkout_order(card: &Card) -> CheckoutOrder {
    CheckoutOrder {
        service_ref: card.service_ref.clone(),
        amount: card.money(),
        email: card.charge_email.clone(),
        customer_name: None,
        narration: "Card verification".to_owned(),
        channels: vec!["card".to_owned()],
        success_url: card.checkout.success_url.clone(),
        cancel_url: card.checkout.cancel_url.clone(),
        metadata: json!({ METADATA_KEY: card.id, "event": "card" }).to_string(),
        save_instrument: true,
    }
}

/// Transaction 2: records the checkout session.
async fn record_session(app: &App, card: Card, session: CheckoutSession) -> Result<Card> {
    let (db, now) = (app.store.clone(), app.clock.now());
    db.write(async move |tx| {
        let mut card = lock_any(tx, &card).await?;
        let Card { account_id, service_ref, .. } = &card;
        let (owner, new) = (card.as_owner(), session.service_ref);
        if !notifications::replace(tx, account_id, service_ref, &new, owner, now).await? {
            return Err(Error::internal("reference returned by the provider is already taken"));
        }
        card.service_ref = new;
        card.checkout.url = Some(session.url);
        card.updated_at = now;
        store::update(tx, &card).await?;
        Ok(card)
    })
    .await
}
