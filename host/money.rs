//! Amounts: integer minor units inside, decimal numbers in the major unit on the wire.

use rust_decimal::{Decimal, prelude::ToPrimitive};
use serde::{Serialize, Serializer};
use serde_json::Number;

/// The most that one amount may be: far below where sums in `i64` or a reader's doubles lose a unit.
pub const MOST_MINOR: i64 = 1_000_000_000_000_000;

/// The currency in which wallets are billed.
pub const BILLING_CURRENCY: &str = "NGN";

/// An amount in minor units (kobo, cent), shown as a decimal number in the major unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Minor(pub i64);

/// An amount and its currency, an ISO 4217 code with two decimals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Money {
    pub minor: Minor,
    pub currency: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountError {
    TooManyDecimals,
    TooLarge,
}

impl Minor {
    /// The amount that a JSON number in the major unit stands for. No float is involved: the number's own digits are read.
    pub fn from_major(number: &Number) -> Result<Minor, AmountError> {
        let text = number.to_string();
        let major = text
            .parse::<Decimal>()
            .or_else(|_| Decimal::from_scientific(&text))
            .map_err(|_| AmountError::TooLarge)?;
        let minor = major.checked_mul(Decimal::ONE_HUNDRED).ok_or(AmountError::TooLarge)?;
        if !minor.fract().is_zero() {
            return Err(AmountError::TooManyDecimals);
        }
        match minor.to_i64() {
            Some(minor) if minor.abs() <= MOST_MINOR => Ok(Minor(minor)),
            _ => Err(AmountError::TooLarge),
        }
    }

    #[must_use]
    pub fn to_major(self) -> Number {
        let text = Decimal::new(self.0, 2).normalize().to_string();
        text.parse().expect("a decimal is a JSON number")
    }
}

impl Serialize for Minor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_major().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<i64, AmountError> {
        let number: Number = serde_json::from_str(text).unwrap();
        Minor::from_major(&number).map(|minor| minor.0)
    }

    #[test]
    fn amounts_are_read_digit_by_digit() {
        for (text, minor) in [
            ("50", Ok(50_00)),
            ("50.5", Ok(50_50)),
            ("50.05", Ok(50_05)),
            ("50.050", Ok(50_05)),
            ("0.29", Ok(29)), // 28.999… as a float
            ("1e3", Ok(100_000)),
            ("-3", Ok(-3_00)),
            ("0.001", Err(AmountError::TooManyDecimals)),
            ("10000000000000", Ok(MOST_MINOR)),
            ("10000000000000.01", Err(AmountError::TooLarge)),
            ("1e400", Err(AmountError::TooLarge)),
        ] {
            assert_eq!(read(text), minor, "{text}");
        }
    }

    #[test]
    fn amounts_are_written_in_the_major_unit() {
        for (minor, text) in [(0, "0"), (5, "0.05"), (50_00, "50"), (50_50, "50.5"), (-1, "-0.01")]
        {
            assert_eq!(serde_json::to_string(&Minor(minor)).unwrap(), text);
        }
    }
}
