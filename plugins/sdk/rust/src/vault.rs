//! Operations on secrets, which never enter the sandbox. Names are those of the manifest's
//! `secrets`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use crate::port;
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
