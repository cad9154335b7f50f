//! `sessions.start`: the STK push.

use serde::Deserialize;
use serde_json::json;
use tollhouse_plugin::sessions::{NextStep, Session, SessionOrder};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{settings, state};

use crate::{
    api::{self, ApiError},
    status::State,
    time,
};

/// Maximum length of `TransactionDesc`.
const DESCRIPTION_CHARS: usize = 13;
const CENTS: u64 = 100;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Accepted {
    #[serde(rename = "CheckoutRequestID")]
    checkout_request_id: String,
    response_code: String,
    #[serde(default)]
    response_description: String,
}

pub(crate) fn start(order: SessionOrder) -> Result<Session, Fault> {
    let phone = msisdn(order.phone.as_deref())?;
    let shillings = shillings(&order.amount)?;
    let shortcode = settings::required("shortcode")?;
    let till = settings::get("till").filter(|till| !till.is_empty());
    let kind = if till.is_some() { "CustomerBuyGoodsOnline" } else { "CustomerPayBillOnline" };
    let timestamp = time::now();
    let body = json!({
        "BusinessShortCode": shortcode,
        "Password": api::password(&shortcode, &timestamp)?,
        "Timestamp": timestamp,
        "TransactionType": kind,
        "Amount": shillings,
        "PartyA": phone,
        "PartyB": till.as_ref().unwrap_or(&shortcode),
        "PhoneNumber": phone,
        "CallBackURL": order.notification_url,
        "AccountReference": order.service_ref,
        "TransactionDesc": description(&order.narration),
    });
    let (accepted, raw): (Accepted, String) =
        api::post("/mpesa/stkpush/v1/processrequest", &body)?.map_err(refusal)?;
    if accepted.response_code != "0" {
        return Err(Fault::refused(&accepted.response_code, accepted.response_description));
    }
    let state = State { checkout_request_id: accepted.checkout_request_id };
    Ok(Session {
        next: NextStep::Prompt("Enter your M-Pesa PIN on your phone to confirm.".to_owned()),
        service_ref: order.service_ref,
        state: state::encode(&state),
        raw,
    })
}

fn refusal(error: ApiError) -> Fault {
    if error.says("unable to lock subscriber") {
        return Fault::refused(&error.code, error.message).with_cause("payer-busy");
    }
    if error.says("phonenumber") || error.says("partya") {
        return Fault::invalid("phone", error.message)
            .with_code(&error.code)
            .with_cause("unsupported-number");
    }
    if error.says("invalid amount") {
        return Fault::invalid("amount", error.message).with_code(&error.code);
    }
    if error.says("callbackurl") {
        return Fault::misconfigured(
            "Daraja does not accept the notification URL: check public_url",
        )
        .with_code(&error.code);
    }
    error.into_fault()
}

/// Returns a Kenyan number as Daraja expects it: E.164 without the plus sign.
fn msisdn(phone: Option<&str>) -> Result<&str, Fault> {
    let digits = phone.and_then(|phone| phone.strip_prefix('+')).unwrap_or_default();
    let is_kenyan = digits.len() == 12 && digits.starts_with("254");
    match is_kenyan && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(digits),
        false => {
            Err(Fault::invalid("phone", "the number is not Kenyan")
                .with_cause("unsupported-number"))
        }
    }
}

/// Returns whole shillings: Daraja accepts no cents.
pub(crate) fn shillings(amount: &Money) -> Result<u64, Fault> {
    if amount.currency != "KES" {
        return Err(
            Fault::invalid("currency", "M-Pesa takes KES only").with_cause("unsupported-currency")
        );
    }
    match amount.minor % CENTS {
        0 => Ok(amount.minor / CENTS),
        _ => Err(Fault::invalid("amount", "M-Pesa takes whole shillings only")
            .with_cause("amount-step")
            .with_limit(CENTS)),
    }
}

/// Returns the narration in the characters that the prompt can show.
fn description(narration: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == ' ';
    let plain: String = narration.chars().filter(is_plain).take(DESCRIPTION_CHARS).collect();
    if plain.trim().is_empty() { "Payment".to_owned() } else { plain }
}
