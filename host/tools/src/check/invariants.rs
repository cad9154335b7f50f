//! Rules for every call: secrets stay hidden, faults and logs contain no personal data, requests go
//! to permitted origins, `raw` can be shown, and settings are declared.

use super::{
    readable,
    report::{CaseFailure, CaseOutcome},
    rules,
    subject::ObservedCall,
};
use tollhouse_plugins::{
    CallError, EXAMPLE_EMAIL, EXAMPLE_SECRET, MISSING_SETTING_PREFIX, NotificationRefusal,
    PluginReply, REDACTED,
};

/// Prefix of a placeholder, and its number of hexadecimal digits.
const PLACEHOLDER: (&str, usize) = ("vault-", 32);
/// User input that looks like a placeholder.
pub const FAKE_PLACEHOLDER: &str = "vault-00000000000000000000000000000000";
/// The example customer.
const CUSTOMER_NAMES: [&str; 2] = ["Ada", "Obi"];
const CUSTOMER_PHONE: &str = "2348012345678";

/// The first violation of each rule.
#[derive(Default)]
pub struct Invariants {
    secrets: Option<CaseFailure>,
    personal_data: Option<CaseFailure>,
    destinations: Option<CaseFailure>,
    raw: Option<CaseFailure>,
    settings: Option<CaseFailure>,
}

/// The place of a plugin's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPlace {
    Url,
    Fault,
    Log,
    Value,
}

impl Invariants {
    /// Checks a call of the case `how`. `private` lists further personal data.
    pub fn check(&mut self, ran: &ObservedCall, how: &str, private: &[&str]) {
        let failing = |expected: &str, found: String| CaseFailure {
            expected: expected.to_owned(),
            found: format!("{found} (in the case {how:?})"),
            request: ran.requests.last().map(readable::request),
            answer: ran.requests.last().map(|seen| readable::answer(&seen.answer)),
        };
        for (place, text) in plugin_texts(ran) {
            let quoted = || format!("{}: {}", place.name(), readable::shorten(&text));
            if contains_secret(place, &text) && self.secrets.is_none() {
                let expected = "secrets and their placeholders only in headers and bodies";
                self.secrets = Some(failing(expected, quoted()));
            }
            let about = matches!(place, TextPlace::Fault | TextPlace::Log);
            if about && contains_personal_data(&text, private) && self.personal_data.is_none() {
                let expected = "no personal data in faults and log lines";
                self.personal_data = Some(failing(expected, quoted()));
            }
        }
        let unknown = ran.lines.iter().find_map(|line| line.strip_prefix(MISSING_SETTING_PREFIX));
        if let Some(name) = unknown
            && self.settings.is_none()
        {
            let expected = "only settings of the manifest; secrets come from the vault";
            self.settings = Some(failing(expected, format!("settings.get of {name}")));
        }
        // A call that broke may have exceeded the number of requests.
        let broke = ran.reply.as_ref().is_err_and(rules::is_aborted);
        if ran.usage.requests > ran.requests.len() && !broke && self.destinations.is_none() {
            let expected = "requests to origins of the manifest, over https, without headers reserved for the host";
            let stayed = ran.usage.requests - ran.requests.len();
            let found = format!(
                "{stayed} requests that are not permitted; {}",
                readable::reply(&ran.reply)
            );
            self.destinations = Some(failing(expected, found));
        }
        if let Some(found) = raw_violation(ran)
            && self.raw.is_none()
        {
            self.raw = Some(failing("raw: JSON text without the token of the instrument", found));
        }
    }

    pub fn outcomes(self) -> [(&'static str, CaseOutcome); 5] {
        let outcome =
            |failing: Option<CaseFailure>| failing.map_or(CaseOutcome::Passed, CaseOutcome::Failed);
        [
            ("secrets stay hidden", outcome(self.secrets)),
            ("faults and logs have no personal data", outcome(self.personal_data)),
            ("requests go to permitted origins", outcome(self.destinations)),
            ("raw is JSON without a token", outcome(self.raw)),
            ("settings are those of the manifest", outcome(self.settings)),
        ]
    }
}

impl TextPlace {
    fn name(self) -> &'static str {
        match self {
            TextPlace::Url => "the URL of a request",
            TextPlace::Fault => "the fault",
            TextPlace::Log => "a log line",
            TextPlace::Value => "the result",
        }
    }
}

