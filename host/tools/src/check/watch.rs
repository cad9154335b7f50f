//! Rules for every call: secrets stay hidden, faults and logs contain no personal data, requests go
//! to permitted origins, `raw` can be shown, and settings are declared.

use super::{
    judge, readable,
    report::{Failing, Outcome},
    subject::Ran,
};
use tollhouse_plugins::{
    CallError, EXAMPLE_EMAIL, EXAMPLE_SECRET, NO_SETTING, REDACTED, Refusal, Reply,
};

/// Prefix of a placeholder, and its number of hexadecimal digits.
const PLACEHOLDER: (&str, usize) = ("vault-", 32);
/// User input that looks like a placeholder.
pub const NO_PLACEHOLDER: &str = "vault-00000000000000000000000000000000";
/// The example customer.
const NAMES: [&str; 2] = ["Ada", "Obi"];
const PHONE: &str = "2348012345678";

/// The first violation of each rule.
#[derive(Default)]
pub struct Watch {
    secrets: Option<Failing>,
    people: Option<Failing>,
    destinations: Option<Failing>,
    raw: Option<Failing>,
    settings: Option<Failing>,
}

/// The place of a plugin's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Url,
    Fault,
    Log,
    Value,
}

impl Watch {
    /// Checks a call of the case `how`. `private` lists further personal data.
    pub fn look(&mut self, ran: &Ran, how: &str, private: &[&str]) {
        let failing = |expected: &str, found: String| Failing {
            expected: expected.to_owned(),
            found: format!("{found} (in the case {how:?})"),
            request: ran.requests.last().map(readable::request),
            answer: ran.requests.last().map(|seen| readable::answer(&seen.answer)),
        };
        for (place, text) in said(ran) {
            let quoted = || format!("{}: {}", place.name(), readable::short(&text));
            if holds_secret(place, &text) && self.secrets.is_none() {
                let expected = "secrets and their placeholders only in headers and bodies";
                self.secrets = Some(failing(expected, quoted()));
            }
            let about = matches!(place, Place::Fault | Place::Log);
            if about && names_somebody(&text, private) && self.people.is_none() {
                let expected = "no personal data in faults and log lines";
                self.people = Some(failing(expected, quoted()));
            }
        }
        let unknown = ran.lines.iter().find_map(|line| line.strip_prefix(NO_SETTING));
        if let Some(name) = unknown
            && self.settings.is_none()
        {
            let expected = "only settings of the manifest; secrets come from the vault";
            self.settings = Some(failing(expected, format!("settings.get of {name}")));
        }
        // A call that broke may have exceeded the number of requests.
        let broke = ran.reply.as_ref().is_err_and(judge::broke);
        if ran.used.requests > ran.requests.len() && !broke && self.destinations.is_none() {
            let expected = "requests to origins of the manifest, over https, without headers reserved for the host";
            let stayed = ran.used.requests - ran.requests.len();
            let found = format!(
                "{stayed} requests that are not permitted; {}",
                readable::reply(&ran.reply)
            );
            self.destinations = Some(failing(expected, found));
        }
        if let Some(found) = bad_raw(ran)
            && self.raw.is_none()
        {
            self.raw = Some(failing("raw: JSON text without the token of the instrument", found));
        }
    }

    pub fn outcomes(self) -> [(&'static str, Outcome); 5] {
        let outcome = |failing: Option<Failing>| failing.map_or(Outcome::Passed, Outcome::Failed);
        [
            ("secrets stay hidden", outcome(self.secrets)),
            ("faults and logs have no personal data", outcome(self.people)),
            ("requests go to permitted origins", outcome(self.destinations)),
            ("raw is JSON without a token", outcome(self.raw)),
            ("settings are those of the manifest", outcome(self.settings)),
        ]
    }
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Url => "the URL of a request",
            Place::Fault => "the fault",
            Place::Log => "a log line",
            Place::Value => "the result",
        }
    }
}

