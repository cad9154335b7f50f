//! Charges without the payer present. Flutterwave has one call for cards and e-mandates.

use serde::Serialize;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::declines::{self, DeclineReason};
use tollhouse_plugin::direct_debit::{self, DebitOrder};
use tollhouse_plugin::payments::Payment;
use tollhouse_plugin::repeat;
use tollhouse_plugin::saved_card::{self, CardOrder};
use tollhouse_plugin::types::{Fault, Money};

use crate::{Flutterwave, api, transaction};

/// This call takes no metadata, so charges are returned without it.
#[derive(Serialize)]
struct Charge<'a> {
    token: &'a str,
    /// The e-mail of the first charge: Flutterwave compares them.
    email: &'a str,
    amount: Major,
    currency: &'a str,
    tx_ref: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    narration: &'a str,
}

impl saved_card::Guest for Flutterwave {
    fn charge(order: CardOrder) -> Result<Payment, Fault> {
        let CardOrder { token, email, amount, service_ref, narration, .. } = &order;
        charge(token, email, amount, service_ref, narration)
    }

    /// Flutterwave cannot revoke tokens.
    fn deauthorize(_token: String) -> Result<bool, Fault> {
        Ok(false)
    }
}

impl direct_debit::Guest for Flutterwave {
    fn debit(order: DebitOrder) -> Result<Payment, Fault> {
        let DebitOrder { mandate, email, amount, service_ref, narration, .. } = &order;
        charge(mandate, email, amount, service_ref, narration)
    }
}

impl declines::Guest for Flutterwave {
    /// The message is Flutterwave's `processor_response`: the bank's words.
    fn reason(message: String, _raw: String) -> Result<DeclineReason, Fault> {
        Ok(DeclineReason::from_words(&message))
    }
}

fn charge(
    token: &str,
    email: &str,
    money: &Money,
    service_ref: &str,
    narration: &str,
) -> Result<Payment, Fault> {
    let (amount, currency) = (Major::from(money), &*money.currency);
    let body = Charge { token, email, amount, currency, tx_ref: service_ref, narration };
    let response = api::post("/tokenized-charges", &body);
    let response =
        repeat::charged(response, api::DUPLICATE_REFERENCE, || transaction::find(service_ref))?;
    transaction::parse_payment(&response, service_ref, Some(money))
}
