//! E-mail to a third-party mail server; a server that is not authentic receives nothing.

mod aiosmtpd;

use std::{fs, path::PathBuf, time::Duration};

use futures::future::join_all;
use mail_parser::MessageParser;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use tollhouse_platform::outbound::smtp::{
    Mailer, OutgoingEmail, SmtpCredentials, SmtpEncryption, SmtpError, SmtpSettings,
};

use self::aiosmtpd::Server;
use crate::{app::NOW, ports};

const NO_LOGIN: [&str; 2] = ["-", "-"];
const USER: [&str; 2] = ["tollhouse", "the password, with ümläuts"];

/// A certificate authority, as operators run it in their own network.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
    dir: TempDir,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let dir = tempfile::tempdir().expect("a folder");
        Authority { pem, issuer: Issuer::new(params, key), dir }
    }

    /// Certificate and key of a server.
    fn sign(&self, name: &str) -> [PathBuf; 2] {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let file = |end: &str, text: String| {
            let file = self.dir.path().join(format!("{name}.{end}"));
            fs::write(&file, text).expect("a file");
            file
        };
        [file("pem", certificate.pem()), file("key", key.serialize_pem())]
    }
}

fn settings(security: SmtpEncryption, port: u16) -> SmtpSettings {
    SmtpSettings {
        host: "localhost".into(),
        port,
        security,
        login: None,
        ca: None,
        connections: 4,
        timeout: Duration::from_secs(60),
        from: "no-reply@mail.example.com".into(),
    }
}

fn plain(port: u16) -> Mailer {
    Mailer::new(settings(SmtpEncryption::Plain, port)).expect("settings")
}

fn login([username, password]: [&str; 2]) -> Option<SmtpCredentials> {
    Some(SmtpCredentials::new(username.into(), password.into()))
}

fn email(to: &str) -> OutgoingEmail {
    OutgoingEmail {
        id: "6922a0d0f0a1b2c3d4e5f607".into(),
        from_name: "Acme Lending".into(),
        to: to.into(),
        subject: "Jẹ́ kí a wọlé".into(),
        text: "Hello,\n\nYour OTP is\n\n.123456\n".into(),
        html: "<p>Hello,</p>".into(),
        at: NOW,
    }
}

async fn failure(mailer: &Mailer, to: &str) -> SmtpError {
    let failure = mailer.send(&email(to)).await.expect_err(to);
    assert!(
        !format!("{failure} {failure:?}").contains("example"),
        "{failure:?} contains an address"
    );
    failure
}

#[tokio::test]
async fn messages_arrive_by_every_kind_of_security_over_one_connection() {
    let authority = Authority::new();
    let pair = authority.sign("localhost");
    for (kind, security, user) in [
        ("starttls", SmtpEncryption::StartTls, USER),
        ("starttls", SmtpEncryption::StartTls, NO_LOGIN),
        ("tls", SmtpEncryption::Tls, USER),
        ("plain", SmtpEncryption::Plain, NO_LOGIN),
        ("plain", SmtpEncryption::Plain, USER),
    ] {
        let Some(mut server) = Server::start(kind, Some(&pair), user).await else { return };
        let mailer = Mailer::new(SmtpSettings {
            ca: Some(authority.pem.clone().into()),
            login: if user == NO_LOGIN { None } else { login(user) },
            ..settings(security, server.port)
        });
        let mailer = mailer.expect("settings");
        let mut peers = Vec::new();
        for to in ["ada@example.com", "grâce@example.com", "ada@bücher.example"] {
            mailer.send(&email(to)).await.expect(kind);
            let got = server.next("message").await;
            assert_eq!(got["sender"], "no-reply@mail.example.com");
            let ascii = to.replace("bücher", "xn--bcher-kva");
            assert_eq!(got["recipients"], serde_json::json!([ascii]));
            assert_eq!(got["tls"], kind != "plain", "{kind}");
            assert_eq!(got["user"].as_str().unwrap_or("-"), user[0]);
            let content = got["content"].as_str().unwrap();
            let read = MessageParser::default().parse(content).expect("a message");
            assert_eq!(read.subject(), Some("Jẹ́ kí a wọlé"));
            assert_eq!(read.from().unwrap().first().unwrap().name(), Some("Acme Lending"));
            let text = read.body_text(0).unwrap().replace("\r\n", "\n");
            assert_eq!(text, "Hello,\n\nYour OTP is\n\n.123456\n");
            assert_eq!(read.body_html(0).unwrap(), "<p>Hello,</p>");
            peers.push(got["peer"].clone());
        }
        peers.dedup();
        assert_eq!(peers.len(), 1, "{kind}: one connection");
    }
}

