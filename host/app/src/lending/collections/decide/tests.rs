//! What is charged next, as tables. Times are hours after the due date, a day in UTC.

use std::collections::BTreeMap;

use super::*;
use crate::lending::collections::policy::{Hours, Reminders};

const HOUR_MS: i64 = 3_600_000;
/// A due date at 00:00 UTC.
const DUE: i64 = 20_000 * DAY_MS;

fn hour(hours: i64) -> Timestamp {
    Timestamp(DUE + hours * HOUR_MS)
}

/// Charges on the due date and three days later, from 8:00 to 20:00.
fn policy() -> Policy {
    Policy {
        active: true,
        instruments: vec![
            InstrumentKind::DefaultCard,
            InstrumentKind::OtherCards,
            InstrumentKind::Mandates,
        ],
        days: vec![0, 3],
        hours: Hours { from: 8, to: 20 },
        utc_offset: "+00:00".to_owned(),
        utc_offsets: BTreeMap::new(),
        max_attempts: 5,
        max_fees: None,
        min_partial_debit: None,
        events: Reminders::default(),
    }
}

fn card(id: &str) -> InstrumentId {
    InstrumentId::Card(id.into())
}

fn mandate(id: &str) -> InstrumentId {
    InstrumentId::Mandate(id.into())
}

/// A default card, another card and a mandate, with fees of 20, 20 and 10.
fn instruments() -> Vec<Instrument> {
    vec![
        Instrument { kind: InstrumentKind::OtherCards, id: card("other"), fee: Minor(20) },
        Instrument { kind: InstrumentKind::Mandates, id: mandate("bank"), fee: Minor(10) },
        Instrument { kind: InstrumentKind::DefaultCard, id: card("default"), fee: Minor(20) },
    ]
}

fn attempt(instrument: InstrumentId, at: i64, outcome: AttemptOutcome) -> Attempt {
    Attempt { instrument: Some(instrument), at: hour(at), fee: Minor(20), outcome }
}

fn failed(instrument: InstrumentId, at: i64, decline: Option<Decline>) -> Attempt {
    attempt(instrument, at, AttemptOutcome::Failed { decline, certain_at: hour(at) })
}

fn charge(instrument: InstrumentId, at: i64, day: i64, reason: Reason) -> Step {
    Step::Charge { instrument, at: hour(at), day, reason }
}

const DUE_IN_UTC: Due = Due { due_at: Timestamp(DUE), offset_minutes: 0 };

fn next(history: &[Attempt], now: i64) -> Step {
    next_step(&policy(), DUE_IN_UTC, history, &instruments(), hour(now))
}

#[test]
fn instruments_are_charged_in_order_within_the_hours_of_each_day() {
    let soft = Some(Decline::InsufficientFunds);
    let first = [failed(card("default"), 8, soft)];
    let second = [first[0].clone(), failed(card("other"), 9, soft)];
    let third = [second.to_vec(), vec![failed(mandate("bank"), 9, None)]].concat();
    for (history, now, expected) in [
        (&[][..], -50, charge(card("default"), 8, 0, Reason::First)),
        (&[], 7, charge(card("default"), 8, 0, Reason::First)),
        (&[], 19, charge(card("default"), 19, 0, Reason::First)),
        // The hours of the due date are over.
        (&[], 20, charge(card("default"), 80, 3, Reason::First)),
        (&[], 85, charge(card("default"), 85, 3, Reason::First)),
        (&[], 92, Step::Stop(Stop::Over)),
        (&first, 9, charge(card("other"), 9, 0, Reason::NextInstrument)),
        (&second, 9, charge(mandate("bank"), 9, 0, Reason::NextInstrument)),
        // Each instrument once a day.
        (&third, 9, charge(card("default"), 80, 3, Reason::Retry)),
        (&third, 100, Step::Stop(Stop::Over)),
    ] {
        assert_eq!(next(history, now), expected, "at {now} after {history:?}");
    }
}

#[test]
fn an_attempt_without_an_outcome_stops_all_others() {
    let pending =
        [failed(card("default"), 8, None), attempt(card("other"), 9, AttemptOutcome::Pending)];
    for now in [9, 80, 81, 1_000] {
        assert_eq!(next(&pending, now), Step::Stop(Stop::Pending));
    }
    let returned = [attempt(card("default"), 8, AttemptOutcome::Returned)];
    assert_eq!(next(&returned, 80), Step::Stop(Stop::Returned));
    // A part was repaid: the rest is collected on the next day.
    let repaid = [attempt(card("default"), 8, AttemptOutcome::Repaid)];
    assert_eq!(next(&repaid, 21), charge(card("default"), 80, 3, Reason::Retry));
}

