//! E-mail addresses: what is one, and when two are the same.

use email_address::{EmailAddress, Options};

#[must_use]
pub fn is_valid(text: &str) -> bool {
    let options =
        Options::default().with_required_tld().without_display_text().without_domain_literal();
    text.len() <= 254 && EmailAddress::parse_with_options(text, options).is_ok()
}

/// The form in which addresses are compared: without regard to case.
#[must_use]
pub fn key(address: &str) -> String {
    address.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_other_text() {
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
}