fn plugin_texts(ran: &ObservedCall) -> Vec<(TextPlace, String)> {
    let mut said: Vec<(TextPlace, String)> =
        ran.requests.iter().map(|seen| (TextPlace::Url, seen.url.clone())).collect();
    said.extend(ran.lines.iter().map(|line| (TextPlace::Log, line.clone())));
    let values: Vec<&str> = match &ran.reply {
        Err(CallError { fault, .. }) => {
            let details = fault.details.iter().flat_map(|(name, value)| [name, value]);
            let texts = [&fault.code, &fault.message].into_iter().chain(details);
            said.extend(texts.map(|text| (TextPlace::Fault, text.clone())));
            Vec::new()
        }
        Ok(PluginReply::Refused(NotificationRefusal::Malformed(why))) => {
            said.push((TextPlace::Fault, why.clone()));
            Vec::new()
        }
        Ok(PluginReply::Compared(_, comparison)) => {
            said.push((TextPlace::Fault, comparison.message.clone()));
            Vec::new()
        }
        Ok(PluginReply::Session(session)) => vec![&session.url, &session.service_ref, &session.raw],
        Ok(PluginReply::Payment(payment)) => {
            vec![&payment.transaction_id, &payment.channel, &payment.message, &payment.raw]
        }
        Ok(PluginReply::Refund(refund)) => vec![&refund.provider_id, &refund.message],
        Ok(PluginReply::Accepted(id)) => vec![id],
        Ok(PluginReply::Notifications(told)) => {
            told.iter().flat_map(|told| [&*told.event, &*told.transaction_id]).collect()
        }
        Ok(
            PluginReply::Deauthorized(_)
            | PluginReply::Refused(_)
            | PluginReply::Entry(_)
            | PluginReply::Read(..),
        ) => Vec::new(),
    };
    said.extend(values.into_iter().map(|text| (TextPlace::Value, text.to_owned())));
    said
}

/// Returns whether a text contains a secret. Plugins see redacted responses; in a fault or log
/// line, a redaction is of a secret that the plugin wrote.
fn contains_secret(place: TextPlace, text: &str) -> bool {
    let handed_on = matches!(place, TextPlace::Fault | TextPlace::Log) && text.contains(REDACTED);
    handed_on || text.contains(EXAMPLE_SECRET) || contains_placeholder(text)
}

fn contains_placeholder(text: &str) -> bool {
    let (prefix, digits) = PLACEHOLDER;
    text.match_indices(prefix).any(|(at, _)| {
        let here = text.get(at..at + prefix.len() + digits);
        here.is_some_and(|here| {
            here != FAKE_PLACEHOLDER && here[prefix.len()..].bytes().all(|b| b.is_ascii_hexdigit())
        })
    })
}

/// Matches names as whole words, because other words contain them.
pub fn contains_personal_data(text: &str, private: &[&str]) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let known = [EXAMPLE_EMAIL, CUSTOMER_PHONE];
    words.any(|word| CUSTOMER_NAMES.contains(&word))
        || known.iter().chain(private).any(|known| text.contains(known))
}

fn raw_violation(ran: &ObservedCall) -> Option<String> {
    let (raw, token) = match &ran.reply {
        Ok(PluginReply::Session(session)) => (&session.raw, None),
        Ok(PluginReply::Payment(payment)) => {
            (&payment.raw, payment.instrument.as_ref().map(|instrument| &instrument.token))
        }
        _ => return None,
    };
    if !raw.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(raw).is_err() {
        return Some(format!("not JSON: {}", readable::shorten(raw)));
    }
    let charges_again = token.is_some_and(|token| !token.is_empty() && raw.contains(&**token));
    charges_again.then(|| format!("it contains the instrument's token: {}", readable::shorten(raw)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_placeholders_are_found_but_not_similar_words() {
        let placeholder = "https://a.example/vault-0123456789abcdef0123456789abcdef/x";
        for (place, text, holds) in [
            (TextPlace::Url, placeholder, true),
            (TextPlace::Value, "a vault-0123", false),
            (TextPlace::Value, FAKE_PLACEHOLDER, false),
            (TextPlace::Log, "key=example-secret", true),
            (TextPlace::Fault, "it was [secret]", true),
            (TextPlace::Value, "[secret]", false), // redacted by the host
        ] {
            assert_eq!(contains_secret(place, text), holds, "{place:?} {text}");
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
            assert_eq!(contains_personal_data(text, &["22012345678"]), names, "{text}");
        }
    }
}
