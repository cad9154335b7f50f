//! What a message says: the wording that the caller chose or left to us, and how it looks as e-mail and as SMS.
//!
//! Texts come from callers and from the people they name. Templates escape them; what controls lines never gets that far.

use askama::Template;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::email::one_line;

/// What a caller may say in place of the usual words. An empty text counts as none.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wording {
    pub name: Option<String>,
    pub header: Option<String>,
    pub body: Option<String>,
}

/// Header, body and greeting of a one-time password. `None` is a caller that sent no metadata at all, which has words of its own.
#[must_use]
pub fn wording(company_name: &str, metadata: Option<&Wording>) -> (String, String, String) {
    let Some(said) = metadata else {
        return ("OTP".to_owned(), "Your OTP is".to_owned(), "Hello,".to_owned());
    };
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let header = given(&said.header).unwrap_or_else(|| "One Time Token".to_owned());
    let body =
        given(&said.body).unwrap_or_else(|| format!("Your one time token for {company_name} is"));
    let greeting = match given(&said.name) {
        Some(name) => format!("Hello {name},"),
        None => "Hello,".to_owned(),
    };
    (header, body, greeting)
}

/// All that a message with a one-time password says. It holds the code: it is kept sealed, and never shown by an error or a log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtpText {
    /// The company's name.
    pub company: String,
    /// The URL of its logo.
    pub logo: Option<String>,
    /// Also the subject.
    pub header: String,
    pub greeting: String,
    /// May have several lines.
    pub body: String,
    pub code: String,
    /// Until the code expires, from the moment it was sent.
    pub minutes: i64,
}

/// An e-mail's content.
pub struct Rendered {
    pub subject: String,
    pub text: String,
    pub html: String,
}

#[derive(Template)]
#[template(path = "otp.html")]
struct Html {
    otp: OtpText,
}

#[derive(Template)]
#[template(path = "otp.txt")]
struct Text {
    otp: OtpText,
}

#[derive(Template)]
#[template(path = "otp.sms.txt")]
struct Sms {
    otp: OtpText,
}

impl OtpText {
    #[must_use]
    pub fn email(&self) -> Rendered {
        let otp = self.tidy();
        Rendered {
            subject: otp.header.clone(),
            text: rendered(&Text { otp: otp.clone() }),
            html: rendered(&Html { otp }),
        }
    }

    #[must_use]
    pub fn sms(&self) -> String {
        rendered(&Sms { otp: self.tidy() })
    }

    /// Without characters that control lines; only the body has more than one.
    fn tidy(&self) -> OtpText {
        OtpText {
            company: one_line(&self.company),
            logo: self.logo.as_deref().and_then(|url| Url::parse(url).ok()).map(String::from),
            header: one_line(&self.header),
            greeting: one_line(&self.greeting),
            body: lines(&self.body),
            code: self.code.clone(),
            minutes: self.minutes,
        }
    }
}

fn rendered(template: &impl Template) -> String {
    template.render().expect("a text takes all")
}

