//! Amounts in the major unit, as most providers write them. Internally they are whole minor units,
//! and never pass through floating point.

use serde_json::{Number, Value};

/// Maximum of one amount in minor units, so that sums cannot overflow.
const MAX_MINOR: u64 = 1_000_000_000_000_000;

/// Returns the minor units of a number or string such as `2500.5`; `None` for anything else,
/// including negative amounts and fractions of a minor unit.
pub(crate) fn minor(value: &Value) -> Option<u64> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let significant = decimals.trim_end_matches('0');
    if !digits(whole) || !digits(decimals) || significant.len() > 2 {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(100)?;
    let minor = whole.checked_add(format!("{significant:0<2}").parse().ok()?)?;
    (minor <= MAX_MINOR).then_some(minor)
}

/// Formats `2500.5` as a number without trailing zeros.
pub(crate) fn major(minor: u64) -> Value {
    let text = major_text(minor);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.parse::<Number>().map_or(Value::Null, Value::Number)
}

/// Formats `2500.50` as text.
pub(crate) fn major_text(minor: u64) -> String {
    format!("{}.{:02}", minor / 100, minor % 100)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_convert_exactly_in_both_directions() {
        let cases = [
            ("0.84", 84),
            ("60", 6_000),
            ("2500.5", 250_050),
            ("9007199254740.93", 900_719_925_474_093),
        ];
        for (text, expected) in cases {
            assert_eq!(minor(&text.parse::<Number>().unwrap().into()), Some(expected), "{text}");
            assert_eq!(minor(&json!(text)), Some(expected), "{text}");
            assert_eq!(major(expected).to_string(), text);
        }
        assert_eq!(minor(&json!("30.000")), Some(3_000));
        assert_eq!(major_text(3_005), "30.05");
        assert_eq!(major(100_000).to_string(), "1000");
    }

    #[test]
    fn invalid_amounts_are_none() {
        for text in ["", "-1", "1.005", "1e3", "1,000", "+1", ".5", "1.", "99999999999999999999"] {
            assert_eq!(minor(&json!(text)), None, "{text}");
        }
        assert_eq!(minor(&json!(true)), None);
    }
}
