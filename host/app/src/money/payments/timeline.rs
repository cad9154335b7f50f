//! The timeline of a payment, for operators: past changes and pending verifications.

use super::{Payment, PaymentId, find_by_id};
use crate::{
    money::{
        charges::{Exception, OwnerKind, RECONCILE_JOB, Refund},
        disputes::{self, Dispute},
        prelude::*,
    },
    operations::{
        audit::AuditEntry,
        monitor::calls::{self, LoggedCallRow},
        operators::permissions::AUDIT_READ,
    },
    webhooks::incoming::ReceivedWebhook,
};

/// An entry of the timeline of a payment.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TimelineEntry {
    at: Timestamp,
    /// `payment`, `charge`, `verification`, `webhook` (from the provider), `exception`, `dispute`,
    /// `ledger`, `refund`, `event`, `delivery`, `call` (to a plugin) or `audit`.
    kind: &'static str,
    /// For example `requested` or `payment.settled`; for the audit log, the logged action, for
    /// example `payment.refund`; for a call, its function, for example `verification.verify`.
    action: String,
    /// Id or reference of the record; the id of the request for an entry of the audit log.
    record: String,
    /// The amount of the record; for a charge that took money and for an exception, the amount at
    /// the provider.
    amount: Option<Minor>,
    currency: Option<Currency>,
    /// The requested amount, if it or its currency differs from that of the entry.
    requested: Option<Minor>,
    requested_currency: Option<Currency>,
    /// Result or fault of a call, for example `pending` or `not_found`; otherwise `null`.
    outcome: Option<String>,
    /// Operator of an entry of the audit log; otherwise `null`.
    actor: Option<String>,
    /// An error, a difference or an address; empty if there is none.
    note: String,
}

impl TimelineEntry {
    fn new(at: Timestamp, kind: &'static str, action: &str, record: &str) -> TimelineEntry {
        TimelineEntry {
            at,
            kind,
            action: action.to_owned(),
            record: record.to_owned(),
            amount: None,
            currency: None,
            requested: None,
            requested_currency: None,
            outcome: None,
            actor: None,
            note: String::new(),
        }
    }

    fn with_amount(self, amount: Minor, currency: &Currency) -> TimelineEntry {
        TimelineEntry { amount: Some(amount), currency: Some(currency.clone()), ..self }
    }

    /// Adds the requested amount, if it differs from that of the entry.
    fn with_requested(self, requested: Minor, currency: &Currency) -> TimelineEntry {
        if (self.amount, self.currency.as_ref()) == (Some(requested), Some(currency)) {
            return self;
        }
        let (requested, requested_currency) = (Some(requested), Some(currency.clone()));
        TimelineEntry { requested, requested_currency, ..self }
    }

    fn with_note(self, note: impl Into<String>) -> TimelineEntry {
        TimelineEntry { note: note.into(), ..self }
    }
}

/// The kinds of entries whose notes are internal errors or written by operators.
const INTERNAL_NOTES: [&str; 3] = ["verification", "refund", "exception"];

/// Returns the timeline of a payment, oldest first. Pending verifications come last. Entries of the
/// audit log need the permission `audit.read`. Members see no internal notes.
pub async fn timeline(
    State(app): State<App>,
    actor: Actor,
    Path((company, payment)): Path<(CompanyId, PaymentId)>,
) -> Result<DataResponse<Vec<TimelineEntry>>> {
    let payment = find_by_id(&app, &company, &payment).await?;
    let sees_audit_log = actor.permissions.contains(AUDIT_READ);
    let read = async |tx: &mut Tx| collect(tx, &payment, sees_audit_log).await;
    let mut entries = app.store.read(read).await?;
    if actor.member_of.is_some() {
        let internal = |entry: &&mut TimelineEntry| INTERNAL_NOTES.contains(&entry.kind);
        entries.iter_mut().filter(internal).for_each(|entry| entry.note.clear());
    }
    DataResponse::data(entries, "Timeline fetched successfully")
}

