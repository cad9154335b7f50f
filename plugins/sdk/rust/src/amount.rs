//! Amounts in a currency's major unit, written as decimals. Conversions are exact and never use
//! floats.

use std::fmt;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::log;
use crate::raw_json::RawJson;
use crate::types::{Fault, Money};

/// An amount in the major unit (naira, dollar, franc), with up to two decimals.
///
/// Serialized as a JSON number; deserialized from a number or a string. Negative amounts, fractions
/// of the minor unit and anything that is not a decimal are errors.
///
/// Deserialize it directly from the text of a response or from [`crate::raw_json::RawJson`]: a
/// `serde_json::Value` would turn it into a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Major {
    /// In hundredths, the minor unit of a currency with two decimals.
    minor: u64,
}

/// ISO 4217 codes of currencies without decimals.
const WITHOUT_DECIMALS: [&str; 17] = [
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND",
    "VUV", "XAF", "XOF", "XPF",
];

/// Returns the currency's minor unit in hundredths of the major unit.
fn unit(currency: &str) -> u64 {
    if WITHOUT_DECIMALS.contains(&currency) { 100 } else { 1 }
}

impl Major {
    /// Creates an amount from hundredths (kobo, cents).
    pub fn of_minor(minor: u64) -> Major {
        Major { minor }
    }

    /// Returns the amount in hundredths of the major unit. For the minor unit of a currency, use
    /// [`Major::money`].
    pub fn hundredths(self) -> u64 {
        self.minor
    }

    /// The former name of [`Major::hundredths`].
    #[deprecated = "use `hundredths`, or `money` for the currency's minor unit"]
    pub fn minor(self) -> u64 {
        self.hundredths()
    }

    /// Returns the amount as money of a currency, rounded down to its minor unit.
    pub fn money(self, currency: &str) -> Money {
        self.money_rounded(currency, Rounding::Down)
    }

    /// Returns the amount as money of a currency, rounded to its minor unit.
    pub fn money_rounded(self, currency: &str, rounding: Rounding) -> Money {
        let unit = unit(currency);
        let minor = rounding.choose(self.minor / unit, self.minor.div_ceil(unit));
        Money { minor, currency: currency.to_owned() }
    }

    /// Parses a decimal such as "2500.5", "2500.50" or "25005e-1". Returns `None` unless it is an
    /// exact, non-negative number of minor units.
    pub fn read(text: &str) -> Option<Major> {
        let (below, above) = adjacent_minor_amounts(text)?;
        (below == above).then_some(Major { minor: below })
    }

    /// Parses an amount that is only reported, such as a fee: an invalid one must not fail the
    /// whole payment.
    ///
    /// Fractions of the minor unit are rounded, and text that is not an amount returns `None`; both
    /// log a warning that begins with `what`. `null` and an empty string return `None` without a
    /// warning.
    pub fn rounded(value: &RawJson, rounding: Rounding, what: &str) -> Option<Major> {
        let Some((below, above)) = adjacent_minor_amounts(written_text(value)?) else {
            log::warn(&format!("{what} is not an amount and is omitted"));
            return None;
        };
        if below != above {
            log::warn(&format!("{what} is rounded to the minor unit"));
        }
        Some(Major { minor: rounding.choose(below, above) })
    }

    /// Parses an amount of a listed payment or settlement. Fractions of the minor unit are rounded,
    /// and `null` and an empty string return `None`, both without a warning.
    ///
    /// Other text that is not an amount is a fault of the upstream: `unavailable`, code
    /// `unexpected-answer`, with a message that begins with `what`.
    pub fn listed(value: &RawJson, rounding: Rounding, what: &str) -> Result<Option<Major>, Fault> {
        let Some(written) = written_text(value) else { return Ok(None) };
        let (below, above) = adjacent_minor_amounts(written).ok_or_else(|| {
            Fault::unavailable(format!("{what} is not an amount")).with_code("unexpected-answer")
        })?;
        Ok(Some(Major { minor: rounding.choose(below, above) }))
    }
}

/// Returns the text of a number or a string, unless it is absent.
fn written_text(value: &RawJson) -> Option<&str> {
    let written = value.text().trim_matches('"').trim();
    (!matches!(written, "" | "null")).then_some(written)
}

/// The direction in which [`Major::rounded`] and [`Major::listed`] round fractions of the minor
/// unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// For amounts received, so that they are never overstated.
    Down,
    /// For amounts paid, so that they are never understated.
    Up,
}

impl Rounding {
    fn choose(self, below: u64, above: u64) -> u64 {
        match self {
            Rounding::Down => below,
            Rounding::Up => above,
        }
    }
}

