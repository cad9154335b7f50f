//! Who does the cryptography of TLS, for all that this process sends and takes.

use std::{error::Error, io};

use rustls::crypto::{CryptoProvider, ring};

#[must_use]
pub fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// For clients, which are built without a provider of their own. Whoever builds one calls this before; again changes nothing.
pub fn install_provider() {
    let _ = provider().install_default();
}

/// Returns the failure of TLS among the causes of an error. What an `io::Error` wraps is not among its sources, and may be
/// another `io::Error`.
#[must_use]
pub fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
