//! Confirming a card: verify its charge with the provider, then record the outcome.
//!
//! Webhooks, scheduled checks and `verify` all end here. Verified charges are always refunded.

use super::{
    Card, CardId, Status, cleanup, lock_any, refund, seal_context,
    store::{self, CardDetails},
};
use crate::money::prelude::*;
use tollhouse_plugins::Instrument;

/// Some providers return eight.
const BIN_DIGITS: usize = 6;
const CARD_EXISTS: &str = "card already exists";
const NOT_REUSABLE: &str = "the card cannot be charged again";

/// Verifies a card's charges with the provider and records the outcome. Returns the mismatch if an
/// amount or currency differs from the requested one; the card is then not verified.
#[instrument(target = SPAN_TARGET, name = "cards.verify", skip_all)]
pub async fn verify(app: &App, card: &Card) -> Result<Option<&'static str>> {
    let verifier = card.verifier(app).await?;
    let read = async |tx: &mut Tx| notifications::list_references(tx, card.as_owner()).await;
    let mut mismatch = None;
    // An abandoned session may have been paid too.
    for service_ref in app.store.select(read).await? {
        if let Some(seen) = verifier.fetch(&service_ref).await? {
            mismatch = record(app, card, seen, service_ref).await?.or(mismatch);
        }
    }
    Ok(mismatch)
}

/// Records the status of the provider's charge with `service_ref`.
async fn record(
    app: &App,
    card: &Card,
    seen: ProviderPayment,
    service_ref: String,
) -> Result<Option<&'static str>> {
    let (db, app, card) = (app.store.clone(), app.clone(), card.clone());
    db.write(async move |tx| {
        let mut card = lock_any(tx, &card).await?;
        if !is_ours(&card.id, true, &seen) {
            if seen.status == PaymentStatus::Success {
                charges::alarm(&app, card.as_owner(), &card.money(), &seen, "foreign payment");
            }
            return Ok(None);
        }
        let is_current = service_ref == card.service_ref;
        match decide_transition(card.status.of_charge(), &card.money(), &seen) {
            Transition::Succeeded => {
                card.service_ref = service_ref;
                refund::begin(tx, &app, &card, &seen).await?;
                succeed(tx, &app, card, &seen).await?;
            }
            Transition::Failed if is_current => {
                fail(tx, &app, card, Status::Failed, &seen.message).await?;
            }
            // The customer paid a second session of the same card.
            Transition::Unchanged if seen.status == PaymentStatus::Success => {
                card.service_ref = service_ref;
                refund::begin(tx, &app, &card, &seen).await?;
            }
            Transition::Mismatch(mismatch) => {
                charges::alarm(&app, card.as_owner(), &card.money(), &seen, mismatch);
                card.message = Some(mismatch.to_owned());
                card.updated_at = app.clock.now();
                store::update(tx, &card).await?;
                return Ok(Some(mismatch));
            }
            _ => {}
        }
        Ok(None)
    })
    .await
}

/// Records a successful charge. A removed card stays hidden: its charge is only refunded.
async fn succeed(tx: &mut Tx, app: &App, mut card: Card, seen: &ProviderPayment) -> Result<()> {
    if card.status == Status::Failed {
        tracing::warn!(
            card = card.id.as_str(),
            "verification charge succeeded after it was recorded as failed"
        );
    }
    card.transaction_id.clone_from(&seen.transaction_id);
    if card.removed_at.is_some() {
        return Ok(store::update(tx, &card).await?);
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
    emit(tx, app, &card, "card.validation.success").await
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

async fn fail(tx: &mut Tx, app: &App, mut card: Card, status: Status, message: &str) -> Result<()> {
    let is_news = card.status == Status::Pending;
    card.status = status;
    card.message = Some(message.to_owned());
    card.updated_at = app.clock.now();
    store::update(tx, &card).await?;
    // A duplicate has no event: its verification charge did not fail.
    if card.removed_at.is_some() || !is_news || status == Status::Duplicate {
        return Ok(());
    }
    emit(tx, app, &card, "card.validation.failed").await
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

/// Verifies a card's charge after a webhook and on schedule. A card that is not valid after one day
/// is removed; its session is checked for two more days.
pub async fn confirm_job(app: App, job: Job) -> Result<JobResult> {
    let id = CardId::from(&job.subject);
    let find = async |tx: &mut Tx| store::find_any(tx, &job.company_id, &id).await;
    let Some(card) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    let verified = verify(&app, &card).await;
    let Some(card) = app.store.select(find).await? else { return Ok(JobResult::Done) };
    let card = cleanup::remove_if_unverified(&app, card).await?;
    let now = app.clock.now();
    let next = [
        next_check(card.status.of_charge(), card.created_at, now),
        cleanup::removal_due_at(&card).filter(|at| *at > now),
    ];
    let next = next.into_iter().flatten().min();
    match (verified, next) {
        (Err(error), None) => charges::retry_or_give_up(&job, error),
        (Err(error), _) => Err(error),
        (Ok(_), next) => Ok(next.map_or(JobResult::Done, JobResult::RescheduleAt)),
    }
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
