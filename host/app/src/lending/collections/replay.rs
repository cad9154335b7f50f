//! Replays a policy on a past installment. Pure.
//!
//! A replayed attempt has the outcome of an actual one on the same day, with the same instrument
//! and for at least the same amount. If there is none, its outcome is an estimate, from the rates
//! at which the company's attempts succeed in whole or in part. Weights are in millionths, so that
//! no amount passes through a float.

use super::{
    decide::{Attempt, AttemptOutcome, Due, Instrument, InstrumentId, Reason, Step, next_step},
    policy::Policy,
};
use crate::money::prelude::*;

/// The weight of certainty.
pub const ONE: i64 = 1_000_000;

/// An actual attempt.
#[derive(Clone, Debug)]
pub struct Made {
    pub attempt: Attempt,
    /// The amount that was taken, if it succeeded.
    pub taken: Minor,
    pub requested: Minor,
}

impl Made {
    /// Returns the part of the requested amount that was taken, in millionths.
    fn share(&self) -> i64 {
        match self.attempt.outcome {
            AttemptOutcome::Repaid if self.requested > self.taken => {
                let share = i128::from(self.taken.0) * i128::from(ONE);
                i64::try_from(share / i128::from(self.requested.0)).unwrap_or(ONE)
            }
            AttemptOutcome::Repaid => ONE,
            _ => 0,
        }
    }
}

/// Attempts of one kind that have an outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub attempts: i64,
    /// Those that took the whole amount.
    pub whole: i64,
    /// Those that took a part of it.
    pub partial: i64,
    /// The sum of these parts, in millionths.
    shares: i64,
}

impl Rate {
    pub fn count(&mut self, made: &Made) {
        let share = made.share();
        self.attempts += 1;
        self.whole += i64::from(share == ONE);
        if 0 < share && share < ONE {
            self.partial += 1;
            self.shares += share;
        }
    }

    /// Returns the expected result of an attempt. If no attempts were counted, nothing is taken.
    fn expected(self, permits_partial: bool) -> Expected {
        let of_attempts = |sum: i64| if self.attempts == 0 { 0 } else { sum / self.attempts };
        let whole = of_attempts(self.whole * ONE);
        if !permits_partial {
            return Expected { whole, any: whole, share: whole, decline: None };
        }
        let any = of_attempts((self.whole + self.partial) * ONE);
        let share = of_attempts(self.whole * ONE + self.shares);
        Expected { whole, any, share, decline: None }
    }
}

/// The rates of a company: of first charges of an instrument and of later ones, by channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    pub cards: [Rate; 2],
    pub mandates: [Rate; 2],
}

impl Rates {
    /// Returns the rate of attempts with an instrument, later ones than its first if `is_retry`.
    pub fn of(&mut self, instrument: &InstrumentId, is_retry: bool) -> &mut Rate {
        let rates = match instrument {
            InstrumentId::Card(_) => &mut self.cards,
            InstrumentId::Mandate(_) => &mut self.mandates,
        };
        &mut rates[usize::from(is_retry)]
    }
}

/// The result of a replay, with weights in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub attempts: i64,
    /// The part of `attempts` whose outcome is an estimate.
    pub estimated: i64,
    /// The probability that at least a part was taken.
    pub collected: i64,
    /// The expected part of the amount that was taken.
    pub recovered: i64,
    /// Fees times the weight of their attempts.
    pub fees: i64,
}

/// The expected result of an attempt, with probabilities in millionths.
struct Expected {
    /// The probability that the whole remaining amount is taken.
    whole: i64,
    /// The probability that at least a part of it is taken.
    any: i64,
    /// The part that is taken on average.
    share: i64,
    /// Why nothing is taken, if that is known.
    decline: Option<Decline>,
}

/// An installment after some attempts, in millionths.
struct Progress {
    /// The probability that an amount remains.
    open: i64,
    /// The probability that nothing was taken.
    untouched: i64,
    /// The part of the amount that remains, on average.
    left: i64,
}

