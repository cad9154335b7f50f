//! Rules for every call: secrets stay hidden, faults and logs contain no personal data, requests go
//! to permitted origins, `raw` can be shown, and settings are declared.

use super::{prelude::*, rules};
use tollhouse_plugins::{
    EXAMPLE_EMAIL, EXAMPLE_SECRET, IncomingTransfer, MISSING_SETTING_PREFIX, NotificationRefusal,
    REDACTED,
};

/// Prefix of a placeholder, and its number of hexadecimal digits.
const PLACEHOLDER: (&str, usize) = ("vault-", 32);
/// User input that looks like a placeholder.
pub const FAKE_PLACEHOLDER: &str = "vault-00000000000000000000000000000000";
/// The example customer.
const CUSTOMER_NAMES: [&str; 2] = ["Ada", "Obi"];
const CUSTOMER_PHONE: &str = "2348012345678";

/// Names of the invariants in the report, and what they require.
const INVARIANTS: [(&str, &str); 5] = [
    ("secrets stay hidden", "no secret or placeholder in URLs, results, faults and log lines"),
    ("faults and logs have no personal data", "no personal data in faults and log lines"),
    (
        "requests go to permitted origins",
        "requests over https to hosts and url settings of the manifest, without headers that the host sets",
    ),
    ("raw is JSON without a token", "raw: JSON text without the token of the instrument"),
    (
        "settings are those of the manifest",
        "settings.get for settings of the manifest only: declare the setting, or use vault for a secret",
    ),
];

/// The first violation of each invariant.
#[derive(Default)]
pub struct Invariants([Option<CaseFailure>; INVARIANTS.len()]);

impl Invariants {
    /// Checks a call of the case `how`. `private` lists further personal data.
    pub fn check(&mut self, ran: &ObservedCall, how: &str, private: &[&str]) {
        let found = [
            find_text(ran, contains_secret),
            find_text(ran, |place, text| {
                is_for_operators(place) && contains_personal_data(text, private)
            }),
            refused_requests(ran),
            raw_violation(ran),
            unknown_setting(ran),
        ];
        for ((first, found), (_, expected)) in self.0.iter_mut().zip(found).zip(INVARIANTS) {
            if let (None, Some(found)) = (&first, found) {
                let found = format!("{found} (in the case {how:?})");
                *first = Some(CaseFailure::new(expected, found, ran.requests.last()));
            }
        }
    }

    pub fn outcomes(self) -> impl Iterator<Item = (&'static str, CaseOutcome)> {
        let outcome =
            |failure: Option<CaseFailure>| failure.map_or(CaseOutcome::Passed, CaseOutcome::Failed);
        INVARIANTS.into_iter().map(|(case, _)| case).zip(self.0.map(outcome))
    }
}

/// The places of texts for operators.
const FAULT: &str = "the fault";
const REASON: &str = "the reason of malformed";
const COMPARISON: &str = "the message of the comparison";
const LOG: &str = "a log line";
/// The other places of texts.
const URL: &str = "the URL of a request";
const RESULT: &str = "the result";

fn is_for_operators(place: &str) -> bool {
    [FAULT, REASON, COMPARISON, LOG].contains(&place)
}

/// Returns the first text of the plugin that violates an invariant, with its place.
fn find_text(ran: &ObservedCall, violates: impl Fn(&str, &str) -> bool) -> Option<String> {
    let (place, text) = plugin_texts(ran).find(|(place, text)| violates(place, text))?;
    Some(format!("{place}: {}", readable::shorten(text)))
}

