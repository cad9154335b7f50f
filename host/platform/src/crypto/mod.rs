//! Sealing of stored secrets, digests of credentials, and TLS.

pub mod seal;
pub mod tls;

use sha2::{Digest, Sha256};

/// Digests an API key or a token for storage. A plain hash is safe because it has at least 160
/// random bits.
#[must_use]
pub fn digest(credential: &str) -> String {
    hex::encode(Sha256::digest(credential.as_bytes()))
}
