//! Sealing of what must not be read from the database: XChaCha20-Poly1305 under the master key.
//!
//! A sealed text is `v1.<key id>.<base64 of nonce and ciphertext>`. Its context (table, row, column) is authenticated, so
//! that a sealed value moved to another row does not open.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};

use crate::random::Random;

const NONCE_BYTES: usize = 24;

#[derive(Clone)]
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    key_id: String,
    random: Random,
}

#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("the master key must be 64 hexadecimal characters (32 bytes)")]
    BadKey,
    #[error("a sealed value names the key {0}, which this host does not have")]
    OtherKey(String),
    #[error("a sealed value does not open: it is damaged or belongs elsewhere")]
    Damaged,
}

impl Sealer {
    /// `master_key` is 32 bytes in hexadecimal.
    pub fn new(master_key: &str, random: Random) -> Result<Sealer, SealError> {
        let key: [u8; 32] = hex::decode(master_key.trim())
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(SealError::BadKey)?;
        let key_id = hex::encode(&Sha256::digest(key)[..4]);
        Ok(Sealer { cipher: XChaCha20Poly1305::new(&key.into()), key_id, random })
    }

    #[must_use]
    pub fn seal(&self, context: &str, text: &str) -> String {
        let nonce = self.random.bytes::<NONCE_BYTES>();
        let payload = Payload { msg: text.as_bytes(), aad: context.as_bytes() };
        let sealed = self.cipher.encrypt(&nonce.into(), payload);
        let sealed = sealed.expect("a text in memory is shorter than the cipher's limit");
        format!("v1.{}.{}", self.key_id, BASE64.encode([&nonce[..], &sealed].concat()))
    }

    pub fn open(&self, context: &str, sealed: &str) -> Result<String, SealError> {
        let mut parts = sealed.splitn(3, '.');
        let (Some("v1"), Some(key_id), Some(body)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(SealError::Damaged);
        };
        if key_id != self.key_id {
            return Err(SealError::OtherKey(key_id.to_owned()));
        }
        let body = BASE64.decode(body).map_err(|_| SealError::Damaged)?;
        let (nonce, sealed) = body.split_at_checked(NONCE_BYTES).ok_or(SealError::Damaged)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| SealError::Damaged)?;
        let payload = Payload { msg: sealed, aad: context.as_bytes() };
        let text = self.cipher.decrypt(&nonce.into(), payload).map_err(|_| SealError::Damaged)?;
        String::from_utf8(text).map_err(|_| SealError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_only_with_its_key_in_its_place() {
        let sealer = Sealer::new(&"07".repeat(32), Random::seeded(1)).unwrap();
        let sealed = sealer.seal("companies/1", "whsec_abc");
        assert!(!sealed.contains("whsec"));
        assert_eq!(sealer.open("companies/1", &sealed).unwrap(), "whsec_abc");
        assert!(matches!(sealer.open("companies/2", &sealed), Err(SealError::Damaged)));
        let other = Sealer::new(&"08".repeat(32), Random::seeded(1)).unwrap();
        assert!(matches!(other.open("companies/1", &sealed), Err(SealError::OtherKey(_))));
        assert!(matches!(sealer.open("companies/1", "v1.x"), Err(SealError::Damaged)));
    }

    #[test]
    fn a_master_key_is_32_bytes() {
        assert!(matches!(Sealer::new("abc", Random::seeded(1)), Err(SealError::BadKey)));
    }
}