#[tokio::test]
async fn only_the_rejection_of_a_recipient_is_final_and_the_connection_is_reused() {
    let Some(mut server) = Server::start("plain", None, NO_LOGIN).await else { return };
    let mailer = plain(server.port);
    let mut peers = Vec::new();
    for (to, is_final, code) in [
        ("gone@example.com", true, Some(550)),
        ("relay@example.com", false, Some(550)),
        ("later@example.com", false, Some(451)),
        ("full@example.com", true, Some(552)),
        ("busy@example.com", false, Some(452)),
        ("nobody", true, None),
        ("ada@example.com\r\nDATA", true, None),
    ] {
        let failed = failure(&mailer, to).await;
        assert_eq!((failed.is_permanent, failed.code), (is_final, code), "{to}: {failed}");
        mailer.send(&email("ada@example.com")).await.expect("a message after it");
        peers.push(server.next("message").await["peer"].clone());
    }
    peers.dedup();
    assert_eq!(peers.len(), 1);
}

#[tokio::test]
async fn failures_that_do_not_concern_the_recipient_are_not_final() {
    let Some(server) = Server::start("plain", None, USER).await else { return };
    let with = |change: fn(&mut SmtpSettings)| {
        let mut settings = settings(SmtpEncryption::Plain, server.port);
        settings.login = login(USER);
        change(&mut settings);
        Mailer::new(settings).expect("settings")
    };
    let closed = ports::reserve_address().port();
    for (mailer, code, reason) in [
        (with(|of| of.login = login(["tollhouse", "wrong"])), Some(535), "smtp_username"),
        (with(|of| of.login = None), Some(530), "the sender"),
        (with(|of| of.from = "unknown@example.com".into()), Some(553), "the sender"),
        (with(|of| of.host = "no.such.host.invalid".into()), None, "no connection"),
        (plain(closed), None, "no connection"),
    ] {
        let failed = failure(&mailer, "ada@example.com").await;
        assert_eq!((failed.is_permanent, failed.code), (false, code), "{failed}");
        assert!(failed.reason.contains(reason), "{failed}");
    }
    assert!(!server.stop_and_drain().await.iter().any(|event| event["event"] == "message"));
}

#[tokio::test]
async fn a_server_that_is_not_authenticated_receives_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (security, kind) in [(SmtpEncryption::StartTls, "starttls"), (SmtpEncryption::Tls, "tls")] {
        for (signed_by, name, kind, reason) in [
            (&authority, "other.example", kind, "certificate"),
            (&other, "localhost", kind, "certificate"),
            // TLS is not offered: an attacker in the network can remove the offer.
            (&authority, "localhost", "plain", ""),
        ] {
            let pair = signed_by.sign(name);
            let Some(server) = Server::start(kind, Some(&pair), NO_LOGIN).await else { return };
            let mailer = Mailer::new(SmtpSettings {
                ca: Some(authority.pem.clone().into()),
                login: login(USER),
                ..settings(security, server.port)
            });
            let failed = failure(&mailer.expect("settings"), "ada@example.com").await;
            assert_eq!((failed.is_permanent, failed.code), (false, None), "{failed}");
            assert!(failed.reason.contains(reason), "{name} {kind}: {failed}");
            let events = server.stop_and_drain().await;
            let hellos = events.iter().all(|event| event["event"] == "hello");
            assert!(hellos && events.len() <= 1, "{name} {kind}: {events:?}");
        }
    }
}