/// Returns the texts of a plugin with their places.
fn plugin_texts(ran: &ObservedCall) -> impl Iterator<Item = (&'static str, &str)> {
    let (place, texts) = match &ran.reply {
        Err(CallError { fault, .. }) => {
            let details = fault.details.iter().flat_map(|(name, value)| [name, value]);
            let texts = [&fault.code, &fault.message].into_iter().chain(details);
            (FAULT, texts.map(String::as_str).collect())
        }
        Ok(PluginReply::Parsed(Err(NotificationRefusal::Malformed(why)))) => (REASON, vec![&**why]),
        Ok(PluginReply::Compared((_, comparison))) => (COMPARISON, vec![&*comparison.message]),
        Ok(reply) => (RESULT, result_texts(reply)),
    };
    let urls = ran.requests.iter().map(|seen| (URL, &*seen.url));
    let lines = ran.lines.iter().map(|line| (LOG, &**line));
    urls.chain(lines).chain(texts.into_iter().map(move |text| (place, text)))
}

fn result_texts(reply: &PluginReply) -> Vec<&str> {
    match reply {
        PluginReply::Session(session) => {
            let prompt = session.prompt.as_deref().unwrap_or_default();
            vec![&session.url, prompt, &session.service_ref, &session.raw]
        }
        PluginReply::Payment(payment)
        | PluginReply::Transfer(Some(IncomingTransfer { payment, .. })) => {
            vec![&payment.transaction_id, &payment.channel, &payment.message, &payment.raw]
        }
        PluginReply::Refund(refund) => vec![&refund.provider_id, &refund.message],
        PluginReply::Account(account) => vec![&account.provider_id],
        PluginReply::Dispute(dispute) => vec![&dispute.key.id, &dispute.reason],
        PluginReply::MandateSession(session) => vec![&session.service_ref],
        PluginReply::Mandate(mandate) => vec![&mandate.message],
        PluginReply::Accepted(id) => vec![id],
        PluginReply::Parsed(Ok(notifications)) => {
            notifications.iter().flat_map(|one| [&*one.event, &*one.transaction_id]).collect()
        }
        PluginReply::Deauthorized(_)
        | PluginReply::Declined(_)
        | PluginReply::Parsed(Err(_))
        | PluginReply::Received(_)
        | PluginReply::Transfer(None)
        | PluginReply::Closed(_)
        | PluginReply::Cancelled(_)
        | PluginReply::Banks(_)
        | PluginReply::Disputes(_)
        | PluginReply::Transactions(_)
        | PluginReply::Settlements(_)
        | PluginReply::Holder(_)
        | PluginReply::Entry(_)
        | PluginReply::Compared(..)
        | PluginReply::Read(..) => Vec::new(),
    }
}

fn unknown_setting(ran: &ObservedCall) -> Option<String> {
    let name = ran.lines.iter().find_map(|line| line.strip_prefix(MISSING_SETTING_PREFIX))?;
    Some(format!("settings.get of {name}"))
}

fn refused_requests(ran: &ObservedCall) -> Option<String> {
    // A call that broke may have exceeded the number of requests.
    let broke = ran.reply.as_ref().is_err_and(rules::is_aborted);
    let stayed = ran.usage.requests.saturating_sub(ran.requests.len());
    (stayed > 0 && !broke)
        .then(|| format!("requests refused by the host: {stayed}; {}", readable::reply(&ran.reply)))
}

/// Returns whether a text contains a secret. Plugins see redacted responses; in a fault or log
/// line, a redaction is of a secret that the plugin wrote.
fn contains_secret(place: &str, text: &str) -> bool {
    let handed_on = is_for_operators(place) && text.contains(REDACTED);
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
        Ok(
            PluginReply::Payment(payment)
            | PluginReply::Transfer(Some(IncomingTransfer { payment, .. })),
        ) => (&payment.raw, payment.instrument.as_ref().map(|instrument| &instrument.token)),
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
            (URL, placeholder, true),
            (RESULT, "a vault-0123", false),
            (RESULT, FAKE_PLACEHOLDER, false),
            (LOG, "key=example-secret", true),
            (FAULT, "it was [secret]", true),
            (RESULT, "[secret]", false), // redacted by the host
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
