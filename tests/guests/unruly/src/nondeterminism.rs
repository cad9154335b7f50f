//! Attempts to differ between runs of a call: clocks, randomness, and state left by an earlier run.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tollhouse_plugin::http::Request;
use tollhouse_plugin::settings;
use tollhouse_plugin::types::Fault;

use crate::Outcome;

/// Keeps its value between calls only if an instance is used twice.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Requests a URL made of all these values, and returns clock and randomness in the session's URL
/// `https://x/{clock}/{random}`.
pub(crate) fn random_request() -> Result<Outcome, Fault> {
    let (clock, random) = (clock(), random()?);
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    let address = &raw const CALLS as usize;
    let heap = Box::new(0_u8);
    let heap = &raw const *heap as usize;
    let path = format!("/{clock}/{random}/{calls}/{address:x}/{heap:x}");
    Request::get(settings::url("base_url", &path)?).send()?;
    Ok(Outcome { url: format!("https://x/{clock}/{random}"), raw: "{}".into() })
}

#[expect(clippy::disallowed_methods, reason = "the test needs the system clock")]
fn clock() -> String {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    // An `Instant` exposes its value only through `Debug`.
    let steady: String =
        format!("{:?}", Instant::now()).chars().filter(char::is_ascii_digit).collect();
    format!("{wall}-{steady}")
}

/// Returns random bytes and the seed of a hash map, which come from different sources.
fn random() -> Result<String, Fault> {
    let bytes = getrandom::u64().map_err(|_| Fault::other("no random bytes"))?;
    let map = RandomState::new().hash_one(1_u8);
    Ok(format!("{bytes:016x}-{map:016x}"))
}
