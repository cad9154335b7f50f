//! Parses e-mails (RFC 5322, MIME).

use mail_parser::{Addr, MessageParser, MessagePart, PartType};

use crate::mailbox::Message;

/// Returns the mail without its recipient and time; `None` if it cannot be parsed.
pub(super) fn parse(body: &[u8]) -> Option<Message> {
    let mail = MessageParser::default().parse(body).filter(|mail| !mail.headers().is_empty())?;
    Some(Message {
        channel: "email".to_owned(),
        subject: mail.subject().map(str::to_owned),
        text: mail.text_bodies().find_map(plain_text).unwrap_or_default(),
        html: mail.html_bodies().find_map(html),
        from: mail.from().and_then(|from| from.first()).map(format_address).unwrap_or_default(),
        headers: mail.headers_raw().map(|(name, value)| (name.to_owned(), unfold(value))).collect(),
        ..Message::default()
    })
}

fn plain_text(part: &MessagePart<'_>) -> Option<String> {
    match &part.body {
        PartType::Text(text) => Some(text.replace("\r\n", "\n")),
        _ => None,
    }
}

fn html(part: &MessagePart<'_>) -> Option<String> {
    match &part.body {
        PartType::Html(html) => Some(html.replace("\r\n", "\n")),
        _ => None,
    }
}

fn format_address(from: &Addr<'_>) -> String {
    let address = from.address().unwrap_or_default();
    match from.name() {
        Some(name) => format!("{name} <{address}>"),
        None => address.to_owned(),
    }
}

fn unfold(value: &str) -> String {
    value.replace("\r\n", "").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<u8> {
        lines.join("\r\n").into_bytes()
    }

    #[test]
    fn both_parts_and_encoded_text_are_read() {
        let mail = parse(&lines(&[
            "From: =?utf-8?q?Ad=C3=A9_Lending?= <no-reply@lender.example>",
            "To: ada@example.com",
            "Subject: =?utf-8?b?w4lu?= =?utf-8?q?trez?=",
            "Message-ID: <m1@lender.example>",
            "X-Long: one",
            " two",
            "MIME-Version: 1.0",
            "Content-Type: multipart/alternative; boundary=b",
            "",
            "--b",
            "Content-Type: text/plain; charset=utf-8",
            "Content-Transfer-Encoding: quoted-printable",
            "",
            "Code=3A 123456=",
            ", caf=C3=A9",
            "Bye",
            "--b",
            "Content-Type: text/html; charset=utf-8",
            "Content-Transfer-Encoding: base64",
            "",
            "PGI+MTIzNDU2PC9iPg==",
            "--b--",
            "",
        ]));
        let mail = mail.unwrap();
        assert_eq!(mail.channel, "email");
        assert_eq!(mail.from, "Adé Lending <no-reply@lender.example>");
        assert_eq!(mail.subject.as_deref(), Some("Éntrez"));
        assert_eq!(mail.text, "Code: 123456, café\nBye");
        assert_eq!(mail.html.as_deref(), Some("<b>123456</b>"));
        assert_eq!(mail.header("message-id"), Some("<m1@lender.example>"));
        assert_eq!(mail.header("X-Long"), Some("one two"));
        assert_eq!(mail.header("X-None"), None);
    }

    #[test]
    fn a_missing_part_stays_absent() {
        let html = parse(&lines(&["Content-Type: text/html", "", "<p>1</p>"])).unwrap();
        assert_eq!((html.text.as_str(), html.html.as_deref()), ("", Some("<p>1</p>")));
        let plain = parse(&lines(&["Subject: x", "", "1"])).unwrap();
        assert_eq!((plain.text.as_str(), plain.html), ("1", None));
        for nothing in ["", "\r\n", "\r\ntext\r\n"] {
            assert_eq!(parse(nothing.as_bytes()), None, "{nothing:?}");
        }
    }
}
