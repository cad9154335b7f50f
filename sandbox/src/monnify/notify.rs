//! Monnify's webhooks: signed with the account's secret key and attempted twelve times.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Monnify, accounts::Account, login::is_api_key, transactions::Transaction};
use crate::{
    env::Env,
    keyed_hash,
    outbox::{Delivery, SignatureHeader},
    server::error_response,
};

const RETRY_DELAY_MS: i64 = 5 * 60_000;
const MAX_ATTEMPTS: u32 = 12;

/// Returns the `monnify-signature` of a body: HMAC-SHA512 under the secret key, in lower-case
/// hexadecimal.
#[must_use]
pub fn sign(secret_key: &str, body: &[u8]) -> String {
    hex::encode(keyed_hash::sha512(secret_key.as_bytes(), body))
}

impl Account {
    pub(super) fn notify_payment(&self, env: &Env, transaction: &Transaction) {
        let data = self.notification_json(transaction);
        self.notify(env, "SUCCESSFUL_TRANSACTION", &transaction.payment_reference, &data);
    }

    /// Sends a webhook, if the account has one. Webhooks of one `subject` keep their order.
    pub(super) fn notify(&self, env: &Env, event: &str, subject: &str, data: &Value) {
        let Some(url) = self.webhook.clone() else { return };
        let key = self.secret_key.as_deref().unwrap_or_default();
        let delivery = Delivery {
            ordering_key: format!("monnify {} {subject}", self.number),
            method: reqwest::Method::POST,
            url,
            body: json!({ "eventType": event, "eventData": data }).to_string(),
            signatures: vec![SignatureHeader::new("monnify-signature", sign, key)],
            retry_ms: |failures| (failures < MAX_ATTEMPTS).then_some(RETRY_DELAY_MS),
        };
        env.outbox.enqueue(delivery, env.clock.now());
    }
}

#[derive(Deserialize)]
struct Webhook {
    api_key: String,
    secret_key: String,
    url: String,
}

/// Control endpoint of the simulators: sets the webhook of an account.
pub(super) async fn set_webhook(State(monnify): State<Monnify>, body: String) -> Response {
    match serde_json::from_str::<Webhook>(&body) {
        Ok(webhook) if is_api_key(&webhook.api_key) && url::Url::parse(&webhook.url).is_ok() => {
            monnify.set_webhook(&webhook.api_key, &webhook.secret_key, &webhook.url);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => error_response(
            StatusCode::BAD_REQUEST,
            "api_key (MK_TEST_...), secret_key and url are required",
        ),
    }
}