/// Replays an installment until `until`. `actual` are the attempts that were actually made.
pub fn replay(
    policy: &Policy,
    due: Due,
    actual: &[Made],
    instruments: &[Instrument],
    mut rates: Rates,
    until: Timestamp,
) -> Replayed {
    let (mut result, mut history) = (Replayed::default(), Vec::new());
    let mut progress = Progress { open: ONE, untouched: ONE, left: ONE };
    let mut now = due.due_at;
    while progress.open > 0 {
        let Step::Charge { instrument, at, day, reason } =
            next_step(policy, due, &history, instruments, now)
        else {
            return result;
        };
        if at >= until {
            return result;
        }
        let fee = instruments.iter().find(|one| one.id == instrument).map_or(0, |one| one.fee.0);
        let slot = policy.slots(due.due_at, due.offset_minutes).find(|slot| slot.day == day);
        let known = actual.iter().find(|made| {
            made.attempt.instrument.as_ref() == Some(&instrument)
                && slot.is_some_and(|slot| slot.has(made.attempt.at))
                && made.requested >= progress.left_of(actual)
        });
        result.attempts += progress.open;
        let expected = match known {
            // It was reversed or is pending: no attempt follows.
            Some(made) => match known_outcome(policy, made) {
                Some(expected) => expected,
                None => return result,
            },
            None => {
                result.estimated += progress.open;
                let rate = rates.of(&instrument, reason == Reason::Retry);
                rate.expected(policy.min_partial_debit.is_some())
            }
        };
        let decline = expected.decline;
        result.fees += fee * (progress.open * expected.any / ONE);
        progress.apply(&expected, &mut result);
        let outcome = AttemptOutcome::Failed { decline, certain_at: at };
        history.push(Attempt { instrument: Some(instrument), at, fee: Minor(fee), outcome });
        now = at;
    }
    result
}

/// Returns the result of an actual attempt under the policy. `None`: no attempt follows.
fn known_outcome(policy: &Policy, made: &Made) -> Option<Expected> {
    let decline = match made.attempt.outcome {
        AttemptOutcome::Returned | AttemptOutcome::Pending => return None,
        AttemptOutcome::Failed { decline, .. } => decline,
        AttemptOutcome::Repaid => None,
    };
    let none = |decline| Expected { whole: 0, any: 0, share: 0, decline };
    Some(match made.share() {
        0 => none(decline),
        ONE => Expected { whole: ONE, any: ONE, share: ONE, decline },
        share if policy.min_partial_debit.is_some_and(|least| made.taken >= least) => {
            Expected { whole: 0, any: ONE, share, decline }
        }
        // The account had less than the policy takes.
        _ => none(Some(Decline::InsufficientFunds)),
    })
}

impl Progress {
    /// Returns the remaining part of the largest amount that an attempt requested.
    fn left_of(&self, actual: &[Made]) -> Minor {
        let most = actual.iter().map(|made| made.requested.0).max().unwrap_or_default();
        let left = i128::from(most) * i128::from(self.left) / i128::from(ONE);
        Minor(i64::try_from(left).unwrap_or(i64::MAX))
    }

