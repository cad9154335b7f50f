//! The injected clock: nothing else in the host reads the system time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use schemars::JsonSchema;

/// Milliseconds since 1970, UTC: an integer that sorts the same in every engine.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, sqlx::Type, JsonSchema,
)]
#[sqlx(transparent)]
#[schemars(
    inline,
    with = "String",
    description = "",
    extend("format" = "date-time", "examples" = [Timestamp(1_795_251_600_000)])
)]
pub struct Timestamp(pub i64);

pub const DAY_SECONDS: i64 = 86_400;
pub const DAY_MS: i64 = DAY_SECONDS * 1_000;

impl Timestamp {
    pub fn plus_seconds(self, seconds: i64) -> Timestamp {
        self.plus_ms(seconds.saturating_mul(1_000))
    }

    pub fn plus_ms(self, ms: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(ms))
    }

    pub fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Parses an RFC 3339 time; `None` for any other text.
    pub fn parse(text: &str) -> Option<Timestamp> {
        DateTime::parse_from_rfc3339(text).ok().map(|at| Timestamp(at.timestamp_millis()))
    }

    pub fn to_datetime(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        Timestamp::parse(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 time"))
    }
}

/// Writes RFC 3339 in UTC with milliseconds, as on the wire.
impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_datetime().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A clock. Cheap to clone; all clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Milliseconds to add to the system time, or the time itself if `frozen`.
    ms: AtomicI64,
    frozen: bool,
    /// Subtracted from `ms` for `elapsed`, which is never negative.
    start_ms: i64,
    since: Instant,
}

impl Clock {
    pub fn system() -> Clock {
        Clock::new(0, false)
    }

    /// Creates a clock that shows the system time minus `by`, until it is advanced.
    pub fn behind_system(by: Duration) -> Clock {
        Clock::new(-i64::try_from(by.as_millis()).unwrap_or(i64::MAX), false)
    }

    /// Creates a clock that moves only when it is advanced.
    pub fn frozen_at(now: Timestamp) -> Clock {
        Clock::new(now.0, true)
    }

    fn new(ms: i64, frozen: bool) -> Clock {
        let start_ms = if frozen { 0 } else { ms };
        let since = Instant::now();
        Clock(Arc::new(Inner { ms: AtomicI64::new(ms), frozen, start_ms, since }))
    }

    #[expect(clippy::disallowed_methods, reason = "the only source of time")]
    pub fn now(&self) -> Timestamp {
        let ms = self.0.ms.load(SeqCst);
        Timestamp(if self.0.frozen { ms } else { ms + Utc::now().timestamp_millis() })
    }

    /// Returns monotonic time since an arbitrary start, which clock corrections do not affect.
    pub fn elapsed(&self) -> Duration {
        let ms = self.0.ms.load(SeqCst) - self.0.start_ms;
        let ms = Duration::from_millis(ms.try_into().unwrap_or(0));
        if self.0.frozen { ms } else { ms + self.0.since.elapsed() }
    }

    /// Development and tests only: moves time forward to `target`, never back.
    pub fn advance_to(&self, target: Timestamp) {
        let ms = target.0 - self.now().0;
        if ms > 0 {
            self.0.ms.fetch_add(ms, SeqCst);
        }
    }
}

/// Parses a date in exactly this format; chrono alone accepts blanks and signs as digits.
pub fn parse_date(text: &str, format: &str) -> Option<NaiveDate> {
    let date = NaiveDate::parse_from_str(text, format).ok()?;
    (date.format(format).to_string() == text).then_some(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_as_text() {
        let at = Timestamp(1_795_000_000_123);
        assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        assert_eq!(
            Timestamp::parse("2026-11-21T10:00:00+01:00").unwrap().to_string(),
            "2026-11-21T09:00:00.000Z"
        );
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn a_frozen_clock_moves_only_when_advanced_and_never_back() {
        let clock = Clock::frozen_at(Timestamp(1_000));
        clock.advance_to(Timestamp(5_000));
        clock.advance_to(Timestamp(2_000));
        assert_eq!(clock.now(), Timestamp(5_000));
    }
}