/// The lines of a text, each of them tidy, and at most one empty line between two.
fn lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{2028}', '\u{2029}', '\u{85}'], "\n");
    let lines: Vec<_> = text.trim().split('\n').map(one_line).collect();
    let mut tidy = lines.join("\n");
    while tidy.contains("\n\n\n") {
        tidy = tidy.replace("\n\n\n", "\n\n");
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn otp() -> OtpText {
        OtpText {
            company: "Acme Lending".into(),
            logo: Some("https://acme.example/logo.png".into()),
            header: "One Time Token".into(),
            greeting: "Hello Ada,".into(),
            body: "Your one time token for Acme Lending is".into(),
            code: "012345".into(),
            minutes: 5,
        }
    }

    #[test]
    fn words_are_the_callers_or_ours() {
        let said = |name: Option<&str>, header: Option<&str>, body: Option<&str>| {
            let text = |text: Option<&str>| text.map(str::to_owned);
            Some(Wording { name: text(name), header: text(header), body: text(body) })
        };
        let ours = "Your one time token for Acme is";
        for (metadata, expected) in [
            (None, ("OTP", "Your OTP is", "Hello,")),
            (said(None, None, None), ("One Time Token", ours, "Hello,")),
            (said(Some(""), Some(""), Some("")), ("One Time Token", ours, "Hello,")),
            (said(Some(" "), Some(" \n"), Some("\t")), ("One Time Token", ours, "Hello,")),
            (said(Some("Ada"), Some(""), Some("")), ("One Time Token", ours, "Hello Ada,")),
            (said(None, Some("Login"), Some("Code:")), ("Login", "Code:", "Hello,")),
            (said(Some("Ada"), Some("Login"), Some("Code:")), ("Login", "Code:", "Hello Ada,")),
            (said(None, Some("Login"), None), ("Login", ours, "Hello,")),
            (said(None, None, Some("Code:")), ("One Time Token", "Code:", "Hello,")),
        ] {
            let (header, body, greeting) = wording("Acme", metadata.as_ref());
            assert_eq!((&*header, &*body, &*greeting), expected);
        }
    }

    #[test]
    fn an_email_says_everything_in_both_parts() {
        let Rendered { subject, text, html } = otp().email();
        assert_eq!(subject, "One Time Token");
        assert_eq!(
            text,
            "One Time Token\n\nHello Ada,\n\nYour one time token for Acme Lending is\n\n012345\n\n\
             The token expires in 5 minutes.\n\nAcme Lending"
        );
        for part in [
            "<title>One Time Token</title>",
            "One Time Token</h1>",
            ">Hello Ada,<",
            ">Your one time token for Acme Lending is<",
            ">012345<",
            "The token expires in 5 minutes.",
            "<img src=\"https://acme.example/logo.png\" alt=\"Acme Lending\"",
        ] {
            assert_eq!(html.matches(part).count(), 1, "{part} in {html}");
        }
        let plain = OtpText { logo: None, minutes: 1, ..otp() };
        for text in [plain.email().html, plain.email().text, plain.sms()] {
            assert!(text.contains("The token expires in 1 minute."), "{text}");
            assert!(!text.contains("<img") && !text.contains("http"), "{text}");
        }
        assert!(!OtpText { logo: Some(String::new()), ..otp() }.email().html.contains("<img"));
    }

    #[test]
    fn a_text_message_is_short() {
        let sms = otp().sms();
        assert_eq!(
            sms,
            "Hello Ada,\nYour one time token for Acme Lending is\n012345\nThe token expires in 5 minutes."
        );
        assert!(sms.len() <= 160, "one part of an SMS");
    }

    #[test]
    fn what_people_write_stays_text() {
        let evil = "\"><script>alert('1')</script>\r\n&amp; {{ otp.code }} \0";
        let otp = OtpText {
            company: evil.into(),
            logo: Some("https://a.example/\" onerror=\"x('y')\r\n".into()),
            header: evil.into(),
            greeting: evil.into(),
            body: evil.into(),
            ..otp()
        };
        let Rendered { subject, text, html } = otp.email();
        assert_eq!(subject, "\"><script>alert('1')</script> &amp; {{ otp.code }}");
        assert!(!subject.contains(char::is_control));
        assert_eq!(html.matches("<script").count(), 0, "{html}");
        assert_eq!(html.matches("onerror=\"").count(), 0, "{html}");
        assert_eq!(html.matches('<').count(), self::otp().email().html.matches('<').count() + 1);
        assert!(html.contains("&#38;amp;"), "{html}");
        let controls = |c: char| c.is_control() && c != '\n';
        assert!(![html, text, otp.sms()].iter().any(|text| text.contains(controls)));
    }

    #[test]
    fn a_body_keeps_its_lines() {
        let otp =
            OtpText { body: " one\r\ntwo\rthree\u{2028}four\n\n\n\n five \n".into(), ..otp() };
        let lines = "one\ntwo\nthree\nfour\n\nfive";
        assert!(otp.email().text.contains(&format!("\n\n{lines}\n\n")));
        assert!(otp.sms().contains(&format!("\n{lines}\n")));
        assert!(otp.email().html.contains("one<br>two<br>three<br>four<br><br>five"));
    }

    #[test]
    fn the_code_is_the_only_number_of_its_length() {
        for code in ["0123", "01234567"] {
            let otp = OtpText { code: code.into(), minutes: 60, ..otp() };
            for text in [otp.email().text, otp.sms()] {
                let numbers = text.split(|c: char| !c.is_ascii_digit());
                let found: Vec<_> = numbers.filter(|number| number.len() > 2).collect();
                assert_eq!(found, [code], "{text}");
            }
        }
    }
}
