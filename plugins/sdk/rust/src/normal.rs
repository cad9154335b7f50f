//! Normalization of upstream values to the contract's formats, for any country. Absent and invalid
//! values are `None`: an absent value is better than a wrong one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::identity_face::Comparison;

mod date;
mod moment;

pub use date::{date, expiry};
pub use moment::{local_now, moment, unix_ms, utc};

/// Notations of an absent value, in lower case. [`text`] also treats masked values (only asterisks
/// or dashes) as absent.
const ABSENT_VALUES: [&str; 8] = ["", "n/a", "na", "n.a.", "null", "none", "nil", "undefined"];

/// Returns a string (trimmed) or a number as text. Returns `None` for other types, for notations of
/// an absent value such as "N/A", and for values of only asterisks or dashes.
pub fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let hidden = text.chars().all(|c| "*-".contains(c));
    (!hidden && !ABSENT_VALUES.contains(&text.to_lowercase().as_str())).then_some(text)
}

/// Returns a phone number in E.164. A number without `+` or `00` belongs to the country of this
/// calling code (digits only), and must begin with 0 or with the code.
pub fn phone(value: &Value, calling_code: &str) -> Option<String> {
    let value = text(value)?;
    let plain: String = value.chars().filter(|c| !" -.()".contains(*c)).collect();
    let abroad = plain.strip_prefix('+').or_else(|| plain.strip_prefix("00"));
    let digits = match (abroad, plain.strip_prefix('0')) {
        (Some(abroad), _) => abroad.to_owned(),
        (None, Some(national)) => format!("{calling_code}{national}"),
        (None, None) if plain.starts_with(calling_code) && plain.len() >= 10 => plain,
        (None, None) => return None,
    };
    let fits = (8..=15).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_digit())
        && !digits.starts_with('0');
    fits.then(|| format!("+{}", without_trunk_zero(&digits, calling_code)))
}

/// Removes the trunk prefix 0 of numbers such as +234 0803..., which is dialled within the country
/// only.
fn without_trunk_zero(digits: &str, calling_code: &str) -> String {
    match digits.strip_prefix(calling_code).and_then(|rest| rest.strip_prefix('0')) {
        Some(national) => format!("{calling_code}{national}"),
        None => digits.to_owned(),
    }
}

/// Returns an e-mail address in lower case.
pub fn email(value: &Value) -> Option<String> {
    let address = text(value)?.to_lowercase();
    let (local, domain) = address.split_once('@')?;
    let plain = address.chars().all(|c| c.is_ascii_graphic() && !",;<>*".contains(c));
    let inner_dot = domain.trim_matches('.').len() == domain.len() && domain.contains('.');
    (plain && !local.is_empty() && inner_dot && !domain.contains('@')).then_some(address)
}

/// Returns a base64 image without white space and without the prefix of a data URL. Returns `None`
/// for the URL of an image.
pub fn image(value: &Value) -> Option<String> {
    let value = text(value)?;
    let body = match value.split_once(',') {
        Some((head, body)) if head.starts_with("data:") => body,
        _ => &value,
    };
    let image: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    let encoded = image.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=-_".contains(&b));
    (encoded && !image.is_empty()).then_some(image)
}

/// Returns "YES" or "NO" for booleans and their common notations, and other text in upper case.
pub fn yes_or_no(value: &Value) -> Option<String> {
    let value = match value {
        Value::Bool(value) => value.to_string(),
        other => text(other)?.to_uppercase(),
    };
    match value.as_str() {
        "true" | "TRUE" | "1" | "Y" => Some("YES".to_owned()),
        "false" | "FALSE" | "0" | "N" => Some("NO".to_owned()),
        _ => Some(value),
    }
}

