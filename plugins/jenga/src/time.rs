//! Dates in Kenya, which is UTC+3 all year.

use std::time::{SystemTime, UNIX_EPOCH};

const EAT_SECONDS: u64 = 3 * 3_600;
const DAY_SECONDS: u64 = 86_400;

/// Returns the date of the call as `YYYY-MM-DD`.
#[expect(
    clippy::disallowed_methods,
    reason = "in a component the clock is the host's and stands still during a call"
)]
pub(crate) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs())
}

/// Formats seconds since 1970 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn date(unix: u64) -> String {
    let days = (unix + EAT_SECONDS) / DAY_SECONDS + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_in_east_africa_time() {
        for (unix, expected) in [
            (0, "1970-01-01"),
            (1_709_240_399, "2024-02-29"),
            (1_709_240_400, "2024-03-01"),
            (4_102_444_799, "2100-01-01"),
        ] {
            assert_eq!(date(unix), expected);
        }
    }
}
