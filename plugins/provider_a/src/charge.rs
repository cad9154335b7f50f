//! Charges without the payer present. Paystack has one call for cards and mandates.

use serde_json::{Value, json};
use tollhouse_plugin::declines::{self, DeclineReason};
use tollhouse_plugin::direct_debit::{self, DebitOrder};
use tollhouse_plugin::partial_debits::{self, PartialOrder};
use tollhouse_plugin::payments::Payment;
use tollhouse_plugin::repeat;
use tollhouse_plugin::saved_card::{self, CardOrder};
use tollhouse_plugin::types::{Fault, Money};

use crate::{Paystack, api, loose, transaction};

impl saved_card::Guest for Paystack {
    fn charge(order: CardOrder) -> Result<Payment, Fault> {
        let CardOrder { token, email, amount, service_ref, metadata, .. } = order;
        let order = Order { token, email, amount, at_least: None, service_ref, metadata };
        order.charge()
    }

    fn deauthorize(token: String) -> Result<bool, Fault> {
        let body = json!({ "authorization_code": token });
        api::post("/customer/authorization/deactivate", &body).map(|_| true)
    }
}

impl direct_debit::Guest for Paystack {
    /// The status is nearly always `pending`, because banks debit asynchronously.
    fn debit(order: DebitOrder) -> Result<Payment, Fault> {
        let DebitOrder { mandate: token, email, amount, service_ref, metadata, .. } = order;
        let order = Order { token, email, amount, at_least: None, service_ref, metadata };
        order.charge()
    }
}

impl declines::Guest for Paystack {
    /// The message is Paystack's `gateway_response`: the bank's words.
    fn reason(message: String, _raw: String) -> Result<DeclineReason, Fault> {
        Ok(DeclineReason::from_words(&message))
    }
}

/// Paystack takes what the account has, if that is at least `at_least`.
impl partial_debits::Guest for Paystack {
    fn charge_card(order: PartialOrder) -> Result<Payment, Fault> {
        Order::from(order).charge()
    }

    fn debit(order: PartialOrder) -> Result<Payment, Fault> {
        Order::from(order).charge()
    }
}

/// A charge of a card or a mandate; a partial one has `at_least`.
struct Order {
    token: String,
    email: String,
    amount: Money,
    at_least: Option<Money>,
    service_ref: String,
    metadata: String,
}

impl From<PartialOrder> for Order {
    fn from(order: PartialOrder) -> Order {
        let PartialOrder { token, email, amount, at_least, service_ref, metadata, .. } = order;
        Order { token, email, amount, at_least: Some(at_least), service_ref, metadata }
    }
}

impl Order {
    fn charge(&self) -> Result<Payment, Fault> {
        // Checkout takes metadata as an object, charges as a string.
        let metadata = Value::Object(loose::metadata(&self.metadata)?).to_string();
        let mut body = json!({
            "email": self.email,
            "amount": self.amount.minor,
            "currency": self.amount.currency,
            "authorization_code": self.token,
            "reference": self.service_ref,
            "metadata": metadata,
        });
        let path = match &self.at_least {
            Some(at_least) => {
                body["at_least"] = json!(at_least.minor);
                "/transaction/partial_debit"
            }
            None => "/transaction/charge_authorization",
        };
        let response = api::post(path, &body);
        let find = || transaction::find(&self.service_ref);
        let data = repeat::charged(response, api::DUPLICATE_REFERENCE, find)?;
        transaction::parse_payment(&data, &self.service_ref, Some(&self.amount))
    }
}
