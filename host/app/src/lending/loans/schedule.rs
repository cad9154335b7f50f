//! The schedule of a loan: due dates, and the allocation of repayments to installments. Pure.
//!
//! Spreads the repaid amount over the installments, oldest due date first.

use serde::Deserialize;

use super::store::Installment;
use crate::money::prelude::*;

/// The part of a repayment that is allocated to one installment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    #[serde(rename = "due_date")]
    pub due_at: Timestamp,
    pub amount: Minor,
}

/// Allocates a repayment to the installments, oldest due date first, and returns the parts. An
/// excess over the remaining amounts is not allocated.
pub fn allocate(entries: &mut [Installment], amount: Minor) -> Vec<Allocation> {
    let mut left = amount.0;
    let mut parts = Vec::new();
    // The sort is stable: installments with the same due date stay in schedule order.
    let mut by_date: Vec<&mut Installment> = entries.iter_mut().collect();
    by_date.sort_by_key(|entry| entry.due_at);
    for entry in by_date {
        let taken = left.min(entry.remaining.0);
        if taken > 0 {
            entry.remaining.0 -= taken;
            left -= taken;
            parts.push(Allocation { due_at: entry.due_at, amount: Minor(taken) });
        }
    }
    parts
}

/// Makes the allocated parts outstanding again, each in the installments of its due date. A part
/// that does not fit there, because the schedule was resent, goes to the latest paid installments.
/// Returns the restored amount.
pub fn revert(entries: &mut [Installment], parts: &[Allocation]) -> Minor {
    let total: i64 = parts.iter().map(|part| part.amount.0).sum();
    let mut left = 0;
    let mut by_date: Vec<&mut Installment> = entries.iter_mut().collect();
    by_date.sort_by_key(|entry| std::cmp::Reverse((entry.due_at, entry.number)));
    for part in parts {
        let of_date = by_date.iter_mut().filter(|entry| entry.due_at == part.due_at);
        left += restore(of_date, part.amount.0);
    }
    left = restore(by_date.iter_mut(), left);
    Minor(total - left)
}

/// Makes up to `amount` of paid installments outstanding. Returns the rest.
fn restore<'e, 'i: 'e>(
    entries: impl Iterator<Item = &'e mut &'i mut Installment>,
    mut amount: i64,
) -> i64 {
    for entry in entries {
        let restored = amount.min(entry.amount.0 - entry.remaining.0);
        entry.remaining.0 += restored;
        amount -= restored;
    }
    amount
}

/// Returns the earliest due date with a remaining amount.
pub fn next_due(entries: &[Installment]) -> Option<Timestamp> {
    entries.iter().filter(|entry| entry.remaining > Minor(0)).map(|entry| entry.due_at).min()
}

/// Returns the remaining amount of an installment after `pending` charges succeed.
pub fn uncovered_amount(entries: &[Installment], number: i64, pending: Minor) -> Minor {
    let mut entries = entries.to_vec();
    allocate(&mut entries, pending);
    entries.iter().find(|entry| entry.number == number).map_or(Minor(0), |entry| entry.remaining)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(number: i64, due: i64, amount: i64, remaining: i64) -> Installment {
        Installment {
            company_id: "c".into(),
            loan_id: "l".into(),
            number,
            due_at: Timestamp(due),
            amount: Minor(amount),
            remaining: Minor(remaining),
            automatic: true,
        }
    }

    fn remaining(entries: &[Installment]) -> Minor {
        Minor(entries.iter().map(|entry| entry.remaining.0).sum())
    }

    fn left(entries: &[Installment]) -> Vec<i64> {
        entries.iter().map(|entry| entry.remaining.0).collect()
    }

    #[test]
    fn a_repayment_goes_to_the_oldest_due_date_first() {
        for (dues, amount, expected, next) in [
            ([1, 2, 3], 0, [100, 100, 100], Some(1)),
            ([1, 2, 3], 1, [99, 100, 100], Some(1)),
            ([1, 2, 3], 100, [0, 100, 100], Some(2)),
            ([1, 2, 3], 150, [0, 50, 100], Some(2)),
            ([1, 2, 3], 300, [0, 0, 0], None),
            ([1, 2, 3], 301, [0, 0, 0], None),
            ([3, 1, 2], 150, [100, 0, 50], Some(2)),
            ([1, 1, 1], 150, [0, 50, 100], Some(1)),
        ] {
            let mut entries: Vec<Installment> =
                (1..).zip(dues).map(|(number, due)| entry(number, due, 100, 100)).collect();
            let parts = allocate(&mut entries, Minor(amount));
            assert_eq!(left(&entries), expected, "{amount} over {dues:?}");
            assert_eq!(next_due(&entries), next.map(Timestamp), "{amount} over {dues:?}");
            let spread: i64 = parts.iter().map(|part| part.amount.0).sum();
            assert_eq!(spread, amount.min(300));
        }
    }

    #[test]
    fn pending_charges_reduce_the_uncovered_amount() {
        let entries = [entry(1, 1, 100, 40), entry(2, 2, 100, 100)];
        for (number, pending, expected) in [
            (1, 0, 40),
            (1, 30, 10),
            (1, 40, 0),
            (2, 0, 100),
            (2, 40, 100),
            (2, 90, 50),
            (2, 900, 0),
            (3, 0, 0),
        ] {
            assert_eq!(
                uncovered_amount(&entries, number, Minor(pending)),
                Minor(expected),
                "{number} {pending}"
            );
        }
        assert_eq!(remaining(&entries), Minor(140));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_goes_below_zero(
            dues in prop::collection::vec((0..5_i64, 1..1_000_i64), 1..8),
            amounts in prop::collection::vec(0..900_i64, 0..12),
        ) {
            let mut entries: Vec<Installment> = (1..)
                .zip(&dues)
                .map(|(number, (due, amount))| entry(number, *due, *amount, *amount))
                .collect();
            for amount in amounts {
                let before = remaining(&entries);
                let parts = allocate(&mut entries, Minor(amount));
                let spread: i64 = parts.iter().map(|part| part.amount.0).sum();
                prop_assert_eq!(spread, amount.min(before.0));
                prop_assert_eq!(remaining(&entries).0, before.0 - spread);
                prop_assert!(entries.iter().all(|entry| (0..=entry.amount.0).contains(&entry.remaining.0)));
                // A later due date is not touched while an earlier one has a remaining amount.
                let open = entries.iter().filter(|e| e.remaining.0 > 0).map(|e| e.due_at).min();
                let touched = entries.iter().filter(|e| e.remaining < e.amount).map(|e| e.due_at).max();
                prop_assert!(open.zip(touched).is_none_or(|(open, touched)| touched <= open));
            }
        }
    }
}
