//! The states of mandates, and their transitions. Pure.

use super::{EnumString, IntoStaticStr, text_columns};
use crate::money::prelude::*;
use tollhouse_plugins::MandateStatus;

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DirectDebitStatus")]
pub enum MandateState {
    /// The payer has not authorized it.
    #[default]
    Created,
    /// The payer has authorized it, and the bank has not activated it.
    Approved,
    /// It can be debited.
    Ready,
    Cancelled,
}

text_columns!(MandateState);

/// What happened to a mandate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The provider reports this status.
    Seen(MandateStatus),
    /// The company deleted it.
    Deleted,
    /// It is not ready after 30 days.
    Overdue,
}

/// Returns the next state; `None` if the state stays. A report may be older than the state, so no
/// state returns to an earlier one.
pub fn decide(state: MandateState, fact: Fact) -> Option<MandateState> {
    use MandateState::{Approved, Cancelled, Created, Ready};
    match (state, fact) {
        (Cancelled, _) | (Ready, Fact::Overdue) => None,
        (_, Fact::Deleted | Fact::Overdue | Fact::Seen(MandateStatus::Cancelled)) => {
            Some(Cancelled)
        }
        (Created, Fact::Seen(MandateStatus::Approved)) => Some(Approved),
        (Created | Approved, Fact::Seen(MandateStatus::Ready)) => Some(Ready),
        (Created | Approved | Ready, Fact::Seen(_)) => None,
    }
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Time after which a mandate that is not ready is cancelled.
pub const OVERDUE_SECONDS: i64 = 30 * DAY;
/// Interval of the queries of a ready mandate: some providers send no webhook when a mandate is
/// revoked.
const READY_SECONDS: i64 = 7 * DAY;

/// Returns the time of the next query without a webhook; `None` if nothing can change.
pub fn next_check(state: MandateState, created_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    match state {
        MandateState::Cancelled => None,
        MandateState::Ready => Some(now.plus_seconds(READY_SECONDS)),
        MandateState::Created | MandateState::Approved => {
            let hourly = (1..=72).map(|n| n * HOUR);
            let soon = [MINUTE, 5 * MINUTE, 15 * MINUTE].into_iter().chain(hourly);
            let mut schedule = soon.chain((4..=30).map(|n| n * DAY));
            let next = schedule.find(|after| created_at.plus_seconds(*after) > now);
            Some(next.map_or(now, |after| created_at.plus_seconds(after)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MandateState::{Approved, Cancelled, Created, Ready};

    #[test]
    fn each_fact_has_its_effect() {
        let facts = [
            Fact::Seen(MandateStatus::Created),
            Fact::Seen(MandateStatus::Approved),
            Fact::Seen(MandateStatus::Ready),
            Fact::Seen(MandateStatus::Cancelled),
            Fact::Deleted,
            Fact::Overdue,
        ];
        for (state, expected) in [
            (Created, [Created, Approved, Ready, Cancelled, Cancelled, Cancelled]),
            (Approved, [Approved, Approved, Ready, Cancelled, Cancelled, Cancelled]),
            (Ready, [Ready, Ready, Ready, Cancelled, Cancelled, Ready]),
            (Cancelled, [Cancelled; 6]),
        ] {
            for (fact, expected) in facts.into_iter().zip(expected) {
                let next = decide(state, fact);
                assert_eq!(next.unwrap_or(state), expected, "{state:?} {fact:?}");
                assert_ne!(next, Some(state), "{state:?} {fact:?}");
            }
        }
    }

    #[test]
    fn a_mandate_is_queried_until_it_ends() {
        let next = |state, age| {
            next_check(state, Timestamp(0), Timestamp(age * 1_000)).map(Timestamp::unix_seconds)
        };
        for (state, age, expected) in [
            (Created, 0, Some(MINUTE)),
            (Created, MINUTE, Some(5 * MINUTE)),
            (Approved, 2 * HOUR, Some(3 * HOUR)),
            (Created, 3 * DAY, Some(4 * DAY)),
            (Created, OVERDUE_SECONDS, Some(OVERDUE_SECONDS)),
            (Ready, DAY, Some(8 * DAY)),
            (Cancelled, DAY, None),
        ] {
            assert_eq!(next(state, age), expected, "{state:?} {age}");
        }
    }
}
