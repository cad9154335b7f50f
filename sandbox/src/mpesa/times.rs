//! Daraja's time formats, all in East Africa Time.

use chrono::{DateTime, FixedOffset, NaiveDateTime};
use tollhouse_platform::clock::Timestamp;

const EAST_AFRICA_OFFSET_SECONDS: i32 = 3 * 3_600;
const TIMESTAMP_FORMAT: &str = "%Y%m%d%H%M%S";

/// Formats as the number `20191219102115`.
pub(super) fn number(at: Timestamp) -> u64 {
    let digits = east_africa(at).format(TIMESTAMP_FORMAT).to_string();
    digits.parse().unwrap_or_default()
}

/// Formats as `19122019102115`.
pub(super) fn day_first(at: Timestamp) -> String {
    east_africa(at).format("%d%m%Y%H%M%S").to_string()
}

/// Formats as `20191219`.
pub(super) fn day(at: Timestamp) -> String {
    east_africa(at).format("%Y%m%d").to_string()
}

/// Returns whether a text is a time like `20191219102115`.
pub(super) fn is_timestamp(text: &str) -> bool {
    text.len() == 14
        && text.bytes().all(|b| b.is_ascii_digit())
        && NaiveDateTime::parse_from_str(text, TIMESTAMP_FORMAT).is_ok()
}

fn east_africa(at: Timestamp) -> DateTime<FixedOffset> {
    let zone =
        FixedOffset::east_opt(EAST_AFRICA_OFFSET_SECONDS).expect("3 hours are less than a day");
    at.to_datetime().with_timezone(&zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_in_east_africa_time() {
        let at = Timestamp::parse("2019-12-19T21:21:15Z").unwrap();
        assert_eq!(number(at), 20_191_220_002_115);
        assert_eq!(day_first(at), "20122019002115");
        assert_eq!(day(at), "20191220");
    }

    #[test]
    fn timestamps_have_fourteen_digits_and_exist() {
        assert!(is_timestamp("20191219102115"));
        for text in ["", "2019121910211", "201912191021150", "20191319102115", "2019-12-191021"] {
            assert!(!is_timestamp(text), "{text}");
        }
    }
}
