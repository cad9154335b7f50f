//! The effects of the outcomes of verification charges on a card. These charges are always
//! refunded.

use super::{
    CHANNEL, Card, CardId, Status, lock_any, seal_context,
    store::{self, CardDetails},
};
use crate::money::{
    charges::{ChargeOwner, Failure, Order, Outcome, OwnerKind, RefundTerms, choice::Routed},
    prelude::*,
    routing::{self, Payer},
};
use tollhouse_plugins::Instrument;

/// Some providers return eight.
const BIN_DIGITS: usize = 6;
const CARD_EXISTS: &str = "card already exists";
const NOT_REUSABLE: &str = "the card cannot be charged again";

impl ChargeOwner for Card {
    const KIND: OwnerKind = OwnerKind::Card;

    async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Card>> {
        match store::find_any(tx, company_id, &CardId::from(id)).await? {
            Some(card) => lock_any(tx, &card).await.map(Some),
            None => Ok(None),
        }
    }

    fn is_pending(&self) -> bool {
        self.status == Status::Pending
    }

    async fn order(&self, _: &App, charge: &Charge) -> Result<Order> {
        Ok(Order::Checkout(CheckoutOrder {
            service_ref: charge.service_ref.clone(),
            amount: charge.money(),
            email: self.charge_email.clone(),
            phone: None,
            notification_url: String::new(),
            customer_name: None,
            narration: "Card verification".to_owned(),
            channels: vec![CHANNEL.to_owned()],
            success_url: self.checkout.success_url.clone(),
            cancel_url: self.checkout.cancel_url.clone(),
            metadata: json!({ METADATA_KEY: self.id, "event": "card" }).to_string(),
            save_instrument: true,
        }))
    }

    async fn reroute(
        &self,
        app: &App,
        charge: &Charge,
        amount: Minor,
        tried: &[String],
    ) -> Result<Option<Routed>> {
        let payer = Payer { user: Some(self.user_key.clone()), has_phone: false };
        routing::choose_other(app, charge, amount, payer, tried).await
    }

    fn return_urls(&self) -> (&str, Option<&str>) {
        (&self.checkout.success_url, self.checkout.cancel_url.as_deref())
    }

    async fn apply(
        self,
        tx: &mut Tx,
        app: &App,
        charge: &Charge,
        outcome: Outcome<'_>,
    ) -> Result<Card> {
        let mut card = self;
        match outcome {
            Outcome::Moved => card = at_account_of(charge, card),
            Outcome::Session(_) => {
                card.service_ref.clone_from(&charge.service_ref);
                card.checkout.url.clone_from(&charge.session_url);
            }
            Outcome::Succeeded(seen) => {
                refund(tx, app, charge).await?;
                return succeed(tx, app, card, charge, seen).await;
            }
            Outcome::Failed(failure) if card.is_pending() => {
                let message = match failure {
                    Failure::Seen(seen) => &seen.message,
                    Failure::Message(message) | Failure::Declined(message, _) => message,
                };
                return fail(tx, app, card, Status::Failed, message).await;
            }
            Outcome::Mismatched(what) => {
                refund(tx, app, charge).await?;
                card.message = Some(what.to_owned());
            }
            // The customer paid a second session of the same card.
            Outcome::Surplus => {
                refund(tx, app, charge).await?;
                return Ok(card);
            }
            Outcome::Forgotten => {
                store::delete(tx, &card).await?;
                return Ok(card);
            }
            Outcome::Failed(_)
            | Outcome::Pending(_)
            | Outcome::Reversed(_)
            | Outcome::Refunded
            | Outcome::PartlyRefunded
            | Outcome::RefundFailed
            | Outcome::Abandoned => return Ok(card),
        }
        card.updated_at = app.clock.now();
        store::update(tx, &card).await?;
        Ok(card)
    }
}

/// Begins the refund of a verification charge.
async fn refund(tx: &mut Tx, app: &App, charge: &Charge) -> Result<()> {
    let mut charge = charge.clone();
    if charge.refundable() == Minor(0) {
        return Ok(()); // a payer disputes it
    }
    charges::begin_refund(tx, app, &mut charge, RefundTerms::VERIFICATION).await.map(drop)
}