fn said(ran: &Ran) -> Vec<(Place, String)> {
    let mut said: Vec<(Place, String)> =
        ran.requests.iter().map(|seen| (Place::Url, seen.url.clone())).collect();
    said.extend(ran.lines.iter().map(|line| (Place::Log, line.clone())));
    let values: Vec<&str> = match &ran.reply {
        Err(CallError { fault, .. }) => {
            let details = fault.details.iter().flat_map(|(name, value)| [name, value]);
            let texts = [&fault.code, &fault.message].into_iter().chain(details);
            said.extend(texts.map(|text| (Place::Fault, text.clone())));
            Vec::new()
        }
        Ok(Reply::Refused(Refusal::Malformed(why))) => {
            said.push((Place::Fault, why.clone()));
            Vec::new()
        }
        Ok(Reply::Compared(_, comparison)) => {
            said.push((Place::Fault, comparison.message.clone()));
            Vec::new()
        }
        Ok(Reply::Session(session)) => vec![&session.url, &session.service_ref, &session.raw],
        Ok(Reply::Payment(payment)) => {
            vec![&payment.transaction_id, &payment.channel, &payment.message, &payment.raw]
        }
        Ok(Reply::Refund(refund)) => vec![&refund.provider_id, &refund.message],
        Ok(Reply::Accepted(id)) => vec![id],
        Ok(Reply::Notifications(told)) => {
            told.iter().flat_map(|told| [&*told.event, &*told.transaction_id]).collect()
        }
        Ok(Reply::Deauthorized(_) | Reply::Refused(_) | Reply::Entry(_) | Reply::Read(..)) => {
            Vec::new()
        }
    };
    said.extend(values.into_iter().map(|text| (Place::Value, text.to_owned())));
    said
}

/// Returns whether a text contains a secret. Plugins see redacted responses; in a fault or log
/// line, a redaction is of a secret that the plugin wrote.
fn holds_secret(place: Place, text: &str) -> bool {
    let handed_on = matches!(place, Place::Fault | Place::Log) && text.contains(REDACTED);
    handed_on || text.contains(EXAMPLE_SECRET) || holds_placeholder(text)
}

fn holds_placeholder(text: &str) -> bool {
    let (prefix, digits) = PLACEHOLDER;
    text.match_indices(prefix).any(|(at, _)| {
        let here = text.get(at..at + prefix.len() + digits);
        here.is_some_and(|here| {
            here != NO_PLACEHOLDER && here[prefix.len()..].bytes().all(|b| b.is_ascii_hexdigit())
        })
    })
}

/// Matches names as whole words, because other words contain them.
pub fn names_somebody(text: &str, private: &[&str]) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let known = [EXAMPLE_EMAIL, PHONE];
    words.any(|word| NAMES.contains(&word))
        || known.iter().chain(private).any(|known| text.contains(known))
}

fn bad_raw(ran: &Ran) -> Option<String> {
    let (raw, token) = match &ran.reply {
        Ok(Reply::Session(session)) => (&session.raw, None),
        Ok(Reply::Payment(payment)) => {
            (&payment.raw, payment.instrument.as_ref().map(|instrument| &instrument.token))
        }
        _ => return None,
    };
    if !raw.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(raw).is_err() {
        return Some(format!("not JSON: {}", readable::short(raw)));
    }
    let charges_again = token.is_some_and(|token| !token.is_empty() && raw.contains(&**token));
    charges_again.then(|| format!("it contains the instrument's token: {}", readable::short(raw)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_placeholders_are_found_but_not_similar_words() {
        let placeholder = "https://a.example/vault-0123456789abcdef0123456789abcdef/x";
        for (place, text, holds) in [
            (Place::Url, placeholder, true),
            (Place::Value, "a vault-0123", false),
            (Place::Value, NO_PLACEHOLDER, false),
            (Place::Log, "key=example-secret", true),
            (Place::Fault, "it was [secret]", true),
            (Place::Value, "[secret]", false), // redacted by the host
        ] {
            assert_eq!(holds_secret(place, text), holds, "{place:?} {text}");
        }
    }

    #[test]
    fn names_match_whole_words_and_numbers_match_anywhere() {
        for (text, names) in [
            ("Ada has no account", true),
            ("to +2348012345678", true),
            ("ada@example.com is unknown", true),
            ("Adamawa, Obigbo", false),
            ("number 22012345678", true),
        ] {
            assert_eq!(names_somebody(text, &["22012345678"]), names, "{text}");
        }
    }
}
