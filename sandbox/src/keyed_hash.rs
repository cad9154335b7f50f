//! HMACs as hexadecimal digits, for signatures of providers.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha512};

pub(crate) fn sha256(key: &[u8], body: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("an HMAC key may have any length");
    mac.chain_update(body).finalize().into_bytes().to_vec()
}

pub(crate) fn sha512(key: &[u8], body: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha512>::new_from_slice(key).expect("an HMAC key may have any length");
    mac.chain_update(body).finalize().into_bytes().to_vec()
}
