//! TLS of a listener, with a certificate and key from files that may change.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{ListenError, certificate};
use tollhouse_platform::{clock::Timestamp, crypto::tls::provider};

/// Interval between checks for changed files.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// Paths of a PEM certificate chain, the server's own first, and of its key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The contents of the certificate file and of the key file.
type PemFiles = [Vec<u8>; 2];

pub struct Tls {
    files: TlsFiles,
    /// The last pair that was read, usable or not.
    last_read: Mutex<PemFiles>,
    current: Arc<CurrentCertificate>,
    acceptor: TlsAcceptor,
}

impl Tls {
    pub fn open(files: TlsFiles) -> Result<Tls, ListenError> {
        let seen = files.read()?;
        let current = Arc::new(CurrentCertificate(ArcSwap::from_pointee(files.parse(&seen)?)));
        let provider = Arc::new(provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ListenError(error.to_string()))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Tls { files, last_read: Mutex::new(seen), current, acceptor })
    }

    /// Accepts a TLS connection; `None` if the handshake fails or takes longer than `time`.
    pub async fn accept<I>(&self, stream: I, time: Duration) -> Option<TlsStream<I>>
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        match timeout(time, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("TLS handshake timed out");
                None
            }
        }
    }

    /// Loads changed files, and returns whether there were any. An unusable pair is not served.
    pub fn reload(&self) -> Result<bool, ListenError> {
        let pair = self.files.read()?;
        let mut seen = self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == pair {
            return Ok(false);
        }
        let certified = self.files.parse(&pair);
        *seen = pair;
        self.current.0.store(Arc::new(certified?));
        Ok(true)
    }

    /// Returns the expiry of the certificate in use, if it can be parsed.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        certificate::expires_at(self.current.0.load().cert.first()?)
    }

    /// Reloads the files when they change. Calls `ends` with the expiry of the certificate in use,
    /// now and after each change. An error is logged once. Never returns.
    pub async fn reload_on_change(&self, ends: impl Fn(Timestamp)) {
        let mut last_error = String::new();
        self.expires_at().inspect(|at| ends(*at));
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let certificate = self.files.certificate.display();
            match self.reload() {
                Ok(true) => {
                    tracing::info!(%certificate, "TLS certificate was reloaded");
                    self.expires_at().inspect(|at| ends(*at));
                    last_error.clear();
                }
                Err(error) if error.0 != last_error => {
                    tracing::error!(%error, "new TLS certificate cannot be used; the previous one stays in use");
                    last_error = error.0;
                }
                Ok(false) | Err(_) => {}
            }
        }
    }
}

impl TlsFiles {
    /// Checks that a listener could use the files.
    pub fn check(&self) -> Result<(), ListenError> {
        self.parse(&self.read()?).map(drop)
    }

    fn read(&self) -> Result<PemFiles, ListenError> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| unusable_file(path, error));
        Ok([read(&self.certificate)?, read(&self.key)?])
    }

    fn parse(&self, [certificate, key]: &PemFiles) -> Result<CertifiedKey, ListenError> {
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| unusable_file(&self.certificate, error))?;
        let Some(own) = chain.first() else {
            return Err(unusable_file(&self.certificate, "it contains no certificate"));
        };
        if let Some(why) = certificate::rejection_reason(own) {
            return Err(unusable_file(&self.certificate, why));
        }
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|error| unusable_file(&self.key, error))?;
        let certified = CertifiedKey::from_der(chain, key, &provider());
        certified.map_err(|error| unusable_file(&self.key, error))
    }
}

fn unusable_file(file: &Path, why: impl std::fmt::Display) -> ListenError {
    ListenError(format!("{}: {why}", file.display()))
}

/// The certificate for new connections.
#[derive(Debug)]
struct CurrentCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}
