//! `sessions.start`: the push.

use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_plugin::http::Request;
use tollhouse_plugin::sessions::{NextStep, Session, SessionOrder};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{loose, normal, settings, state};

use crate::{api, status::State};

const CENTS: u64 = 100;
/// Number ranges, after the country code, of Equity Bank's mobile operator Equitel.
const EQUITEL: [&str; 4] = ["763", "764", "765", "766"];
/// East Africa Time is UTC+3 all year.
const EAT_MINUTES: i64 = 180;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Acknowledged {
    status: bool,
    #[serde(default)]
    transaction_id: Value,
}

pub(crate) fn start(order: SessionOrder) -> Result<Session, Fault> {
    let phone = msisdn(order.phone.as_deref())?;
    let amount = shillings(&order.amount)?;
    let account = settings::required("account_number")?;
    let (reference, telco) = (order.service_ref, telco(phone));
    let body = json!({
        "merchant": {
            "accountNumber": account,
            "countryCode": "KE",
            "name": settings::required("merchant_name")?,
        },
        "payment": {
            "ref": reference,
            "amount": amount,
            "currency": "KES",
            "telco": telco,
            "mobileNumber": phone,
            "date": today(),
            "callBackUrl": order.notification_url,
            "pushType": settings::get_or("push_type", "STK"),
        },
    });
    let url = settings::url("base_url", "/v3-apis/payment-api/v3.0/stkussdpush/initiate")?;
    let signed = format!("{account}{reference}{phone}{telco}{amount}KES");
    let response = api::send(|| Request::post(&url).json(&body), &signed)?;
    let acknowledged: Acknowledged = response.json()?;
    if !acknowledged.status {
        return Err(Fault::unavailable("Jenga did not acknowledge the push"));
    }
    let state = State { transaction_id: loose::text(&acknowledged.transaction_id) };
    Ok(Session {
        next: NextStep::Prompt("Enter your PIN on your phone to confirm the payment.".to_owned()),
        service_ref: reference,
        state: state::encode(&state),
        raw: response.text(),
    })
}

/// Returns the date of the call in Kenya as `YYYY-MM-DD`.
fn today() -> String {
    let mut now = normal::local_now(EAT_MINUTES);
    now.truncate("YYYY-MM-DD".len());
    now
}

/// Returns a Kenyan mobile number as Jenga expects it: E.164 without the plus sign.
fn msisdn(phone: Option<&str>) -> Result<&str, Fault> {
    let digits = phone.and_then(|phone| phone.strip_prefix('+')).unwrap_or_default();
    let is_mobile = digits.starts_with("2547") || digits.starts_with("2541");
    match is_mobile && digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(digits),
        false => Err(Fault::invalid("phone", "the number is not a Kenyan mobile number")
            .with_cause("unsupported-number")),
    }
}

/// Returns Jenga's name of the mobile operator. Jenga refuses numbers of other operators.
fn telco(msisdn: &str) -> &'static str {
    let range = msisdn.get(3..6).unwrap_or_default();
    if EQUITEL.contains(&range) { "Equitel" } else { "Safaricom" }
}

/// Formats an amount as `5.00`. Safaricom rounds cents up, so only whole shillings are accepted.
fn shillings(amount: &Money) -> Result<String, Fault> {
    if amount.currency != "KES" {
        return Err(Fault::invalid("currency", "Jenga pushes take KES only")
            .with_cause("unsupported-currency"));
    }
    match amount.minor % CENTS {
        0 => Ok(format!("{}.00", amount.minor / CENTS)),
        _ => Err(Fault::invalid("amount", "Jenga pushes take whole shillings only")
            .with_cause("amount-step")
            .with_limit(CENTS)),
    }
}
