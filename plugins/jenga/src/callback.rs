//! `sessions.receive`: the callback of a push. It is not signed.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollhouse_plugin::amount::Major;
use tollhouse_plugin::payments::KnownSession;
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{loose, state};

/// The data of a callback, without the payer's phone number.
#[derive(Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Notified {
    /// The outcome. 3: the payment was credited to the merchant.
    pub code: String,
    /// The operator's receipt.
    pub receipt: Option<String>,
    /// The amount debited from the payer.
    pub debited: Option<Major>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Callback {
    code: Value,
    transaction_reference: String,
    #[serde(default)]
    telco_reference: Value,
    #[serde(default)]
    debited_amount: RawJson,
}

pub(crate) fn receive(session: &KnownSession, body: &[u8]) -> Result<Vec<u8>, Fault> {
    let unreadable = |_| Fault::invalid("body", "the body is not a callback of a push");
    let callback: Callback = serde_json::from_slice(body).map_err(unreadable)?;
    if callback.transaction_reference != session.service_ref {
        return Err(Fault::invalid("body", "the callback is that of another push"));
    }
    let receipt = loose::text(&callback.telco_reference);
    Ok(state::encode(&Notified {
        code: loose::text(&callback.code),
        receipt: Some(receipt).filter(|receipt| !receipt.is_empty()),
        debited: callback.debited_amount.read().ok(),
    }))
}
