//! `sessions.verify`: the query of a transaction.

use serde::{Deserialize, Serialize};
use tollhouse_plugin::amount::{Major, Rounding};
use tollhouse_plugin::http::{self, Request};
use tollhouse_plugin::payments::{KnownSession, Payment, PaymentStatus};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::{Fault, FaultCategory, Money};
use tollhouse_plugin::{settings, state};

use crate::{api, callback::Notified};

/// The state of a session: Jenga acknowledged the push.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct State {
    /// Jenga's id of the transaction.
    pub transaction_id: String,
}

#[derive(Deserialize)]
struct Details {
    data: Transaction,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transaction {
    state_code: i64,
    #[serde(default)]
    message: String,
    amount: Major,
    #[serde(default)]
    charge: RawJson,
}

pub(crate) fn verify(session: KnownSession) -> Result<Payment, Fault> {
    let details = "/v3-apis/transaction-api/v3.0/transactions/details/";
    let path = format!("{details}{}", http::encode(&session.service_ref));
    let url = settings::url("base_url", &path)?;
    let response = match api::send(|| Request::get(&url), &session.service_ref) {
        Err(fault) if fault.category == FaultCategory::NotFound && is_known(&session) => {
            return Ok(outcome_of_callback(session));
        }
        other => other?,
    };
    let Details { data } = response.json()?;
    let status = match data.state_code {
        2 => PaymentStatus::Success,
        1 => PaymentStatus::Failed,
        // -1: waiting for the payer. Other codes are unknown.
        _ => PaymentStatus::Pending,
    };
    let charge = Major::rounded(&data.charge, Rounding::Up, "charge");
    Ok(Payment {
        fees_minor: charge.map(Major::hundredths),
        message: data.message,
        raw: response.text(),
        ..payment(status, data.amount.money("KES"), session)
    })
}

/// Returns whether Jenga has confirmed that it has the push, in its response or by a callback.
fn is_known(session: &KnownSession) -> bool {
    session.state.is_some() || session.notified.is_some()
}

/// Returns the outcome, by its callback, of a push that Jenga has but its query does not find.
fn outcome_of_callback(session: KnownSession) -> Payment {
    let notified: Option<Notified> = state::decode(session.notified.as_ref());
    let status = match notified.as_ref().map(|notified| &*notified.code) {
        Some("3") => PaymentStatus::Success,
        Some("1" | "5" | "6" | "7") => PaymentStatus::Failed,
        // 0: waiting for the payer. 2 and 4: not credited to the merchant.
        _ => PaymentStatus::Pending,
    };
    payment(status, session.amount.clone(), session)
}

fn payment(status: PaymentStatus, requested: Money, session: KnownSession) -> Payment {
    let notified: Option<Notified> = state::decode(session.notified.as_ref());
    let notified = notified.unwrap_or_default();
    let state: Option<State> = state::decode(session.state.as_ref());
    let own_id = state.map_or(session.transaction_id, |state| state.transaction_id);
    let debited = notified.debited.map(|debited| debited.money("KES"));
    Payment {
        status,
        service_ref: session.service_ref,
        transaction_id: notified.receipt.unwrap_or(own_id),
        amount: debited.unwrap_or_else(|| requested.clone()),
        requested: Some(requested),
        fees_minor: None,
        channel: "mobile_money".to_owned(),
        paid_at: None,
        message: String::new(),
        instrument: None,
        challenge_url: None,
        metadata: None,
        raw: "{}".to_owned(),
    }
}
