//! TLS of the listeners: offered versions, and certificates that change while a host runs.

use std::{fs, net::SocketAddr, path::Path, process::Command, sync::Arc, time::Duration};

use reqwest::{Client, Version};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    net::TcpStream,
    sync::watch,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tollhouse_app::{routes, wiring};
use tollhouse_http::{Endpoint, Listener, Tls, TlsFiles};

use crate::{
    app::{Database, Engine, TestApp, reply},
    process::Process,
    telemetry::{metric_value, scrape},
};

const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A self-signed certificate for `localhost`, and its key.
struct Pair {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

impl Pair {
    fn new() -> Pair {
        Pair::until(2050)
    }

    /// Valid until the first day of that year.
    fn until(year: i32) -> Pair {
        Pair::made(|made| made.not_after = rcgen::date_time_ymd(year, 1, 1))
    }

    /// A CA certificate, as `openssl req -x509` creates it.
    fn ca() -> Pair {
        Pair::made(|made| made.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained))
    }

    fn made(change: impl FnOnce(&mut rcgen::CertificateParams)) -> Pair {
        let made = rcgen::CertificateParams::new(["localhost".to_owned()]);
        let mut made = made.expect("names");
        change(&mut made);
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = made.self_signed(&key).expect("a certificate");
        Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
        }
    }

    fn write(&self, folder: &Path) -> TlsFiles {
        let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
        fs::write(&certificate, &self.certificate).expect("a file");
        fs::write(&key, &self.key).expect("a file");
        TlsFiles { certificate, key }
    }
}

/// Parameters that a client and a listener negotiated.
#[derive(Debug, PartialEq, Eq)]
struct Negotiated {
    version: ProtocolVersion,
    protocol: Option<String>,
}

async fn connect<I>(
    stream: I,
    trusted: &Pair,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&str],
) -> Result<Negotiated, String>
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der.clone()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_protocol_versions(versions).expect("versions");
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let connected = connected.map_err(|error| error.to_string())?;
    let (_, session) = connected.get_ref();
    Ok(Negotiated {
        version: session.protocol_version().expect("a version"),
        protocol: session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
    })
}

/// Returns whether new connections get this certificate.
async fn serves(tls: &Tls, pair: &Pair) -> bool {
    let (client, server) = tokio::io::duplex(16 << 10);
    let versions = [&TLS13];
    let (_, connected) =
        tokio::join!(tls.accept(server, STEP_TIMEOUT), connect(client, pair, &versions, &[]));
    connected.is_ok()
}

