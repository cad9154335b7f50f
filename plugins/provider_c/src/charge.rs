//! Charges without the payer present: saved cards by token, bank accounts by mandate.

use serde::Serialize;
use serde_json::{Map, Value};
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::declines::{self, DeclineReason};
use tollhouse_plugin::direct_debit::{self, DebitOrder};
use tollhouse_plugin::payments::Payment;
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::saved_card::{self, CardOrder};
use tollhouse_plugin::types::{Fault, Money};
use tollhouse_plugin::{loose, repeat, settings, vault};

use crate::{Monnify, api, naira, transaction};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Charge<'a> {
    card_token: &'a str,
    amount: Major,
    /// Required but not known, so the e-mail address is used.
    customer_name: &'a str,
    /// The e-mail of the first charge: Monnify compares them.
    customer_email: &'a str,
    payment_reference: &'a str,
    payment_description: &'a str,
    currency_code: &'a str,
    contract_code: String,
    api_key: String,
    meta_data: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Debit<'a> {
    payment_reference: &'a str,
    mandate_code: &'a str,
    debit_amount: Major,
    narration: &'a str,
    customer_email: &'a str,
}

impl saved_card::Guest for Monnify {
    fn charge(order: CardOrder) -> Result<Payment, Fault> {
        let charge = Charge {
            card_token: &order.token,
            amount: naira::from_money(&order.amount)?,
            customer_name: &order.email,
            customer_email: &order.email,
            payment_reference: &order.service_ref,
            payment_description: &order.narration,
            currency_code: naira::CURRENCY,
            contract_code: settings::required("contract_code")?,
            api_key: vault::secret(api::API_KEY)?,
            meta_data: loose::metadata(&order.metadata)?,
        };
        let response = api::post("/api/v1/merchant/cards/charge-card-token", &charge);
        parse_or_find_payment(response, &order.service_ref, &order.amount)
    }

    /// Monnify cannot revoke tokens.
    fn deauthorize(_token: String) -> Result<bool, Fault> {
        Ok(false)
    }
}

impl direct_debit::Guest for Monnify {
    fn debit(order: DebitOrder) -> Result<Payment, Fault> {
        let debit = Debit {
            payment_reference: &order.service_ref,
            mandate_code: &order.mandate,
            debit_amount: naira::from_money(&order.amount)?,
            narration: &order.narration,
            customer_email: &order.email,
        };
        let response = api::post("/api/v1/direct-debit/mandate/debit", &debit);
        parse_or_find_payment(response, &order.service_ref, &order.amount)
    }
}

impl declines::Guest for Monnify {
    /// A transaction that is queried later has the status of its last attempt instead of a message.
    fn reason(message: String, raw: String) -> Result<DeclineReason, Fault> {
        // A mandate or page that expired before the charge was made.
        if message == "EXPIRED" {
            return Ok(DeclineReason::Other);
        }
        let raw: Value = serde_json::from_str(&raw).unwrap_or_default();
        let words = [&message, &loose::text(&raw["responseMessage"])]
            .map(|text| DeclineReason::from_words(text));
        Ok(words.into_iter().find(|one| *one != DeclineReason::Other).unwrap_or(words[0]))
    }
}

fn parse_or_find_payment(
    response: Result<RawJson, Fault>,
    service_ref: &str,
    requested_amount: &Money,
) -> Result<Payment, Fault> {
    let value =
        repeat::charged(response, api::DUPLICATE_REFERENCE, || transaction::find(service_ref))?;
    transaction::parse_payment(&value, service_ref, Some(requested_amount))
}
