//! Secrets that plugins use and never see.
//!
//! A plugin gets a random placeholder, good for one call; egress puts the value in. Fixed placeholders would let a caller's
//! own words (a narration) expand a secret. What comes back from upstreams, and what is logged, loses the values again.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use rand::{Rng, rngs::StdRng};
use sha2::{Sha256, Sha512};
use subtle::ConstantTimeEq;

/// Shorter values are not searched for in answers: they would be found by chance.
const LEAST_REDACTED: usize = 6;
const REDACTED: &str = "[secret]";

/// The secrets of one account, by the names of the plugin's manifest.
#[derive(Clone, Default)]
pub struct Secrets(HashMap<String, String>);

/// What stands for what, in one call.
#[derive(Default)]
pub struct Placeholders(Vec<(String, String)>);

#[derive(Debug, PartialEq, Eq)]
pub enum VaultError {
    NoSecret(String),
    NoAlgorithm(String),
}

impl Secrets {
    #[must_use]
    pub fn new(values: HashMap<String, String>) -> Secrets {
        Secrets(values)
    }

    fn get(&self, name: &str) -> Result<&str, VaultError> {
        self.0.get(name).map(String::as_str).ok_or_else(|| VaultError::NoSecret(name.to_owned()))
    }

    pub fn hmac(&self, algorithm: &str, name: &str, data: &[u8]) -> Result<Vec<u8>, VaultError> {
        let key = self.get(name)?.as_bytes();
        match algorithm {
            "sha256" => Ok(mac(Hmac::<Sha256>::new_from_slice(key), data)),
            "sha512" => Ok(mac(Hmac::<Sha512>::new_from_slice(key), data)),
            _ => Err(VaultError::NoAlgorithm(algorithm.to_owned())),
        }
    }

    pub fn matches(&self, name: &str, candidate: &[u8]) -> Result<bool, VaultError> {
        Ok(self.get(name)?.as_bytes().ct_eq(candidate).into())
    }

    /// `text` without any of the secrets, as they are or as basic authentication hides them.
    #[must_use]
    pub fn redact(&self, text: &[u8], placeholders: &Placeholders) -> Vec<u8> {
        let values = self.0.values().chain(placeholders.0.iter().map(|(_, value)| value));
        values
            .filter(|value| value.len() >= LEAST_REDACTED)
            .fold(text.to_vec(), |text, value| replace(&text, value.as_bytes(), REDACTED))
    }
}

impl Placeholders {
    pub fn secret(
        &mut self,
        secrets: &Secrets,
        rng: &mut StdRng,
        name: &str,
    ) -> Result<String, VaultError> {
        Ok(self.stand_for(rng, secrets.get(name)?.to_owned()))
    }

    pub fn basic(
        &mut self,
        secrets: &Secrets,
        rng: &mut StdRng,
        user: &str,
        password: &str,
    ) -> Result<String, VaultError> {
        let pair = format!("{}:{}", secrets.get(user)?, secrets.get(password)?);
        Ok(self.stand_for(rng, BASE64.encode(pair)))
    }

    fn stand_for(&mut self, rng: &mut StdRng, value: String) -> String {
        let mut random = [0; 16];
        rng.fill_bytes(&mut random);
        let placeholder = format!("vault-{}", hex::encode(random));
        self.0.push((placeholder.clone(), value));
        placeholder
    }

    /// Puts the values in.
    #[must_use]
    pub fn fill(&self, text: &[u8]) -> Vec<u8> {
        self.0
            .iter()
            .fold(text.to_vec(), |text, (name, value)| replace(&text, name.as_bytes(), value))
    }
}

fn mac<M: Mac, E: std::fmt::Debug>(keyed: Result<M, E>, data: &[u8]) -> Vec<u8> {
    let mut mac = keyed.expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

fn replace(text: &[u8], from: &[u8], to: &str) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, from) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(to.as_bytes());
        rest = &rest[at + from.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, what)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn secrets() -> Secrets {
        Secrets::new([("secret_key".to_owned(), "sk_test_abc123".to_owned())].into())
    }

    #[test]
    fn a_placeholder_is_random_per_call_and_filled_only_by_its_call() {
        let draw = |seed| {
            let mut placeholders = Placeholders::default();
            let mut rng = StdRng::seed_from_u64(seed);
            let name = placeholders.secret(&secrets(), &mut rng, "secret_key").unwrap();
            (name, placeholders)
        };
        let (first, one) = draw(1);
        let (second, other) = draw(2);
        assert!(first != second && draw(1).0 == first);
        assert_eq!(one.fill(format!("Bearer {first}").as_bytes()), b"Bearer sk_test_abc123");
        assert_eq!(other.fill(first.as_bytes()), first.as_bytes());
    }

    #[test]
    fn answers_lose_the_secrets() {
        let mut placeholders = Placeholders::default();
        let mut rng = StdRng::seed_from_u64(1);
        placeholders.basic(&secrets(), &mut rng, "secret_key", "secret_key").unwrap();
        let hidden = BASE64.encode("sk_test_abc123:sk_test_abc123");
        let text = format!("you sent sk_test_abc123 and {hidden}");
        let clean = secrets().redact(text.as_bytes(), &placeholders);
        assert_eq!(clean, b"you sent [secret] and [secret]");
    }

    #[test]
    fn the_webhook_vector_holds() {
        let body = br#"{"event":"charge.success","data":{"reference":"pay-1","amount":10000}}"#;
        let mac = secrets().hmac("sha512", "secret_key", body).unwrap();
        assert!(hex::encode(mac).starts_with("dc7cd888540ba73cdf492d2d0f92eb41"));
        assert_eq!(
            secrets().hmac("md5", "secret_key", body),
            Err(VaultError::NoAlgorithm("md5".into()))
        );
        assert_eq!(secrets().matches("other", b""), Err(VaultError::NoSecret("other".into())));
    }
}
