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

/// The failure of TLS among the causes of an error. An `io::Error` shows what is in it by `get_ref` only.
#[must_use]
pub fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found: Option<&rustls::Error> = error.downcast_ref().or_else(|| within?.downcast_ref());
        if found.is_some() {
            return found;
        }
        next = error.source();
    }
    None
}