/// Returns the nearest amounts in minor units below and above a decimal; they are equal if it is
/// exact.
fn adjacent_minor_amounts(text: &str) -> Option<(u64, u64)> {
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
    // The power of ten that converts the digits, read as a whole number, to the minor unit.
    let places = 2 + i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
    let unit = 10_u128.checked_pow(u32::try_from(places.unsigned_abs()).ok()?)?;
    let digits: u128 = digits.parse().ok()?;
    let (below, above) = match places {
        0.. => (digits.checked_mul(unit)?, digits.checked_mul(unit)?),
        _ => (digits / unit, digits.div_ceil(unit)),
    };
    Some((u64::try_from(below).ok()?, u64::try_from(above).ok()?))
}

impl From<&Money> for Major {
    fn from(money: &Money) -> Major {
        Major { minor: money.minor.saturating_mul(unit(&money.currency)) }
    }
}

/// Formats the amount as "2500" or "2500.05".
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
            .ok_or_else(|| D::Error::custom("not an amount of a currency with two decimals"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeHost;

    #[test]
    fn decimals_are_parsed_exactly() {
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
            // These exceed the precision of a float.
            ("4503599627370497.01", 450_359_962_737_049_701),
            ("90071992547409.93", 9_007_199_254_740_993),
            ("184467440737095516.15", u64::MAX),
        ] {
            let read: Major = serde_json::from_str(written).unwrap();
            assert_eq!(read.hundredths(), minor, "{written}");
        }
    }

    #[test]
    fn money_is_in_the_minor_unit_of_its_currency() {
        for (currency, minor, written) in
            [("NGN", 250_050, "2500.50"), ("XOF", 2_500, "2500"), ("UGX", 1, "1")]
        {
            let money = Money { minor, currency: currency.to_owned() };
            assert_eq!(Major::from(&money).to_string(), written);
            assert_eq!(Major::read(written).unwrap().money(currency), money);
        }
    }

    #[test]
    fn inexact_and_invalid_amounts_are_rejected() {
        for written in [
            "0.841", "59.999999999999999999", "1e-3", "-1", "-0.5", "\"-1\"", "\"\"", "\".5\"",
            "\"1,000.00\"", "\"NaN\"", "\"+5\"", "\"1.2.3\"", "\"60 NGN\"",
            "184467440737095516.16", "1e99", "1e999", "1e-99", "true", "{}", "[1]",
        ] {
            assert!(serde_json::from_str::<Major>(written).is_err(), "{written}");
        }
    }

    #[test]
    fn reported_amounts_are_rounded_with_a_warning() {
        for (written, down, up, warnings) in [
            ("0.84", Some(84), Some(84), 0),
            ("\"0.84\"", Some(84), Some(84), 0),
            ("null", None, None, 0),
            ("\"\"", None, None, 0),
            ("0.845", Some(84), Some(85), 1),
            ("\"0.841\"", Some(84), Some(85), 1),
            ("0.8400000000000001", Some(84), Some(85), 1),
            ("59.99999999999999999999", Some(5_999), Some(6_000), 1),
            ("1e-3", Some(0), Some(1), 1),
            ("-1", None, None, 1),
            ("\"sixty\"", None, None, 1),
            ("{}", None, None, 1),
            ("1e99", None, None, 1),
        ] {
            let value: RawJson = serde_json::from_str(written).unwrap();
            let host = FakeHost::new().install();
            let read = |rounding| Major::rounded(&value, rounding, "a fee").map(Major::hundredths);
            assert_eq!((read(Rounding::Down), read(Rounding::Up)), (down, up), "{written}");
            let logs = host.logs();
            assert_eq!(logs.len(), 2 * warnings, "{written}");
            assert!(logs.iter().all(|(_, line)| line.starts_with("a fee is")));
        }
    }

    #[test]
    fn listed_amounts_are_rounded_absent_or_faults() {
        let listed = |written: &str, rounding| {
            let value: RawJson = serde_json::from_str(written).unwrap();
            Major::listed(&value, rounding, "a fee").map(|amount| amount.map(Major::hundredths))
        };
        for (written, down, up) in [
            ("0.84", Some(84), Some(84)),
            ("\"0.845\"", Some(84), Some(85)),
            ("null", None, None),
            ("\"\"", None, None),
        ] {
            assert_eq!(listed(written, Rounding::Down), Ok(down), "{written}");
            assert_eq!(listed(written, Rounding::Up), Ok(up), "{written}");
        }
        for written in ["-1", "\"sixty\"", "{}", "1e99"] {
            let fault = listed(written, Rounding::Down).unwrap_err();
            assert_eq!((fault.code.as_str(), fault.retryable), ("unexpected-answer", true));
            assert_eq!(fault.message, "a fee is not an amount");
        }
    }

    #[test]
    fn amounts_serialize_as_json_numbers() {
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
    fn an_absent_or_null_amount_is_none() {
        #[derive(Deserialize)]
        struct Charge {
            fee: Option<Major>,
        }
        for (value, fee) in [("{}", None), (r#"{"fee":null}"#, None), (r#"{"fee":1.4}"#, Some(140))]
        {
            let Charge { fee: read } = serde_json::from_str(value).unwrap();
            assert_eq!(read.map(Major::hundredths), fee, "{value}");
        }
    }
}