/// Records a successful charge. A removed card stays hidden: its charge is only refunded.
async fn succeed(
    tx: &mut Tx,
    app: &App,
    mut card: Card,
    charge: &Charge,
    seen: &ProviderPayment,
) -> Result<Card> {
    if card.status == Status::Failed {
        tracing::warn!(
            card = card.id.as_str(),
            "verification charge succeeded after it was recorded as failed"
        );
    }
    card = at_account_of(charge, card);
    if card.removed_at.is_some() {
        store::update(tx, &card).await?;
        return Ok(card);
    }
    let usable = |instrument: &&Instrument| instrument.reusable && !instrument.token.is_empty();
    let Some(instrument) = seen.instrument.as_ref().filter(usable) else {
        return fail(tx, app, card, Status::Unusable, NOT_REUSABLE).await;
    };
    let others = store::list_other_valid(tx, &card).await?;
    let new = (&*card.payment_service, &*instrument.signature);
    let same =
        others.iter().find(|other| is_same_card((&other.payment_service, &other.signature), new));
    if let Some(same) = same {
        // The new token belongs to the account that issued it.
        let account_id = card.account_id.clone();
        let same = Card { account_id, ..with_token(app, same.clone(), instrument) };
        store::update(tx, &same).await?;
        return fail(tx, app, card, Status::Duplicate, CARD_EXISTS).await;
    }
    let mut card = with_token(app, card, instrument);
    card.status = Status::Valid;
    card.is_default = !others.iter().any(|other| other.is_default);
    card.message = Some("card verified".to_owned());
    store::update(tx, &card).await?;
    emit(tx, app, &card, "card.validation.success").await?;
    Ok(card)
}

/// Returns the card with the provider, account and reference of a charge.
fn at_account_of(charge: &Charge, card: Card) -> Card {
    Card {
        payment_service: charge.provider.clone(),
        account_id: charge.account_id.clone(),
        service_ref: charge.service_ref.clone(),
        ..card
    }
}

/// Compares two cards of a customer by provider and signature; an empty signature never matches.
fn is_same_card(one: (&str, &str), other: (&str, &str)) -> bool {
    one == other && !one.1.is_empty()
}

/// Copies the token and the details of an instrument into a card.
fn with_token(app: &App, card: Card, instrument: &Instrument) -> Card {
    let Instrument { token, signature, bin, last4, exp_month, exp_year, .. } = instrument.clone();
    let Instrument { brand, bank, country, holder, email, .. } = instrument.clone();
    let context = seal_context(&card.company_id, &card.id);
    let bin = bin.chars().take(BIN_DIGITS).collect();
    let user_email = card.details.email.clone();
    Card {
        token: Some(app.sealer.seal(&context, &token)),
        charge_email: if email.is_empty() { card.charge_email.clone() } else { email },
        signature,
        details: CardDetails {
            last4,
            holder,
            bin,
            brand,
            bank,
            country,
            exp_month,
            exp_year,
            email: user_email,
        },
        updated_at: app.clock.now(),
        ..card
    }
}

async fn fail(
    tx: &mut Tx,
    app: &App,
    mut card: Card,
    status: Status,
    message: &str,
) -> Result<Card> {
    let is_news = card.status == Status::Pending;
    card.status = status;
    card.message = Some(message.to_owned());
    card.updated_at = app.clock.now();
    store::update(tx, &card).await?;
    // A duplicate has no event: its verification charge did not fail.
    if card.removed_at.is_some() || !is_news || status == Status::Duplicate {
        return Ok(card);
    }
    emit(tx, app, &card, "card.validation.failed").await?;
    Ok(card)
}

async fn emit(tx: &mut Tx, app: &App, card: &Card, kind: &'static str) -> Result<()> {
    let event = events::Event {
        kind,
        subject_id: card.id.to_string(),
        data: json!(card.view()),
        callback_url: None,
    };
    events::emit(tx, app, &card.company_id, event).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_match_by_provider_and_signature() {
        for (one, other, same) in [
            (("a", "s"), ("a", "s"), true),
            (("a", "s"), ("b", "s"), false),
            (("a", "s"), ("a", "t"), false),
            (("a", ""), ("a", ""), false),
        ] {
            assert_eq!(is_same_card(one, other), same, "{one:?} {other:?}");
        }
    }
}
