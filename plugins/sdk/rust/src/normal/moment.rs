//! Timestamps in many notations, as RFC 3339 in UTC, and the local time of the call.

use serde_json::Value;

use super::date;

const DAY_MINUTES: i64 = 1_440;

/// Parses a timestamp and returns it as RFC 3339 in UTC. Accepts ISO 8601 and `DD/MM/YYYY hh:mm:ss
/// PM`. A timestamp without an offset is in local time, `ahead_minutes` ahead of UTC.
pub fn moment(value: &Value, ahead_minutes: i64) -> Option<String> {
    let value = super::text(value)?;
    let day = date::day(&value)?;
    let (_, clock) = value.split_once(['T', ' '])?;
    let (clock, ahead) = split_offset(clock.trim(), ahead_minutes)?;
    let (hour, minute, rest) = parse_time(clock)?;
    let minutes = hour * 60 + minute - ahead;
    let (year, month, day) = date::add_days(day, minutes.div_euclid(DAY_MINUTES));
    let (hour, minute) = (minutes.rem_euclid(DAY_MINUTES) / 60, minutes.rem_euclid(60));
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{rest}Z"))
}

/// Returns the milliseconds since 1970 of a timestamp. Accepts the notations of [`moment`]; without
/// an offset, the timestamp is in UTC.
pub fn unix_ms(timestamp: &str) -> Option<i64> {
    let utc = moment(&Value::from(timestamp), 0)?;
    let (hour, minute, rest) = parse_time(utc.get(11..)?.strip_suffix('Z')?)?;
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest.as_str(), ""));
    let ms: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let minutes = date::epoch_days(date::day(&utc)?) * DAY_MINUTES + hour * 60 + minute;
    Some((minutes * 60 + parse_digits(whole)?) * 1_000 + ms)
}

/// Formats milliseconds since 1970 as RFC 3339 in UTC, in whole seconds.
pub fn utc(unix_ms: i64) -> String {
    format!("{}Z", format_local(unix_ms.div_euclid(1_000), 0))
}

/// Returns the time of the call as `YYYY-MM-DDThh:mm:ss` in local time, `ahead_minutes` ahead of
/// UTC.
pub fn local_now(ahead_minutes: i64) -> String {
    format_local(date::now(), ahead_minutes)
}

/// Formats seconds since 1970 in local time.
fn format_local(seconds: i64, ahead_minutes: i64) -> String {
    let ((year, month, day), seconds) = date::day_and_seconds(seconds + ahead_minutes * 60);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Returns the time of day without its offset, and the offset in minutes ahead of UTC.
fn split_offset(clock: &str, ahead: i64) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let Some(at) = clock.find(['+', '-']) else { return Some((clock, ahead)) };
    let (clock, offset) = clock.split_at(at);
    let digits = offset[1..].replace(':', "");
    let minutes = parse_digits(digits.get(..2)?)? * 60
        + parse_digits(digits.get(2..).filter(|m| m.len() == 2)?)?;
    Some((clock, if offset.starts_with('-') { -minutes } else { minutes }))
}

/// Returns the hour, the minute, and the seconds as RFC 3339 writes them.
fn parse_time(clock: &str) -> Option<(i64, i64, String)> {
    let (clock, half) = match clock.split_once(' ') {
        Some((clock, half)) => (clock, Some(half.to_ascii_uppercase())),
        None => (clock, None),
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("00"));
    let (hour, minute) = (parse_digits(hour)?, parse_digits(minute)?);
    let hour = match half.as_deref() {
        None => hour,
        Some("AM") if (1..=12).contains(&hour) => hour % 12,
        Some("PM") if (1..=12).contains(&hour) => hour % 12 + 12,
        Some(_) => return None,
    };
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let fits = whole.len() == 2 && parse_digits(whole)? < 60 && (1..=9).contains(&fraction.len());
    let digits = fraction.bytes().all(|digit| digit.is_ascii_digit());
    (hour < 24 && minute < 60 && fits && digits).then(|| (hour, minute, seconds.to_owned()))
}

