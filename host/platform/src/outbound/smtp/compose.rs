//! Composes messages: headers, and the content as text and as HTML.

use std::time::{Duration, UNIX_EPOCH};

use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart, SinglePart,
        header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue},
    },
};
use url::Host;

use super::OutgoingEmail;
use crate::values::email::one_line;

/// Maximum length of a header text: a word must fit into a line of 998 bytes (RFC 5322, 2.1.1).
const MAX_HEADER_CHARACTERS: usize = 200;

/// Returns the address with its domain in ASCII form; `None` if it is invalid.
pub(super) fn parse_address(text: &str) -> Option<Address> {
    let (name, domain) = text.rsplit_once('@').filter(|_| !text.contains(char::is_control))?;
    let Ok(Host::Domain(domain)) = Host::parse(domain) else { return None };
    Address::new(name, domain).ok()
}

pub(super) fn compose_message(email: &OutgoingEmail, from: &Address, to: &Address) -> Vec<u8> {
    let name = Some(header_text(&email.from_name)).filter(|name| !name.is_empty());
    let at = Duration::from_millis(u64::try_from(email.at.0).unwrap_or(0));
    // "=_" never occurs in quoted-printable text (RFC 2045, 6.7).
    let parts = MultiPart::alternative().boundary(format!("=_{}", email.id));
    let message = Message::builder()
        .from(Mailbox::new(name, from.clone()))
        .to(Mailbox::new(None, to.clone()))
        .subject(header_text(&email.subject))
        .date(UNIX_EPOCH + at)
        .message_id(Some(format!("<{}@{}>", email.id, from.domain())))
        // Prevents automatic replies (RFC 3834).
        .raw_header(HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        ))
        .multipart(
            parts
                .singlepart(part(ContentType::TEXT_PLAIN, &email.text))
                .singlepart(part(ContentType::TEXT_HTML, &email.html)),
        );
    message.expect("the message has a sender and a recipient").formatted()
}

/// Makes a header text one line, short, and free of "=?", which begins an encoded word (RFC 2047).
fn header_text(text: &str) -> String {
    let text = one_line(text).replace("=?", "= ?");
    text.chars().take(MAX_HEADER_CHARACTERS).collect()
}

fn part(kind: ContentType, text: &str) -> SinglePart {
    SinglePart::builder()
        .header(kind)
        .header(ContentTransferEncoding::QuotedPrintable)
        .body(text.to_owned())
}

#[cfg(test)]
mod tests {
    use mail_parser::{HeaderValue, MessageParser, MimeHeaders};

    use super::*;
    use crate::clock::Timestamp;

    fn email() -> OutgoingEmail {
        OutgoingEmail {
            id: "6922a0d0f0a1b2c3d4e5f607".into(),
            from_name: "Acme Lending".into(),
            to: "ada@example.com".into(),
            subject: "One Time Token".into(),
            text: "Hello,\n\nYour OTP is\n\n123456\n".into(),
            html: "<p>Hello,</p>".into(),
            at: Timestamp(1_795_251_600_000),
        }
    }

    fn composed(email: &OutgoingEmail) -> Vec<u8> {
        let from = parse_address("no-reply@mail.example.com").unwrap();
        compose_message(email, &from, &parse_address(&email.to).unwrap())
    }

    /// Parses a message with another library: sender's name, subject, text and HTML.
    fn read(email: &OutgoingEmail) -> [String; 4] {
        let bytes = composed(email);
        let read = MessageParser::default().parse(&bytes).expect("a message");
        let from = read.from().unwrap().first().unwrap();
        assert_eq!(from.address(), Some("no-reply@mail.example.com"));
        assert_eq!(read.to().unwrap().first().unwrap().address(), Some("ada@example.com"));
        let line_ends = |text: &str| text.replace("\r\n", "\n");
        [
            from.name().unwrap_or_default().to_owned(),
            read.subject().unwrap_or_default().to_owned(),
            line_ends(&read.body_text(0).unwrap()),
            line_ends(&read.body_html(0).unwrap()),
        ]
    }

