//! Payments that arrive without a request.

use super::{Payment, store, with_origin};
use crate::money::{
    charges::{Method, NewCharge, OwnerKind, Received},
    prelude::*,
};

const NARRATION: &str = "Bank transfer";

/// Records a transfer to a virtual account as a payment of its user, to be verified at once. Fails
/// as a duplicate if a record has the provider's reference.
pub async fn receive(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    user: Option<&User>,
    virtual_account: &str,
    received: Received<'_>,
) -> Result<()> {
    let (now, account) = (app.clock.now(), received.account);
    let mut metadata = with_origin(Map::new(), company);
    metadata.insert("virtual_account".to_owned(), virtual_account.into());
    let mut payment = Payment {
        company_id: company.id.clone(),
        id: app.random.id(now).into(),
        user_key: user.map(|user| user.id.clone()),
        user_id: user.map(|user| user.user_id.clone()),
        email: user.and_then(|user| user.email.clone()).unwrap_or_default(),
        payment_service: account.provider.clone(),
        amount: received.amount.minor,
        currency: received.amount.currency.clone(),
        reference: format!("trf-{}", app.random.id(now)),
        narration: NARRATION.to_owned(),
        metadata: Json(metadata),
        created_at: now,
        updated_at: now,
        ..Payment::default()
    };
    let new = NewCharge {
        company_id: &company.id,
        owner: (OwnerKind::Payment, &payment.id),
        method: Method::Checkout,
        account,
        choice: None,
        amount: received.amount,
        reference: Some(received.service_ref),
        lane: None,
    };
    let charge = charges::compose_received(app, new);
    payment.service_ref.clone_from(&charge.service_ref);
    store::insert(tx, &payment, &charge).await?;
    charges::insert_received(tx, app, &charge).await?;
    charges::begin_pending(tx, app, &charge).await
}
