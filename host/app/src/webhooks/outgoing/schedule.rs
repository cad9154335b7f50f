//! The retry schedule of deliveries.

use tollhouse_platform::{clock::Timestamp, random::Random};

/// Seconds between attempts: eight attempts in total.
const DELAYS: [i64; 7] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
/// Maximum `Retry-After` that is honoured, in seconds.
const MAX_RETRY_AFTER_SECONDS: i64 = 86_400;
/// Duration of a run of failures after which an endpoint is disabled.
const MAX_FAILING_SECONDS: i64 = 5 * 86_400;
/// Gap between two failures that ends a run: longer than any delay between attempts of an event.
const RUN_GAP_SECONDS: i64 = MAX_RETRY_AFTER_SECONDS + 6 * 3_600;

/// Returns the time of the next attempt after `tries` consecutive failures, not before
/// `Retry-After`; `None` if there are no more attempts.
pub fn next_attempt(
    now: Timestamp,
    tries: i64,
    retry_after_seconds: Option<i64>,
    random: &Random,
) -> Option<Timestamp> {
    let delay = *DELAYS.get(usize::try_from(tries - 1).ok()?)?;
    let jitter_ms = random.up_to(max_jitter_ms(delay));
    let requested = retry_after_seconds.unwrap_or(0).clamp(0, MAX_RETRY_AFTER_SECONDS);
    Some(now.plus_seconds(delay.max(requested)).plus_ms(jitter_ms))
}

/// Returns the maximum jitter: a fifth of the delay, or 2 s for the first, short one.
fn max_jitter_ms(delay: i64) -> i64 {
    if delay == DELAYS[0] { 2_000 } else { delay * 1_000 / 5 }
}

/// A failure at `now` starts a new run if the endpoint's last failure is older than this.
pub fn run_begins_after(now: Timestamp) -> Timestamp {
    now.plus_seconds(-RUN_GAP_SECONDS)
}

pub fn has_failed_too_long(failing_since: Timestamp, now: Timestamp) -> bool {
    now >= failing_since.plus_seconds(MAX_FAILING_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_attempts_with_bounded_jitter() {
        let random = Random::seeded(1);
        for (tries, delay, jitter_ms) in [
            (1, 5, 2_000),
            (2, 300, 60_000),
            (3, 1_800, 360_000),
            (4, 7_200, 1_440_000),
            (5, 18_000, 3_600_000),
            (6, 36_000, 7_200_000),
            (7, 36_000, 7_200_000),
        ] {
            for _ in 0..100 {
                let at = next_attempt(Timestamp(0), tries, None, &random).unwrap().0;
                assert!((delay * 1_000..=delay * 1_000 + jitter_ms).contains(&at), "{tries}: {at}");
            }
        }
        assert_eq!(next_attempt(Timestamp(0), 8, None, &random), None);
    }

    #[test]
    fn retry_after_is_honoured_within_a_day() {
        let random = Random::seeded(1);
        let at = |retry_after| {
            next_attempt(Timestamp(0), 1, Some(retry_after), &random).unwrap().unix_seconds()
        };
        assert!((120..=122).contains(&at(120)));
        assert!((5..=7).contains(&at(1)));
        assert!((86_400..=86_402).contains(&at(i64::MAX)));
    }

    #[test]
    fn the_longest_delay_does_not_end_a_run_of_failures() {
        for (delay, retry_after) in
            DELAYS.into_iter().flat_map(|delay| [(delay, 0), (delay, MAX_RETRY_AFTER_SECONDS)])
        {
            let longest = delay.max(retry_after) + max_jitter_ms(delay) / 1_000;
            assert!(run_begins_after(Timestamp(0).plus_seconds(longest)) < Timestamp(0), "{delay}");
        }
    }

    #[test]
    fn five_days_of_failures_are_too_long() {
        let day = 86_400;
        assert!(!has_failed_too_long(Timestamp(0), Timestamp(0).plus_seconds(5 * day - 1)));
        assert!(has_failed_too_long(Timestamp(0), Timestamp(0).plus_seconds(5 * day)));
    }
}