#[tokio::test]
async fn a_listener_offers_tls_1_2_and_1_3_and_both_versions_of_http() {
    let app = TestApp::start(Engine::Sqlite).await;
    let pair = Pair::new();
    let (address, _close) = listen(&app, pair.write(app.database.dir.path())).await;
    for (versions, protocols, agreed) in [
        (
            &[&TLS13, &TLS12][..],
            &["h2", "http/1.1"][..],
            Ok((ProtocolVersion::TLSv1_3, Some("h2"))),
        ),
        (&[&TLS12], &["http/1.1"], Ok((ProtocolVersion::TLSv1_2, Some("http/1.1")))),
        (&[&TLS13], &[], Ok((ProtocolVersion::TLSv1_3, None))),
        (&[&TLS13], &["spdy/3"], Err(())),
    ] {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let got = connect(stream, &pair, versions, protocols).await.map_err(drop);
        let agreed = agreed.map(|(version, protocol): (_, Option<&str>)| Negotiated {
            version,
            protocol: protocol.map(str::to_owned),
        });
        assert_eq!(got, agreed, "{protocols:?}");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_tls_listener_serves_no_plain_http() {
    let app = TestApp::start(Engine::Sqlite).await;
    let pair = Pair::new();
    let (address, _close) = listen(&app, pair.write(app.database.dir.path())).await;
    let url = |scheme: &str| format!("{scheme}://localhost:{}/api/v1/payment/list", address.port());
    let root = reqwest::Certificate::from_pem(pair.certificate.as_bytes()).expect("a certificate");
    for (http1_only, version) in [(true, Version::HTTP_11), (false, Version::HTTP_2)] {
        let client = Client::builder().no_proxy().tls_certs_only([root.clone()]);
        let client = if http1_only { client.http1_only() } else { client };
        let client = client.build().expect("a client");
        let request = client.get(url("https")).bearer_auth(&app.company.key);
        assert_eq!(
            request.try_clone().unwrap().send().await.expect("a response").version(),
            version
        );
        let response = reply(request).await;
        assert_eq!(response.data()["total"], 0);
        assert_eq!(response.headers["strict-transport-security"], "max-age=63072000");
    }
    assert!(app.client.get(url("http")).send().await.is_err());
    app.finish().await;
}

#[tokio::test]
async fn a_client_that_never_finishes_its_handshake_is_disconnected() {
    let app = TestApp::start_with(Engine::Sqlite, &["--tls-handshake-timeout-s=1"]).await;
    let (address, _close) = listen(&app, Pair::new().write(app.database.dir.path())).await;
    let mut silent = TcpStream::connect(address).await.expect("a connection");
    let mut received = Vec::new();
    let read = timeout(STEP_TIMEOUT, silent.read_to_end(&mut received)).await.expect("an end");
    assert_eq!(read.expect("no error"), 0);
    app.finish().await;
}

#[tokio::test]
async fn a_running_listener_adopts_a_changed_certificate() {
    let app = TestApp::start(Engine::Sqlite).await;
    let (old, new) = (Pair::until(2040), Pair::until(2060));
    let (address, _close) = listen(&app, old.write(app.database.dir.path())).await;
    let ends = async || {
        let series = r#"tollhouse_certificate_expiry_timestamp_seconds{listener="public"}"#;
        metric_value(&scrape(&app).await, series)
    };
    let open = async |pair: &Pair| {
        let stream = TcpStream::connect(address).await.expect("a connection");
        connect(stream, pair, &[&TLS13], &["h2"]).await
    };
    open(&old).await.expect("the old one");
    assert_eq!(ends().await, Some(2_208_988_800.0)); // 2040-01-01
    new.write(app.database.dir.path());
    let mut looks = tokio::time::interval(Duration::from_millis(200));
    let followed = async {
        while open(&new).await.is_err() {
            looks.tick().await;
        }
    };
    timeout(STEP_TIMEOUT, followed).await.expect("the new one");
    open(&old).await.expect_err("the old one is replaced");
    assert_eq!(ends().await, Some(2_840_140_800.0)); // 2060-01-01
    app.finish().await;
}

#[tokio::test]
async fn an_invalid_certificate_or_key_leaves_the_old_pair_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new) = (Pair::new(), Pair::new());
    let files = old.write(folder.path());
    let tls = Tls::open(files.clone()).expect("a certificate");
    assert!(serves(&tls, &old).await && !serves(&tls, &new).await);
    assert!(!tls.reload().expect("nothing new"));

    let ca = Pair::ca();
    let half = &new.certificate[..new.certificate.len() / 2];
    for (certificate, key, part) in [
        (&*new.certificate, &*old.key, "key.pem"), // the certificate is new, its key is not yet
        (half, &new.key, "certificate.pem: "),
        ("", &new.key, "certificate.pem: it contains no certificate"),
        (&new.certificate, "no key", "key.pem: "),
        (&ca.certificate, &ca.key, "certificate.pem: this is a CA certificate"),
    ] {
        fs::write(&files.certificate, certificate).expect("a file");
        fs::write(&files.key, key).expect("a file");
        let refused = tls.reload().expect_err(part).to_string();
        assert!(refused.contains(part), "{refused}");
        assert!(serves(&tls, &old).await, "{part}");
        assert!(!tls.reload().expect("an error that is reported once"), "{part}");
    }
    fs::remove_file(&files.key).expect("a file");
    assert!(tls.reload().expect_err("no file").to_string().contains("key.pem: "));
    new.write(folder.path());
    assert!(tls.reload().expect("the new one"));
    assert!(serves(&tls, &new).await && !serves(&tls, &old).await);

    fs::write(&files.key, &old.key).expect("a file");
    assert!(Tls::open(files).is_err(), "a key that does not match was accepted");
}

#[tokio::test]
async fn the_program_serves_the_configured_pairs_and_adopts_their_changes() {
    let database = Database::create(Engine::Sqlite).await;
    let folder = |name: &str| {
        let folder = database.dir.path().join(name);
        fs::create_dir(&folder).expect("a folder");
        folder
    };
    let (of_public, of_internal) = (folder("public"), folder("internal"));
    let (public, internal, next) = (Pair::new(), Pair::new(), Pair::new());
    let flags = |prefix: &str, files: TlsFiles| {
        let TlsFiles { certificate, key } = files;
        let certificate = format!("--{prefix}tls-certificate={}", certificate.display());
        [certificate, format!("--{prefix}tls-key={}", key.display())]
    };
    let flags =
        [flags("", public.write(&of_public)), flags("internal-", internal.write(&of_internal))];
    let flags: Vec<&str> = flags.iter().flatten().map(String::as_str).collect();
    let program = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
    let process = Process::serve(program, &database, &flags).await;
    let serves = async |base: &str, pair: &Pair| {
        let address = base.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.expect("a connection");
        connect(stream, pair, &[&TLS13], &["h2"]).await.is_ok()
    };
    assert!(serves(&process.api, &public).await && !serves(&process.api, &internal).await);
    assert!(serves(&process.internal, &internal).await);
    assert!(!serves(&process.internal, &public).await);

    next.write(&of_internal);
    let mut looks = tokio::time::interval(Duration::from_millis(200));
    let followed = async {
        while !serves(&process.internal, &next).await {
            looks.tick().await;
        }
    };
    timeout(STEP_TIMEOUT, followed).await.expect("the new pair");
    assert!(serves(&process.api, &public).await);
}

/// Starts another listener of this host: the public API over TLS.
async fn listen(app: &TestApp, files: TlsFiles) -> (SocketAddr, watch::Sender<bool>) {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = Listener::bind(&Endpoint { address, tls: Some(files) }).await;
    let listener = listener.expect("a listener");
    let address = listener.address().expect("bound");
    let (close, closing) = watch::channel(false);
    let app = app.app.clone();
    tokio::spawn(
        async move { wiring::listen(&app, listener, routes::public_routes(), closing).await },
    );
    (address, close)
}
