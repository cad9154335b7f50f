//! The timeline of a payment.

use serde_json::Value;

use crate::{
    api::ApiResult,
    format::{Cell, plain},
    session::Session,
};

/// An entry of the timeline.
pub struct TimelineRow {
    pub kind: String,
    pub at: Cell,
    pub text: String,
    pub amount: Option<Cell>,
    /// The requested amount, if the provider reports a different one.
    pub requested: Option<Cell>,
    pub record: Option<Cell>,
    pub note: String,
    /// Delivers an event again.
    pub button: Option<Cell>,
}

pub async fn fetch(session: &Session, company: &str, id: &str) -> ApiResult<Vec<TimelineRow>> {
    let found = session.get(&["companies", company, "payments", id, "timeline"], &[]).await?;
    let entries = found.as_array().into_iter().flatten();
    let row = |entry: &Value| TimelineRow {
        kind: plain(&entry["kind"]),
        at: Cell::time(&entry["at"]),
        text: label(entry),
        amount: Cell::money(&entry["amount"], &entry["currency"]).not_empty(),
        requested: Cell::money(&entry["requested"], &entry["requested_currency"]).not_empty(),
        record: Cell::code(&entry["record"]).not_empty(),
        note: plain(&entry["note"]),
        button: redeliver_button(session, company, entry),
    };
    Ok(entries.map(row).collect())
}

fn redeliver_button(session: &Session, company: &str, entry: &Value) -> Option<Cell> {
    if entry["kind"] != "event" {
        return None;
    }
    let event = plain(&entry["record"]);
    let action = session.href(&["companies", company, "events", &event, "redeliver"], &[]);
    session.button("events.redeliver", "Redeliver", "", action).not_empty()
}

/// Returns the outcome of a plugin call. `not_found` does not mean that the payment failed.
fn outcome(entry: &Value) -> String {
    match &*plain(&entry["outcome"]) {
        "not_found" => "not known to the provider".to_owned(),
        "failed" if plain(&entry["action"]).ends_with(".verify") => "not paid".to_owned(),
        outcome => outcome.replace('_', " "),
    }
}

/// Returns the label of an entry of a timeline.
fn label(entry: &Value) -> String {
    let action = plain(&entry["action"]).replace('_', " ");
    match &*plain(&entry["kind"]) {
        "payment" => format!("Payment {action}"),
        "charge" => format!("Charge {action}"),
        "verification" => "Next verification with the provider".to_owned(),
        "webhook" => format!("Provider webhook: {action}"),
        "dispute" => format!("Dispute {action}"),
        "exception" => format!("Exception: {action}"),
        "ledger" => format!("Ledger: {action}"),
        "refund" => format!("Refund {action}"),
        "event" => format!("Event {action}"),
        "delivery" => format!("Event delivery: {action}"),
        "call" => format!("Plugin call {action}: {}", outcome(entry)),
        "audit" => format!("{}: {action}", plain(&entry["actor"])),
        _ => action,
    }
}
