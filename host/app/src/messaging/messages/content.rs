//! Content of messages: their wording, rendered as e-mail and as SMS.
//!
//! Texts come from clients and users. Control characters are removed, and HTML is escaped.

use askama::Template;
use serde::{Deserialize, Serialize};
use url::Url;

use tollhouse_platform::values::email::one_line;

/// Wording chosen by the client. An empty text counts as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    pub name: Option<String>,
    pub header: Option<String>,
    pub body: Option<String>,
}

/// Returns header, body and greeting. `metadata` is `None` if the request contains none.
pub fn resolve_wording(company_name: &str, metadata: Option<&Wording>) -> (String, String, String) {
    let Some(wording) = metadata else {
        return ("OTP".to_owned(), "Your OTP is".to_owned(), "Hello,".to_owned());
    };
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let header = given(&wording.header).unwrap_or_else(|| "One Time Token".to_owned());
    let body = given(&wording.body)
        .unwrap_or_else(|| format!("Your one time token for {company_name} is"));
    let name = given(&wording.name).map(|name| format!(" {name}")).unwrap_or_default();
    (header, body, format!("Hello{name},"))
}

/// Content of a message with a one-time password: stored only sealed, never in errors or logs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtpContent {
    /// Name of the company.
    pub company: String,
    /// URL of the company's logo.
    pub logo: Option<String>,
    /// Heading, also the subject.
    pub header: String,
    pub greeting: String,
    /// One or more lines.
    pub body: String,
    pub code: String,
    /// Lifetime of the code in minutes, from the time of sending.
    pub minutes: i64,
}

/// Content of an e-mail that invites a person to the portal: stored only sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationContent {
    /// Name of the company.
    pub company: String,
    /// URL with the secret of the invitation.
    pub link: String,
}

/// Content of a message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Otp(OtpContent),
    Invitation(InvitationContent),
}

impl From<OtpContent> for Content {
    fn from(otp: OtpContent) -> Content {
        Content::Otp(otp)
    }
}

impl From<InvitationContent> for Content {
    fn from(invitation: InvitationContent) -> Content {
        Content::Invitation(invitation)
    }
}

impl Content {
    pub fn company(&self) -> &str {
        match self {
            Content::Otp(otp) => &otp.company,
            Content::Invitation(invitation) => &invitation.company,
        }
    }

    pub fn email(&self) -> Rendered {
        match self {
            Content::Otp(otp) => otp.email(),
            Content::Invitation(invitation) => invitation.email(),
        }
    }

    pub fn sms(&self) -> String {
        match self {
            Content::Otp(otp) => otp.sms(),
            Content::Invitation(invitation) => invitation.email().text,
        }
    }
}

/// Content of an e-mail.
pub struct Rendered {
    pub subject: String,
    pub text: String,
    pub html: String,
}

#[derive(Template)]
#[template(path = "otp.html")]
struct Html {
    otp: OtpContent,
}

#[derive(Template)]
#[template(path = "otp.txt")]
struct Text {
    otp: OtpContent,
}

#[derive(Template)]
#[template(path = "otp.sms.txt")]
struct Sms {
    otp: OtpContent,
}

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationHtml {
    invitation: InvitationContent,
}

#[derive(Template)]
#[template(path = "invitation.txt")]
struct InvitationText {
    invitation: InvitationContent,
}

impl InvitationContent {
    fn email(&self) -> Rendered {
        let company = one_line(&self.company);
        let invitation = InvitationContent { company, ..self.clone() };
        Rendered {
            subject: format!("Invitation to the team of {}", invitation.company),
            text: render(&InvitationText { invitation: invitation.clone() }),
            html: render(&InvitationHtml { invitation }),
        }
    }
}

impl OtpContent {
    pub fn email(&self) -> Rendered {
        let otp = self.without_control_characters();
        Rendered {
            subject: otp.header.clone(),
            text: render(&Text { otp: otp.clone() }),
            html: render(&Html { otp }),
        }
    }

    pub fn sms(&self) -> String {
        render(&Sms { otp: self.without_control_characters() })
    }

    /// Removes control characters; only the body keeps its line breaks.
    fn without_control_characters(&self) -> OtpContent {
        OtpContent {
            company: one_line(&self.company),
            logo: self.logo.as_deref().and_then(|url| Url::parse(url).ok()).map(String::from),
            header: one_line(&self.header),
            greeting: one_line(&self.greeting),
            body: normalize_lines(&self.body),
            ..self.clone()
        }
    }
}

