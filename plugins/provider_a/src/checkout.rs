//! Opens a checkout session on Paystack's hosted page.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tollhouse_plugin::checkout::{self, CheckoutOrder, CheckoutSession};
use tollhouse_plugin::types::Fault;

use crate::{Paystack, api, loose};

#[derive(Deserialize)]
struct Initialized {
    authorization_url: String,
    #[serde(default)]
    reference: String,
}

impl checkout::Guest for Paystack {
    fn start(order: CheckoutOrder) -> Result<CheckoutSession, Fault> {
        let data = api::post("/transaction/initialize", &request(&order)?)?;
        let raw = loose::redacted_json(&data);
        let made: Initialized = serde_json::from_value(data).map_err(|_| {
            Fault::unavailable("Paystack returned no payment page").with_code("unexpected-answer")
        })?;
        let service_ref =
            if made.reference.is_empty() { order.service_ref } else { made.reference };
        Ok(CheckoutSession { url: made.authorization_url, service_ref, raw })
    }
}

fn request(order: &CheckoutOrder) -> Result<Value, Fault> {
    let mut body = json!({
        "email": order.email,
        "amount": order.amount.minor,
        "currency": order.amount.currency,
        "reference": order.service_ref,
        "callback_url": order.success_url,
        "metadata": metadata(order)?,
    });
    if !order.channels.is_empty() {
        body["channels"] = json!(order.channels);
    }
    Ok(body)
}

/// Returns the caller's metadata with the options that Paystack reads only from metadata: the
/// cancel URL, and the restriction to reusable instruments.
fn metadata(order: &CheckoutOrder) -> Result<Map<String, Value>, Fault> {
    let mut metadata = loose::metadata(&order.metadata)?;
    if let Some(url) = &order.cancel_url {
        metadata.insert("cancel_action".into(), json!(url));
    }
    if order.save_instrument {
        let filters = metadata.entry("custom_filters").or_insert_with(|| json!({}));
        if !filters.is_object() {
            *filters = json!({});
        }
        filters["recurring"] = json!(true);
    }
    Ok(metadata)
}
