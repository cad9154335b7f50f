//! Work with secrets that never enter the sandbox. Names are those of the manifest's `secrets`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use crate::port;
use crate::types::Fault;

/// A placeholder for a secret's value, good for this call alone, to be put where the manifest binds the secret: in a header's
/// value or the body.
pub fn secret(name: &str) -> Result<String, Fault> {
    port::vault::secret(name)
}

/// A placeholder for the credentials of HTTP basic authentication, without the word "Basic". Both arguments are names:
/// `password` of a secret, `user` of a secret or a setting.
pub fn basic(user: &str, password: &str) -> Result<String, Fault> {
    port::vault::basic(user, password)
}

/// The keyed hash of `data`; algorithms are "sha256" and "sha512".
pub fn hmac(algorithm: &str, secret: &str, data: &[u8]) -> Result<Vec<u8>, Fault> {
    port::vault::hmac(algorithm, secret, data)
}

/// Whether `candidate` is the secret; compared in constant time.
pub fn matches(secret: &str, candidate: &[u8]) -> Result<bool, Fault> {
    port::vault::matches(secret, candidate)
}

/// Whether `signature` is the keyed hash of `data` in hexadecimal digits of either case; compared in constant time.
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

/// Whether `signature` is the keyed hash of `data` in base64; compared in constant time.
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
