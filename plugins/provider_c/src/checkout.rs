//! Opens a checkout session on Monnify's hosted page.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::checkout::{self, CheckoutOrder, CheckoutSession};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{loose, settings};

use crate::{Monnify, api, channels, naira, transaction};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckoutRequest<'a> {
    amount: Major,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_name: Option<&'a str>,
    customer_email: &'a str,
    payment_reference: &'a str,
    payment_description: &'a str,
    currency_code: &'a str,
    contract_code: String,
    redirect_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_methods: Option<Vec<&'static str>>,
    meta_data: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CheckoutResponse {
    checkout_url: String,
    #[serde(default)]
    payment_reference: Value,
}

impl checkout::Guest for Monnify {
    fn start(order: CheckoutOrder) -> Result<CheckoutSession, Fault> {
        let page = CheckoutRequest {
            amount: naira::from_money(&order.amount)?,
            customer_name: order.customer_name.as_deref(),
            customer_email: &order.email,
            payment_reference: &order.service_ref,
            payment_description: &order.narration,
            currency_code: naira::CURRENCY,
            contract_code: settings::required("contract_code")?,
            redirect_url: &order.success_url,
            payment_methods: channels::payment_methods(&order)?,
            meta_data: loose::metadata(&order.metadata)?,
        };
        let value = api::post("/api/v1/merchant/transactions/init-transaction", &page)?;
        let hosted: CheckoutResponse = value.read()?;
        let reference = loose::text(&hosted.payment_reference);
        let service_ref = if reference.is_empty() { order.service_ref } else { reference };
        Ok(CheckoutSession {
            url: hosted.checkout_url,
            service_ref,
            raw: transaction::redacted_json(&value),
        })
    }
}
