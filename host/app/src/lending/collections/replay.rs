//! What a policy would have done with an installment. Pure.
//!
//! An attempt that was made on the same day with the same instrument has its outcome. Any other one
//! is an estimate: it succeeds with the rate of the company's attempts. Weights are in millionths,
//! so that no amount passes through a float.

use super::{
    decide::{Attempt, AttemptOutcome, Due, Instrument, InstrumentId, Reason, Step, next_step},
    policy::{DAY_MS, Policy},
};
use crate::money::prelude::*;

/// The weight of what certainly happens.
pub const ONE: i64 = 1_000_000;

/// Attempts of one kind, and how many succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    pub attempts: i64,
    pub succeeded: i64,
}

impl Rate {
    pub fn count(&mut self, is_success: bool) {
        self.attempts += 1;
        self.succeeded += i64::from(is_success);
    }

    /// The rate in millionths; 0 without attempts.
    fn millionths(self) -> i64 {
        if self.attempts == 0 { 0 } else { self.succeeded * ONE / self.attempts }
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

/// What a policy would have done, with weights in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub attempts: i64,
    /// The part of `attempts` whose outcome is an estimate.
    pub estimated: i64,
    pub collected: i64,
    /// Fees times the weight of their attempts.
    pub fees: i64,
}

/// Replays an installment until `until`. `actual` are the attempts that were made.
pub fn replay(
    policy: &Policy,
    due: Due,
    actual: &[Attempt],
    instruments: &[Instrument],
    mut rates: Rates,
    until: Timestamp,
) -> Replayed {
    let (mut result, mut history) = (Replayed::default(), Vec::new());
    let (mut weight, mut now) = (ONE, due.due_at);
    while weight > 0 {
        let Step::Charge { instrument, at, reason, .. } =
            next_step(policy, due, &history, instruments, now)
        else {
            return result;
        };
        if at >= until {
            return result;
        }
        let fee = instruments.iter().find(|one| one.id == instrument).map_or(0, |one| one.fee.0);
        let known = actual.iter().find(|made| {
            made.instrument.as_ref() == Some(&instrument) && (made.at.0 - at.0).abs() < DAY_MS
        });
        result.attempts += weight;
        let (success, decline) = match known.map(|made| made.outcome) {
            Some(AttemptOutcome::Repaid) => (ONE, None),
            Some(AttemptOutcome::Failed { decline, .. }) => (0, decline),
            // The provider took it back, or has not decided: nothing follows.
            Some(AttemptOutcome::Returned | AttemptOutcome::Pending) => return result,
            None => {
                result.estimated += weight;
                (rates.of(&instrument, reason == Reason::Retry).millionths(), None)
            }
        };
        let collected = weight * success / ONE;
        result.collected += collected;
        result.fees += fee * collected;
        weight -= collected;
        let outcome = AttemptOutcome::Failed { decline, certain_at: at };
        history.push(Attempt { instrument: Some(instrument), at, fee: Minor(fee), outcome });
        now = at;
    }
    result
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

    fn made(day_number: i64, outcome: AttemptOutcome) -> Attempt {
        Attempt { instrument: Some(card()), at: day(day_number), fee: Minor(0), outcome }
    }

    #[test]
    fn attempts_that_were_made_have_their_outcome_and_others_the_rate() {
        let policy = Policy {
            active: true,
            instruments: vec![InstrumentKind::DefaultCard],
            days: vec![0, 3, 7],
            hours: Hours { from: 8, to: 20 },
            utc_offset: "+00:00".to_owned(),
            utc_offsets: BTreeMap::new(),
            max_attempts: 5,
            max_fees: None,
            min_partial_debit: None,
            events: Reminders::default(),
        };
        let failed = |decline| AttemptOutcome::Failed { decline, certain_at: day(0) };
        let mut rates = Rates::default();
        *rates.of(&card(), true) = Rate { attempts: 4, succeeded: 1 };
        let quarter = ONE / 4;
        let replayed = |attempts, estimated, collected| Replayed {
            attempts,
            estimated,
            collected,
            fees: 20 * collected,
        };
        for (actual, until, expected) in [
            (vec![made(0, AttemptOutcome::Repaid)], 30, replayed(ONE, 0, ONE)),
            // A quarter of the retries succeeds, then a quarter of the rest.
            (
                vec![made(0, failed(None))],
                30,
                replayed(ONE + ONE + 3 * quarter, ONE + 3 * quarter, quarter + 3 * quarter / 4),
            ),
            (vec![made(0, failed(None))], 5, replayed(2 * ONE, ONE, quarter)),
            (vec![made(0, failed(Some(Decline::Expired)))], 30, replayed(ONE, 0, 0)),
            (
                vec![made(0, failed(None)), made(3, AttemptOutcome::Repaid)],
                30,
                replayed(2 * ONE, 0, ONE),
            ),
            (vec![made(0, AttemptOutcome::Pending)], 30, replayed(ONE, 0, 0)),
            // First charges have no rate: none was made.
            (vec![], 1, replayed(ONE, ONE, 0)),
        ] {
            let due = Due { due_at: DUE_AT, offset_minutes: 0 };
            let kind = InstrumentKind::DefaultCard;
            let instruments = [Instrument { kind, id: card(), fee: Minor(20) }];
            let found = replay(&policy, due, &actual, &instruments, rates, day(until));
            assert_eq!(found, expected, "{actual:?} until {until}");
        }
    }
}
