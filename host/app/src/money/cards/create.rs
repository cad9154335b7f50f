//! Saving a card: record it with its verification charge, and open a checkout session.

use super::{
    CHANNEL, CONFIRM_JOB, Card,
    api::{NewCard, Pages},
    cleanup, not_found, store,
    store::{CardDetails, Checkout},
};
use crate::money::{
    charges::{Method, NewCharge, OwnerKind},
    prelude::*,
    routing::{Payer, Routable},
};

/// The request fields that an error of the provider may name.
const FIELDS: [&str; 2] = ["email", "currency"];

/// Returns the card with its checkout URL. A repeated run of the request resumes its card.
#[instrument(target = SPAN_TARGET, name = "cards.create", skip_all)]
pub async fn create(
    app: &App,
    company: &Company,
    order: NewCard,
    run: Option<String>,
) -> Result<Card> {
    match record(app, company, order, run).await? {
        (card, Some(charge)) => charges::open_page(app, card, charge, None, &FIELDS).await,
        (card, None) => {
            let resumed = charges::resume(app, &card.company_id, &card.id, &FIELDS).await?;
            resumed.ok_or_else(not_found)
        }
    }
}

/// Records a new card with its charge, or returns the one of an earlier run of the request.
async fn record(
    app: &App,
    company: &Company,
    order: NewCard,
    run: Option<String>,
) -> Result<(Card, Option<Charge>)> {
    let read = async |tx: &mut Tx| -> Result<(Option<Card>, User)> {
        let found = match &run {
            Some(run) => store::find_by_run(tx, &company.id, run).await?,
            None => None,
        };
        Ok((found, users::get(tx, &company.id, &order.user_id).await?))
    };
    let (found, user) = app.store.read(read).await?;
    if let Some(card) = found {
        return Ok((card, None));
    }
    let email = user.email.clone().ok_or_else(users::missing_email)?;
    let amount = app.settings.card_charge(&order.currency);
    let checkout = Routable {
        amount: Money { minor: amount, currency: order.currency.clone() },
        channels: vec![CHANNEL.to_owned()],
        payer: Payer { user: Some(user.id.clone()), has_phone: user.phone.is_some() },
        saves_card: true,
    };
    let (account, choice) = order.payment_service.account(app, company, &checkout).await?;
    let (db, app, company) = (app.store.clone(), app.clone(), company.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        let Pages { success_url, cancel_url } = order.checkout;
        let mut card = Card {
            company_id: company.id.clone(),
            id: app.random.id(now).into(),
            user_key: user.id,
            user_id: user.user_id,
            run,
            payment_service: account.provider.clone(),
            account_id: account.id.clone(),
            amount,
            currency: order.currency,
            charge_email: email.clone(),
            details: CardDetails { email, ..CardDetails::default() },
            checkout: Checkout { success_url, cancel_url, url: None },
            created_at: now,
            updated_at: now,
            ..Card::default()
        };
        let new = NewCharge {
            company_id: &company.id,
            owner: (OwnerKind::Card, &card.id),
            method: Method::Checkout,
            account: &account,
            choice,
            amount: Money { minor: card.amount, currency: card.currency.clone() },
            reference: None,
            lane: None,
        };
        let charge = charges::compose(&app, new)?;
        card.service_ref.clone_from(&charge.service_ref);
        if !store::insert(tx, &card, &charge).await? {
            let run = card.run.as_deref().unwrap_or_default();
            let found = store::find_by_run(tx, &company.id, run).await?;
            return Ok((found.ok_or_else(not_found)?, None));
        }
        charges::insert_composed(tx, &app, &charge).await?;
        let expiry = cleanup::removal_due_at(&card).unwrap_or(now);
        jobs::enqueue(tx, &company.id, CONFIRM_JOB, &card.id, expiry).await?;
        Ok((card, Some(charge)))
    })
    .await
}