async fn collect(
    tx: &mut Tx,
    payment: &Payment,
    sees_audit_log: bool,
) -> Result<Vec<TimelineEntry>> {
    let company = &payment.company_id;
    let created = TimelineEntry::new(payment.created_at, "payment", "created", &payment.reference);
    let mut entries = vec![created.with_amount(payment.amount, &payment.currency)];
    let charges = charges::list(tx, company, OwnerKind::Payment, &payment.id).await?;
    let (mut refunds, mut claims, mut checks) = (Vec::new(), Vec::new(), Vec::new());
    let mut exceptions = Vec::new();
    for charge in &charges {
        add_charge(&mut entries, charge);
        refunds.extend(charges::list_refunds_of_charge(tx, company, &charge.id).await?);
        claims.extend(disputes::list_of_charge(tx, company, &charge.id).await?);
        checks.extend(jobs::find(tx, company, RECONCILE_JOB, &charge.id).await?);
        exceptions.extend(charges::list_exceptions_of_charge(tx, company, &charge.id).await?);
    }
    for refund in &refunds {
        add_refund(&mut entries, refund);
    }
    for exception in &exceptions {
        add_exception(&mut entries, exception);
    }
    for dispute in &claims {
        add_dispute(&mut entries, dispute);
    }
    let keys = ledger_keys(payment, &charges, &refunds, &claims, &exceptions);
    for posted in wallet::list_posted(tx, company, &keys).await? {
        let accounts = format!("{} → {}", posted.debit, posted.credit);
        let entry = TimelineEntry::new(posted.created_at, "ledger", &posted.kind, &posted.key);
        entries.push(entry.with_amount(posted.amount, &posted.currency).with_note(accounts));
    }
    let owner = (company.as_str(), OwnerKind::Payment.name(), payment.id.as_str());
    for webhook in notifications::list_webhooks(tx, owner).await? {
        add_webhook(&mut entries, webhook);
    }
    for call in calls::list_of_references(tx, company, &references(&charges, &refunds)).await? {
        entries.push(call_entry(call));
    }
    if sees_audit_log {
        for change in audit::list_of_payment(tx, company, &payment.id).await? {
            entries.push(audit_entry(change));
        }
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
        (Some(taken), Some(currency)) => {
            let taken = reached.with_amount(taken, currency);
            taken.with_requested(charge.amount, &charge.currency)
        }
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

/// Adds an exception, and its resolution.
fn add_exception(entries: &mut Vec<TimelineEntry>, exception: &Exception) {
    let raised =
        TimelineEntry::new(exception.created_at, "exception", &exception.kind, &exception.id);
    entries.push(match (exception.seen, &exception.seen_currency) {
        (Some(seen), Some(currency)) => raised
            .with_amount(seen, currency)
            .with_requested(exception.expected, &exception.currency),
        _ if exception.is_of_reconciliation() => raised
            .with_requested(exception.expected, &exception.currency)
            .with_note("the provider does not list it"),
        _ => raised.with_note("the provider reported no amount"),
    });
    if let Some(at) = exception.resolved_at {
        let resolved = TimelineEntry::new(at, "exception", "resolved", &exception.id);
        entries.push(resolved.with_note(exception.reason.clone().unwrap_or_default()));
    }
}

fn add_dispute(entries: &mut Vec<TimelineEntry>, dispute: &Dispute) {
    let entry = |at, action| {
        let entry = TimelineEntry::new(at, "dispute", action, &dispute.provider_id);
        entry.with_amount(dispute.amount, &dispute.currency)
    };
    entries.push(entry(dispute.opened_at, "opened").with_note(&*dispute.reason));
    entries.extend(dispute.answered_at.map(|at| entry(at, "answered")));
    entries.extend(dispute.closed_at.map(|at| entry(at, dispute.state.into())));
}

/// Adds the notifications of a webhook. Their content is not trusted.
fn add_webhook(entries: &mut Vec<TimelineEntry>, webhook: ReceivedWebhook) {
    let ReceivedWebhook { about, copies, received_at } = webhook;
    let text = |about: &Value, name: &str| about[name].as_str().unwrap_or_default().to_owned();
    for about in &about.0 {
        let (event, subject) = (text(about, "event"), text(about, "subject"));
        let action = if event.is_empty() { subject } else { event };
        let entry =
            TimelineEntry::new(received_at, "webhook", &action, &text(about, "service_ref"));
        entries.push(match copies {
            2.. => entry.with_note(format!("received {copies} times")),
            _ => entry,
        });
    }
}

fn call_entry(call: LoggedCallRow) -> TimelineEntry {
    let entry = TimelineEntry::new(call.began_at, "call", &call.function, &call.reference);
    let unknown = if call.is_unknown { "effect unknown; " } else { "" };
    let LoggedCallRow { plugin, version, duration_us, .. } = &call;
    let note = format!("{unknown}{plugin} {version}, {} ms", duration_us / 1_000);
    let outcome = if call.summary.is_empty() { call.outcome } else { call.summary };
    TimelineEntry { outcome: Some(outcome), ..entry.with_note(note) }
}

fn audit_entry(change: AuditEntry) -> TimelineEntry {
    let request = change.request_id.unwrap_or_default();
    let entry = TimelineEntry::new(change.created_at, "audit", &change.action, &request);
    let note = change.detail.0["reason"].as_str().unwrap_or_default().to_owned();
    TimelineEntry { actor: Some(change.actor), note, ..entry }
}

/// Returns the references under which calls about charges and refunds are logged.
fn references(charges: &[Charge], refunds: &[Refund]) -> Vec<String> {
    let of_refunds = refunds.iter().map(|refund| &refund.provider_id);
    let all = charges.iter().map(|charge| &charge.service_ref).chain(of_refunds);
    all.filter(|reference| !reference.is_empty()).cloned().collect()
}

/// Returns the keys under which the ledger may have transactions of a payment.
fn ledger_keys(
    payment: &Payment,
    charges: &[Charge],
    refunds: &[Refund],
    disputes: &[Dispute],
    exceptions: &[Exception],
) -> Vec<String> {
    let of_payment = |key: &str| format!("payment:{}:{key}", payment.id);
    let mut keys: Vec<String> =
        ["pending", "settled", "success", "reversed"].map(of_payment).into();
    for charge in charges {
        let taken = ["suspense", "surplus", "credited", "returned", "reversed", "reversed:fee"];
        keys.extend(taken.map(|key| format!("taken:{}:{key}", charge.id)));
    }
    keys.extend(disputes.iter().flat_map(Dispute::ledger_keys));
    keys.extend(exceptions.iter().flat_map(Exception::ledger_keys));
    for refund in refunds {
        keys.push(of_payment(&format!("refund:{}", refund.id)));
        keys.push(of_payment(&format!("refund:{}:refused", refund.id)));
        keys.push(of_payment(&format!("refund:{}:fee", refund.id)));
        keys.push(of_payment(&format!("refund:{}:fee_returned", refund.id)));
    }
    keys
}
