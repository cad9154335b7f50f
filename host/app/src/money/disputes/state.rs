//! Decides the effects of a provider's report of a dispute. Pure.

use super::DisputeState;
use crate::money::prelude::*;
use tollhouse_plugins::DisputeStatus;

/// A dispute and its charge before the report.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub state: DisputeState,
    /// The amount in the ledger account `disputed`.
    pub held: Minor,
    /// The amount that the ledger has given to the provider for it.
    pub lost: Minor,
    /// The money of the charge that the ledger holds in other accounts.
    pub available: Minor,
    /// The provider's fees that are not booked yet. The payer gets the amount without deduction.
    pub fees: Minor,
    /// The provider reported that it returned the whole charge: nothing is released, and the fees
    /// are booked.
    pub is_reversed: bool,
}

/// The next state, and the amounts that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub state: DisputeState,
    /// From the account that holds the money of the charge to `disputed`.
    pub hold: Minor,
    /// From `disputed` to the provider: the payer gets it.
    pub lose: Minor,
    /// From the bearer of the fees to the provider: the payer gets it.
    pub fee: Minor,
    /// From `disputed` back to the account that held it.
    pub release: Minor,
    /// The alarm, if an operator must act.
    pub alarm: Option<&'static str>,
}

impl Change {
    pub fn none(state: DisputeState) -> Change {
        let none = Minor(0);
        Change { state, hold: none, lose: none, fee: none, release: none, alarm: None }
    }
}