    #[test]
    fn a_message_has_the_headers_and_both_parts() {
        let bytes = composed(&email());
        let read = MessageParser::default().parse(&bytes).unwrap();
        assert_eq!(read.message_id(), Some("6922a0d0f0a1b2c3d4e5f607@mail.example.com"));
        assert_eq!(read.date().unwrap().to_rfc3339(), "2026-11-21T09:00:00Z");
        let kind = read.content_type().unwrap();
        assert_eq!((kind.ctype(), kind.subtype()), ("multipart", Some("alternative")));
        let submitted = read.header("Auto-Submitted").and_then(HeaderValue::as_text);
        assert_eq!(submitted, Some("auto-generated"));
        assert_eq!(read.header("MIME-Version").and_then(HeaderValue::as_text), Some("1.0"));
        let kinds: Vec<_> =
            read.parts.iter().skip(1).map(|part| part.content_type().unwrap()).collect();
        let kinds: Vec<_> =
            kinds.iter().map(|kind| (kind.subtype().unwrap(), kind.attribute("charset"))).collect();
        assert_eq!(kinds, [("plain", Some("utf-8")), ("html", Some("utf-8"))]);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("From: \"Acme Lending\" <no-reply@mail.example.com>\r\n"), "{text}");
        assert_eq!(
            text.matches("\r\nDate: Sat, 21 Nov 2026 09:00:00 +0000\r\n").count(),
            1,
            "{text}"
        );
        assert_eq!(text, String::from_utf8(composed(&email())).unwrap(), "same at each attempt");
    }

    #[test]
    fn texts_survive_encoding_unchanged() {
        let long = "no-blank".repeat(200);
        for text in [
            "plain",
            "Ọmọ Adé Kredit GmbH & Söhne",
            "🏦 Emoji 👩🏽‍💻 Lending",
            "بنك الإقراض العربي",
            "הלוואות, בע\"מ",
            "Quote \"and\" <tag> \\ =20",
            "comma, colon: semi; (comment) a@b",
            &"ẹ".repeat(200),
        ] {
            let sent = OutgoingEmail {
                from_name: text.into(),
                subject: text.into(),
                text: format!("{text}{long}\n.\n..\n.{text}\nFrom {text}\n --=_x--\n"),
                html: format!("<p title='{text}'>{text}</p>"),
                ..email()
            };
            let bytes = composed(&sent);
            assert!(bytes.is_ascii(), "{text}");
            let longest = bytes.split(|b| *b == b'\n').map(<[u8]>::len).max().unwrap();
            assert!(longest < 998, "{text}: {longest} (RFC 5322, 2.1.1)");
            let expected = [text.into(), text.into(), sent.text.clone(), sent.html.clone()];
            assert_eq!(read(&sent), expected);
        }
    }

    #[test]
    fn line_breaks_inject_no_header_and_no_part() {
        let end = format!("--=_{}--", email().id);
        for evil in [
            "x\r\nBcc: eve@example.com",
            "x\nBcc: eve@example.com",
            "x\rBcc: eve@example.com",
            "x\r\n\r\nBcc: eve@example.com",
            "x\u{85}Bcc: eve@example.com",
            "x\u{2028}Bcc: eve@example.com",
            "x\0\u{b}\u{c}Bcc: eve@example.com",
        ] {
            let sent = OutgoingEmail {
                from_name: evil.into(),
                subject: evil.into(),
                text: format!("{evil}\r\n{end}\r\n{evil}"),
                html: format!("{evil}\r\n{end}\r\n{evil}"),
                ..email()
            };
            let bytes = composed(&sent);
            let parsed = MessageParser::default().parse(&bytes).unwrap();
            assert!(parsed.bcc().is_none(), "{evil:?}");
            assert_eq!(parsed.parts.len(), 3, "{evil:?}");
            let named =
                |name: &str| parsed.headers_raw().filter(|(found, _)| *found == name).count();
            assert_eq!((named("From"), named("Subject"), parsed.headers_raw().count()), (1, 1, 8));
            let [name, subject, ..] = read(&sent);
            assert_eq!((&*name, &*subject), ("x Bcc: eve@example.com", "x Bcc: eve@example.com"));
        }
    }

    #[test]
    fn encoded_words_are_not_decoded() {
        let hidden = "=?utf-8?q?x=0D=0ABcc:_eve=40example.com?=";
        let sent = OutgoingEmail { from_name: hidden.into(), subject: hidden.into(), ..email() };
        let [name, subject, ..] = read(&sent);
        assert_eq!((&*name, &*subject), (&*header_text(hidden), &*header_text(hidden)));
        assert!(!String::from_utf8(composed(&sent)).unwrap().contains("=?utf-8?q?x"));
    }

    #[test]
    fn long_headers_are_truncated() {
        let long = "x".repeat(2_000);
        let sent = OutgoingEmail { from_name: long.clone(), subject: long.clone(), ..email() };
        let [name, subject, ..] = read(&sent);
        assert_eq!((&*name, &*subject), (&long[..200], &long[..200]));
        let bytes = composed(&sent);
        assert!(bytes.split(|b| *b == b'\n').all(|line| line.len() < 998));
    }

    #[test]
    fn domains_become_ascii_and_invalid_addresses_are_refused() {
        for (text, taken) in [
            ("ada@example.com", Some("ada@example.com")),
            ("ada@BÜCHER.example", Some("ada@xn--bcher-kva.example")),
            ("adé@example.com", Some("adé@example.com")),
            ("ada@example.com\r\nRCPT TO:<eve@example.com>", None),
            ("ada\r\n@example.com", None),
            ("\"ada\r\nRCPT\"@example.com", None),
            ("ada@example.com> SIZE=1", None),
            ("ada@[127.0.0.1]", None),
            ("ada@127.0.0.1", None),
            ("Ada <ada@example.com>", None),
            ("ada", None),
            ("", None),
        ] {
            let found = parse_address(text);
            assert_eq!(found.as_ref().map(AsRef::<str>::as_ref), taken, "{text:?}");
        }
    }
}
