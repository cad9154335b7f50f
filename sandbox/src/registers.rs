//! The stand-ins of identity registers: two upstreams that tell the same made-up people, and pictures of them.
//!
//! Every well-formed number of every kind belongs to somebody. How a number ends says what goes wrong with it, unless
//! it is one of the test identities that the upstreams document.

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

/// A picture in base64 is longer than what an ordinary body may be.
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// In real time, as that is what a caller's patience is measured in.
const SLOW_RESPONSE_DELAY: Duration = Duration::from_secs(20);

const BOTH_UNAVAILABLE: &str = "99999";
const PREMBLY_UNAVAILABLE: &str = "9999";
const NOT_FOUND: &str = "0000";
const SLOW_RESPONSE: &str = "8888";
const WATCH_LISTED: &str = "7777";
const NO_CONTACT: &str = "6666";

/// Endings of identifiers, and what they mean, for people. A longer one goes before a shorter one.
pub(crate) const ENDINGS: [(&str, &str); 6] = [
    (BOTH_UNAVAILABLE, "the source is out of order at both upstreams"),
    (PREMBLY_UNAVAILABLE, "the source is out of order at Prembly, and works at Dojah"),
    (NOT_FOUND, "nobody is found"),
    (SLOW_RESPONSE, "the answer takes 20 seconds"),
    (WATCH_LISTED, "somebody who is watch-listed (BVN)"),
    (NO_CONTACT, "somebody without e-mail and phone"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upstream {
    Prembly,
    Dojah,
}

/// Why there is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookupError {
    /// This is no number of that kind.
    Malformed,
    NotFound,
    SourceUnavailable,
}

/// The test identities: of which kind, the number, and who it is.
pub(crate) fn identities() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    documented::TEST_IDENTITIES
        .iter()
        .map(|known| (known.kind.title(), known.key, known.full_name()))
}

/// Whom an upstream finds, once it answers.
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

/// The pictures that one sends to the upstreams.
pub(crate) fn pictures<S: Clone + Send + Sync + 'static>() -> Router<S> {
    pictures::router()
}

/// The ways in which registers write days.
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

/// As people in the country write it: `0803…`. Blank when there is none, or when it is another country's.
fn national(phone: Option<&String>) -> String {
    let rest = phone.and_then(|phone| phone.strip_prefix("+234"));
    rest.map(|rest| format!("0{rest}")).unwrap_or_default()
}

/// 128 bits as a UUID is written.
fn uuid([high, low]: [u64; 2]) -> String {
    let hex = format!("{high:016x}{low:016x}");
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}
