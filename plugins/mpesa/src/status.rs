//! `sessions.verify`: the status query.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tollhouse_plugin::payments::{KnownSession, Payment, PaymentStatus};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{amount::Major, settings, state};

use crate::{api, callback::Notified, time};

/// Result codes of a push that ended without a payment. Any other code, except that of a success,
/// is not final.
const FAILED: [&str; 8] = ["1", "1001", "1019", "1025", "1032", "1037", "2001", "9999"];

/// The state of a session.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct State {
    pub checkout_request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Status {
    result_code: String,
    #[serde(default)]
    result_desc: String,
}

pub(crate) fn verify(session: KnownSession) -> Result<Payment, Fault> {
    let notified = Notified::of(&session);
    let state: Option<State> = state::decode(session.state.as_ref());
    let of_callback = notified.as_ref().map(|notified| notified.checkout_request_id.clone());
    let id = state.map(|state| state.checkout_request_id).or(of_callback);
    let id = id.ok_or_else(|| Fault::not_found("the CheckoutRequestID is not known"))?;
    let shortcode = settings::required("shortcode")?;
    let timestamp = time::now();
    let body = json!({
        "BusinessShortCode": shortcode,
        "Password": api::password(&shortcode, &timestamp)?,
        "Timestamp": timestamp,
        "CheckoutRequestID": id,
    });
    let (status, message, raw) = match api::post::<Status>("/mpesa/stkpushquery/v1/query", &body)? {
        Ok((found, raw)) => (outcome(&found.result_code), found.result_desc, raw),
        // Daraja reports this as HTTP 500 with a general error code.
        Err(error) if error.says("being processed") => {
            (PaymentStatus::Pending, error.message, "{}".to_owned())
        }
        Err(error) => return Err(error.into_fault()),
    };
    let notified = notified.unwrap_or_default();
    Ok(Payment {
        status,
        service_ref: session.service_ref,
        transaction_id: notified.receipt.unwrap_or(session.transaction_id),
        // The payer cannot change the amount of a push, and the query does not report it.
        amount: taken(notified.amount, session.amount),
        requested: None,
        fees_minor: None,
        channel: "mobile_money".to_owned(),
        paid_at: notified.paid_at.filter(|_| status == PaymentStatus::Success),
        message,
        instrument: None,
        challenge_url: None,
        metadata: None,
        raw,
    })
}

fn outcome(code: &str) -> PaymentStatus {
    match code {
        "0" => PaymentStatus::Success,
        code if FAILED.contains(&code) => PaymentStatus::Failed,
        _ => PaymentStatus::Pending,
    }
}

fn taken(notified: Option<Major>, ordered: Money) -> Money {
    Money { minor: notified.map_or(ordered.minor, |amount| amount.hundredths()), ..ordered }
}