/// Decides the effects of a reported status and amount. A dispute that has ended keeps its state; a
/// lost one still takes money that was not available before.
pub fn decide(before: Standing, status: DisputeStatus, amount: Minor) -> Change {
    let Standing { state, held, lost, available, fees, is_reversed } = before;
    let none = Change::none(state);
    let target = Minor((amount.0 - lost.0).clamp(0, held.0 + available.0));
    let hold = Minor((target.0 - held.0).max(0));
    let release = Minor(if is_reversed { 0 } else { (held.0 - target.0).max(0) });
    let unbooked = if is_reversed { 0 } else { fees.0 };
    let fee = Minor((amount.0 - lost.0 - target.0).clamp(0, unbooked));
    match (state, status) {
        (DisputeState::Won, DisputeStatus::Won) => none,
        (DisputeState::Lost, DisputeStatus::Lost) => Change { hold, lose: hold, fee, ..none },
        (DisputeState::Won | DisputeState::Lost, _) => {
            Change { alarm: Some("dispute changed after its end"), ..none }
        }
        (_, DisputeStatus::Open) => Change { state: DisputeState::Open, hold, release, ..none },
        (_, DisputeStatus::Answered) => {
            Change { state: DisputeState::Answered, hold, release, ..none }
        }
        (_, DisputeStatus::Lost) => {
            let lose = Minor(held.0 + hold.0 - release.0);
            Change { state: DisputeState::Lost, hold, lose, fee, release, ..none }
        }
        // One of the reports is wrong. The money stays with the provider until an operator decides.
        (_, DisputeStatus::Won) if is_reversed => {
            let alarm = Some("dispute won after a reversal");
            Change { state: DisputeState::Won, lose: held, alarm, ..none }
        }
        (_, DisputeStatus::Won) => Change { state: DisputeState::Won, release: held, ..none },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use DisputeState as State;
    use DisputeStatus as Status;

    fn standing(state: State, held: i64, available: i64) -> Standing {
        let (held, available) = (Minor(held), Minor(available));
        let none = Minor(0);
        Standing { state, held, lost: none, available, fees: none, is_reversed: false }
    }

    #[test]
    fn each_report_has_its_effects() {
        // Before; report: status and amount; state, held, lost, released.
        for (before, (status, amount), (state, moves)) in [
            ((State::Open, 0, 100), (Status::Open, 60), (State::Open, [60, 0, 0])),
            ((State::Open, 0, 40), (Status::Open, 60), (State::Open, [40, 0, 0])),
            ((State::Open, 60, 40), (Status::Open, 60), (State::Open, [0, 0, 0])),
            ((State::Open, 60, 40), (Status::Open, 80), (State::Open, [20, 0, 0])),
            ((State::Open, 60, 40), (Status::Answered, 50), (State::Answered, [0, 0, 10])),
            ((State::Answered, 60, 40), (Status::Open, 60), (State::Open, [0, 0, 0])),
            ((State::Answered, 60, 40), (Status::Won, 60), (State::Won, [0, 0, 60])),
            ((State::Answered, 60, 40), (Status::Lost, 60), (State::Lost, [0, 60, 0])),
            ((State::Open, 60, 40), (Status::Lost, 20), (State::Lost, [0, 20, 40])),
            ((State::Open, 60, 40), (Status::Lost, 100), (State::Lost, [40, 100, 0])),
            ((State::Open, 0, 100), (Status::Lost, 100), (State::Lost, [100, 100, 0])),
            ((State::Open, 0, 0), (Status::Lost, 100), (State::Lost, [0, 0, 0])),
        ] {
            let (before_state, held, available) = before;
            let change = decide(standing(before_state, held, available), status, Minor(amount));
            let [hold, lose, release] = moves.map(Minor);
            let expected = Change { hold, lose, release, ..Change::none(state) };
            assert_eq!(change, expected, "{before:?}");
        }
    }

    #[test]
    fn a_lost_dispute_returns_the_fees_that_the_money_lacks() {
        // Of 100 taken, 3 are fees. Before; amount; lost, fee.
        for ((state, held, available, lost), amount, moves) in [
            ((State::Open, 97, 0, 0), 100, [97, 3]),
            ((State::Open, 0, 97, 0), 100, [97, 3]),
            ((State::Open, 60, 37, 0), 60, [60, 0]),
            ((State::Open, 97, 0, 0), 99, [97, 2]),
            // More than what was taken, after a refund.
            ((State::Open, 47, 0, 0), 100, [47, 3]),
            // The success arrived later.
            ((State::Lost, 0, 97, 0), 100, [97, 3]),
            ((State::Lost, 0, 0, 97), 100, [0, 3]),
            ((State::Lost, 0, 0, 100), 100, [0, 0]),
        ] {
            let before =
                Standing { lost: Minor(lost), fees: Minor(3), ..standing(state, held, available) };
            let change = decide(before, Status::Lost, Minor(amount));
            assert_eq!([change.lose.0, change.fee.0], moves, "{before:?}");
            for status in [Status::Open, Status::Answered, Status::Won] {
                assert_eq!(decide(before, status, Minor(amount)).fee, Minor(0));
            }
        }
    }

    #[test]
    fn a_lost_dispute_takes_later_what_it_lacks() {
        let lost = |lost, available| {
            let before = Standing { lost: Minor(lost), ..standing(State::Lost, 0, available) };
            let change = decide(before, Status::Lost, Minor(60));
            assert_eq!((change.hold, change.release, change.alarm), (change.lose, Minor(0), None));
            change.lose.0
        };
        assert_eq!(
            [lost(0, 0), lost(0, 100), lost(20, 100), lost(20, 30), lost(60, 40)],
            [0, 60, 40, 30, 0]
        );
    }

    #[test]
    fn contradictions_move_no_money_to_the_company() {
        let late = decide(standing(State::Won, 0, 100), Status::Lost, Minor(60));
        assert_eq!((late.state, late.hold, late.alarm.is_some()), (State::Won, Minor(0), true));
        for held in [0, 60] {
            let reversed = Standing { is_reversed: true, ..standing(State::Open, held, 0) };
            let won = decide(reversed, Status::Won, Minor(60));
            assert_eq!((won.lose.0, won.release.0, won.alarm.is_some()), (held, 0, true));
            let less = decide(reversed, Status::Lost, Minor(20));
            assert_eq!((less.lose.0, less.release.0), (held, 0));
        }
    }

    proptest! {
        #[test]
        fn no_report_creates_or_keeps_money(
            state in prop::sample::select(vec![State::Open, State::Answered]),
            status in prop::sample::select(vec![Status::Open, Status::Answered, Status::Won, Status::Lost]),
            held in 0_i64..200, available in 0_i64..200, fees in 0_i64..20, amount in 0_i64..500,
            is_reversed: bool,
        ) {
            let before =
                Standing { fees: Minor(fees), is_reversed, ..standing(state, held, available) };
            let change = decide(before, status, Minor(amount));
            let after = held + change.hold.0 - change.lose.0 - change.release.0;
            prop_assert!(change.hold.0 >= 0 && change.hold.0 <= available && after >= 0);
            if matches!(change.state, State::Won | State::Lost) {
                prop_assert_eq!(after, 0);
            }
            let given = change.lose.0 + change.fee.0;
            prop_assert!(status != Status::Lost || is_reversed || given <= amount);
            let unbooked = if is_reversed { 0 } else { fees };
            prop_assert!(change.fee.0 >= 0 && change.fee.0 <= unbooked);
            prop_assert!(!is_reversed || change.release.0 == 0);
        }
    }
}