fn render(template: &impl Template) -> String {
    template.render().expect("rendering into a String cannot fail")
}

/// Normalizes each line of a text, and keeps at most one empty line between two.
fn normalize_lines(text: &str) -> String {
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

    fn otp() -> OtpContent {
        OtpContent {
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
    fn metadata_replaces_the_default_wording() {
        let wording = |name: Option<&str>, header: Option<&str>, body: Option<&str>| {
            let text = |text: Option<&str>| text.map(str::to_owned);
            Some(Wording { name: text(name), header: text(header), body: text(body) })
        };
        let ours = "Your one time token for Acme is";
        for (metadata, expected) in [
            (None, ("OTP", "Your OTP is", "Hello,")),
            (wording(None, None, None), ("One Time Token", ours, "Hello,")),
            (wording(Some(""), Some(""), Some("")), ("One Time Token", ours, "Hello,")),
            (wording(Some(" "), Some(" \n"), Some("\t")), ("One Time Token", ours, "Hello,")),
            (wording(Some("Ada"), Some(""), Some("")), ("One Time Token", ours, "Hello Ada,")),
            (wording(None, Some("Login"), Some("Code:")), ("Login", "Code:", "Hello,")),
            (wording(Some("Ada"), Some("Login"), Some("Code:")), ("Login", "Code:", "Hello Ada,")),
            (wording(None, Some("Login"), None), ("Login", ours, "Hello,")),
            (wording(None, None, Some("Code:")), ("One Time Token", "Code:", "Hello,")),
        ] {
            let (header, body, greeting) = resolve_wording("Acme", metadata.as_ref());
            assert_eq!((&*header, &*body, &*greeting), expected);
        }
    }

    #[test]
    fn an_email_has_the_content_in_both_parts() {
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
        let plain = OtpContent { logo: None, minutes: 1, ..otp() };
        for text in [plain.email().html, plain.email().text, plain.sms()] {
            assert!(text.contains("The token expires in 1 minute."), "{text}");
            assert!(!text.contains("<img") && !text.contains("http"), "{text}");
        }
        assert!(!OtpContent { logo: Some(String::new()), ..otp() }.email().html.contains("<img"));
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
    fn user_text_is_escaped() {
        let evil = "\"><script>alert('1')</script>\r\n&amp; {{ otp.code }} \0";
        let otp = OtpContent {
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
    fn an_invitation_has_its_link_in_both_parts() {
        let link = "https://api.example.com/portal/welcome/inv_abc";
        let invitation = |company: &str| InvitationContent {
            company: company.to_owned(),
            link: link.to_owned(),
        };
        let content = Content::from(invitation("Acme\n<b>"));
        let Rendered { subject, text, html } = content.email();
        assert_eq!(subject, "Invitation to the team of Acme <b>");
        assert!(text.contains(&format!("\n{link}\n")) && text.contains("24 hours"), "{text}");
        assert_eq!(html.matches(&format!("href=\"{link}\"")).count(), 1, "{html}");
        assert_eq!(html.matches("<b>").count(), 0, "{html}");
        // Content of both kinds survives a round trip through JSON.
        for content in [content, Content::from(otp())] {
            let sealed = serde_json::to_string(&content).unwrap();
            assert!(serde_json::from_str::<Content>(&sealed).unwrap() == content);
        }
    }

    #[test]
    fn a_body_keeps_its_lines() {
        let otp =
            OtpContent { body: " one\r\ntwo\rthree\u{2028}four\n\n\n\n five \n".into(), ..otp() };
        let lines = "one\ntwo\nthree\nfour\n\nfive";
        assert!(otp.email().text.contains(&format!("\n\n{lines}\n\n")));
        assert!(otp.sms().contains(&format!("\n{lines}\n")));
        assert!(otp.email().html.contains("one<br>two<br>three<br>four<br><br>five"));
    }

    #[test]
    fn the_code_is_the_only_long_number() {
        for code in ["0123", "01234567"] {
            let otp = OtpContent { code: code.into(), minutes: 60, ..otp() };
            for text in [otp.email().text, otp.sms()] {
                let numbers = text.split(|c: char| !c.is_ascii_digit());
                let found: Vec<_> = numbers.filter(|number| number.len() > 2).collect();
                assert_eq!(found, [code], "{text}");
            }
        }
    }
}
