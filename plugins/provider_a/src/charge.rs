//! Charges without the payer present. Paystack has one call for cards and mandates.

use serde_json::{Value, json};
use tollhouse_plugin::declines::{self, DeclineReason};
use tollhouse_plugin::direct_debit::{self, DebitOrder};
use tollhouse_plugin::payments::Payment;
use tollhouse_plugin::repeat;
use tollhouse_plugin::saved_card::{self, CardOrder};
use tollhouse_plugin::types::{Fault, Money};

use crate::{Paystack, api, loose, transaction};

impl saved_card::Guest for Paystack {
    fn charge(order: CardOrder) -> Result<Payment, Fault> {
        let CardOrder { token, email, amount, service_ref, metadata, .. } = order;
        charge(&token, &email, &amount, &service_ref, &metadata)
    }

    fn deauthorize(token: String) -> Result<bool, Fault> {
        let body = json!({ "authorization_code": token });
        api::post("/customer/authorization/deactivate", &body).map(|_| true)
    }
}

impl direct_debit::Guest for Paystack {
    /// The status is nearly always `pending`, because banks debit asynchronously.
    fn debit(order: DebitOrder) -> Result<Payment, Fault> {
        let DebitOrder { mandate, email, amount, service_ref, metadata, .. } = order;
        charge(&mandate, &email, &amount, &service_ref, &metadata)
    }
}

impl declines::Guest for Paystack {
    /// The message is Paystack's `gateway_response`: the bank's words.
    fn reason(message: String, _raw: String) -> Result<DeclineReason, Fault> {
        Ok(DeclineReason::from_words(&message))
    }
}

fn charge(
    token: &str,
    email: &str,
    amount: &Money,
    service_ref: &str,
    metadata: &str,
) -> Result<Payment, Fault> {
    // Checkout takes metadata as an object, charges as a string.
    let metadata = Value::Object(loose::metadata(metadata)?).to_string();
    let body = json!({
        "email": email,
        "amount": amount.minor,
        "currency": amount.currency,
        "authorization_code": token,
        "reference": service_ref,
        "metadata": metadata,
    });
    let response = api::post("/transaction/charge_authorization", &body);
    let data =
        repeat::charged(response, api::DUPLICATE_REFERENCE, || transaction::find(service_ref))?;
    transaction::parse_payment(&data, service_ref, Some(amount))
}
