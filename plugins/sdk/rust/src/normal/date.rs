//! Dates in many notations, as DD/MM/YYYY.
//!
//! The meaning of a date selects the century of a two-digit year. A past event ([`date`]) is on the
//! latest such day that is not in the future. An expiry date ([`expiry`]) is in this century,
//! because registers do not return documents that expired before.

use std::time::UNIX_EPOCH;

use serde_json::Value;

const DAY_MS: i64 = 86_400_000;
const DAY_SECONDS: i64 = 86_400;

const MONTHS: [&str; 12] = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
];

/// Year, month, day: tuples compare chronologically.
pub(super) type Day = (i64, i64, i64);

/// The rule that selects the century of a two-digit year.
#[derive(Clone, Copy)]
enum Century {
    NotAfter(Day),
    This,
}

/// Parses the date of a past event, such as a birth, an issue or a registration. Accepts
/// DD-MM-YYYY, YYYY-MM-DD and DD-Mon-YYYY, with `-` or `/` and an optional time, DD-Mon-YY (the
/// latest such day that is not in the future), and milliseconds since 1970.
pub fn date(value: &Value) -> Option<String> {
    format_day(parse(&super::text(value)?, Century::NotAfter(today()))?)
}

/// Parses an expiry date in the same notations. A two-digit year is in this century.
pub fn expiry(value: &Value) -> Option<String> {
    format_day(parse(&super::text(value)?, Century::This)?)
}

/// Returns the day at the start of a timestamp.
pub(super) fn day(value: &str) -> Option<Day> {
    parse(value, Century::This)
}

/// Returns the day `days` days later.
pub(super) fn add_days(day: Day, days: i64) -> Day {
    day_from_epoch_days(epoch_days(day) + days)
}

fn format_day((year, month, day): Day) -> Option<String> {
    Some(format!("{day:02}/{month:02}/{year:04}"))
}

fn today() -> Day {
    day_and_seconds(now()).0
}

/// Returns the time of the call in seconds since 1970. A component's clock is the host's.
pub(super) fn now() -> i64 {
    let since = UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Splits seconds since 1970 into the day and the seconds since its midnight.
pub(super) fn day_and_seconds(seconds: i64) -> (Day, i64) {
    (day_from_epoch_days(seconds.div_euclid(DAY_SECONDS)), seconds.rem_euclid(DAY_SECONDS))
}

fn parse(value: &str, century: Century) -> Option<Day> {
    if let Some(ms) = milliseconds(value) {
        // Midnight in some time zone: the nearest midnight UTC has the same date.
        return validate_day(day_from_epoch_days((ms + DAY_MS / 2).div_euclid(DAY_MS)));
    }
    let separator = value.find(['-', '/']).map(|at| &value[at..=at])?;
    let mut parts = value.splitn(3, separator);
    let (first, month, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let last = strip_time(rest)?;
    match first.len() {
        4 => validate_day((parse_digits(first, 4)?, parse_month(month)?, parse_digits(last, 2)?)),
        _ => resolve_year(last, month, parse_digits(first, 2)?, century),
    }
}

/// Parses numbers of at least nine digits. Shorter ones would be within days of 1970, and are more
/// likely a year or a day without separators.
fn milliseconds(value: &str) -> Option<i64> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let long = digits.len() >= 9 && digits.bytes().all(|digit| digit.is_ascii_digit());
    // More than 14 digits are beyond the range of `real`.
    (long && digits.len() <= 14).then(|| value.parse().ok()).flatten()
}

/// Returns the text before an optional time of day, or `None` if another text follows.
fn strip_time(rest: &str) -> Option<&str> {
    let Some(at) = rest.find(|c: char| c.is_whitespace() || c == 'T') else { return Some(rest) };
    let time = rest[at..].trim_start_matches(|c: char| c.is_whitespace() || c == 'T');
    let is_time = time.starts_with(|c: char| c.is_ascii_digit()) && time.contains(':');
    is_time.then(|| &rest[..at])
}

fn resolve_year(year: &str, month: &str, day: i64, century: Century) -> Option<Day> {
    let named = month.starts_with(|c: char| c.is_ascii_alphabetic());
    let month = parse_month(month)?;
    match year.len() {
        4 => validate_day((parse_digits(year, 4)?, month, day)),
        // With a numeric month, the position of the year is ambiguous.
        2 if named => {
            let year = parse_digits(year, 2)?;
            let late = validate_day((2000 + year, month, day));
            let fits = |found: &Day| match century {
                Century::NotAfter(today) => *found <= today,
                Century::This => true,
            };
            late.filter(fits).or_else(|| validate_day((1900 + year, month, day)))
        }
        _ => None,
    }
}

fn parse_month(value: &str) -> Option<i64> {
    if value.len() < 3 {
        return parse_digits(value, 2);
    }
    let value = value.to_lowercase();
    let found = MONTHS.iter().position(|name| name.starts_with(&value))?;
    i64::try_from(found + 1).ok()
}

fn parse_digits(value: &str, most_digits: usize) -> Option<i64> {
    let plain =
        (1..=most_digits).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| value.parse().ok()).flatten()
}

