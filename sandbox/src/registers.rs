//! The simulators of identity registers: two upstreams with the same fictitious people, and
//! pictures of them.
//!
//! Every well-formed number of every kind belongs to a person. The ending of a number selects a
//! failure, unless it is one of the test identities that the upstreams document.

mod documented;
pub(crate) mod dojah;
mod kinds;
mod names;
mod people;
mod pictures;
mod portrait;
pub(crate) mod prembly;
mod seeded_values;

use std::time::Duration;

use axum::Router;

use kinds::Kind;
use people::Person;

/// Pictures in base64 exceed the usual body limit.
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// In real time, because clients measure their timeouts in it.
const SLOW_RESPONSE_DELAY: Duration = Duration::from_secs(20);

const BOTH_UNAVAILABLE: &str = "99999";
const PREMBLY_UNAVAILABLE: &str = "9999";
const NOT_FOUND: &str = "0000";
const SLOW_RESPONSE: &str = "8888";
const WATCH_LISTED: &str = "7777";
const NO_CONTACT: &str = "6666";

/// Endings of identifiers and their meanings, for the front page. A longer ending precedes a
/// shorter one that it contains.
pub(crate) const ENDINGS: [(&str, &str); 6] = [
    (BOTH_UNAVAILABLE, "the register is unavailable at both upstreams"),
    (PREMBLY_UNAVAILABLE, "the register is unavailable at Prembly, and works at Dojah"),
    (NOT_FOUND, "not found"),
    (SLOW_RESPONSE, "the response takes 20 seconds"),
    (WATCH_LISTED, "a watch-listed person (BVN)"),
    (NO_CONTACT, "a person without e-mail address and phone number"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upstream {
    Prembly,
    Dojah,
}

/// The reason why there is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookupError {
    /// Not a valid number of that kind.
    Malformed,
    NotFound,
    SourceUnavailable,
}

/// Returns the test identities: kind, number and name.
pub(crate) fn identities() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    documented::TEST_IDENTITIES
        .iter()
        .map(|known| (known.kind.title(), known.key, known.full_name()))
}

/// Looks up a person. Some endings of numbers delay the lookup or make it fail.
async fn find(upstream: Upstream, kind: Kind, number: &str) -> Result<Person, LookupError> {
    let number = number.trim();
    let key = kind.canonical_form(number).ok_or(LookupError::Malformed)?;
    let person = Person::from_identifier(kind, &key, number);
    if documented::find(kind, &key).is_some() {
        return Ok(person);
    }
    match ENDINGS.iter().map(|(ending, _)| *ending).find(|ending| key.ends_with(ending)) {
        Some(BOTH_UNAVAILABLE) => Err(LookupError::SourceUnavailable),
        Some(PREMBLY_UNAVAILABLE) if upstream == Upstream::Prembly => {
            Err(LookupError::SourceUnavailable)
        }
        Some(NOT_FOUND) => Err(LookupError::NotFound),
        Some(SLOW_RESPONSE) => {
            tokio::time::sleep(SLOW_RESPONSE_DELAY).await;
            Ok(person)
        }
        Some(WATCH_LISTED) => Ok(person.with_watch_listing()),
        Some(NO_CONTACT) => Ok(person.without_contact()),
        _ => Ok(person),
    }
}

/// Routes of the pictures for uploads to the upstreams.
pub(crate) fn pictures<S: Clone + Send + Sync + 'static>() -> Router<S> {
    pictures::router()
}

/// Date formats of the registers.
mod days {
    use chrono::NaiveDate;

    /// `1990-12-31`
    pub(super) fn iso(date: NaiveDate) -> String {
        date.format("%Y-%m-%d").to_string()
    }

    /// `31-12-1990`
    pub(super) fn dashed(date: NaiveDate) -> String {
        date.format("%d-%m-%Y").to_string()
    }

    /// `31/12/1990`
    pub(super) fn slashed(date: NaiveDate) -> String {
        date.format("%d/%m/%Y").to_string()
    }

    /// `31-Dec-1990`
    pub(super) fn named(date: NaiveDate) -> String {
        date.format("%d-%b-%Y").to_string()
    }

    /// `31-Dec-90`
    pub(super) fn named_briefly(date: NaiveDate) -> String {
        date.format("%d-%b-%y").to_string()
    }
}

/// Returns a phone number in national format (`0803…`), or "" if there is none or it is foreign.
fn national(phone: Option<&String>) -> String {
    let rest = phone.and_then(|phone| phone.strip_prefix("+234"));
    rest.map(|rest| format!("0{rest}")).unwrap_or_default()
}

/// Formats 128 bits as a UUID.
fn uuid([high, low]: [u64; 2]) -> String {
    let hex = format!("{high:016x}{low:016x}");
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}