/// Encodes an image in base64, as upstreams expect it.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Builds a face comparison from a confidence in percent, clamped to the range 0 to 100.
pub fn comparison(matches: bool, percent: f64) -> Comparison {
    let message = if matches { "Face match" } else { "Face does not match" };
    // The cast turns NaN into 0.
    let confidence = (percent.clamp(0.0, 100.0) * 100.0).round() as u32;
    Comparison { matches, confidence, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_trimmed_and_absent_notations_are_none() {
        for (value, read) in [
            (json!(" Ada "), Some("Ada")),
            (json!(12.5), Some("12.5")),
            (json!(8), Some("8")),
            (json!("Nana"), Some("Nana")),
            (json!("****4567"), Some("****4567")),
        ] {
            assert_eq!(text(&value).as_deref(), read, "{value}");
        }
        for nothing in ["", "  ", "****", "*", "N/A", "n/a", "NA", "NULL", "None", "nil", "-", "--"]
        {
            assert_eq!(text(&json!(nothing)), None, "{nothing}");
        }
        for nothing in [json!(null), json!({}), json!([]), json!(true)] {
            assert_eq!(text(&nothing), None, "{nothing}");
        }
    }

    #[test]
    fn phone_numbers_become_e164() {
        for (value, code, read) in [
            (json!("08012345678"), "234", Some("+2348012345678")),
            (json!("2348012345678"), "234", Some("+2348012345678")),
            (json!(2348012345678_u64), "234", Some("+2348012345678")),
            (json!("+2348012345678"), "234", Some("+2348012345678")),
            (json!("+234 (0) 801-234-5678"), "234", Some("+2348012345678")),
            (json!("23408012345678"), "234", Some("+2348012345678")),
            (json!("002348012345678"), "234", Some("+2348012345678")),
            (json!("+14155550100"), "234", Some("+14155550100")),
            (json!("0241234567"), "233", Some("+233241234567")),
            (json!("233241234567"), "233", Some("+233241234567")),
            // Ambiguous, masked or malformed.
            (json!("8012345678"), "234", None),
            (json!("14155550100"), "234", None),
            (json!("0801****678"), "234", None),
            (json!("0000000000"), "234", None),
            (json!("0801"), "234", None),
            (json!("+"), "234", None),
            (json!("234"), "234", None),
            (json!("0801234567890123"), "234", None),
            (json!("Ada"), "234", None),
            (json!("N/A"), "234", None),
            (json!(null), "234", None),
        ] {
            assert_eq!(phone(&value, code).as_deref(), read, "{value}");
        }
    }

    #[test]
    fn email_addresses_are_checked_and_lowercased() {
        assert_eq!(email(&json!(" Ada@Example.COM ")).as_deref(), Some("ada@example.com"));
        for none in ["", "ada", "@x.test", "ada@", "ada@test", "a@b@c.test", "a b@c.test", "****"] {
            assert_eq!(email(&json!(none)), None, "{none}");
        }
        for none in ["a***@c.test", "a@.test", "a@test.", "a@c.test, b@c.test"] {
            assert_eq!(email(&json!(none)), None, "{none}");
        }
    }

    #[test]
    fn images_become_plain_base64() {
        for (value, read) in [
            ("/9j/4AA=", Some("/9j/4AA=")),
            ("data:image/jpeg;base64,/9j/4AA=", Some("/9j/4AA=")),
            ("data:image/png;base64, /9j/\r\n 4AA=\n", Some("/9j/4AA=")),
            ("", None),
            ("data:image/jpeg;base64,", None),
            ("data:image/jpeg;base64, \n", None),
            ("N/A", None),
            ("****", None),
            ("https://a.test/photo.jpg", None),
        ] {
            assert_eq!(image(&json!(value)).as_deref(), read, "{value}");
        }
        assert_eq!(image(&json!(null)), None);
        assert_eq!(base64(&[0xff, 0xd8, 0xff]), "/9j/");
    }

    #[test]
    fn booleans_become_yes_or_no() {
        for (value, read) in [
            (json!("No"), Some("NO")),
            (json!("YES"), Some("YES")),
            (json!(1), Some("YES")),
            (json!("0"), Some("NO")),
            (json!(true), Some("YES")),
            (json!(false), Some("NO")),
            (json!("False"), Some("NO")),
            (json!(""), None),
            (json!(null), None),
        ] {
            assert_eq!(yes_or_no(&value).as_deref(), read, "{value}");
        }
    }

    #[test]
    fn confidences_are_hundredths_of_a_percent() {
        for (percent, hundredths) in [
            (99.9, 9_990),
            (0.0, 0),
            (4.04, 404),
            (100.0, 10_000),
            (250.0, 10_000),
            (-3.0, 0),
            (f64::NAN, 0),
        ] {
            assert_eq!(comparison(true, percent).confidence, hundredths, "{percent}");
        }
        let different = comparison(false, 12.0);
        assert_eq!((different.matches, &*different.message), (false, "Face does not match"));
    }
}