/// Returns the day if it exists and is plausible: some registers write 0001-01-01 for an unknown
/// date.
fn validate_day((year, month, day): Day) -> Option<Day> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    ((1800..2200).contains(&year) && (1..=days).contains(&day)).then_some((year, month, day))
}

/// Returns the day of the Gregorian calendar that is `days` days after 1 January 1970. Counts in
/// eras of 400 years that begin in March, so that a leap day is the last day of its year.
fn day_from_epoch_days(days: i64) -> Day {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The inverse of [`day_from_epoch_days`].
pub(super) fn epoch_days((year, month, day): Day) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_notations_are_parsed() {
        for (value, read) in [
            (json!("21-05-1990"), "21/05/1990"),
            (json!("21/05/1990"), "21/05/1990"),
            (json!("1/5/1990"), "01/05/1990"),
            (json!("1990-05-21"), "21/05/1990"),
            (json!("1990/05/21"), "21/05/1990"),
            (json!("1990-05-21T00:00:00.000Z"), "21/05/1990"),
            (json!("1990-05-21T00:00:00-01:00"), "21/05/1990"),
            (json!("1990-05-21 10:59:25.0"), "21/05/1990"),
            (json!("18/04/1991 12:00:00 AM"), "18/04/1991"),
            (json!("28-Jun-2000"), "28/06/2000"),
            (json!("28-JUN-2000"), "28/06/2000"),
            (json!("01-September-1999"), "01/09/1999"),
            (json!("01-Sept-1999"), "01/09/1999"),
            (json!("12-OCT-1985"), "12/10/1985"),
            (json!("28-Jun-99"), "28/06/1999"),
            (json!(" 28-Jun-05 "), "28/06/2005"),
            (json!("29-02-2000"), "29/02/2000"),
            (json!(643248000000_i64), "21/05/1990"),
            (json!("643248000000"), "21/05/1990"),
            // Midnight in Lagos.
            (json!(643244400000_i64), "21/05/1990"),
            (json!(-315619200000_i64), "01/01/1960"),
            (json!(-3600000000_i64), "20/11/1969"),
        ] {
            assert_eq!(date(&value).as_deref(), Some(read), "{value}");
        }
    }

    #[test]
    fn invalid_dates_are_none() {
        for garbage in [
            "", "N/A", "****", "yesterday", "31-02-1990", "29-02-1900", "1990-13-01", "00-01-1990",
            "0001-01-01", "0000-00-00", "1990", "19900521", "21051990", "21-05-90", "21-05/1990",
            "21-05-1990-7", "21-05-19900", "1990-05-21 x", "1990-05-21Tx:1", "21-Foo-1990",
            "21--1990", "-", "é-é-é", "99999999999999999999", "9223372036854775807",
            "99999999999999",
        ] {
            assert_eq!(date(&json!(garbage)), None, "{garbage}");
        }
        for garbage in [json!(null), json!(0), json!(1990), json!({}), json!(true)] {
            assert_eq!(date(&garbage), None, "{garbage}");
        }
    }

    #[test]
    fn two_digit_years_are_in_the_past_or_in_this_century() {
        let today = Century::NotAfter((2026, 11, 22));
        for (value, century, year) in [
            ("22-Nov-26", today, 2026),
            ("23-Nov-26", today, 1926),
            ("01-Jan-27", today, 1927),
            ("01-Jan-00", today, 2000),
            ("31-Dec-99", today, 1999),
            // 1900 was not a leap year.
            ("29-Feb-00", today, 2000),
            ("01-Jan-31", Century::This, 2031),
            ("31-Dec-99", Century::This, 2099),
        ] {
            assert_eq!(parse(value, century).map(|day| day.0), Some(year), "{value}");
        }
        assert_eq!(expiry(&json!("12-Jan-31")).as_deref(), Some("12/01/2031"));
        assert_eq!(expiry(&json!("12-Jan-2031")).as_deref(), Some("12/01/2031"));
    }

    #[test]
    fn days_since_1970_convert_to_dates_and_back() {
        for (days, day) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (-25_567, (1900, 1, 1)),
            (20_779, (2026, 11, 22)),
        ] {
            assert_eq!(day_from_epoch_days(days), day, "{days}");
            assert_eq!(epoch_days(day), days, "{day:?}");
        }
    }
}
