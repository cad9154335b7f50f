//! Signatures of requests: RSA with SHA-256 and PKCS #1 v1.5 padding, in base64, over fields of the
//! request without separators.

use base64::{Engine, prelude::BASE64_STANDARD};
use rsa::{
    PrivateKey, PublicKey,
    pkcs8::{DecodePrivateKey, DecodePublicKey},
};
use sha2::Sha256;

use super::accounts::PRIVATE_KEY;

/// Returns the signature of a text by the default account.
///
/// # Panics
/// Never: the key is valid.
#[must_use]
pub fn sign(text: &str) -> String {
    let key = PrivateKey::from_pkcs8_pem(PRIVATE_KEY).expect("the file is a private key");
    let signature = key.pkcs1v15_sign::<Sha256>(text.as_bytes());
    BASE64_STANDARD.encode(signature.expect("the key is long enough for the digest"))
}

/// Returns whether a signature is that of a text by the counterpart of a public key.
pub(super) fn is_signature(public_key: &str, text: &str, signature: &str) -> bool {
    let key = PublicKey::from_public_key_pem(public_key).ok();
    let signature = BASE64_STANDARD.decode(signature).ok();
    let valid = |(key, signature): (PublicKey, Vec<u8>)| {
        key.pkcs1v15_verify::<Sha256>(text.as_bytes(), &signature).is_ok()
    };
    key.zip(signature).is_some_and(valid)
}

pub(super) fn is_public_key(pem: &str) -> bool {
    PublicKey::from_public_key_pem(pem).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jenga::Credentials;

    #[test]
    fn only_the_signature_of_the_text_is_accepted() {
        let key = Credentials::default().public_key;
        let signature = sign("14501606498865.00KES");
        assert!(is_signature(&key, "14501606498865.00KES", &signature));
        assert!(!is_signature(&key, "14501606498866.00KES", &signature));
        assert!(!is_signature("", "14501606498865.00KES", &signature));
        let garbage = BASE64_STANDARD.encode([7_u8; 256]);
        for other in ["", "no base64", &garbage, signature.trim_end_matches('=')] {
            assert!(!is_signature(&key, "14501606498865.00KES", other), "{other}");
        }
    }
}
