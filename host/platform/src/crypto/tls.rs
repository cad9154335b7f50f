//! The cryptography provider of all TLS connections.

use std::{error::Error, io, iter::successors};

use rustls::crypto::{CryptoProvider, ring};

pub fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Installs the provider for clients, which must be built after it. Repeated calls have no effect.
pub fn install_provider() {
    let _ = provider().install_default();
}

/// Returns the TLS failure among the causes of an error. The error inside an `io::Error` is not
/// among its sources, and may be another `io::Error`.
pub fn find_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let cause = |&error: &&'e (dyn Error + 'static)| match error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
        None => error.source(),
    };
    successors(Some(error), cause).find_map(|error| error.downcast_ref())
}
