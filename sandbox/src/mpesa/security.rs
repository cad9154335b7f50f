//! Security credentials: passwords of initiators, encrypted for M-Pesa's certificate by RSA with
//! PKCS #1 v1.5 padding.

use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_STANDARD};
use rand::{SeedableRng, rngs::StdRng};
use rsa::{PrivateKey, pkcs8::DecodePrivateKey};

/// The simulator's certificate in PEM, the counterpart of Safaricom's `SandboxCertificate.cer`.
pub const CERTIFICATE: &str = include_str!("certificate.pem");

/// A key for tests only. It protects nothing.
static PRIVATE_KEY: LazyLock<PrivateKey> = LazyLock::new(|| {
    PrivateKey::from_pkcs8_pem(include_str!("private_key.pem")).expect("the file is a private key")
});

/// Returns a `SecurityCredential` of this password.
///
/// # Panics
/// If the password is longer than 245 bytes.
#[must_use]
pub fn security_credential(password: &str) -> String {
    let mut rng = StdRng::seed_from_u64(0);
    let encrypted =
        PRIVATE_KEY.as_public_key().pkcs1v15_encrypt_with_rng(&mut rng, password.as_bytes());
    BASE64_STANDARD.encode(encrypted.expect("the password is short"))
}

/// Returns whether a `SecurityCredential` contains this password.
pub(super) fn is_password(credential: &str, password: &str) -> bool {
    // Invalid padding decrypts to a synthetic message, which differs from the password.
    let decrypted = BASE64_STANDARD.decode(credential).ok();
    let decrypted = decrypted.and_then(|bytes| PRIVATE_KEY.pkcs1v15_decrypt(&bytes).ok());
    decrypted.is_some_and(|bytes| bytes == password.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_credential_of_the_password_is_accepted() {
        let credential = security_credential("p4ss");
        assert_eq!(BASE64_STANDARD.decode(&credential).unwrap().len(), 256);
        assert!(is_password(&credential, "p4ss"));
        assert!(!is_password(&credential, "other"));
        let garbage = BASE64_STANDARD.encode([7_u8; 256]);
        for text in ["", "p4ss", &BASE64_STANDARD.encode("p4ss"), &garbage] {
            assert!(!is_password(text, "p4ss"), "{text}");
        }
    }
}