/// An attacker in the network appends a response to the one that starts TLS.
#[tokio::test]
async fn responses_injected_before_tls_are_not_accepted() {
    let authority = Authority::new();
    let pair = authority.sign("localhost");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = SmtpSettings {
        ca: Some(authority.pem.clone().into()),
        ..settings(SmtpEncryption::StartTls, listener.local_addr().unwrap().port())
    };
    let Some(mut server) = Server::start("starttls", Some(&pair), NO_LOGIN).await else { return };
    let mailer = Mailer::new(settings).expect("settings");
    let between = async {
        let (client, _) = listener.accept().await.unwrap();
        let mut upstream =
            tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
        let mut client = BufReader::new(client);
        let (mut responses, mut command) = ([0; 1024], String::new());
        loop {
            let read = upstream.read(&mut responses).await.unwrap();
            let response = &responses[..read];
            if command.starts_with("STARTTLS") {
                assert!(response.starts_with(b"220 "), "it starts TLS");
                client.write_all(&[response, b"250 localhost\r\n"].concat()).await.unwrap();
                break;
            }
            client.write_all(response).await.unwrap();
            command.clear();
            client.read_line(&mut command).await.unwrap();
            upstream.write_all(command.as_bytes()).await.unwrap();
        }
        let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
    };
    let to_ada = email("ada@example.com");
    let sent = tokio::select! {
        sent = mailer.send(&to_ada) => sent,
        () = between => panic!("the connection ended before the message did"),
    };
    let failed = sent.expect_err("a handshake that failed");
    assert_eq!((failed.is_permanent, failed.code), (false, None), "{failed}");
    assert_eq!(server.next("hello").await["name"], "mail.example.com");
    assert!(server.stop_and_drain().await.is_empty(), "nothing was sent after it");
}

#[tokio::test]
async fn an_abandoned_connection_is_not_reused() {
    let Some(mut server) = Server::start("plain", None, NO_LOGIN).await else { return };
    let mailer = Mailer::new(SmtpSettings {
        connections: 1,
        ..settings(SmtpEncryption::Plain, server.port)
    });
    let mailer = mailer.expect("settings");
    let late = email("late@example.com");
    let left = tokio::select! {
        sent = mailer.send(&late) => panic!("{sent:?}"),
        event = server.next("late") => event["peer"].clone(),
    };
    // The late response arrives, and could be mistaken for that of the next command.
    server.next("responded").await;
    mailer.send(&email("ada@example.com")).await.expect("a new connection");
    assert_ne!(server.next("message").await["peer"], left);
}

#[tokio::test]
async fn a_silent_server_causes_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let settings = SmtpSettings {
        timeout: Duration::from_millis(50),
        ..settings(SmtpEncryption::Plain, port)
    };
    let failed = failure(&Mailer::new(settings).expect("settings"), "ada@example.com").await;
    assert_eq!((failed.is_permanent, failed.code), (false, None));
    assert!(failed.reason.contains("in time"), "{failed}");
}

#[tokio::test]
async fn connections_do_not_exceed_their_limit() {
    let Some(mut server) = Server::start("plain", None, NO_LOGIN).await else { return };
    let mailer = Mailer::new(SmtpSettings {
        connections: 2,
        ..settings(SmtpEncryption::Plain, server.port)
    });
    let mailer = mailer.expect("settings");
    let emails: Vec<_> = (0..12).map(|_| email("ada@example.com")).collect();
    for sent in join_all(emails.iter().map(|email| mailer.send(email))).await {
        sent.expect("a sent message");
    }
    let mut peers = Vec::new();
    for _ in &emails {
        peers.push(server.next("message").await["peer"].as_u64());
    }
    peers.sort_unstable();
    peers.dedup();
    assert!((1..=2).contains(&peers.len()), "{peers:?}");
}
