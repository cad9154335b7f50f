//! Timestamps of Daraja: `YYYYMMDDHHmmss` in East Africa Time, which is UTC+3 all year.

use std::time::{SystemTime, UNIX_EPOCH};

const EAT_SECONDS: i64 = 3 * 3_600;
const DAY_SECONDS: i64 = 86_400;

/// Returns the time of the call.
#[expect(
    clippy::disallowed_methods,
    reason = "in a component the clock is the host's and stands still during a call"
)]
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format(i64::try_from(since.as_secs()).unwrap_or_default())
}

/// Formats seconds since 1970.
fn format(unix: i64) -> String {
    let local = unix + EAT_SECONDS;
    let (days, seconds) = (local.div_euclid(DAY_SECONDS), local.rem_euclid(DAY_SECONDS));
    let (year, month, day) = civil(days);
    let (hour, minute) = (seconds / 3_600, seconds / 60 % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{:02}", seconds % 60)
}

/// Returns a timestamp as RFC 3339 in UTC; `None` if it is not one.
pub(crate) fn to_rfc3339(timestamp: &str) -> Option<String> {
    if timestamp.len() != 14 || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |range: std::ops::Range<usize>| timestamp[range].parse::<i64>().ok();
    let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
    let (hour, minute, second) = (part(8..10)?, part(10..12)?, part(12..14)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    let local =
        days_from_civil(year, month, day) * DAY_SECONDS + hour * 3_600 + minute * 60 + second;
    let utc = local - EAT_SECONDS;
    let (days, seconds) = (utc.div_euclid(DAY_SECONDS), utc.rem_euclid(DAY_SECONDS));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// Returns the Gregorian date of a number of days since 1970 (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the number of days since 1970 of a Gregorian date.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_in_east_africa_time() {
        for (unix, timestamp, utc) in [
            (0, "19700101030000", "1970-01-01T00:00:00Z"),
            (1_576_740_075, "20191219102115", "2019-12-19T07:21:15Z"),
            (1_709_240_399, "20240229235959", "2024-02-29T20:59:59Z"),
            (1_709_240_400, "20240301000000", "2024-02-29T21:00:00Z"),
            (4_102_444_799, "21000101025959", "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(format(unix), timestamp);
            assert_eq!(to_rfc3339(timestamp).as_deref(), Some(utc));
        }
        for bad in ["", "2019121910211", "20191319102115", "2019121910211x", "20191219242115"] {
            assert_eq!(to_rfc3339(bad), None, "{bad}");
        }
    }
}
