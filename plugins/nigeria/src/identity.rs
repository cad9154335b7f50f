//! The identity types of the manifest, and the formats of their identifiers.

use tollhouse_plugin::identity::{Person, Question};
use tollhouse_plugin::record::Shape;
use tollhouse_plugin::types::Fault;

use crate::shapes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdentityType {
    Bvn,
    Nin,
    VirtualNin,
    DriversLicense,
    Passport,
    VotersCard,
    Cac,
    PhoneNumber,
}

impl IdentityType {
    pub(crate) fn from_name(name: &str) -> Result<IdentityType, Fault> {
        match name {
            "bvn" => Ok(IdentityType::Bvn),
            "nin" => Ok(IdentityType::Nin),
            "virtual_nin" => Ok(IdentityType::VirtualNin),
            "drivers_license" => Ok(IdentityType::DriversLicense),
            "passport" => Ok(IdentityType::Passport),
            "voters_card" => Ok(IdentityType::VotersCard),
            "cac" => Ok(IdentityType::Cac),
            "phone_number" => Ok(IdentityType::PhoneNumber),
            _ => Err(Fault::invalid("identity", "unknown identity type")),
        }
    }

    pub(crate) fn shape(self) -> &'static Shape {
        match self {
            IdentityType::Bvn => &shapes::BVN,
            IdentityType::Nin | IdentityType::VirtualNin | IdentityType::PhoneNumber => {
                &shapes::NIN
            }
            IdentityType::DriversLicense => &shapes::DRIVERS_LICENSE,
            IdentityType::Passport => &shapes::PASSPORT,
            IdentityType::VotersCard => &shapes::VOTERS_CARD,
            IdentityType::Cac => &shapes::CAC,
        }
    }

    /// Normalizes a number read from a document to the manifest's pattern; `None` if it cannot
    /// match.
    pub(crate) fn normalize_number(self, number: &str) -> Option<String> {
        let number: String = number.chars().filter(char::is_ascii_alphanumeric).collect();
        let number = number.to_uppercase();
        let letters = number.chars().take_while(char::is_ascii_uppercase).count();
        let digits = &number[letters..];
        let fits = match self {
            IdentityType::Passport => {
                (1..=2).contains(&letters)
                    && (7..=9).contains(&digits.len())
                    && digits.bytes().all(|digit| digit.is_ascii_digit())
            }
            _ => (8..=20).contains(&number.len()),
        };
        fits.then_some(number)
    }
}

/// The fault for a lookup that the manifest does not offer for this identity type.
pub(crate) fn unsupported_lookup() -> Fault {
    Fault::invalid("identity", "this identity type does not support this lookup")
}

/// Returns a Nigerian number in national format, as both upstreams expect it, and other numbers
/// unchanged.
pub(crate) fn national_format(phone: &str) -> String {
    match phone.strip_prefix("+234") {
        Some(national) => format!("0{national}"),
        None => phone.to_owned(),
    }
}

/// Splits a firm's number into kind and digits: RC for a company, BN for a business name, IT for
/// trustees.
pub(crate) fn split_company_number(number: &str) -> (&str, &str) {
    match number.find(|c: char| c.is_ascii_digit()) {
        Some(at @ 1..) => number.split_at(at),
        _ => ("RC", number),
    }
}

/// Returns a name or date of the person in the question, unless it is blank.
pub(crate) fn person_field(question: &Question, part: fn(&Person) -> Option<&str>) -> Option<&str> {
    question.person.as_ref().and_then(part).map(str::trim).filter(|text| !text.is_empty())
}

pub(crate) fn first_name(person: &Person) -> Option<&str> {
    Some(&person.first_name)
}

pub(crate) fn last_name(person: &Person) -> Option<&str> {
    Some(&person.last_name)
}

pub(crate) fn date_of_birth(person: &Person) -> Option<&str> {
    person.date_of_birth.as_deref()
}
