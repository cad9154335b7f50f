//! Phone numbers in E.164.

mod countries;

pub use self::countries::{belongs_to, has_numbers};

/// Returns whether a text is `+`, a digit other than 0, and 7 to 14 more digits.
pub fn is_e164(text: &str) -> bool {
    let Some(digits) = text.strip_prefix('+') else { return false };
    (8..=15).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
        && !digits.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_e164_numbers_are_valid() {
        for (text, valid) in [
            ("+2348012345678", true),
            ("+12345678", true),
            ("+1234567", false),
            ("+123456789012345", true),
            ("+1234567890123456", false),
            ("+0348012345678", false),
            ("2348012345678", false),
            ("+23480 12345678", false),
            ("", false),
        ] {
            assert_eq!(is_e164(text), valid, "{text}");
        }
    }
}
