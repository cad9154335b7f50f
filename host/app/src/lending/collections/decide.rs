//! Decides what to charge next for an installment. Pure, and tested by tables.
//!
//! An attempt without an outcome stops everything: an unknown outcome is not a failure. After a
//! hard decline an instrument is not charged again for the installment.

use super::policy::{InstrumentKind, Policy, Slot};
use crate::{
    lending::mandates::MandateId,
    money::{cards::CardId, prelude::*},
};
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstrumentId {
    Card(CardId),
    Mandate(MandateId),
}

/// A payment instrument that can be charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    pub kind: InstrumentKind,
    pub id: InstrumentId,
    /// The fee for an attempt.
    pub fee: Minor,
}

/// An earlier attempt to collect an installment.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// `None`: neither a card nor a mandate, for example by a host of the previous version.
    pub instrument: Option<InstrumentId>,
    pub at: Timestamp,
    pub fee: Minor,
    pub outcome: AttemptOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The outcome is not known yet.
    Pending,
    Repaid,
    /// The provider reversed the repayment.
    Returned,
    Failed {
        decline: Option<Decline>,
        /// When the failure is certain: a lost request may still arrive.
        certain_at: Timestamp,
    },
}

/// An installment to collect.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub due_at: Timestamp,
    /// The offset from UTC in the user's country.
    pub offset_minutes: i64,
}

/// Why an attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CollectionReason")]
pub enum Reason {
    /// The first attempt for the installment.
    First,
    /// Another attempt with the same instrument.
    Retry,
    /// The first attempt with another instrument.
    NextInstrument,
}

text_columns!(Reason);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Charge an instrument. A time in the past means now.
    Charge {
        instrument: InstrumentId,
        at: Timestamp,
        day: i64,
        reason: Reason,
    },
    /// Nothing can be charged before this time.
    Wait(Timestamp),
    Stop(Stop),
}

/// Why nothing more is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// An attempt has no outcome.
    Pending,
    /// The provider reversed a repayment.
    Returned,
    /// The maximum number of attempts is reached.
    Attempts,
    /// No fee is within the maximum.
    Fees,
    /// The last day is over.
    Over,
}

/// Decides what to charge next for an installment that is not paid. `instruments` are in the order
/// of preference within their kind.
pub fn next_step(
    policy: &Policy,
    due: Due,
    history: &[Attempt],
    instruments: &[Instrument],
    now: Timestamp,
) -> Step {
    if history.iter().any(|attempt| attempt.outcome == AttemptOutcome::Pending) {
        return Step::Stop(Stop::Pending);
    }
    if history.iter().any(|attempt| attempt.outcome == AttemptOutcome::Returned) {
        return Step::Stop(Stop::Returned);
    }
    if history.len() >= usize::try_from(policy.max_attempts).unwrap_or_default() {
        return Step::Stop(Stop::Attempts);
    }
    let chargeable = chargeable(policy, history, instruments);
    let affordable: Vec<&Instrument> = {
        let spent = history.iter().map(Attempt::spent).sum::<i64>();
        let fits =
            |one: &&Instrument| policy.max_fees.is_none_or(|most| spent + one.fee.0 <= most.0);
        chargeable.iter().copied().filter(fits).collect()
    };
    if affordable.is_empty() && !chargeable.is_empty() {
        return Step::Stop(Stop::Fees);
    }
    let earliest = history.iter().filter_map(Attempt::certain_at).max().unwrap_or(now).max(now);
    for slot in policy.slots(due.due_at, due.offset_minutes) {
        let at = slot.from.max(earliest);
        if at >= slot.to {
            continue;
        }
        match affordable.iter().find(|one| !is_tried(history, &one.id, &slot)) {
            Some(one) => {
                let reason = reason(history, &one.id);
                return Step::Charge { instrument: one.id.clone(), at, day: slot.day, reason };
            }
            // The user may have another instrument by then.
            None if affordable.is_empty() && slot.from > now => return Step::Wait(at),
            None => {}
        }
    }
    Step::Stop(Stop::Over)
}

/// Returns the instruments that the policy permits, in its order, without those that were
/// permanently declined.
fn chargeable<'i>(
    policy: &Policy,
    history: &[Attempt],
    instruments: &'i [Instrument],
) -> Vec<&'i Instrument> {
    let is_over = |id: &InstrumentId| {
        let declines = history.iter().filter(|attempt| attempt.instrument.as_ref() == Some(id));
        declines.filter_map(Attempt::decline).any(Decline::is_hard)
    };
    let of_kind = |kind: &InstrumentKind| {
        let kind = *kind;
        instruments.iter().filter(move |one| one.kind == kind)
    };
    let permitted = policy.instruments.iter().flat_map(of_kind);
    permitted.filter(|one| !is_over(&one.id)).collect()
}

fn is_tried(history: &[Attempt], id: &InstrumentId, slot: &Slot) -> bool {
    let is_same = |attempt: &&Attempt| attempt.instrument.as_ref() == Some(id);
    history.iter().filter(is_same).any(|attempt| slot.has(attempt.at))
}

fn reason(history: &[Attempt], id: &InstrumentId) -> Reason {
    let was_charged = history.iter().any(|attempt| attempt.instrument.as_ref() == Some(id));
    match (history.is_empty(), was_charged) {
        (true, _) => Reason::First,
        (false, true) => Reason::Retry,
        (false, false) => Reason::NextInstrument,
    }
}

impl Attempt {
    /// The time after which a request that the provider does not know can no longer arrive.
    pub const LOST_MS: i64 = DAY_MS;

    fn spent(&self) -> i64 {
        match self.outcome {
            AttemptOutcome::Failed { .. } => 0,
            AttemptOutcome::Pending | AttemptOutcome::Repaid | AttemptOutcome::Returned => {
                self.fee.0
            }
        }
    }

    fn decline(&self) -> Option<Decline> {
        match self.outcome {
            AttemptOutcome::Failed { decline, .. } => decline,
            _ => None,
        }
    }

    fn certain_at(&self) -> Option<Timestamp> {
        match self.outcome {
            AttemptOutcome::Failed { certain_at, .. } => Some(certain_at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
