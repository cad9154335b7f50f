//! Monnify's time formats, most of them in Lagos time.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime};
use tollhouse_platform::clock::Timestamp;

const LAGOS_OFFSET_SECONDS: i32 = 3_600;

/// Formats as `21/01/2022 03:49:28 PM`.
pub(super) fn day_first(at: Timestamp) -> String {
    lagos(at).format("%d/%m/%Y %I:%M:%S %p").to_string()
}

/// Formats as `2022-01-21T15:49:28.000`.
pub(super) fn iso(at: Timestamp) -> String {
    lagos(at).format("%Y-%m-%dT%H:%M:%S%.3f").to_string()
}

/// Formats as `2022-01-21 15:49:28.0`.
pub(super) fn space_separated(at: Timestamp) -> String {
    lagos(at).format("%Y-%m-%d %H:%M:%S.0").to_string()
}

/// Formats as `20220121154928`.
pub(super) fn compact(at: Timestamp) -> String {
    lagos(at).format("%Y%m%d%H%M%S").to_string()
}

/// Formats as `2022-01-21T14:49:28.000+0000`, the only format in UTC.
pub(super) fn utc(at: Timestamp) -> String {
    at.to_datetime().format("%Y-%m-%dT%H:%M:%S%.3f%z").to_string()
}

/// Parses a date, a Lagos time, or a time with an offset.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let zoned = || DateTime::parse_from_rfc3339(text).ok().map(|at| at.timestamp_millis());
    let local = || text.parse::<NaiveDateTime>().ok();
    let day = || text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0);
    let in_lagos = || {
        let ms = local().or_else(day)?.and_utc().timestamp_millis();
        Some(ms - i64::from(LAGOS_OFFSET_SECONDS) * 1_000)
    };
    zoned().or_else(in_lagos).map(Timestamp)
}

fn lagos(at: Timestamp) -> DateTime<FixedOffset> {
    let zone = FixedOffset::east_opt(LAGOS_OFFSET_SECONDS).expect("an hour is less than a day");
    at.to_datetime().with_timezone(&zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_and_read_in_all_formats() {
        let at = Timestamp::parse("2022-01-21T14:49:28Z").unwrap();
        assert_eq!(day_first(at), "21/01/2022 03:49:28 PM");
        assert_eq!(iso(at), "2022-01-21T15:49:28.000");
        assert_eq!(space_separated(at), "2022-01-21 15:49:28.0");
        assert_eq!(compact(at), "20220121154928");
        assert_eq!(utc(at), "2022-01-21T14:49:28.000+0000");
        for text in ["2022-01-21T15:49:28", "2022-01-21T14:49:28Z", "2022-01-21T15:49:28+01:00"] {
            assert_eq!(parse(text), Some(at), "{text}");
        }
        assert_eq!(parse("2022-01-21"), Timestamp::parse("2022-01-20T23:00:00Z"));
        assert_eq!(parse("21/01/2022"), None);
    }
}
