//! Amounts as many providers write them: in the currency's major unit, with decimals. Exact: no float is ever made of one.

use std::fmt;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::types::Money;

/// An amount of a currency with two decimals (naira, dollar). In JSON it is written as a number, and read from a number or a
/// text. What is finer than the minor unit, negative or no decimal at all cannot be read.
///
/// Read it straight from an answer's text, as [`crate::told::Told`] does: on the way through a `serde_json::Value` it would be
/// a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Major {
    minor: u64,
}

impl Major {
    /// So much of the minor unit: kobo, cents.
    pub fn of_minor(minor: u64) -> Major {
        Major { minor }
    }

    /// In the minor unit.
    pub fn minor(self) -> u64 {
        self.minor
    }

    /// As money of a currency.
    pub fn money(self, currency: &str) -> Money {
        Money { minor: self.minor, currency: currency.to_owned() }
    }

    /// Reads "2500.5", "2500.50" and "25005e-1".
    pub fn read(text: &str) -> Option<Major> {
        let text = text.trim();
        let (decimal, exponent) = match text.split_once(['e', 'E']) {
            Some((decimal, exponent)) => (decimal, exponent.parse::<i8>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        // How many places the digits, taken for a whole number, are short of the minor unit.
        let places = 2 + i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        let unit = 10_u64.checked_pow(u32::try_from(places.unsigned_abs()).ok()?)?;
        let digits: u64 = digits.parse().ok()?;
        let minor = match places {
            0.. => digits.checked_mul(unit)?,
            _ if digits.is_multiple_of(unit) => digits / unit,
            _ => return None,
        };
        Some(Major { minor })
    }
}

impl From<&Money> for Major {
    fn from(money: &Money) -> Major {
        Major { minor: money.minor }
    }
}

/// "2500" or "2500.05".
impl fmt::Display for Major {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.minor / 100, self.minor % 100);
        match rest {
            0 => write!(f, "{whole}"),
            _ => write!(f, "{whole}.{rest:02}"),
        }
    }
}

impl Serialize for Major {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Major {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Major, D::Error> {
        let written = Box::<RawValue>::deserialize(deserializer)?;
        Major::read(written.get().trim_matches('"'))
            .ok_or_else(|| D::Error::custom("no amount of a currency with two decimals"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_to_the_last_digit() {
        for (written, minor) in [
            ("60", 6_000),
            ("0", 0),
            ("0.84", 84),
            ("59.1", 5_910),
            ("59.10", 5_910),
            ("59.100", 5_910),
            ("0.07", 7),
            ("1e3", 100_000),
            ("1E+2", 10_000),
            ("25005e-1", 250_050),
            ("100e-2", 100),
            ("\"30.00\"", 3_000),
            ("\" 2500.5 \"", 250_050),
            ("1.1", 110),
            // A float has too few digits for these.
            ("4503599627370497.01", 450_359_962_737_049_701),
            ("90071992547409.93", 9_007_199_254_740_993),
            ("184467440737095516.15", u64::MAX),
        ] {
            let read: Major = serde_json::from_str(written).unwrap();
            assert_eq!(read.minor(), minor, "{written}");
        }
    }

    #[test]
    fn what_is_no_amount_is_not_rounded() {
        for written in [
            "0.841",
            "59.999999999999999999",
            "1e-3",
            "-1",
            "-0.5",
            "\"-1\"",
            "\"\"",
            "\".5\"",
            "\"1,000.00\"",
            "\"NaN\"",
            "\"+5\"",
            "\"1.2.3\"",
            "\"60 NGN\"",
            "184467440737095516.16",
            "1e99",
            "1e999",
            "1e-99",
            "true",
            "{}",
            "[1]",
        ] {
            assert!(serde_json::from_str::<Major>(written).is_err(), "{written}");
        }
    }

    #[test]
    fn amounts_are_written_as_numbers() {
        for (minor, written) in [
            (0, "0"),
            (6_000, "60"),
            (5_910, "59.10"),
            (7, "0.07"),
            (u64::MAX, "184467440737095516.15"),
        ] {
            let amount = Major::of_minor(minor);
            assert_eq!(serde_json::to_string(&amount).unwrap(), written);
            assert_eq!(Major::read(written), Some(amount));
        }
    }

    #[test]
    fn nothing_is_no_amount() {
        #[derive(Deserialize)]
        struct Told {
            fee: Option<Major>,
        }
        for (told, fee) in [("{}", None), (r#"{"fee":null}"#, None), (r#"{"fee":1.4}"#, Some(140))]
        {
            let Told { fee: read } = serde_json::from_str(told).unwrap();
            assert_eq!(read.map(Major::minor), fee, "{told}");
        }
    }
}
