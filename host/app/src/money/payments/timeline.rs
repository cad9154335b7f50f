//! The timeline of a payment, for operators: past changes and pending verifications.

use super::{Payment, PaymentId, find_by_id};
use crate::money::{
    charges::{OwnerKind, RECONCILE_JOB, Refund},
    prelude::*,
};

/// An entry of the timeline of a payment.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TimelineEntry {
    at: Timestamp,
    /// `payment`, `charge`, `verification`, `ledger`, `refund`, `event` or `delivery`.
    kind: &'static str,
    /// For example `requested` or `payment.settled`.
    action: String,
    /// Id or reference of the record.
    record: String,
    amount: Option<Minor>,
    currency: Option<Currency>,
    /// An error, a difference or an address; empty if there is none.
    note: String,
}

impl TimelineEntry {
    fn new(at: Timestamp, kind: &'static str, action: &str, record: &str) -> TimelineEntry {
        let (action, record) = (action.to_owned(), record.to_owned());
        let (amount, currency, note) = (None, None, String::new());
        TimelineEntry { at, kind, action, record, amount, currency, note }
    }

    fn with_amount(self, amount: Minor, currency: &Currency) -> TimelineEntry {
        TimelineEntry { amount: Some(amount), currency: Some(currency.clone()), ..self }
    }

    fn with_note(self, note: impl Into<String>) -> TimelineEntry {
        TimelineEntry { note: note.into(), ..self }
    }
}

/// Returns the timeline of a payment, oldest first. Pending verifications come last.
pub async fn timeline(
    State(app): State<App>,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<DataResponse<Vec<TimelineEntry>>> {
    let payment = find_by_id(&app, &company, &payment).await?;
    let read = async |tx: &mut Tx| collect(tx, &payment).await;
    DataResponse::data(app.store.read(read).await?, "Timeline fetched successfully")
}

async fn collect(tx: &mut Tx, payment: &Payment) -> Result<Vec<TimelineEntry>> {
    let company = &payment.company_id;
    let created = TimelineEntry::new(payment.created_at, "payment", "created", &payment.reference);
    let mut entries = vec![created.with_amount(payment.amount, &payment.currency)];
    let charges = charges::list(tx, company, OwnerKind::Payment, &payment.id).await?;
    let (mut refunds, mut checks) = (Vec::new(), Vec::new());
    for charge in &charges {
        add_charge(&mut entries, charge);
        refunds.extend(charges::list_of_charge(tx, company, &charge.id).await?);
        checks.extend(jobs::find(tx, company, RECONCILE_JOB, &charge.id).await?);
    }
    for refund in &refunds {
        add_refund(&mut entries, refund);
    }
    for posted in
        wallet::list_posted(tx, company, &ledger_keys(payment, &charges, &refunds)).await?
    {
        let accounts = format!("{} → {}", posted.debit, posted.credit);
        let entry = TimelineEntry::new(posted.created_at, "ledger", &posted.kind, &posted.key);
        entries.push(entry.with_amount(posted.amount, &posted.currency).with_note(accounts));
    }
    for event in events::list_of_subject(tx, company, &payment.id).await? {
        entries.push(TimelineEntry::new(event.created_at, "event", &event.kind, &event.id));
        for delivery in event.deliveries {
            let at = delivery.delivered_at.unwrap_or(event.created_at);
            let entry = TimelineEntry::new(at, "delivery", &delivery.state, &event.id);
            entries.push(entry.with_note(delivery.url));
        }
    }
    entries.sort_by_key(|entry| entry.at);
    for check in checks {
        let error = check.error.unwrap_or_default();
        entries.push(TimelineEntry::new(check.run_at, "verification", "due", "").with_note(error));
    }
    Ok(entries)
}

fn add_charge(entries: &mut Vec<TimelineEntry>, charge: &Charge) {
    let record = &*charge.service_ref;
    if let Some(at) = charge.begun_at {
        let requested = TimelineEntry::new(at, "charge", "requested", record);
        entries.push(
            requested.with_amount(charge.amount, &charge.currency).with_note(&*charge.provider),
        );
    }
    let state: &'static str = charge.state.into();
    let at = charge.settled_at.unwrap_or(charge.updated_at);
    let reached = TimelineEntry::new(at, "charge", state, record);
    let reached = match (charge.taken, &charge.taken_currency) {
        (Some(taken), Some(currency)) => reached.with_amount(taken, currency),
        _ => reached,
    };
    let unknown = if charge.unsure { "the outcome of a request is unknown" } else { "" };
    entries.push(reached.with_note(charge.mismatch.as_deref().unwrap_or(unknown)));
}

fn add_refund(entries: &mut Vec<TimelineEntry>, refund: &Refund) {
    let requested =
        TimelineEntry::new(refund.created_at, "refund", "requested", &refund.refund_ref);
    entries.push(requested.with_amount(refund.amount, &refund.currency));
    let state: &'static str = refund.state.into();
    if state != "requested" || refund.last_error.is_some() {
        let reached = TimelineEntry::new(refund.updated_at, "refund", state, &refund.refund_ref);
        entries.push(reached.with_note(refund.last_error.clone().unwrap_or_default()));
    }
}

/// Returns the keys under which the ledger may have transactions of a payment.
fn ledger_keys(payment: &Payment, charges: &[Charge], refunds: &[Refund]) -> Vec<String> {
    let of_payment = |key: &str| format!("payment:{}:{key}", payment.id);
    let mut keys: Vec<String> =
        ["pending", "settled", "success", "reversed"].map(of_payment).into();
    for charge in charges {
        let taken = ["credited", "returned", "reversed", "verification"];
        keys.extend(taken.map(|key| format!("taken:{}:{key}", charge.id)));
    }
    for refund in refunds {
        keys.push(of_payment(&format!("refund:{}", refund.id)));
        keys.push(of_payment(&format!("refund:{}:refused", refund.id)));
    }
    keys
}
