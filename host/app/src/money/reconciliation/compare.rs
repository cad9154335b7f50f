//! Compares a listed transaction with the host's record of it. Pure.

use super::TransactionKind;
use crate::money::prelude::*;
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};
use tollhouse_plugins::ListedTransaction;

/// What the host has recorded of a listed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub money: Money,
    /// `None` if unknown.
    pub fees: Option<Minor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Reconciled")]
pub enum Comparison {
    Matched,
    /// The host has no such transaction.
    NotRecorded,
    AmountDiffers,
    FeeDiffers,
}

text_columns!(Comparison);

impl Comparison {
    pub const DIFFERENT: [Comparison; 3] =
        [Comparison::NotRecorded, Comparison::AmountDiffers, Comparison::FeeDiffers];

    /// Returns the kind of the exception. `None`: no difference.
    pub fn exception(self, kind: TransactionKind) -> Option<&'static str> {
        use TransactionKind::{Dispute, Payment, Refund};
        match (self, kind) {
            (Comparison::Matched, _) => None,
            (Comparison::NotRecorded, Payment) => Some("payment_not_recorded"),
            (Comparison::NotRecorded, Refund) => Some("refund_not_recorded"),
            (Comparison::NotRecorded, Dispute) => Some("dispute_not_recorded"),
            (Comparison::AmountDiffers, Payment) => Some("payment_amount_differs"),
            (Comparison::AmountDiffers, Refund) => Some("refund_amount_differs"),
            (Comparison::AmountDiffers, Dispute) => Some("dispute_amount_differs"),
            (Comparison::FeeDiffers, _) => Some("fee_differs"),
        }
    }
}

/// Compares amounts and currencies, then the fees if both sides know them.
pub fn compare(listed: &ListedTransaction, recorded: Option<&Recorded>) -> Comparison {
    let Some(recorded) = recorded else { return Comparison::NotRecorded };
    match (listed.fees, recorded.fees) {
        _ if listed.amount != recorded.money => Comparison::AmountDiffers,
        (Some(listed), Some(recorded)) if listed != recorded => Comparison::FeeDiffers,
        _ => Comparison::Matched,
    }
}

/// Returns how much more of the company's money the provider has than the records say; negative if
/// it has less. Zero if the currencies differ, because the ledger does not convert.
pub fn excess(listed: &ListedTransaction, recorded: Option<&Recorded>) -> Minor {
    let is_same_currency =
        recorded.is_none_or(|recorded| recorded.money.currency == listed.amount.currency);
    if !is_same_currency {
        return Minor(0);
    }
    // If only one side knows the fees, they apply to both.
    let fees_recorded = recorded.and_then(|recorded| recorded.fees);
    let fees_listed = listed.fees.or(fees_recorded).unwrap_or_default();
    let fees_recorded = match recorded {
        Some(_) => fees_recorded.or(listed.fees).unwrap_or_default(),
        None => Minor(0),
    };
    let amount = listed.amount.minor.0 - recorded.map_or(0, |recorded| recorded.money.minor.0);
    let fees = fees_listed.0 - fees_recorded.0;
    Minor(match listed.kind.into() {
        TransactionKind::Payment => amount - fees,
        TransactionKind::Refund | TransactionKind::Dispute => -amount - fees,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollhouse_plugins::ListedKind;

    fn money(minor: i64) -> Money {
        Money { minor: Minor(minor), currency: "NGN".into() }
    }

    fn listed(kind: ListedKind, minor: i64, fees: Option<i64>) -> ListedTransaction {
        ListedTransaction {
            kind,
            id: "1".to_owned(),
            service_ref: "order-1".to_owned(),
            transaction_id: "1".to_owned(),
            amount: money(minor),
            fees: fees.map(Minor),
            at: Timestamp(0),
        }
    }

    #[test]
    fn each_difference_is_named_with_its_excess() {
        use Comparison::{AmountDiffers, FeeDiffers, Matched, NotRecorded};
        use ListedKind::{Dispute, Payment, Refund};
        for (kind, (amount, fees), recorded, expected) in [
            (Payment, (1_000, Some(15)), Some((1_000, Some(15))), (Matched, 0)),
            (Payment, (1_000, None), Some((1_000, Some(15))), (Matched, 0)),
            (Payment, (1_000, Some(15)), Some((1_000, None)), (Matched, 0)),
            (Payment, (1_000, Some(20)), Some((1_000, Some(15))), (FeeDiffers, -5)),
            (Payment, (1_000, Some(10)), Some((1_000, Some(15))), (FeeDiffers, 5)),
            (Payment, (1_200, Some(15)), Some((1_000, Some(15))), (AmountDiffers, 200)),
            (Payment, (900, Some(20)), Some((1_000, Some(15))), (AmountDiffers, -105)),
            (Payment, (900, None), Some((1_000, Some(15))), (AmountDiffers, -100)),
            (Payment, (1_000, Some(15)), None, (NotRecorded, 985)),
            (Refund, (1_000, None), Some((1_000, None)), (Matched, 0)),
            (Refund, (1_000, None), None, (NotRecorded, -1_000)),
            (Refund, (1_200, None), Some((1_000, None)), (AmountDiffers, -200)),
            (Refund, (1_000, Some(50)), None, (NotRecorded, -1_050)),
            (Dispute, (1_000, None), None, (NotRecorded, -1_000)),
            (Dispute, (400, None), Some((1_000, None)), (AmountDiffers, 600)),
        ] {
            let listed = listed(kind, amount, fees);
            let recorded = recorded
                .map(|(minor, fees)| Recorded { money: money(minor), fees: fees.map(Minor) });
            let found = (compare(&listed, recorded.as_ref()), excess(&listed, recorded.as_ref()).0);
            assert_eq!(found, expected, "{listed:?} {recorded:?}");
            let is_matched = expected.0 == Matched;
            assert_eq!(expected.0.exception(kind.into()).is_none(), is_matched);
        }
    }

    #[test]
    fn amounts_in_different_currencies_are_not_subtracted() {
        let listed = listed(ListedKind::Payment, 1_000, None);
        let in_cedis = Money { minor: Minor(1_000), currency: "GHS".into() };
        let recorded = Recorded { money: in_cedis, fees: None };
        assert_eq!(compare(&listed, Some(&recorded)), Comparison::AmountDiffers);
        assert_eq!(excess(&listed, Some(&recorded)), Minor(0));
    }
}
