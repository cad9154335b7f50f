//! Operations on secrets, which never enter the sandbox. Names are those of the manifest's
//! `secrets`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use crate::port;
pub use crate::shared::tollhouse::plugin::vault_transform::Step;
use crate::types::Fault;

/// Returns a placeholder for a secret, valid for this call only. Put it where the manifest binds
/// the secret: in a header value or the body.
pub fn secret(name: &str) -> Result<String, Fault> {
    port::vault::secret(name)
}

/// Returns a placeholder for the credentials of HTTP basic authentication, without the word
/// "Basic". `password` names a secret; `user` names a secret or a setting.
pub fn basic(user: &str, password: &str) -> Result<String, Fault> {
    port::vault::basic(user, password)
}

/// Applies the steps to a template and returns a placeholder for the result, for upstreams that
/// require a secret in another form. Placeholders in the template stand for their values; the
/// result may be sent where all of its secrets may be. The result must be text: end with an
/// encoding. The signature of a JWT is
/// `transform(token, &[Step::rsa_sha256("private_key"), Step::base64url()])`.
pub fn transform(template: impl Into<Vec<u8>>, steps: &[Step]) -> Result<String, Fault> {
    port::vault_transform::transform(&template.into(), steps)
}

impl Step {
    fn new(name: &str, key: Option<&str>) -> Step {
        Step { name: name.to_owned(), key: key.map(str::to_owned) }
    }

    /// Encodes as base64, with padding.
    pub fn base64() -> Step {
        Step::new("base64", None)
    }

    /// Encodes as base64 with the alphabet for URLs, without padding.
    pub fn base64url() -> Step {
        Step::new("base64url", None)
    }

    /// Encodes as hexadecimal, in lower case.
    pub fn hex() -> Step {
        Step::new("hex", None)
    }

    /// Hashes with SHA-256.
    pub fn sha256() -> Step {
        Step::new("sha256", None)
    }

    /// Hashes with SHA-512.
    pub fn sha512() -> Step {
        Step::new("sha512", None)
    }

    /// Computes the HMAC-SHA-256 under a secret.
    pub fn hmac_sha256(key: &str) -> Step {
        Step::new("hmac-sha256", Some(key))
    }

    /// Computes the HMAC-SHA-512 under a secret.
    pub fn hmac_sha512(key: &str) -> Step {
        Step::new("hmac-sha512", Some(key))
    }

    /// Signs with RSA and SHA-256 (PKCS #1 v1.5). The secret is a private key in PEM.
    pub fn rsa_sha256(key: &str) -> Step {
        Step::new("rsa-sha256", Some(key))
    }

    /// Encrypts with RSA (PKCS #1 v1.5). The secret or setting is a public key or a certificate in
    /// PEM.
    pub fn rsa_encrypt(key: &str) -> Step {
        Step::new("rsa-encrypt", Some(key))
    }
}

/// Computes the HMAC of `data` under a secret. The algorithm is "sha256" or "sha512".
pub fn hmac(algorithm: &str, secret: &str, data: &[u8]) -> Result<Vec<u8>, Fault> {
    port::vault::hmac(algorithm, secret, data)
}

/// Returns whether `candidate` equals the secret, in constant time.
pub fn matches(secret: &str, candidate: &[u8]) -> Result<bool, Fault> {
    port::vault::matches(secret, candidate)
}

/// Returns whether `signature` is the HMAC of `data` in hexadecimal digits of either case, in
/// constant time.
pub fn signed_hex(
    algorithm: &str,
    secret: &str,
    data: &[u8],
    signature: &str,
) -> Result<bool, Fault> {
    let expected = hmac(algorithm, secret, data)?;
    let given = hex::decode(signature.trim()).unwrap_or_default();
    Ok(expected.ct_eq(&given).into())
}

/// Returns whether `signature` is the HMAC of `data` in base64, in constant time.
pub fn signed_base64(
    algorithm: &str,
    secret: &str,
    data: &[u8],
    signature: &str,
) -> Result<bool, Fault> {
    let expected = hmac(algorithm, secret, data)?;
    let given = STANDARD.decode(signature.trim()).unwrap_or_default();
    Ok(expected.ct_eq(&given).into())
}
