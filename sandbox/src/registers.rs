//! The stand-ins of identity registers: two upstreams that tell the same made-up people, and pictures of them.
//!
//! Every well-formed number of every kind belongs to somebody. How a number ends says what goes wrong with it, unless
//! it is one of the test identities that the upstreams document.

mod documented;
pub(crate) mod dojah;
mod kinds;
mod lot;
mod names;
mod people;
mod pictures;
mod portrait;
pub(crate) mod prembly;

use std::time::Duration;

use axum::Router;

use kinds::Kind;
use people::Person;

/// A picture in base64 is longer than what an ordinary body may be.
const LONGEST_BODY: usize = 32 * 1024 * 1024;
/// In real time, as that is what a caller's patience is measured in.
const SLOW: Duration = Duration::from_secs(20);

const BOTH_OUT_OF_ORDER: &str = "99999";
const PREMBLY_OUT_OF_ORDER: &str = "9999";
const NOBODY: &str = "0000";
const LATE: &str = "8888";
const WATCHED: &str = "7777";
const NO_CONTACT: &str = "6666";

/// Endings of identifiers, and what they mean, for people. A longer one goes before a shorter one.
pub(crate) const ENDINGS: [(&str, &str); 6] = [
    (BOTH_OUT_OF_ORDER, "the source is out of order at both upstreams"),
    (PREMBLY_OUT_OF_ORDER, "the source is out of order at Prembly, and works at Dojah"),
    (NOBODY, "nobody is found"),
    (LATE, "the answer takes 20 seconds"),
    (WATCHED, "somebody who is watch-listed (BVN)"),
    (NO_CONTACT, "somebody without e-mail and phone"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upstream {
    Prembly,
    Dojah,
}

/// Why there is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    /// This is no number of that kind.
    Malformed,
    Nobody,
    OutOfOrder,
}

/// The test identities: of which kind, the number, and who it is.
pub(crate) fn identities() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    documented::KNOWN.iter().map(|known| (known.kind.title(), known.key, known.full_name()))
}

/// Whom an upstream finds, once it answers.
async fn find(upstream: Upstream, kind: Kind, number: &str) -> Result<Person, Absent> {
    let number = number.trim();
    let key = kind.key(number).ok_or(Absent::Malformed)?;
    let person = Person::of(kind, &key, number);
    if documented::find(kind, &key).is_some() {
        return Ok(person);
    }
    match ENDINGS.iter().map(|(ending, _)| *ending).find(|ending| key.ends_with(ending)) {
        Some(BOTH_OUT_OF_ORDER) => Err(Absent::OutOfOrder),
        Some(PREMBLY_OUT_OF_ORDER) if upstream == Upstream::Prembly => Err(Absent::OutOfOrder),
        Some(NOBODY) => Err(Absent::Nobody),
        Some(LATE) => {
            tokio::time::sleep(SLOW).await;
            Ok(person)
        }
        Some(WATCHED) => Ok(person.watched()),
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
