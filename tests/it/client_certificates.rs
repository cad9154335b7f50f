//! Client certificates (mTLS) of a plugin's requests.

use std::{net::SocketAddr, sync::Arc};

use rustls::{RootCertStore, ServerConfig, crypto::ring, server::WebPkiClientVerifier};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    app::{client, reply},
    certificates::{Authority, CertifiedKey, for_clients},
    plugin_run::Running,
    sprout::{SproutUpstream, TOKEN, repack},
};

/// Starts a proxy in front of an upstream, which accepts only clients with a certificate of this
/// authority.
async fn require_certificates(authority: &Authority, upstream: &SproutUpstream) -> SocketAddr {
    let crypto = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.own.parse().0.remove(0)).expect("a certificate");
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto.clone());
    let (chain, key) = authority.sign(&["127.0.0.1"], |_| {}).parse();
    let config = ServerConfig::builder_with_provider(crypto);
    let config = config.with_safe_default_protocol_versions().expect("versions");
    let config = config.with_client_cert_verifier(clients.build().expect("roots"));
    let mut config = config.with_single_cert(chain, key).expect("a pair");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let behind = upstream.url.replace("http://", "");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut accepted) = acceptor.accept(stream).await else { continue };
            let mut plain = TcpStream::connect(&behind).await.expect("the upstream");
            tokio::spawn(async move { copy_bidirectional(&mut accepted, &mut plain).await });
        }
    });
    address
}

/// Runs Sprout with a client certificate on a host that trusts this authority, and returns the
/// status of a payment.
async fn initialize_with(identity: &CertifiedKey, trusted: &Authority, upstream: &str) -> u16 {
    let folder = TempDir::new().expect("a folder");
    let (file, ca) = (folder.path().join("sprout.wasm"), folder.path().join("ca.pem"));
    let with_certificate = repack(artifacts::SPROUT, |manifest| {
        manifest["secrets"]["identity"] = json!({ "to": ["base_url"], "in": ["tls"] });
    });
    std::fs::write(&file, with_certificate).expect("a file");
    std::fs::write(&ca, &trusted.own.certificate).expect("a file");
    let credentials = [
        format!("base_url={upstream}"),
        format!("token={TOKEN}"),
        format!("identity={}{}", identity.certificate, identity.key),
    ];
    let flags: Vec<&str> =
        credentials.iter().flat_map(|credential| ["--credential", credential]).collect();
    let mut running = Running::start_with(&file, &flags, |command| {
        command.env("SSL_CERT_FILE", &ca);
    });
    let (api, key) = (running.line("API  ").await, running.line("API key").await);
    let order = json!({
        "email": "ada@example.com", "amount": 2500.5, "currency": "NGN", "reference": "order-1",
        "checkout": { "success_url": "https://shop.example/done" },
    });
    let request = client().post(format!("{api}/api/v1/payment/initialize")).bearer_auth(&key);
    reply(request.json(&order)).await.status.as_u16()
}

#[tokio::test]
async fn a_plugin_presents_the_certificate_of_its_account() {
    let (authority, other) = (Authority::new("Bank CA"), Authority::new("Other CA"));
    let upstream = SproutUpstream::start().await;
    let url = format!("https://{}", require_certificates(&authority, &upstream).await);
    for (identity, status, payments) in [
        (other.sign(&["acme"], for_clients), 502, 0),
        (authority.sign(&["acme"], for_clients), 200, 1),
    ] {
        assert_eq!(initialize_with(&identity, &authority, &url).await, status);
        assert_eq!(upstream.sessions.lock().expect("no panic").len(), payments);
    }
}
