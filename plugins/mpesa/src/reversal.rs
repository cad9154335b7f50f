//! `session-refunds`: the reversal of a payment, whose result arrives by callback only.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollhouse_plugin::session_refunds::{
    KnownRefund, SessionRefund, SessionRefundOrder, SessionRefundStatus,
};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::vault::Step;
use tollhouse_plugin::{loose, settings, state, vault};

use crate::{
    api::{self, ApiError},
    callback::Notified,
    push::shillings,
};

/// The result code of a payment that is already reversed.
const ALREADY_REVERSED: &str = "R000001";
/// The identifier type of a shortcode. `RecieverIdentifierType` is Daraja's spelling.
const SHORTCODE: &str = "11";

/// The result that a callback reports.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The id of the request whose result this is.
    pub conversation_id: String,
    pub result_code: String,
    pub result: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Accepted {
    #[serde(rename = "ConversationID")]
    conversation_id: String,
    response_code: String,
    #[serde(default)]
    response_description: String,
}

#[derive(Deserialize)]
struct Callback {
    #[serde(rename = "Result")]
    result: ReversalResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReversalResult {
    #[serde(default, rename = "ConversationID")]
    conversation_id: String,
    /// A number or a string.
    result_code: Value,
    #[serde(default)]
    result_desc: String,
}

/// Requests the reversal. Daraja reverses a payment once: the result of a repeated request has the
/// code [`ALREADY_REVERSED`].
pub(crate) fn start(order: SessionRefundOrder) -> Result<SessionRefund, Fault> {
    let receipt = Notified::of(&order.session).and_then(|notified| notified.receipt);
    let receipt = receipt.unwrap_or(order.session.transaction_id);
    if receipt.is_empty() {
        return Err(Fault::unavailable("the callback with the receipt has not arrived"));
    }
    let password = vault::secret("initiator_password")?;
    let steps = [Step::rsa_encrypt("certificate"), Step::base64()];
    let body = json!({
        "Initiator": settings::required("initiator_name")?,
        "SecurityCredential": vault::transform(password, &steps)?,
        "CommandID": "TransactionReversal",
        "TransactionID": receipt,
        "Amount": shillings(&order.amount)?,
        "ReceiverParty": settings::required("shortcode")?,
        "RecieverIdentifierType": SHORTCODE,
        "ResultURL": order.notification_url,
        "QueueTimeOutURL": order.notification_url,
        "Remarks": "Refund",
        "Occasion": order.refund_ref,
    });
    let (accepted, raw): (Accepted, String) =
        api::post("/mpesa/reversal/v1/request", &body)?.map_err(rejection)?;
    if accepted.response_code != "0" {
        return Err(
            Fault::unavailable(accepted.response_description).with_code(&accepted.response_code)
        );
    }
    Ok(SessionRefund {
        status: SessionRefundStatus::Pending,
        provider_id: accepted.conversation_id,
        message: accepted.response_description,
        raw,
        state: Vec::new(),
    })
}

/// A rejected request proves nothing about an earlier one whose response was lost, so it is neither
/// `refused` nor `invalid`.
fn rejection(error: ApiError) -> Fault {
    match error.status {
        400 => Fault::misconfigured(format!("Daraja rejects the reversal: {}", error.message))
            .with_code(&error.code),
        _ => error.into_fault(),
    }
}

pub(crate) fn check(refund: KnownRefund) -> SessionRefund {
    let outcome: Option<Outcome> = state::decode(refund.notified.as_ref());
    // The failure of an earlier request is not that of the current one.
    let is_current = |id: &str| refund.provider_id.is_empty() || refund.provider_id == id;
    let (status, message) = match outcome {
        Some(Outcome { result_code, result, .. })
            if ["0", ALREADY_REVERSED].contains(&&*result_code) =>
        {
            (SessionRefundStatus::Done, result)
        }
        Some(Outcome { conversation_id, result, .. }) if is_current(&conversation_id) => {
            (SessionRefundStatus::Failed, result)
        }
        _ => (SessionRefundStatus::Pending, String::new()),
    };
    SessionRefund {
        status,
        provider_id: refund.provider_id,
        message,
        raw: "{}".to_owned(),
        state: Vec::new(),
    }
}

pub(crate) fn receive(body: &[u8]) -> Result<Vec<u8>, Fault> {
    let unreadable = |_| Fault::invalid("body", "the body is not the result of a reversal");
    let Callback { result } = serde_json::from_slice(body).map_err(unreadable)?;
    Ok(state::encode(&Outcome {
        conversation_id: result.conversation_id,
        result_code: loose::text(&result.result_code),
        result: result.result_desc,
    }))
}
