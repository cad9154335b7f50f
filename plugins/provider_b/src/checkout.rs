//! Opens a checkout session on Flutterwave's hosted page.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::checkout::{self, CheckoutOrder, CheckoutSession};
use tollhouse_plugin::loose;
use tollhouse_plugin::types::Fault;

use crate::{Flutterwave, api, channels};

#[derive(Serialize)]
struct CheckoutRequest<'a> {
    tx_ref: &'a str,
    amount: Major,
    currency: &'a str,
    redirect_url: &'a str,
    customer: Customer<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_options: Option<String>,
    customizations: Customizations<'a>,
    meta: Map<String, Value>,
}

#[derive(Serialize)]
struct Customer<'a> {
    email: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct Customizations<'a> {
    description: &'a str,
}

#[derive(Deserialize)]
struct CheckoutResponse {
    link: String,
}

impl checkout::Guest for Flutterwave {
    fn start(order: CheckoutOrder) -> Result<CheckoutSession, Fault> {
        let page = CheckoutRequest {
            tx_ref: &order.service_ref,
            amount: Major::from(&order.amount),
            currency: &order.amount.currency,
            redirect_url: &order.success_url,
            customer: Customer { email: &order.email, name: order.customer_name.as_deref() },
            payment_options: channels::payment_options(&order)?,
            customizations: Customizations { description: &order.narration },
            meta: loose::metadata(&order.metadata)?,
        };
        let value = api::post("/payments", &page)?.data;
        let CheckoutResponse { link } = value.read()?;
        let raw = value.value().to_string();
        Ok(CheckoutSession { url: link, service_ref: order.service_ref, raw })
    }
}
