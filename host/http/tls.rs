//! TLS of a listener: a certificate and its key, from files that may change while the host runs.

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

use super::certificate;
use crate::{clock::Timestamp, tls::provider};

/// How soon changed files are noticed.
const FOLLOW: Duration = Duration::from_secs(5);

/// Why a certificate or its key cannot be used; the text names the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

/// Where a certificate is: PEM, the certificate itself first, and its key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The texts of both files.
#[derive(PartialEq, Eq)]
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

pub struct Tls {
    files: TlsFiles,
    /// What was looked at last, good or bad.
    seen: Mutex<Pair>,
    current: Arc<Current>,
    acceptor: TlsAcceptor,
}

impl Tls {
    pub fn open(files: TlsFiles) -> Result<Tls, TlsError> {
        let seen = files.read()?;
        let current = Arc::new(Current(ArcSwap::from_pointee(files.certified(&seen)?)));
        let provider = Arc::new(provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(error.to_string()))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Tls { files, seen: Mutex::new(seen), current, acceptor })
    }

    /// `None` when the client is no TLS client, or takes longer than `time`.
    pub async fn accept<I>(&self, stream: I, time: Duration) -> Option<TlsStream<I>>
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        match timeout(time, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took too long");
                None
            }
        }
    }

    /// Takes over files that changed; answers whether they had. A pair that cannot be used leaves the old one serving.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let pair = self.files.read()?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == pair {
            return Ok(false);
        }
        let certified = self.files.certified(&pair);
        *seen = pair;
        self.current.0.store(Arc::new(certified?));
        Ok(true)
    }

    /// Until when the certificate in use is good, if it says so in a way that is understood.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        certificate::expires_at(self.current.0.load().cert.first()?)
    }

    /// Reloads for as long as the listener lives. What is wrong with a pair is said once; `ends` hears until when the
    /// certificate in use is good, now and after each exchange.
    pub async fn follow(&self, ends: impl Fn(Timestamp)) {
        let mut said = String::new();
        self.expires_at().inspect(|at| ends(*at));
        loop {
            tokio::time::sleep(FOLLOW).await;
            let certificate = self.files.certificate.display();
            match self.reload() {
                Ok(true) => {
                    tracing::info!(%certificate, "the TLS certificate was exchanged");
                    self.expires_at().inspect(|at| ends(*at));
                }
                Ok(false) => continue,
                Err(error) if error.0 == said => continue,
                Err(error) => {
                    tracing::error!(%error, "the new TLS certificate is not used; the old one serves");
                    said = error.0;
                    continue;
                }
            }
            said.clear();
        }
    }
}

impl TlsFiles {
    /// Whether a listener could use them.
    pub fn check(&self) -> Result<(), TlsError> {
        self.certified(&self.read()?).map(drop)
    }

    fn read(&self) -> Result<Pair, TlsError> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| unusable(path, error));
        Ok(Pair { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn certified(&self, pair: &Pair) -> Result<CertifiedKey, TlsError> {
        let chain =
            CertificateDer::pem_slice_iter(&pair.certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| unusable(&self.certificate, error))?;
        let Some(own) = chain.first() else {
            return Err(unusable(&self.certificate, "it holds no certificate"));
        };
        if let Some(why) = certificate::refusal(own) {
            return Err(unusable(&self.certificate, why));
        }
        let key = PrivateKeyDer::from_pem_slice(&pair.key);
        let key = key.map_err(|error| unusable(&self.key, error))?;
        let certified = CertifiedKey::from_der(chain, key, &provider());
        certified.map_err(|error| unusable(&self.key, error))
    }
}

fn unusable(file: &Path, why: impl std::fmt::Display) -> TlsError {
    TlsError(format!("{}: {why}", file.display()))
}

/// The certificate that new connections get.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}
