//! Records what a provider reports of a dispute.

use super::{
    Dispute, DisputeState,
    state::{Change, Standing, decide},
    store,
};
use crate::{
    money::{
        charges::{ChargeId, DisputedMoney, OwnerKind, RECONCILE_JOB, State as ChargeState},
        prelude::*,
    },
    operations::operator_events::{self, DISPUTE_CLOSED, DISPUTE_OPENED},
};
use tollhouse_plugins::ProviderDispute;

/// A dispute in events.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Dispute")]
pub struct EventData {
    id: String,
    /// The id of the payment or recollection.
    owner_id: String,
    /// The reference of the payment or recollection.
    reference: Option<String>,
    payment_service: String,
    service_ref: String,
    /// The disputed amount; of a lost dispute, the amount that the payer gets.
    amount: Minor,
    currency: Currency,
    /// The provider's reason.
    reason: String,
    state: DisputeState,
    /// The time until which it can be answered.
    due_at: Option<Timestamp>,
    opened_at: Timestamp,
    closed_at: Option<Timestamp>,
}

impl From<&Dispute> for EventData {
    fn from(dispute: &Dispute) -> EventData {
        let dispute = dispute.clone();
        EventData {
            id: dispute.id,
            owner_id: dispute.owner_id,
            reference: dispute.reference,
            payment_service: dispute.provider,
            service_ref: dispute.service_ref,
            amount: dispute.amount,
            currency: dispute.currency,
            reason: dispute.reason,
            state: dispute.state,
            due_at: dispute.due_at,
            opened_at: dispute.opened_at,
            closed_at: dispute.closed_at,
        }
    }
}

/// Records a report about a dispute of a charge. Returns the dispute; `None` if the charge is gone.
pub async fn record(
    app: &App,
    company_id: &CompanyId,
    charge_id: &ChargeId,
    seen: ProviderDispute,
) -> Result<Option<Dispute>> {
    let (db, app) = (app.store.clone(), app.clone());
    let (company_id, charge_id) = (company_id.clone(), charge_id.clone());
    db.write(async move |tx| {
        let found = charges::lock_charge(tx, &company_id, &charge_id).await?;
        let Some(charge) = found else { return Ok(None) };
        let known = store::find_at_provider(tx, &charge, &seen.key.id).await?;
        let is_new = known.is_none();
        let before = match known {
            Some(known) => known,
            None => insert(tx, &app, &charge, &seen).await?,
        };
        if before.charge_id != charge.id {
            return Err(Error::internal("the dispute belongs to another charge"));
        }
        apply(tx, &app, charge, before, is_new, &seen).await.map(Some)
    })
    .await
}

async fn insert(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    seen: &ProviderDispute,
) -> Result<Dispute> {
    let now = app.clock.now();
    let dispute = Dispute {
        company_id: charge.company_id.clone(),
        id: app.random.id(now),
        charge_id: charge.id.clone(),
        account_id: charge.account_id.clone(),
        owner_kind: charge.owner_kind,
        owner_id: charge.owner_id.clone(),
        reference: None,
        provider: charge.provider.clone(),
        service_ref: charge.service_ref.clone(),
        transaction_id: charge.transaction_id.clone(),
        provider_id: seen.key.id.clone(),
        amount: seen.amount.minor,
        currency: seen.amount.currency.clone(),
        held: Minor(0),
        postings: 0,
        reason: seen.reason.clone(),
        state: DisputeState::Open,
        answer_until: None,
        due_at: seen.due_at,
        opened_at: seen.opened_at.unwrap_or(now),
        answered_at: None,
        closed_at: None,
        created_at: now,
        updated_at: now,
    };
    store::insert(tx, &dispute).await?;
    let stored = store::find(tx, &dispute.company_id, &dispute.id).await?;
    Ok(stored.unwrap_or(dispute))
}

