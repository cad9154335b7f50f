//! Records what a provider reports of a dispute.

use super::{
    Dispute, DisputeState,
    state::{Change, Standing, decide},
    store,
};
use crate::{
    money::{
        charges::{
            ChargeId, DisputedMoney, FundsAccount, OwnerKind, RECONCILE_JOB, State as ChargeState,
        },
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
    /// The disputed amount; for a lost dispute, the amount that the payer gets.
    amount: Minor,
    currency: Currency,
    /// The reason, as reported by the provider.
    reason: String,
    state: DisputeState,
    /// The deadline for the answer.
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

/// Records the report of a query that began at `queried_at`, unless the dispute has changed since.
/// Returns the dispute; `None` if the charge is gone.
pub async fn record(
    app: &App,
    company_id: &CompanyId,
    charge_id: &ChargeId,
    queried_at: Timestamp,
    seen: ProviderDispute,
) -> Result<Option<Dispute>> {
    let (db, app) = (app.store.clone(), app.clone());
    let (company_id, charge_id) = (company_id.clone(), charge_id.clone());
    db.write(async move |tx| {
        let found = charges::lock_charge(tx, &company_id, &charge_id).await?;
        let Some(charge) = found else { return Ok(None) };
        let known = store::find_at_provider(tx, &charge, &seen.key.id).await?;
        let (is_new, before) = match known {
            Some(known) => (false, known),
            None => (true, insert(tx, &app, &charge, &seen).await?),
        };
        if before.charge_id != charge.id {
            return Err(Error::internal("the dispute belongs to another charge"));
        }
        if queried_at < before.updated_at && !is_new {
            return Ok(Some(before));
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
        lost: Minor(0),
        fee: Minor(0),
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

/// Moves the money, writes charge and dispute, and emits the events. If nothing changes, nothing is
/// written.
async fn apply(
    tx: &mut Tx,
    app: &App,
    mut charge: Charge,
    before: Dispute,
    is_new: bool,
    seen: &ProviderDispute,
) -> Result<Dispute> {
    let fees = charges::unbooked_fees(tx, &charge).await?;
    let change = change(&charge, fees, &before, seen);
    let was_closed = before.state.is_closed();
    let mut dispute = with_report(before.clone(), &change, seen, app.clock.now());
    let moves = [change.hold, change.lose, change.fee, change.release];
    let is_same = !is_new && dispute == before && moves == [Minor(0); 4];
    if let Some(alarm) = change.alarm {
        charges::raise_exception(tx, app, &charge, alarm, None).await?;
    }
    if is_same {
        return Ok(before);
    }
    dispute.updated_at = app.clock.now();
    move_money(tx, app, &mut charge, &mut dispute, change).await?;
    store::update(tx, &dispute).await?;
    charges::refresh_disputed(tx, &mut charge).await?;
    charge.updated_at = dispute.updated_at;
    charges::update_charge(tx, &charge).await?;
    if let Some(alarm) = alarm_of(&charge, &dispute, was_closed) {
        charges::raise_exception(tx, app, &charge, alarm, None).await?;
    }
    report(tx, app, &dispute, is_new, was_closed).await?;
    // A disputed charge was paid. When the dispute ends, the provider may have returned all of it.
    if is_new && charge.taken.is_none() || dispute.state.is_closed() && !was_closed {
        jobs::enqueue(tx, &charge.company_id, RECONCILE_JOB, &charge.id, app.clock.now()).await?;
    }
    Ok(dispute)
}

/// Decides the effects of a report. An amount in a currency other than that of the charge moves no
/// money.
fn change(charge: &Charge, fees: Minor, before: &Dispute, seen: &ProviderDispute) -> Change {
    let currency = charge.taken_currency.as_ref().unwrap_or(&charge.currency);
    let is_in_currency = [&seen.amount.currency, &before.currency] == [currency; 2];
    let standing = Standing {
        state: before.state,
        held: before.held,
        lost: Minor(before.lost.0 + before.fee.0),
        available: if is_in_currency { charge.credited } else { Minor(0) },
        fees,
        is_reversed: charge.state == ChargeState::Reversed,
    };
    let change = decide(standing, seen.status, seen.amount.minor);
    if is_in_currency {
        return change;
    }
    // Money already held stays held until a report in the currency of the charge.
    let state = if before.held == Minor(0) { change.state } else { before.state };
    Change { alarm: Some("dispute in another currency"), ..Change::none(state) }
}

/// Returns a dispute with the reported fields. The ledger amounts do not change.
fn with_report(
    before: Dispute,
    change: &Change,
    seen: &ProviderDispute,
    now: Timestamp,
) -> Dispute {
    let mut dispute = Dispute { state: change.state, ..before };
    if !before.state.is_closed() && seen.amount.currency == dispute.currency {
        dispute.reason.clone_from(&seen.reason);
        dispute.due_at = seen.due_at.or(dispute.due_at);
        dispute.amount = seen.amount.minor;
    }
    if dispute.state != DisputeState::Open {
        dispute.answer_until = None;
    }
    if dispute.state == DisputeState::Answered {
        dispute.answered_at.get_or_insert(now);
    }
    if dispute.state.is_closed() {
        dispute.closed_at.get_or_insert(now);
    }
    dispute
}

/// Returns the alarm for a lost dispute whose effects the host cannot book by itself.
fn alarm_of(charge: &Charge, dispute: &Dispute, was_closed: bool) -> Option<&'static str> {
    if dispute.state != DisputeState::Lost || was_closed {
        return None;
    }
    let taken = charge.taken.unwrap_or_default();
    match charge.owner_kind {
        // The payer got the money twice.
        _ if charge.refunded > Minor(0) && charge.refunded.0 + dispute.amount.0 > taken.0 => {
            Some("dispute lost after a refund")
        }
        // Only a reversal of the whole repayment makes the loan outstanding again.
        OwnerKind::Recollection if dispute.amount < taken => Some("dispute lost in part"),
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
        (DisputedMoney::Fee, change.fee),
        (DisputedMoney::Released, change.release),
    ];
    for (what, minor) in moves.into_iter().filter(|(_, minor)| *minor > Minor(0)) {
        dispute.postings += 1;
        let key = charges::dispute_key(&charge.id, &dispute.id, dispute.postings);
        charges::post_disputed(tx, app, charge, key, what, minor).await?;
    }
    dispute.held.0 += change.hold.0 - change.lose.0 - change.release.0;
    dispute.lost.0 += change.lose.0;
    dispute.fee.0 += change.fee.0;
    if change.release > Minor(0) && charge.credited_to == FundsAccount::Suspense {
        charges::reopen_exception(tx, charge).await?;
    }
    Ok(())
}

/// Emits the events of a dispute that is new or has ended.
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
        // Verification charges are refunded and are never the company's money.
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
    Ok(())
}
