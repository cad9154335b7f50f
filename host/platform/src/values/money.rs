//! Amounts: integers in hundredths of the major unit inside the host, decimal numbers in the major
//! unit on the wire, integers in the currency's minor unit in the plugin contract.

use crate::values::id::text_types;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Number;

/// Maximum of one amount: far below where sums in `i64` overflow or doubles of clients lose a unit.
pub const MAX_MINOR: i64 = 1_000_000_000_000_000;

/// The currency in which wallets are billed.
pub const BILLING_CURRENCY: &str = "NGN";

text_types! {
    /// A currency, as an ISO 4217 code with at most two decimals, such as `NGN` or `XOF`.
    Currency;
}

/// An amount in hundredths of the major unit (kobo, cent), serialized as a decimal number in the
/// major unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, sqlx::Type, JsonSchema)]
#[sqlx(transparent)]
#[schemars(
    inline,
    rename = "Amount",
    with = "Number",
    description = "",
    extend("examples" = [Minor(250_050)])
)]
pub struct Minor(pub i64);

/// An amount and its currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    #[serde(rename = "amount")]
    pub minor: Minor,
    pub currency: Currency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountError {
    TooManyDecimals,
    TooLarge,
}

impl Minor {
    /// Converts a JSON number in the major unit. All of its digits are read; nothing is rounded.
    pub fn from_major(number: &Number) -> Result<Minor, AmountError> {
        let text = number.to_string();
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{}{decimals}", whole.trim_start_matches('-'));
        let significant = all.trim_end_matches('0');
        if significant.is_empty() {
            return Ok(Minor(0));
        }
        // In minor units, the amount is `significant` followed by `zeros` zeros.
        let zeros = exponent.parse::<i32>().map_err(|_| AmountError::TooLarge)?;
        let shift = i64::try_from(all.len() - significant.len()) // trimmed zeros
            .and_then(|trimmed| Ok(trimmed - i64::try_from(decimals.len())?))
            .map_err(|_| AmountError::TooLarge)?;
        let zeros = i64::from(zeros) + shift + 2;
        if zeros < 0 {
            return Err(AmountError::TooManyDecimals);
        }
        let power = u32::try_from(zeros).ok().and_then(|zeros| 10_i64.checked_pow(zeros));
        let minor = significant.parse::<i64>().ok().zip(power).and_then(|(n, p)| n.checked_mul(p));
        match minor {
            Some(minor) if minor <= MAX_MINOR && whole.starts_with('-') => Ok(Minor(-minor)),
            Some(minor) if minor <= MAX_MINOR => Ok(Minor(minor)),
            _ => Err(AmountError::TooLarge),
        }
    }

    /// Returns the amount in the major unit, if it has no decimals.
    pub fn to_whole_major(self) -> Option<i64> {
        (self.0 % 100 == 0).then_some(self.0 / 100)
    }

    pub fn to_major(self) -> Number {
        let text = Decimal::new(self.0, 2).normalize().to_string();
        text.parse().expect("a decimal is a JSON number")
    }
}

impl Currency {
    /// Returns the number of decimals: 2 for `NGN`, 0 for `XOF`. `None` for an unknown code.
    pub fn decimals(&self) -> Option<u16> {
        iso_currency::Currency::from_code(self)?.exponent()
    }

    /// Returns the smallest amount.
    pub fn unit(&self) -> Minor {
        Minor(if self.decimals() == Some(0) { 100 } else { 1 })
    }
}

impl Money {
    /// Creates an amount from the currency's minor unit. `None` if it is out of range.
    pub fn from_iso_minor(minor: u64, currency: Currency) -> Option<Money> {
        let minor = i64::try_from(minor).ok()?.checked_mul(currency.unit().0)?;
        (minor <= MAX_MINOR).then_some(Money { minor: Minor(minor), currency })
    }

    /// Returns the amount in the currency's minor unit, rounded down.
    pub fn to_iso_minor(&self) -> u64 {
        u64::try_from(self.minor.0 / self.currency.unit().0).unwrap_or(0)
    }
}

impl Serialize for Minor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_major().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Minor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Minor, D::Error> {
        let number = Number::deserialize(deserializer)?;
        Minor::from_major(&number).map_err(|_| D::Error::custom("not an amount with two decimals"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minor_unit_is_that_of_the_currency() {
        for (code, decimals, hundredths, iso) in [
            ("NGN", Some(2), 250_050, 250_050),
            ("KES", Some(2), 250_000, 250_000),
            ("XOF", Some(0), 250_000, 2_500),
            ("UGX", Some(0), 100, 1),
            ("RWF", Some(0), 0, 0),
            ("KWD", Some(3), 250_000, 250_000),
            ("OLD", None, 250_000, 250_000),
        ] {
            let money = Money { minor: Minor(hundredths), currency: code.into() };
            assert_eq!(
                (money.currency.decimals(), money.to_iso_minor()),
                (decimals, iso),
                "{code}"
            );
            assert_eq!(Money::from_iso_minor(iso, code.into()), Some(money));
        }
        let most = u64::try_from(MAX_MINOR).unwrap();
        for (minor, code, in_range) in [
            (most, "NGN", true),
            (most + 1, "NGN", false),
            (most / 100, "XOF", true),
            (most / 100 + 1, "XOF", false),
            (u64::MAX, "XOF", false),
        ] {
            assert_eq!(Money::from_iso_minor(minor, code.into()).is_some(), in_range, "{minor}");
        }
    }

    fn read(text: &str) -> Result<i64, AmountError> {
        let number: Number = serde_json::from_str(text).unwrap();
        Minor::from_major(&number).map(|minor| minor.0)
    }

    #[test]
    fn amounts_are_read_exactly() {
        for (text, minor) in [
            ("50", Ok(50_00)),
            ("50.5", Ok(50_50)),
            ("50.05", Ok(50_05)),
            ("50.050", Ok(50_05)),
            ("0.29", Ok(29)), // 28.999… as a float
            ("1e3", Ok(100_000)),
            ("-3", Ok(-3_00)),
            ("0.001", Err(AmountError::TooManyDecimals)),
            ("10000000000000", Ok(MAX_MINOR)),
            ("10000000000000.01", Err(AmountError::TooLarge)),
            ("-10000000000000.01", Err(AmountError::TooLarge)),
            ("-92233720368547758.08", Err(AmountError::TooLarge)), // i64::MIN in minor units
            ("1e400", Err(AmountError::TooLarge)),
            ("1e99999999999", Err(AmountError::TooLarge)),
            ("0e99999999999", Ok(0)),
            ("0.000", Ok(0)),
            ("-0.5", Ok(-50)),
            ("2500e-2", Ok(25_00)),
            ("1.005E+1", Ok(10_05)),
            ("1e-3", Err(AmountError::TooManyDecimals)),
            ("50.00999999999999999999999999999999", Err(AmountError::TooManyDecimals)),
            ("5000.999999999999999999999999999999999e-2", Err(AmountError::TooManyDecimals)),
            ("50.0000000000000000000000000000000000000000", Ok(50_00)),
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
