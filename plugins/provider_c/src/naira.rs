//! Monnify's only currency. Debits and refunds do not name it, so an amount in another currency
//! would be taken for naira.

use tollhouse_plugin::amount::Major;
use tollhouse_plugin::types::{Fault, Money};

pub(crate) const CURRENCY: &str = "NGN";

/// Returns an order's amount in Monnify's format.
pub(crate) fn from_money(money: &Money) -> Result<Major, Fault> {
    match money.currency.as_str() {
        CURRENCY => Ok(Major::from(money)),
        _ => Err(Fault::invalid("currency", "Monnify supports naira only")),
    }
}
