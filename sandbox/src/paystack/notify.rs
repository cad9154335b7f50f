//! Paystack's webhooks: signed with the account's secret key and retried on its schedule.

use serde_json::{Value, json};

use super::accounts::Account;
use crate::{
    env::Env,
    keyed_hash,
    outbox::{Delivery, SignatureHeader},
};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// Returns the `x-paystack-signature` of a body: HMAC-SHA512 in lower-case hexadecimal.
#[must_use]
pub fn sign(secret_key: &str, body: &[u8]) -> String {
    hex::encode(keyed_hash::sha512(secret_key.as_bytes(), body))
}

impl Account {
    /// Sends a webhook, if the account has one. Webhooks of one `subject` keep their order.
    pub(super) fn notify(&self, env: &Env, event: &str, subject: &str, data: &Value) {
        let Some(url) = self.webhook.clone() else { return };
        let body = json!({ "event": event, "data": data }).to_string();
        let delivery = Delivery {
            ordering_key: format!("paystack {} {subject}", self.integration),
            method: reqwest::Method::POST,
            url,
            body,
            signatures: vec![SignatureHeader::new("x-paystack-signature", sign, &self.key)],
            retry_ms: if self.is_live() { retry_live } else { retry_test },
        };
        env.outbox.enqueue(delivery, env.clock.now());
    }
}

/// Every three minutes for the first four attempts, then hourly for up to 72 hours.
fn retry_live(failures: u32) -> Option<i64> {
    match failures {
        0..4 => Some(3 * MINUTE_MS),
        4..76 => Some(HOUR_MS),
        _ => None,
    }
}

/// Hourly for ten hours.
fn retry_test(failures: u32) -> Option<i64> {
    (failures <= 10).then_some(HOUR_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_end_after_the_schedule() {
        assert_eq!((1..).map_while(retry_test).count(), 10);
        assert_eq!((1..).map_while(retry_live).sum::<i64>(), 72 * HOUR_MS + 9 * MINUTE_MS);
    }
}