    fn apply(&mut self, expected: &Expected, result: &mut Replayed) {
        let Expected { whole, any, share, .. } = expected;
        let collected = self.untouched * any / ONE;
        let recovered = self.left * share / ONE;
        result.collected += collected;
        result.recovered += recovered;
        self.untouched -= collected;
        self.left -= recovered;
        self.open -= self.open * whole / ONE;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::lending::collections::policy::{Hours, InstrumentKind, Reminders};

    const DUE_AT: Timestamp = Timestamp(20_000 * DAY_MS);

    fn day(days: i64) -> Timestamp {
        Timestamp(DUE_AT.0 + days * DAY_MS)
    }

    fn card() -> InstrumentId {
        InstrumentId::Card("card".into())
    }

    fn took(day_number: i64, taken: i64, outcome: AttemptOutcome) -> Made {
        let at = day(day_number);
        let attempt = Attempt { instrument: Some(card()), at, fee: Minor(0), outcome };
        Made { attempt, taken: Minor(taken), requested: Minor(1_000) }
    }

    fn made(day_number: i64, outcome: AttemptOutcome) -> Made {
        took(day_number, 1_000, outcome)
    }

    fn policy(min_partial_debit: Option<Minor>) -> Policy {
        Policy {
            active: true,
            instruments: vec![InstrumentKind::DefaultCard],
            days: vec![0, 3, 7],
            hours: Hours { from: 8, to: 20 },
            utc_offset: "+00:00".to_owned(),
            utc_offsets: BTreeMap::new(),
            max_attempts: 5,
            max_fees: None,
            min_partial_debit,
            events: Reminders::default(),
        }
    }

    fn replayed(policy: &Policy, actual: &[Made], rates: Rates, until: i64) -> Replayed {
        let due = Due { due_at: DUE_AT, offset_minutes: 0 };
        let kind = InstrumentKind::DefaultCard;
        let instruments = [Instrument { kind, id: card(), fee: Minor(20) }];
        replay(policy, due, actual, &instruments, rates, day(until))
    }

    #[test]
    fn attempts_that_were_made_have_their_outcome_and_others_the_rate() {
        let failed = |decline| AttemptOutcome::Failed { decline, certain_at: day(0) };
        let mut rates = Rates::default();
        *rates.of(&card(), true) = Rate { attempts: 4, whole: 1, ..Rate::default() };
        let quarter = ONE / 4;
        let expected = |attempts, estimated, collected| Replayed {
            attempts,
            estimated,
            collected,
            recovered: collected,
            fees: 20 * collected,
        };
        for (actual, until, outcome) in [
            (vec![made(0, AttemptOutcome::Repaid)], 30, expected(ONE, 0, ONE)),
            // A quarter of the retries succeeds, then a quarter of the rest.
            (
                vec![made(0, failed(None))],
                30,
                expected(ONE + ONE + 3 * quarter, ONE + 3 * quarter, quarter + 3 * quarter / 4),
            ),
            (vec![made(0, failed(None))], 5, expected(2 * ONE, ONE, quarter)),
            (vec![made(0, failed(Some(Decline::Expired)))], 30, expected(ONE, 0, 0)),
            (
                vec![made(0, failed(None)), made(3, AttemptOutcome::Repaid)],
                30,
                expected(2 * ONE, 0, ONE),
            ),
            (vec![made(0, AttemptOutcome::Pending)], 30, expected(ONE, 0, 0)),
            // First charges have no rate: none was made.
            (vec![], 1, expected(ONE, ONE, 0)),
        ] {
            let found = replayed(&policy(None), &actual, rates, until);
            assert_eq!(found, outcome, "{actual:?} until {until}");
        }
    }

    #[test]
    fn a_partial_debit_leaves_the_rest_open_if_the_policy_permits_it() {
        let part = took(0, 400, AttemptOutcome::Repaid);
        let rest = took(3, 600, AttemptOutcome::Repaid);
        let rest = Made { requested: Minor(600), ..rest };
        for (least, actual, (attempts, collected, recovered, fees)) in [
            // The other days have no rate.
            (Some(300), vec![part.clone()], (3, ONE, 400_000, 20)),
            (Some(300), vec![part.clone(), rest.clone()], (2, ONE, ONE, 40)),
            // As a whole charge it would have been declined.
            (Some(500), vec![part.clone()], (3, 0, 0, 0)),
            (None, vec![part.clone()], (3, 0, 0, 0)),
        ] {
            let found = replayed(&policy(least.map(Minor)), &actual, Rates::default(), 30);
            let estimated = (attempts - i64::try_from(actual.len()).expect("a number")) * ONE;
            let (attempts, fees) = (attempts * ONE, fees * ONE);
            let expected = Replayed { attempts, estimated, collected, recovered, fees };
            assert_eq!(found, expected, "{least:?} {actual:?}");
        }
        // A charge of the rest succeeded, which does not imply that one of the whole would have.
        let found = replayed(&policy(None), &[part, rest], Rates::default(), 30);
        assert_eq!((found.collected, found.estimated), (0, 2 * ONE));
    }

    #[test]
    fn an_attempt_has_the_outcome_of_its_own_day() {
        let later = |made: Made, ms| {
            let at = made.attempt.at.plus_ms(ms);
            Made { attempt: Attempt { at, ..made.attempt }, ..made }
        };
        // Jobs run some time after the hour at which a day's charges begin.
        let part = later(took(0, 500, AttemptOutcome::Repaid), 9 * 3_600_000);
        let failed = AttemptOutcome::Failed { decline: None, certain_at: day(1) };
        let rest = Made { requested: Minor(500), ..later(made(1, failed), 8 * 3_600_000) };
        let daily = Policy { days: vec![0, 1], ..policy(Some(Minor(100))) };
        let found = replayed(&daily, &[part, rest], Rates::default(), 30);
        assert_eq!((found.recovered, found.estimated), (500_000, 0));
    }

    #[test]
    fn estimates_take_parts_at_the_rate_of_the_attempts_that_did() {
        let mut rate = Rate::default();
        let failed = AttemptOutcome::Failed { decline: None, certain_at: day(0) };
        for attempt in [
            made(0, AttemptOutcome::Repaid),
            took(0, 500, AttemptOutcome::Repaid),
            made(0, failed),
            made(0, failed),
        ] {
            rate.count(&attempt);
        }
        let mut rates = Rates::default();
        *rates.of(&card(), false) = rate;
        let one = |least: Option<i64>| replayed(&policy(least.map(Minor)), &[], rates, 1);
        let (whole, part) = (one(None), one(Some(100)));
        assert_eq!(
            (whole.collected, whole.recovered, whole.fees),
            (250_000, 250_000, 20 * 250_000)
        );
        assert_eq!((part.collected, part.recovered, part.fees), (500_000, 375_000, 20 * 500_000));
    }
}