#[test]
fn a_hard_decline_ends_an_instrument_and_a_soft_one_does_not() {
    use Decline::{Blocked, Expired, InsufficientFunds, Limit, LostOrStolen, Other, TryLater};
    for (decline, is_hard) in [
        (Expired, true),
        (LostOrStolen, true),
        (Blocked, true),
        (InsufficientFunds, false),
        (Limit, false),
        (TryLater, false),
        (Other, false),
    ] {
        let history = [failed(card("default"), 8, Some(decline))];
        let expected = match is_hard {
            true => charge(card("other"), 80, 3, Reason::NextInstrument),
            false => charge(card("default"), 80, 3, Reason::Retry),
        };
        assert_eq!(next(&history, 21), expected, "{decline:?}");
    }
    let all: Vec<Attempt> = [card("default"), card("other"), mandate("bank")]
        .map(|id| failed(id, 8, Some(Blocked)))
        .to_vec();
    // The user may have another card by then.
    assert_eq!(next(&all, 9), Step::Wait(hour(80)));
    assert_eq!(next(&all, 81), Step::Stop(Stop::Over));
}

#[test]
fn attempts_and_fees_are_limited() {
    let soft = |at| failed(card("default"), at, None);
    let five: Vec<Attempt> = (8..13).map(soft).collect();
    assert_eq!(next(&five, 80), Step::Stop(Stop::Attempts));
    let repaid = attempt(card("default"), 8, AttemptOutcome::Repaid);
    for (max_fees, history, expected) in [
        (40, vec![repaid.clone()], charge(card("default"), 80, 3, Reason::Retry)),
        // Only a debit is within the maximum.
        (30, vec![repaid.clone()], charge(mandate("bank"), 80, 3, Reason::NextInstrument)),
        (29, vec![repaid], Step::Stop(Stop::Fees)),
        // Fees of failed attempts are returned.
        (20, vec![soft(8)], charge(card("default"), 80, 3, Reason::Retry)),
        (0, vec![], Step::Stop(Stop::Fees)),
    ] {
        let limited = Policy { max_fees: Some(Minor(max_fees)), ..policy() };
        let step = next_step(&limited, DUE_IN_UTC, &history, &instruments(), hour(21));
        assert_eq!(step, expected, "{max_fees}");
    }
}

#[test]
fn only_permitted_instruments_are_charged() {
    let mandates = Policy { instruments: vec![InstrumentKind::Mandates], ..policy() };
    let step = next_step(&mandates, DUE_IN_UTC, &[], &instruments(), hour(8));
    assert_eq!(step, charge(mandate("bank"), 8, 0, Reason::First));
    let step = next_step(&mandates, DUE_IN_UTC, &[], &instruments()[..1], hour(8));
    assert_eq!(step, Step::Wait(hour(80)));
    let step = next_step(&policy(), DUE_IN_UTC, &[], &[], hour(0));
    assert_eq!(step, Step::Wait(hour(8)));
}

#[test]
fn hours_are_those_of_the_users_country() {
    for (due_at, offset_minutes, expected) in [
        (DUE, 60, 7),
        (DUE, -180, 11),
        // 23:30 UTC is the next day, at 00:30.
        (DUE + 47 * HOUR_MS / 2, 60, 31),
        (DUE + 47 * HOUR_MS / 2, -60, 72 + 9),
    ] {
        let due = Due { due_at: Timestamp(due_at), offset_minutes };
        let Step::Charge { at, .. } = next_step(&policy(), due, &[], &instruments(), hour(-48))
        else {
            panic!("nothing is charged");
        };
        assert_eq!(at, hour(expected), "{due_at} {offset_minutes}");
    }
    // Never before the due time.
    let late = Due { due_at: hour(12), offset_minutes: 0 };
    let step = next_step(&policy(), late, &[], &instruments(), hour(0));
    assert_eq!(step, charge(card("default"), 12, 0, Reason::First));
}

#[test]
fn a_lost_request_is_a_failure_only_once_it_cannot_arrive() {
    let lost = AttemptOutcome::Failed { decline: None, certain_at: hour(8 + 24) };
    let history = [attempt(card("default"), 8, lost)];
    let daily = Policy { days: vec![0, 1], ..policy() };
    let step = next_step(&daily, DUE_IN_UTC, &history, &instruments(), hour(9));
    assert_eq!(step, charge(card("default"), 32, 1, Reason::Retry));
}
