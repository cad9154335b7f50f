//! E-mail addresses: validation and comparison; text for message headers.

use email_address::{EmailAddress, Options};

pub fn is_valid(text: &str) -> bool {
    let options =
        Options::default().with_required_tld().without_display_text().without_domain_literal();
    text.len() <= 254 && EmailAddress::parse_with_options(text, options).is_ok()
}

/// Returns the form in which addresses are compared: case-insensitive.
pub fn comparison_key(address: &str) -> String {
    address.to_lowercase()
}

/// Makes a text safe for a header: replaces whitespace and control characters by single blanks.
pub fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_whitespace() || c.is_control();
    text.split(breaks).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_with_a_tld_are_valid() {
        for (text, valid) in [
            ("ada@example.com", true),
            ("ada.l+loan@mail.example.co.uk", true),
            ("ada@localhost", false),
            ("ada", false),
            ("@example.com", false),
            ("ada@", false),
            ("ada @example.com", false),
            ("Ada <ada@example.com>", false),
            ("ada@[127.0.0.1]", false),
        ] {
            assert_eq!(is_valid(text), valid, "{text}");
        }
    }

    #[test]
    fn a_header_is_one_line() {
        for (text, line) in [
            ("One Time Token", "One Time Token"),
            (" a\r\nb\tc\0d\u{85}e\u{2028}f\u{2029}g\u{7f}h ", "a b c d e f g h"),
            ("\r\n", ""),
        ] {
            assert_eq!(one_line(text), line);
        }
    }
}
