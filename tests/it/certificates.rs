//! Certificates that clients reject: hosts report them at startup, and commands explain the cause.

use std::{fs, net::SocketAddr, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{
    app::{MASTER_KEY, OPERATOR_TOKEN},
    command_line::{program, program_output, run_against},
};

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct CertifiedKey {
    pub certificate: String,
    pub key: String,
}

impl CertifiedKey {
    pub fn parse(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key");
        (vec![certificate.expect("PEM")], key)
    }
}

/// A self-signed CA, as `openssl req -x509` creates it.
pub struct Authority {
    pub own: CertifiedKey,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        let own = CertifiedKey { certificate, key: key.serialize_pem() };
        Authority { own, issuer: Issuer::new(params, key) }
    }

    pub fn sign(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> CertifiedKey {
        let names = names.iter().copied().map(str::to_owned).collect::<Vec<_>>();
        let mut params = CertificateParams::new(names).expect("names");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        CertifiedKey { certificate, key: key.serialize_pem() }
    }
}

pub fn for_clients(params: &mut CertificateParams) {
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
}

/// Starts a server that presents this certificate, like a proxy in front of a host.
async fn present(made: &CertifiedKey) -> SocketAddr {
    let (chain, key) = made.parse();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions");
    let config = config.with_no_client_auth().with_single_cert(chain, key).expect("a pair");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(acceptor.accept(stream).await);
        }
    });
    address
}

fn write(dir: &TempDir, name: &str, text: &str) -> String {
    let file = dir.path().join(name);
    fs::write(&file, text).expect("a file in a temporary folder");
    file.display().to_string()
}

#[test]
fn a_host_rejects_a_certificate_that_clients_would_reject() {
    let (dir, ca) = (tempfile::tempdir().expect("a folder"), Authority::new("Acme CA"));
    let host = |command: &[&str], flags: &[String]| {
        let mut command = program(command);
        command.current_dir(dir.path()).args(flags);
        command
            .env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN)
            .env("TOLLHOUSE_MASTER_KEY", MASTER_KEY);
        program_output(command.output().expect("the program starts"))
    };
    for (made, why) in [
        (ca.own.clone(), "this is a CA certificate (CA:TRUE)"),
        (ca.sign(&[], |_| {}), "this certificate has no subject alternative name"),
        (ca.sign(&["127.0.0.1"], for_clients), "this certificate is not for servers"),
    ] {
        let files = [write(&dir, "tls.pem", &made.certificate), write(&dir, "tls.key", &made.key)];
        for prefix in ["", "internal-"] {
            let flags = [
                format!("--{prefix}tls-certificate={}", files[0]),
                format!("--{prefix}tls-key={}", files[1]),
            ];
            let report = host(&["config", "check", "--json"], &flags);
            let report: Value = serde_json::from_str(&report.out).expect("JSON");
            let problems = report["problems"].as_array().expect("problems");
            let problem = problems[0].as_str().expect("a text");
            assert!(
                problems.len() == 1 && problem.contains(&format!("tls.pem: {why}")),
                "{problems:?}"
            );
            let serve = host(&["serve"], &flags);
            assert!(serve.code == 2 && serve.err.contains(problem), "{}", serve.err);
        }
    }
    assert!(!dir.path().join("tollhouse.db").exists(), "the host must not start");
}

#[tokio::test]
async fn commands_explain_why_a_hosts_certificate_is_rejected() {
    let dir = tempfile::tempdir().expect("a folder");
    let (ca, other) = (Authority::new("Acme CA"), Authority::new("Other CA"));
    let namesake = Authority::new("Acme CA");
    let file = |name: &str, authority: &Authority| write(&dir, name, &authority.own.certificate);
    let (trusted, strange, remade) =
        (file("ca.pem", &ca), file("other.pem", &other), file("remade.pem", &namesake));
    let until = |year: i32| {
        move |params: &mut CertificateParams| {
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
        }
    };
    let from =
        |params: &mut CertificateParams| params.not_before = rcgen::date_time_ymd(2090, 1, 1);
    let good = ca.sign(&["127.0.0.1"], |_| {});
    for (made, ca_file, why) in [
        (
            &good,
            None,
            "signed by a CA that is not trusted here: set internal_ca_file to the CA's certificate",
        ),
        (&good, Some(&strange), "not signed by a CA in internal_ca_file"),
        (&good, Some(&remade), "not signed by a CA in internal_ca_file"),
        (
            &ca.own,
            Some(&trusted),
            "its certificate is a CA certificate, which is rejected as a server certificate",
        ),
        (
            &ca.sign(&["api.example.com"], |_| {}),
            Some(&trusted),
            "not valid for 127.0.0.1, but for api.example.com",
        ),
        (&ca.sign(&["127.0.0.1"], until(2020)), Some(&trusted), "its certificate has expired"),
        (&ca.sign(&["127.0.0.1"], from), Some(&trusted), "its certificate is not valid yet"),
        (
            &ca.sign(&["127.0.0.1"], for_clients),
            Some(&trusted),
            "its certificate is not for servers",
        ),
    ] {
        let url = format!("https://{}", present(made).await);
        let mut command = vec!["plugin", "list"];
        command.extend(ca_file.iter().flat_map(|file| ["--internal-ca-file", file]));
        let refused = run_against(&url, OPERATOR_TOKEN, &command).await;
        assert!(refused.failure().0 == 3 && refused.err.contains(why), "{why}: {}", refused.err);
    }
    // A valid certificate is accepted: the server closes the connection after the handshake.
    let url = format!("https://{}", present(&good).await);
    let reached =
        run_against(&url, OPERATOR_TOKEN, &["plugin", "list", "--internal-ca-file", &trusted])
            .await;
    assert!(reached.code == 3 && !reached.err.contains("certificate"), "{}", reached.err);
}

#[tokio::test]
async fn a_host_without_tls_is_reported_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("https://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let response = json!({ "error": true }).to_string();
            let response =
                format!("HTTP/1.1 400 Bad Request\r\ncontent-length: 14\r\n\r\n{response}");
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, response.as_bytes()).await;
        }
    });
    let refused = run_against(&url, OPERATOR_TOKEN, &["plugin", "list"]).await;
    assert!(
        refused.failure().0 == 3 && refused.err.contains("it does not use TLS"),
        "{}",
        refused.err
    );
}
