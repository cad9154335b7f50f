//! Who does the cryptography of TLS, for all that this process sends and takes.

use rustls::crypto::{CryptoProvider, ring};

#[must_use]
pub fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// For clients, which are built without a provider of their own. Whoever builds one calls this before; again changes nothing.
pub fn install_provider() {
    let _ = provider().install_default();
}