fn parse_digits(digits: &str) -> Option<i64> {
    let plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LAGOS: i64 = 60;

    #[test]
    fn all_notations_are_parsed() {
        for (value, read) in [
            ("21/01/2022 03:49:28 PM", "2022-01-21T14:49:28Z"),
            ("21/01/2022 12:30:00 AM", "2022-01-20T23:30:00Z"),
            ("21/01/2022 12:30:00 pm", "2022-01-21T11:30:00Z"),
            ("01/03/2024 12:59:59 AM", "2024-02-29T23:59:59Z"),
            ("01/01/2022 12:00:00 AM", "2021-12-31T23:00:00Z"),
            ("21/01/2022 15:49:28", "2022-01-21T14:49:28Z"),
            ("2022-01-21 15:49:28.123", "2022-01-21T14:49:28.123Z"),
            ("2022-01-21T15:49:28", "2022-01-21T14:49:28Z"),
            ("2022-01-21T15:49", "2022-01-21T14:49:00Z"),
            ("2022-01-21T15:49:28.000Z", "2022-01-21T15:49:28.000Z"),
            ("2022-01-21T15:49:28+01:00", "2022-01-21T14:49:28Z"),
            ("2022-01-21T15:49:28.5+0000", "2022-01-21T15:49:28.5Z"),
            ("2022-12-31T23:30:00-01:00", "2023-01-01T00:30:00Z"),
        ] {
            assert_eq!(moment(&json!(value), LAGOS).as_deref(), Some(read), "{value}");
        }
        let plain = json!("2022-01-21 15:49:28");
        assert_eq!(moment(&plain, 0).as_deref(), Some("2022-01-21T15:49:28Z"));
    }

    #[test]
    fn local_times_are_ahead_of_utc() {
        for (seconds, ahead_minutes, local) in [
            (0, 180, "1970-01-01T03:00:00"),
            (1_576_740_075, 180, "2019-12-19T10:21:15"),
            (1_709_240_399, 180, "2024-02-29T23:59:59"),
            (1_709_240_400, 180, "2024-03-01T00:00:00"),
            (4_102_444_799, 180, "2100-01-01T02:59:59"),
            (4_102_444_799, 0, "2099-12-31T23:59:59"),
            (0, -90, "1969-12-31T22:30:00"),
        ] {
            assert_eq!(format_local(seconds, ahead_minutes), local);
        }
    }

    #[test]
    fn timestamps_convert_to_milliseconds_and_back() {
        for (timestamp, ms, utc_text) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00.000Z", 1_767_225_600_000, "2026-01-01T00:00:00Z"),
            ("2026-01-01T01:00:00+01:00", 1_767_225_600_000, "2026-01-01T00:00:00Z"),
            ("2024-02-29T23:59:59.5Z", 1_709_251_199_500, "2024-02-29T23:59:59Z"),
            ("2024-02-29T23:59:59.123456789Z", 1_709_251_199_123, "2024-02-29T23:59:59Z"),
            ("1969-12-31T23:59:59.250Z", -750, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(unix_ms(timestamp), Some(ms), "{timestamp}");
            assert_eq!(utc(ms), utc_text, "{timestamp}");
        }
        for garbage in ["", "soon", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:60Z"] {
            assert_eq!(unix_ms(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn invalid_timestamps_are_none() {
        for garbage in [
            "", "N/A", "yesterday", "2022-01-21", "21/01/2022", "2022-01-21T",
            "2022-01-21T24:00:00Z", "2022-01-21T15:60:00Z", "2022-01-21T15:49:60Z",
            "2022-01-21T15:49:28.Z", "2022-01-21T15:49:28.xZ", "2022-01-21T15:49:28+1",
            "2022-01-21T15:49:28+01:0", "2022-02-30T15:49:28Z", "21/01/2022 13:49:28 PM",
            "21/01/2022 00:49:28 AM", "21/01/2022 03:49:28 XM", "1642780168000",
            "2022-01-21T15:49:28+é",
        ] {
            assert_eq!(moment(&json!(garbage), LAGOS), None, "{garbage}");
        }
        assert_eq!(moment(&json!(null), LAGOS), None);
    }
}
