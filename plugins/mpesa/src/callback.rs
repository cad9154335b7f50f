//! `sessions.receive`: the callback of a push. It is not signed.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::payments::KnownSession;
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{loose, state};

use crate::{status::State, time};

/// The data of a callback, without the payer's phone number.
#[derive(Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Notified {
    pub checkout_request_id: String,
    /// The receipt, by which a payment is reversed.
    pub receipt: Option<String>,
    pub amount: Option<Major>,
    /// In RFC 3339.
    pub paid_at: Option<String>,
}

#[derive(Deserialize)]
struct Callback {
    #[serde(rename = "Body")]
    body: Body,
}

#[derive(Deserialize)]
struct Body {
    #[serde(rename = "stkCallback")]
    callback: StkCallback,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StkCallback {
    #[serde(rename = "CheckoutRequestID")]
    checkout_request_id: String,
    #[serde(default)]
    callback_metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, rename = "Item")]
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    name: String,
    #[serde(default)]
    value: RawJson,
}

impl Metadata {
    fn find(&self, name: &str) -> Option<&RawJson> {
        self.items.iter().find(|item| item.name == name).map(|item| &item.value)
    }

    fn text(&self, name: &str) -> Option<String> {
        let value: Value = self.find(name)?.value();
        Some(loose::text(&value)).filter(|text| !text.is_empty())
    }
}

impl Notified {
    /// Returns the data of this push's callback. The callback of another push is ignored.
    pub(crate) fn of(session: &KnownSession) -> Option<Notified> {
        let notified: Notified = state::decode(session.notified.as_ref())?;
        let state: Option<State> = state::decode(session.state.as_ref());
        let is_same = |state: State| state.checkout_request_id == notified.checkout_request_id;
        state.is_none_or(is_same).then_some(notified)
    }
}

pub(crate) fn receive(session: &KnownSession, body: &[u8]) -> Result<Vec<u8>, Fault> {
    let unreadable = |_| Fault::invalid("body", "the body is not a callback of a push");
    let Callback { body: Body { callback } } = serde_json::from_slice(body).map_err(unreadable)?;
    let state: Option<State> = state::decode(session.state.as_ref());
    if state.is_some_and(|state| state.checkout_request_id != callback.checkout_request_id) {
        return Err(Fault::invalid("body", "the callback is that of another push"));
    }
    let metadata = &callback.callback_metadata;
    Ok(state::encode(&Notified {
        checkout_request_id: callback.checkout_request_id,
        receipt: metadata.text("MpesaReceiptNumber"),
        amount: metadata.find("Amount").and_then(|amount| amount.read().ok()),
        paid_at: metadata.text("TransactionDate").and_then(|at| time::to_rfc3339(&at)),
    }))
}
