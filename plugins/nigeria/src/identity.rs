//! The types of identity of the manifest, and how their identifiers are written.

use tollhouse_plugin::identity::{Person, Question};
use tollhouse_plugin::record::Shape;
use tollhouse_plugin::types::Fault;

use crate::shapes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    Bvn,
    Nin,
    VirtualNin,
    DriversLicense,
    Passport,
    VotersCard,
    Cac,
    PhoneNumber,
}

impl Identity {
    pub(crate) fn named(name: &str) -> Result<Identity, Fault> {
        match name {
            "bvn" => Ok(Identity::Bvn),
            "nin" => Ok(Identity::Nin),
            "virtual_nin" => Ok(Identity::VirtualNin),
            "drivers_license" => Ok(Identity::DriversLicense),
            "passport" => Ok(Identity::Passport),
            "voters_card" => Ok(Identity::VotersCard),
            "cac" => Ok(Identity::Cac),
            "phone_number" => Ok(Identity::PhoneNumber),
            _ => Err(Fault::invalid("identity", "no such type of identity")),
        }
    }

    pub(crate) fn shape(self) -> &'static Shape {
        match self {
            Identity::Bvn => &shapes::BVN,
            Identity::Nin | Identity::VirtualNin | Identity::PhoneNumber => &shapes::NIN,
            Identity::DriversLicense => &shapes::DRIVERS_LICENSE,
            Identity::Passport => &shapes::PASSPORT,
            Identity::VotersCard => &shapes::VOTERS_CARD,
            Identity::Cac => &shapes::CAC,
        }
    }

    /// A number that was read on a document, as the manifest's pattern has it; `None` when it cannot be one.
    pub(crate) fn read(self, number: &str) -> Option<String> {
        let number: String = number.chars().filter(char::is_ascii_alphanumeric).collect();
        let number = number.to_uppercase();
        let letters = number.chars().take_while(char::is_ascii_uppercase).count();
        let digits = &number[letters..];
        let fits = match self {
            Identity::Passport => {
                (1..=2).contains(&letters)
                    && (7..=9).contains(&digits.len())
                    && digits.bytes().all(|digit| digit.is_ascii_digit())
            }
            _ => (8..=20).contains(&number.len()),
        };
        fits.then_some(number)
    }
}

/// For what the manifest says that this type cannot do.
pub(crate) fn not_offered() -> Fault {
    Fault::invalid("identity", "this type of identity offers no such lookup")
}

/// A number within the country as it is dialled there, which is how both upstreams want it; others as they are.
pub(crate) fn dialled(phone: &str) -> String {
    match phone.strip_prefix("+234") {
        Some(national) => format!("0{national}"),
        None => phone.to_owned(),
    }
}

/// Kind and digits of a firm's number: RC for a company, BN for a business name, IT for trustees.
pub(crate) fn firm(number: &str) -> (&str, &str) {
    match number.find(|c: char| c.is_ascii_digit()) {
        Some(at @ 1..) => number.split_at(at),
        _ => ("RC", number),
    }
}

/// A name or date of the person whose entry it should be, when there is something in it.
pub(crate) fn of_person(question: &Question, part: fn(&Person) -> Option<&str>) -> Option<&str> {
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
