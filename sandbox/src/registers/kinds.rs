//! The kinds of identifiers, and their formats.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bvn,
    Nin,
    Vnin,
    License,
    Passport,
    Voter,
    Company,
    Phone,
    GhPassport,
    GhSsnit,
    GhLicense,
    GhVoter,
}

/// Longer than the number of any document.
const MAX_CHARS: usize = 40;

impl Kind {
    /// For the front page.
    pub(super) fn title(self) -> &'static str {
        match self {
            Kind::Bvn => "BVN",
            Kind::Nin => "NIN",
            Kind::Vnin => "Virtual NIN",
            Kind::License => "Driver's licence",
            Kind::Passport => "Passport",
            Kind::Voter => "Voter's card",
            Kind::Company => "Company (CAC)",
            Kind::Phone => "Phone number",
            Kind::GhPassport => "Ghana: passport",
            Kind::GhSsnit => "Ghana: SSNIT",
            Kind::GhLicense => "Ghana: driver's licence",
            Kind::GhVoter => "Ghana: voter's card",
        }
    }

    pub(super) fn is_ghanaian(self) -> bool {
        matches!(self, Kind::GhPassport | Kind::GhSsnit | Kind::GhLicense | Kind::GhVoter)
    }

    pub(super) fn is_phone(self) -> bool {
        self == Kind::Phone
    }

    /// Normalizes an identifier; `None` if it is not valid for this kind.
    pub(super) fn canonical_form(self, number: &str) -> Option<String> {
        match self {
            Kind::Bvn | Kind::Nin => {
                Some(number.to_owned()).filter(|number| number.len() == 11 && is_digits(number))
            }
            Kind::Vnin => normalize(number).filter(|key| key.len() == 16),
            Kind::Phone => phone(number),
            _ => normalize(number),
        }
    }
}

/// Guesses the kind of a document by its number.
pub(super) fn guess_kind(number: &str) -> Kind {
    let letters = number.bytes().take_while(u8::is_ascii_alphabetic).count();
    match (letters, number.len()) {
        (0, 11) if is_digits(number) => Kind::Nin,
        (1, 9) if is_digits(&number[1..]) => Kind::Passport,
        (2.., _) => Kind::License,
        _ => Kind::Voter,
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// Converts to upper case and removes separators.
pub(super) fn normalize(number: &str) -> Option<String> {
    let key: String = number.chars().filter(|c| !" -/".contains(*c)).collect();
    let good =
        (1..=MAX_CHARS).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphanumeric());
    good.then(|| key.to_ascii_uppercase())
}

/// Returns the digits of the E.164 number. A number of ten digits has lost its leading 0 by being
/// stored as a number.
fn phone(number: &str) -> Option<String> {
    let digits = number.trim_start_matches('+').replace([' ', '-'], "");
    let nigerian = match (digits.len(), digits.as_bytes().first()?) {
        (11, b'0') => format!("234{}", &digits[1..]),
        (10, b'1'..) => format!("234{digits}"),
        _ => digits,
    };
    Some(nigerian)
        .filter(|digits| tollhouse_platform::values::phone::is_e164(&format!("+{digits}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_normalized() {
        for (kind, number, key) in [
            (Kind::Bvn, "22222222222", Some("22222222222")),
            (Kind::Bvn, "2222222222", None),
            (Kind::Nin, "7012345678x", None),
            (Kind::Vnin, "aa1234567890123b", Some("AA1234567890123B")),
            (Kind::Vnin, "AA123456789012B", None),
            (Kind::License, "abc-12345/yz 00", Some("ABC12345YZ00")),
            (Kind::License, " ", None),
            (Kind::Passport, "é", None),
            (Kind::Phone, "08082838283", Some("2348082838283")),
            (Kind::Phone, "8082838283", Some("2348082838283")),
            (Kind::Phone, "2348082838283", Some("2348082838283")),
            (Kind::Phone, "+234 808 283 8283", Some("2348082838283")),
            (Kind::Phone, "+233241234567", Some("233241234567")),
            (Kind::Phone, "0808", None),
            (Kind::Phone, "", None),
            (Kind::Phone, "ä808", None),
        ] {
            assert_eq!(kind.canonical_form(number).as_deref(), key, "{kind:?} {number}");
        }
    }

    #[test]
    fn the_document_kind_is_guessed_from_the_number() {
        for (number, kind) in [
            ("70123456789", Kind::Nin),
            ("A00400000", Kind::Passport),
            ("AAD23208212298", Kind::License),
            ("987F545AJ67890", Kind::Voter),
        ] {
            assert_eq!(guess_kind(number), kind, "{number}");
        }
    }
}
