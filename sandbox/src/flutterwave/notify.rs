//! Flutterwave's webhooks, for successes and failures: with a hash that does not sign the body, and
//! optionally with a signature.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Flutterwave, accounts::Account, http::is_secret_key, transactions::Transaction};
use crate::{
    env::Env,
    keyed_hash,
    outbox::{Delivery, SignatureHeader},
    server::error_response,
};

/// Delay between two attempts.
const RETRY_DELAY_MS: i64 = 30 * 60_000;
const MAX_RETRIES: u32 = 3;

/// The webhook settings of an account, as set on its dashboard.
#[derive(Clone, Debug)]
pub struct Webhook {
    hash: String,
    url: String,
    signed: bool,
}

impl Webhook {
    /// `hash` is sent verbatim in `verif-hash`.
    #[must_use]
    pub fn new(hash: &str, url: &str) -> Webhook {
        Webhook { hash: hash.to_owned(), url: url.to_owned(), signed: false }
    }

    /// Also sends `flutterwave-signature`.
    #[must_use]
    pub fn signed(self) -> Webhook {
        Webhook { signed: true, ..self }
    }

    fn signatures(&self) -> Vec<SignatureHeader> {
        let mut signatures =
            vec![SignatureHeader::new("verif-hash", |hash, _| hash.to_owned(), &self.hash)];
        if self.signed {
            signatures.push(SignatureHeader::new("flutterwave-signature", sign, &self.hash));
        }
        signatures
    }
}

/// Returns the `flutterwave-signature` of a body: HMAC-SHA256 in base64, under the hash set on the
/// dashboard.
#[must_use]
pub fn sign(secret_hash: &str, body: &[u8]) -> String {
    BASE64_STANDARD.encode(keyed_hash::sha256(secret_hash.as_bytes(), body))
}

impl Account {
    /// Sends the webhook of a settled charge.
    pub(super) fn notify_charge(&self, env: &Env, transaction: &Transaction) {
        let body = json!({
            "event": "charge.completed",
            "data": self.notification_json(transaction),
            "event.type": format!("{}_TRANSACTION", transaction.payment_type.to_uppercase()),
        });
        self.notify(env, &transaction.tx_ref, &body);
    }

    /// Sends a webhook, if the account has one. Webhooks of one `subject` keep their order.
    pub(super) fn notify(&self, env: &Env, subject: &str, body: &Value) {
        let Some(webhook) = &self.webhook else { return };
        let delivery = Delivery {
            ordering_key: format!("flutterwave {} {subject}", self.id),
            method: reqwest::Method::POST,
            url: webhook.url.clone(),
            body: body.to_string(),
            signatures: webhook.signatures(),
            retry_ms: |failures| (failures <= MAX_RETRIES).then_some(RETRY_DELAY_MS),
        };
        env.outbox.enqueue(delivery, env.clock.now());
    }
}

#[derive(Deserialize)]
struct WebhookRequest {
    secret_key: String,
    hash: String,
    url: String,
    #[serde(default)]
    signed: bool,
}

/// Control endpoint of the simulators: sets the webhook of an account.
pub(super) async fn set_webhook(State(flutterwave): State<Flutterwave>, body: String) -> Response {
    let request = serde_json::from_str::<WebhookRequest>(&body).ok();
    let request =
        request.filter(|t| is_secret_key(&t.secret_key) && url::Url::parse(&t.url).is_ok());
    let Some(WebhookRequest { secret_key, hash, url, signed }) = request else {
        let wanted = "secret_key (FLWSECK_TEST-...), hash and url are required";
        return error_response(StatusCode::BAD_REQUEST, wanted);
    };
    flutterwave.configure_webhook(&secret_key, Webhook { signed, ..Webhook::new(&hash, &url) });
    StatusCode::NO_CONTENT.into_response()
}