/// Moves the money, writes charge and dispute, and reports the change.
async fn apply(
    tx: &mut Tx,
    app: &App,
    mut charge: Charge,
    before: Dispute,
    is_new: bool,
    seen: &ProviderDispute,
) -> Result<Dispute> {
    let now = app.clock.now();
    let taken_in = charge.taken_currency.as_ref().unwrap_or(&charge.currency);
    let is_in_currency = *taken_in == seen.amount.currency;
    let standing = Standing {
        state: before.state,
        held: before.held,
        available: if is_in_currency { charge.credited } else { Minor(0) },
        is_reversed: charge.state == ChargeState::Reversed,
    };
    let change = decide(standing, seen.status, seen.amount.minor);
    let was_closed = before.state.is_closed();
    let mut dispute = Dispute { state: change.state, answer_until: None, ..before };
    if !was_closed {
        dispute.reason.clone_from(&seen.reason);
        dispute.due_at = seen.due_at.or(dispute.due_at);
        (dispute.amount, dispute.currency) = (seen.amount.minor, seen.amount.currency.clone());
    }
    if dispute.state == DisputeState::Answered {
        dispute.answered_at.get_or_insert(now);
    }
    if dispute.state.is_closed() {
        dispute.closed_at.get_or_insert(now);
    }
    dispute.updated_at = now;
    move_money(tx, app, &mut charge, &mut dispute, change).await?;
    store::update(tx, &dispute).await?;
    let disputed = store::sum_of_charge(tx, &charge.company_id, &charge.id).await?;
    let most = charge.taken.unwrap_or_default().0 - charge.refunded.0;
    charge.disputed = Minor(disputed.0.clamp(0, most.max(0)));
    charge.updated_at = now;
    charges::update_charge(tx, &charge).await?;
    let alarm = change.alarm.or_else(|| alarm_of(&charge, &dispute, is_in_currency, was_closed));
    if let Some(alarm) = alarm {
        charges::raise_exception(tx, app, &charge, alarm, None).await?;
    }
    report(tx, app, &dispute, is_new, was_closed).await?;
    Ok(dispute)
}

/// Returns why an operator must look at a report that is not a contradiction.
fn alarm_of(
    charge: &Charge,
    dispute: &Dispute,
    is_in_currency: bool,
    was_closed: bool,
) -> Option<&'static str> {
    let is_lost_now = dispute.state == DisputeState::Lost && !was_closed;
    let is_part = charge.taken.is_some_and(|taken| dispute.amount < taken);
    match charge.owner_kind {
        _ if !is_in_currency => Some("dispute in another currency"),
        // A loan is owed again only by a reversal of the whole repayment.
        OwnerKind::Recollection if is_lost_now && is_part => Some("dispute lost in part"),
        _ => None,
    }
}

async fn move_money(
    tx: &mut Tx,
    app: &App,
    charge: &mut Charge,
    dispute: &mut Dispute,
    change: Change,
) -> Result<()> {
    let moves = [
        (DisputedMoney::Held, change.hold),
        (DisputedMoney::Lost, change.lose),
        (DisputedMoney::Released, change.release),
    ];
    for (what, minor) in moves.into_iter().filter(|(_, minor)| *minor > Minor(0)) {
        dispute.postings += 1;
        let key = charges::dispute_key(&charge.id, &dispute.id, dispute.postings);
        charges::post_disputed(tx, app, charge, key, what, minor).await?;
    }
    dispute.held.0 += change.hold.0 - change.lose.0 - change.release.0;
    Ok(())
}

/// Emits the events of a new and of an ended dispute. The charge of an ended one is verified: the
/// provider may have returned the whole amount.
async fn report(
    tx: &mut Tx,
    app: &App,
    dispute: &Dispute,
    is_new: bool,
    was_closed: bool,
) -> Result<()> {
    let is_closed_now = dispute.state.is_closed() && !was_closed;
    let (opened, closed) = match dispute.owner_kind {
        OwnerKind::Payment => (Some("payment.disputed"), Some("payment.dispute_closed")),
        OwnerKind::Recollection => {
            (Some("recollection.disputed"), Some("recollection.dispute_closed"))
        }
        // Verification charges are refunded; companies never saw them as their money.
        OwnerKind::Card => (None, None),
    };
    let company = &dispute.company_id;
    let data = json!({ "dispute": dispute.id, (dispute.owner_kind.name()): dispute.owner_id });
    for (kind, operators_kind, _) in
        [(opened, DISPUTE_OPENED, is_new), (closed, DISPUTE_CLOSED, is_closed_now)]
            .into_iter()
            .filter(|(.., happened)| *happened)
    {
        operator_events::emit(tx, app, company, operators_kind, data.clone()).await?;
        let Some(kind) = kind else { continue };
        let event = events::Event {
            kind,
            subject_id: dispute.owner_id.clone(),
            data: json!(EventData::from(dispute)),
            callback_url: None,
        };
        events::emit(tx, app, company, event).await?;
    }
    if is_closed_now {
        jobs::enqueue(tx, company, RECONCILE_JOB, &dispute.charge_id, app.clock.now()).await?;
    }
    Ok(())
}
