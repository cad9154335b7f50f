//! The mail server, through SMTP.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::world::World;

/// An SMTP session.
struct Smtp(BufReader<TcpStream>);

impl Smtp {
    /// Connects and sends EHLO.
    async fn greeted(world: &World) -> Smtp {
        let mut smtp = Smtp::connect(world).await;
        assert!(smtp.send_line("EHLO client.example").await.starts_with("250-"));
        smtp
    }

    async fn connect(world: &World) -> Smtp {
        let stream = TcpStream::connect(world.simulators.smtp_addr()).await.unwrap();
        let mut smtp = Smtp(BufReader::new(stream));
        assert!(smtp.reply().await.starts_with("220 "));
        smtp
    }

    async fn write(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).await.unwrap();
    }

    /// Returns the lines of a reply; empty if the connection has ended.
    async fn reply(&mut self) -> String {
        let mut reply = String::new();
        loop {
            let start = reply.len();
            if self.0.read_line(&mut reply).await.unwrap_or(0) == 0 {
                return reply;
            }
            if reply.as_bytes()[start..].get(3) != Some(&b'-') {
                return reply.trim_end().to_owned();
            }
        }
    }

    async fn send_line(&mut self, line: &str) -> String {
        self.write(&format!("{line}\r\n")).await;
        self.reply().await
    }

    /// Sends lines; returns the code of each reply.
    async fn codes(&mut self, lines: &[&str]) -> Vec<String> {
        let mut codes = Vec::new();
        for line in lines {
            codes.push(self.send_line(line).await.chars().take(3).collect());
        }
        codes
    }

    /// Sends a mail and returns the reply to its end.
    async fn send(&mut self, to: &str, mail: &str) -> String {
        let envelope = ["MAIL FROM:<no-reply@lender.example>", &format!("RCPT TO:<{to}>"), "DATA"];
        assert_eq!(self.codes(&envelope).await, ["250", "250", "354"]);
        self.send_line(&format!("{mail}\r\n.")).await
    }
}

const MAIL: &str = "From: Lender <no-reply@lender.example>\r\nSubject: Code\r\n\r\n123456";

#[tokio::test]
async fn a_mail_is_delivered_to_each_recipient() {
    let world = World::new().await;
    let mut smtp = Smtp::greeted(&world).await;
    // All at once, as PIPELINING permits.
    smtp.write(&format!(
        "MAIL FROM:<no-reply@lender.example> SIZE=100 BODY=8BITMIME\r\nRCPT TO:<ada@example.com>\r\n\
         RCPT TO:<Bola@example.com>\r\nDATA\r\n{MAIL}\r\n..dot\r\n.\r\nQUIT\r\n"
    ))
    .await;
    let mut codes = Vec::new();
    for _ in 0..6 {
        codes.push(smtp.reply().await[..3].to_owned());
    }
    assert_eq!(codes, ["250", "250", "250", "354", "250", "221"]);
    let messages = world.simulators.mailbox().list(None);
    let to: Vec<&str> = messages.iter().map(|message| message.to.as_str()).collect();
    assert_eq!(to, ["Bola@example.com", "ada@example.com"]);
    for message in &messages {
        assert_eq!((message.channel.as_str(), message.subject.as_deref()), ("email", Some("Code")));
        assert_eq!(message.text.trim_end(), "123456\n.dot");
        assert_eq!(message.from, "Lender <no-reply@lender.example>");
        assert_eq!(message.at, world.clock.now());
    }
    assert_eq!(world.simulators.mailbox().list(Some("bola@example.com")).len(), 1);
}

#[tokio::test]
async fn commands_out_of_sequence_are_rejected() {
    let world = World::new().await;
    let mut smtp = Smtp::connect(&world).await;
    let early = ["MAIL FROM:<a@b.co>", "AUTH PLAIN AGEAYg==", "DATA", "NOOP", "VRFY a", "HELO x"];
    assert_eq!(smtp.codes(&early).await, ["503", "503", "503", "250", "252", "250"]);
    let cases = [
        ("RCPT TO:<a@b.co>", "503"),
        ("MAIL FROM:<>", "250"),
        ("MAIL FROM:<a@b.co>", "503"),
        ("DATA", "503"),
        ("RSET", "250"),
        ("RCPT TO:<a@b.co>", "503"),
        ("MAIL FROM:<a@b.co> SIZE=99999999", "552"),
        ("MAIL FROM:<a@b.co> ODD=1", "555"),
        ("MAIL FROM:a@b.co", "501"),
        ("MAIL FROM:<adé@b.co>", "550"),
        ("MAIL FROM:<adé@b.co> SMTPUTF8", "250"),
        ("RCPT TO:<zoé@b.co>", "250"),
        ("RCPT TO:<refused@example.com>", "550"),
        ("RCPT TO:<Refused+1@example.com>", "550"),
        ("STARTTLS", "502"),
        ("ODD", "500"),
        ("QUIT", "221"),
        ("NOOP", ""),
    ];
    for (line, code) in cases {
        assert_eq!(smtp.codes(&[line]).await, [code], "{line}");
    }
}

