//! The only currency. A mandate's debit and a refund do not even name it: any other would be taken for naira.

use tollhouse_plugin::amount::Major;
use tollhouse_plugin::types::{Fault, Money};

pub(crate) const CURRENCY: &str = "NGN";

/// An order's amount as Monnify wants it.
pub(crate) fn from_money(money: &Money) -> Result<Major, Fault> {
    match money.currency.as_str() {
        CURRENCY => Ok(Major::from(money)),
        _ => Err(Fault::invalid("currency", "Monnify knows naira only")),
    }
}
