//! The vault: plugins use secrets that they never see.
//!
//! A plugin receives a random placeholder, valid for one call, which egress replaces by the secret,
//! or by a transformation of it. Responses and logs are redacted.

mod placeholders;
mod redactor;
pub mod transform;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha512};
use subtle::ConstantTimeEq;

pub use self::{
    placeholders::Placeholders,
    redactor::{REDACTED, Redactor},
};
use crate::manifest::bindings::{AccountBinding, RequestPart};
use crate::prelude::*;
use tollhouse_platform::crypto::tls::ClientIdentity;

/// Maximum size of the data of an HMAC or of a comparison.
const MAX_BYTES: usize = 1 << 20;
const MAX_QUOTED_CHARS: usize = 100;

/// The secrets of one account, by their names in the manifest.
#[derive(Clone, Default)]
pub struct Secrets {
    values: HashMap<String, String>,
    /// Bindings of secrets, without unbound ones.
    bindings: HashMap<String, AccountBinding>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("the account has no secret {0}, or the manifest's secrets do not name it")]
    UnknownSecret(String),
    #[error("the host does not support the algorithm {0}")]
    UnknownAlgorithm(String),
    #[error("a call may have at most 64 different placeholders")]
    TooManyPlaceholders,
    #[error("vault.hmac and vault.matches accept at most 1 MiB of data")]
    TooLarge,
    #[error("the template of a transformation and its results may have at most 16 KiB")]
    TemplateTooLarge,
    #[error("a transformation may have at most 8 steps")]
    TooManySteps,
    #[error("the result of a transformation must be text: end with base64, base64url or hex")]
    NotText,
    #[error("{0} must be an RSA key in PEM, of 2048 to 4096 bits")]
    BadKey(String),
    #[error("the data is too long for rsa-encrypt")]
    TooLongToEncrypt,
}

impl From<VaultError> for Fault {
    fn from(error: VaultError) -> Fault {
        let (category, code) = match &error {
            VaultError::UnknownSecret(_) => (FaultCategory::Misconfigured, "no-secret"),
            VaultError::UnknownAlgorithm(_) => (FaultCategory::Invalid, "no-algorithm"),
            VaultError::TooManyPlaceholders => {
                (FaultCategory::Misconfigured, "too-many-placeholders")
            }
            VaultError::TooLarge | VaultError::TemplateTooLarge | VaultError::TooLongToEncrypt => {
                (FaultCategory::Misconfigured, "too-large")
            }
            VaultError::TooManySteps => (FaultCategory::Misconfigured, "too-many-steps"),
            VaultError::NotText => (FaultCategory::Misconfigured, "not-text"),
            VaultError::BadKey(_) => (FaultCategory::Misconfigured, "bad-key"),
        };
        Fault::new(category, code, error.to_string())
    }
}

impl Secrets {
    pub fn new(values: HashMap<String, String>) -> Secrets {
        Secrets { values, bindings: HashMap::new() }
    }

    #[must_use]
    pub fn with_bindings(self, bindings: HashMap<String, AccountBinding>) -> Secrets {
        Secrets { bindings, ..self }
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.values.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    pub(super) fn get(&self, name: &str) -> Result<&str, VaultError> {
        self.values
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| VaultError::UnknownSecret(truncate_name(name)))
    }

    pub fn hmac(&self, algorithm: &str, name: &str, data: &[u8]) -> Result<Vec<u8>, VaultError> {
        let key = self.get(name)?.as_bytes();
        if data.len() > MAX_BYTES {
            return Err(VaultError::TooLarge);
        }
        match algorithm {
            "sha256" => Ok(mac(Hmac::<Sha256>::new_from_slice(key), data)),
            "sha512" => Ok(mac(Hmac::<Sha512>::new_from_slice(key), data)),
            _ => Err(VaultError::UnknownAlgorithm(truncate_name(algorithm))),
        }
    }

    pub fn matches(&self, name: &str, candidate: &[u8]) -> Result<bool, VaultError> {
        let secret = self.get(name)?.as_bytes();
        if candidate.len() > MAX_BYTES {
            return Err(VaultError::TooLarge);
        }
        Ok(secret.ct_eq(candidate).into())
    }

    /// Returns the client certificate that is bound to the origin.
    pub fn client_identity(&self, origin: &str) -> Option<ClientIdentity> {
        let is_bound = |binding: &AccountBinding| binding.permits(origin, RequestPart::Tls);
        let bound = self.bindings.iter().filter(|(_, binding)| is_bound(binding));
        // An account may lack an optional one; the first name decides.
        let (_, pem) = bound.filter_map(|(name, _)| self.values.get_key_value(name)).min()?;
        Some(ClientIdentity::new(pem))
    }

    /// Returns a redactor for the secrets as they are, in JSON, and in basic authentication.
    pub fn redactor(&self, placeholders: Option<&Placeholders>) -> Redactor {
        let placeholders = placeholders.into_iter().flat_map(Placeholders::values);
        Redactor::new(self.values.values().chain(placeholders))
    }
}

/// Returns the start of an unknown name for error messages.
pub(super) fn truncate_name(name: &str) -> String {
    name.chars().take(MAX_QUOTED_CHARS).collect()
}

fn mac<M: Mac, E: std::fmt::Debug>(keyed: Result<M, E>, data: &[u8]) -> Vec<u8> {
    let mut mac = keyed.expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_certificate_is_presented_to_its_origins_only() {
        let values = ["pem", "key"].map(|name| (name.to_owned(), format!("the {name}")));
        let manifest = serde_json::json!({
            "pem": { "to": ["url"], "in": ["tls"] },
            "key": { "to": ["url", "other"], "in": ["body"] },
        });
        let declared: crate::DeclaredSecrets = serde_json::from_value(manifest).unwrap();
        let at = |name: &str| Some(format!("https://{name}"));
        let secrets =
            Secrets::new(values.into()).with_bindings(declared.account_bindings(at).collect());
        let expected = Some(ClientIdentity::new("the pem"));
        assert_eq!(secrets.client_identity("https://url"), expected);
        assert_eq!(secrets.client_identity("https://other"), None);
    }

    fn secrets() -> Secrets {
        Secrets::new([("secret_key".to_owned(), "sk_test_abc123".to_owned())].into())
    }

    #[test]
    fn hmac_matches_the_vector_and_limits_its_data() {
        let body = br#"{"event":"charge.success","data":{"reference":"pay-1","amount":10000}}"#;
        let mac = secrets().hmac("sha512", "secret_key", body).unwrap();
        assert!(hex::encode(mac).starts_with("dc7cd888540ba73cdf492d2d0f92eb41"));
        assert_eq!(
            secrets().hmac("md5", "secret_key", body),
            Err(VaultError::UnknownAlgorithm("md5".into()))
        );
        let long = vec![0; MAX_BYTES + 1];
        assert!(secrets().hmac("sha256", "secret_key", &long[1..]).is_ok());
        assert_eq!(secrets().hmac("sha256", "secret_key", &long), Err(VaultError::TooLarge));
        assert_eq!(secrets().matches("secret_key", &long), Err(VaultError::TooLarge));
        assert_eq!(secrets().matches("secret_key", &long[1..]), Ok(false));
        assert_eq!(secrets().matches("other", b""), Err(VaultError::UnknownSecret("other".into())));
    }
}
