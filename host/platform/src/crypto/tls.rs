//! The cryptography provider of all TLS connections, and the trust of HTTP clients.

use std::{
    error::Error,
    fmt, io,
    iter::successors,
    sync::{Arc, OnceLock},
};

use reqwest::{Client, ClientBuilder};
use rustls::{
    ClientConfig,
    client::danger::ServerCertVerifier,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;

pub fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Installs the provider for clients, which must be built after it. Repeated calls have no effect.
pub fn install_provider() {
    let _ = provider().install_default();
}

/// Returns the builder of an HTTP client without a proxy, which trusts the system's CA
/// certificates. These are read once per process, because parsing them takes long.
pub fn http_client() -> ClientBuilder {
    install_provider();
    let client = Client::builder().no_proxy();
    match verifier().and_then(|verifier| client_config(verifier, None)) {
        Ok(config) => client.tls_backend_preconfigured(config),
        // The client reads the certificates itself, and fails with the same error.
        Err(_) => client,
    }
}

/// Like [`http_client`], for a client with a certificate. Fails if that is invalid.
pub fn http_client_as(identity: &ClientIdentity) -> Result<ClientBuilder, rustls::Error> {
    install_provider();
    let config = client_config(verifier()?, Some(identity))?;
    Ok(Client::builder().no_proxy().tls_backend_preconfigured(config))
}

/// A client's certificate, its chain and its private key, in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClientIdentity(Arc<str>);

impl ClientIdentity {
    pub fn new(pem: &str) -> ClientIdentity {
        ClientIdentity(pem.into())
    }

    fn parse(&self) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let pem = self.0.as_bytes();
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
        Some((chain, PrivateKeyDer::from_pem_slice(pem).ok()?))
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity")
    }
}

fn verifier() -> Result<Arc<Verifier>, rustls::Error> {
    static VERIFIER: OnceLock<Arc<Verifier>> = OnceLock::new();
    match VERIFIER.get() {
        Some(verifier) => Ok(verifier.clone()),
        None => {
            let verifier = Arc::new(Verifier::new(Arc::new(provider()))?);
            Ok(VERIFIER.get_or_init(|| verifier).clone())
        }
    }
}

fn client_config(
    verifier: Arc<dyn ServerCertVerifier>,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()?;
    let verified = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        None => verified.with_no_client_auth(),
        Some(identity) => {
            let invalid = || rustls::Error::General("the client certificate is invalid".to_owned());
            let (chain, key) = identity.parse().ok_or_else(invalid)?;
            verified.with_client_auth_cert(chain, key)?
        }
    };
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

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::{
        RootCertStore, ServerConfig, client::WebPkiServerVerifier, server::WebPkiClientVerifier,
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tokio_rustls::TlsAcceptor;

    use super::*;

    struct Authority {
        issuer: Issuer<'static, KeyPair>,
        roots: Arc<RootCertStore>,
    }

    impl Authority {
        fn new() -> Authority {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            let certificate = params.self_signed(&key).unwrap();
            let mut roots = RootCertStore::empty();
            roots.add(certificate.der().clone()).unwrap();
            Authority { issuer: Issuer::new(params, key), roots: Arc::new(roots) }
        }

        /// Returns a certificate for `localhost`, and its key, in PEM.
        fn issue(&self) -> String {
            let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &self.issuer).unwrap();
            certificate.pem() + &key.serialize_pem()
        }

        /// Starts a server that requires a certificate of this authority. Returns its port.
        async fn serve(&self) -> u16 {
            let crypto = Arc::new(provider());
            let clients =
                WebPkiClientVerifier::builder_with_provider(self.roots.clone(), crypto.clone());
            let (chain, key) = ClientIdentity::new(&self.issue()).parse().unwrap();
            let config = ServerConfig::builder_with_provider(crypto)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_client_cert_verifier(clients.build().unwrap())
                .with_single_cert(chain, key)
                .unwrap();
            let (acceptor, listener) =
                (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await);
            let listener = listener.unwrap();
            let port = listener.local_addr().unwrap().port();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                    let _ = stream.read(&mut [0; 4_096]).await;
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
                    let _ = stream.shutdown().await;
                }
            });
            port
        }
    }

    #[tokio::test]
    async fn a_client_presents_its_certificate() {
        let (authority, other) = (Authority::new(), Authority::new());
        let url = format!("https://localhost:{}/", authority.serve().await);
        let crypto = Arc::new(provider());
        for (identity, accepted) in [
            (Some(ClientIdentity::new(&authority.issue())), true),
            (Some(ClientIdentity::new(&other.issue())), false),
            (None, false),
        ] {
            let roots = authority.roots.clone();
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, crypto.clone());
            let config = client_config(verifier.build().unwrap(), identity.as_ref()).unwrap();
            let client = Client::builder().no_proxy().tls_backend_preconfigured(config).build();
            let response = client.unwrap().get(&url).send().await;
            assert_eq!(response.is_ok(), accepted, "{identity:?}: {response:?}");
        }
    }

    #[test]
    fn an_invalid_certificate_is_rejected() {
        let pem = Authority::new().issue();
        let at = pem.find("-----BEGIN PRIVATE").unwrap();
        let (certificate, key) = pem.split_at(at);
        assert!(http_client_as(&ClientIdentity::new(&pem)).is_ok());
        let foreign = certificate.to_owned() + &KeyPair::generate().unwrap().serialize_pem();
        for invalid in ["", certificate, key, &foreign] {
            assert!(http_client_as(&ClientIdentity::new(invalid)).is_err());
        }
    }
}