#[tokio::test]
async fn any_nonempty_credentials_are_accepted() {
    let world = World::new().await;
    let cases: [(&[&str], &str); 8] = [
        (&["AUTH PLAIN AHVzZXIAcGFzcw=="], "235"),
        (&["AUTH PLAIN", "AHVzZXIAcGFzcw=="], "235"),
        (&["AUTH PLAIN AHVzZXIA"], "535"),
        (&["AUTH PLAIN ?"], "501"),
        (&["AUTH PLAIN", "*"], "501"),
        (&["AUTH LOGIN", "dXNlcg==", "cGFzcw=="], "235"),
        (&["AUTH LOGIN dXNlcg==", "cGFzcw=="], "235"),
        (&["AUTH CRAM-MD5"], "504"),
    ];
    for (lines, code) in cases {
        let mut smtp = Smtp::greeted(&world).await;
        let codes = smtp.codes(lines).await;
        assert!(codes[..codes.len() - 1].iter().all(|code| code == "334"), "{lines:?}: {codes:?}");
        assert_eq!(codes[codes.len() - 1], code, "{lines:?}");
        assert!(smtp.send("ada@example.com", MAIL).await.starts_with("250"), "{lines:?}");
    }
    let offered = Smtp::connect(&world).await.send_line("EHLO x").await;
    for extension in ["AUTH PLAIN LOGIN", "SIZE 10485760", "PIPELINING", "8BITMIME", "SMTPUTF8"] {
        assert!(offered.contains(extension), "{offered}");
    }
}

#[tokio::test]
async fn oversized_and_unparsable_mails_are_rejected() {
    let world = World::new().await;
    let mut smtp = Smtp::greeted(&world).await;
    let large = format!("{MAIL}{}", "\r\n0123456789abcdef".repeat(600_000));
    assert!(smtp.send("ada@example.com", &large).await.starts_with("552"));
    assert!(smtp.send("ada@example.com", MAIL).await.starts_with("250"));
    let long = format!("NOOP {}", "x".repeat(100_000));
    assert!(smtp.send_line(&long).await.starts_with("500"));
    assert!(smtp.send("ada@example.com", "").await.starts_with("554"));
    assert!(smtp.send_line("NOOP").await.starts_with("250"));
    assert_eq!(world.simulators.mailbox().list(None).len(), 1);
}

#[tokio::test]
async fn faults_apply_at_the_end_of_a_mail() {
    let world = World::new().await;
    let cases = [
        (FaultKind::Slow, "250", 1),
        (FaultKind::SlowAfter, "250", 1),
        (FaultKind::Cut, "", 0),
        (FaultKind::CutAfter, "", 1),
        (FaultKind::Error500, "451", 0),
        (FaultKind::Malformed, "Tak", 0),
    ];
    for (kind, code, delivered) in cases {
        let to = format!("{kind:?}@example.com");
        world.simulators.faults().push(Fault::new("smtp", kind).delay_ms(20));
        let start = Instant::now();
        let reply = Smtp::greeted(&world).await.send(&to, MAIL).await;
        assert_eq!(reply.get(..3).unwrap_or_default(), code, "{kind:?}");
        let slow = matches!(kind, FaultKind::Slow | FaultKind::SlowAfter);
        assert!(!slow || start.elapsed() >= Duration::from_millis(20), "{kind:?}");
        assert_eq!(world.simulators.mailbox().list(Some(&to)).len(), delivered, "{kind:?}");
    }
    assert!(world.simulators.faults().list().is_empty());
}

#[tokio::test]
async fn a_declined_recipient_does_not_affect_the_others() {
    let world = World::new().await;
    world.simulators.faults().push(Fault::new("smtp", FaultKind::Decline));
    let mut smtp = Smtp::greeted(&world).await;
    let lines =
        ["MAIL FROM:<a@b.co>", "RCPT TO:<one@example.com>", "RCPT TO:<two@example.com>", "DATA"];
    assert_eq!(smtp.codes(&lines).await, ["250", "550", "250", "354"]);
    assert!(smtp.send_line(&format!("{MAIL}\r\n.")).await.starts_with("250"));
    let messages = world.simulators.mailbox().list(None);
    assert_eq!(messages.iter().map(|m| &*m.to).collect::<Vec<_>>(), ["two@example.com"]);
}

#[tokio::test]
async fn a_mail_in_flight_prevents_idleness() {
    let world = World::new().await;
    let mut smtp = Smtp::greeted(&world).await;
    // An idle connection does not count as in flight, nor one that has not begun to send its mail.
    world.simulators.run_until_idle().await;
    assert_eq!(smtp.codes(&["MAIL FROM:<a@b.co>"]).await, ["250"]);
    world.simulators.run_until_idle().await;
    assert_eq!(smtp.codes(&["RCPT TO:<ada@example.com>", "DATA"]).await, ["250", "354"]);
    let waiting = Duration::from_millis(50);
    assert!(tokio::time::timeout(waiting, world.simulators.run_until_idle()).await.is_err());
    assert!(smtp.send_line(&format!("{MAIL}\r\n.")).await.starts_with("250"));
    world.simulators.run_until_idle().await;
    world.simulators.faults().push(Fault::new("smtp", FaultKind::Slow).delay_ms(50));
    smtp.codes(&["MAIL FROM:<a@b.co>", "RCPT TO:<ada@example.com>", "DATA"]).await;
    smtp.write(&format!("{MAIL}\r\n.\r\n")).await;
    world.simulators.run_until_idle().await;
    assert_eq!(world.simulators.mailbox().list(None).len(), 2);
    // A connection that drops leaves nothing in flight.
    smtp.reply().await;
    smtp.codes(&["MAIL FROM:<a@b.co>", "RCPT TO:<ada@example.com>", "DATA"]).await;
    drop(smtp);
    world.simulators.run_until_idle().await;
}
