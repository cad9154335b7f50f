//! The cryptography provider of all TLS connections, and the trust of HTTP clients.

use std::{
    error::Error,
    io,
    iter::successors,
    sync::{Arc, OnceLock},
};

use reqwest::{Client, ClientBuilder};
use rustls::{
    ClientConfig,
    crypto::{CryptoProvider, ring},
};
use rustls_platform_verifier::Verifier;

pub fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Installs the provider for clients, which must be built after it. Repeated calls have no effect.
pub fn install_provider() {
    let _ = provider().install_default();
}

/// Returns the builder of an HTTP client without a proxy, which trusts the system's CA certificates.
/// These are read once per process, because parsing them takes long.
pub fn http_client() -> ClientBuilder {
    install_provider();
    let client = Client::builder().no_proxy();
    match client_config() {
        Ok(config) => client.tls_backend_preconfigured(config),
        // The client reads the certificates itself, and fails with the same error.
        Err(_) => client,
    }
}

fn client_config() -> Result<ClientConfig, rustls::Error> {
    static VERIFIER: OnceLock<Arc<Verifier>> = OnceLock::new();
    let crypto = Arc::new(provider());
    let verifier = match VERIFIER.get() {
        Some(verifier) => verifier.clone(),
        None => {
            let verifier = Arc::new(Verifier::new(crypto.clone())?);
            VERIFIER.get_or_init(|| verifier).clone()
        }
    };
    let builder =
        ClientConfig::builder_with_provider(crypto).with_safe_default_protocol_versions()?;
    let verified = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = verified.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
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
