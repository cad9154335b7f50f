//! Standard Webhooks signatures: HMAC-SHA256 over `id.timestamp.body`.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Returns the `webhook-signature` header: one signature per secret, the current one first. Secrets
/// other than `whsec_` plus base64 are skipped.
pub fn signatures(secrets: &[String], id: &str, unix_seconds: i64, body: &str) -> String {
    let signed = format!("{id}.{unix_seconds}.{body}");
    let keys = secrets.iter().filter_map(|s| BASE64.decode(s.strip_prefix("whsec_")?).ok());
    let signatures = keys.map(|key| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
        mac.update(signed.as_bytes());
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    });
    signatures.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_published_test_vector() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", r#"{"test": 2432232314}"#);
        let one = signatures(std::slice::from_ref(&secret), id, 1_614_265_330, body);
        assert_eq!(one, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let two = signatures(&[secret.clone(), secret], id, 1_614_265_330, body);
        assert_eq!(two, format!("{one} {one}"));
    }
}
