//! Fictitious people, derived from identifiers: each identifier has a person.

use chrono::{Days, Months, NaiveDate};

use super::{
    documented,
    kinds::Kind,
    names::{self, Bank, Place},
    pictures,
    seeded_values::SeededValues,
};

/// The range of birth dates. The youngest is an adult.
const BIRTH_RANGE: (i32, u64) = (1958, 365 * 47);
const MARITAL_STATUSES: [&str; 3] = ["Single", "Married", "Widowed"];

pub(super) struct Person {
    /// As given in the query.
    pub number: String,
    /// The normalized identifier, which determines the person.
    pub key: String,
    pub first_name: String,
    pub middle_name: String,
    pub last_name: String,
    pub female: bool,
    pub born: NaiveDate,
    /// In E.164. Never ends in digits that simulate failures at the SMS gateways.
    pub phone: Option<String>,
    pub second_phone: Option<String>,
    pub email: Option<String>,
    pub home: Place,
    pub origin: Place,
    pub address: String,
    pub bank: Bank,
    pub marital_status: &'static str,
    pub profession: &'static str,
    pub religion: &'static str,
    /// In centimetres.
    pub height: u64,
    pub kin: Kin,
    /// Date of issue of a document, or of registration.
    pub issued: NaiveDate,
    pub watch_listed: bool,
    values: SeededValues,
}

pub(super) struct Kin {
    pub first_name: &'static str,
    pub last_name: String,
    pub address: String,
    pub place: Place,
}

impl Person {
    /// Returns the person of this identifier and kind; `key` is its normalized form.
    pub(super) fn from_identifier(kind: Kind, key: &str, number: &str) -> Person {
        let lot = SeededValues::new(key);
        let names = if kind.is_ghanaian() { names::GHANA } else { names::NIGERIA };
        let documented = documented::find(kind, key);
        let female = is_woman(key);
        let given = if female { names.women } else { names.men };
        let family = lot.pick("family", names.families);
        let [home, origin, kin_home] =
            ["home", "origin", "kin home"].map(|name| lot.pick(name, names.places));
        let known = |name: fn(&documented::TestIdentity) -> &'static str, drawn| {
            documented.map_or(drawn, name).to_owned()
        };
        let last_name = known(|known| known.last_name, family);
        let first_name = lot.pick("first", given);
        let phone = kind.is_phone().then(|| format!("+{key}"));
        Person {
            first_name: known(|known| known.first_name, first_name),
            middle_name: known(|known| known.middle_name, pick_other_than(&lot, given, first_name)),
            kin: Kin {
                first_name: lot.pick("kin", if female { names.men } else { names.women }),
                address: address(&lot, "kin ", kin_home),
                last_name: last_name.clone(),
                place: kin_home,
            },
            last_name,
            female,
            born: documented
                .and_then(documented::TestIdentity::birth_date)
                .unwrap_or_else(|| birth_date(&lot)),
            phone: Some(phone.unwrap_or_else(|| seeded_phone(&lot, "phone"))),
            second_phone: Some(seeded_phone(&lot, "second phone")),
            email: Some(email(if kind.is_phone() { key } else { number })),
            home,
            origin,
            address: address(&lot, "", home),
            bank: lot.pick("bank", &names::BANKS),
            marital_status: lot.pick("marital status", &MARITAL_STATUSES),
            profession: lot.pick("profession", &names::PROFESSIONS),
            religion: lot.pick("religion", &["CHRISTIANITY", "ISLAM"]),
            height: 150 + lot.below("height", 45),
            issued: date((2023, lot.below("issued", 700))),
            watch_listed: false,
            number: number.to_owned(),
            key: key.to_owned(),
            values: lot,
        }
    }

    pub(super) fn with_watch_listing(self) -> Person {
        Person { watch_listed: true, ..self }
    }

    pub(super) fn without_contact(self) -> Person {
        Person { phone: None, second_phone: None, email: None, ..self }
    }

    pub(super) fn gender(&self) -> &'static str {
        if self.female { "Female" } else { "Male" }
    }

    /// Returns `F` or `M`.
    pub(super) fn sex(&self) -> &'static str {
        &self.gender()[..1]
    }

    pub(super) fn title(&self) -> &'static str {
        match (self.female, self.marital_status) {
            (false, _) => "Mr",
            (true, "Single") => "Miss",
            (true, _) => "Mrs",
        }
    }

    pub(super) fn full_name(&self) -> String {
        format!("{} {} {}", self.first_name, self.middle_name, self.last_name)
    }

    /// Returns the name of a company that this person directs.
    pub(super) fn company(&self) -> String {
        let trade = self.values.pick("trade", &["FOODS", "LOGISTICS", "TEXTILES", "VENTURES"]);
        format!("{} {trade} LIMITED", self.last_name.to_uppercase())
    }

    /// Returns the expiry date of a document that is valid for this many years.
    pub(super) fn expiry_date(&self, years: u32) -> NaiveDate {
        self.issued + Months::new(12 * years)
    }

    /// Returns the age in full years on the day of issue.
    pub(super) fn age(&self) -> u32 {
        self.issued.years_since(self.born).unwrap_or_default()
    }

    /// Returns a number for a document field, the same each time.
    pub(super) fn digits(&self, name: &str, count: u32) -> String {
        self.values.digits(name, count)
    }

    pub(super) fn pick(&self, name: &str, from: &[&'static str]) -> &'static str {
        self.values.pick(name, from)
    }

    pub(super) fn uuid(&self) -> String {
        super::uuid(["uuid", "uuid, last"].map(|name| self.values.below(name, u64::MAX)))
    }

    /// Returns the photo on record, as a base64 JPEG.
    pub(super) fn photo(&self) -> String {
        pictures::portrait_base64(&self.key)
    }
}

/// Derived from the number alone, so that a picture needs nothing else.
pub(super) fn is_woman(key: &str) -> bool {
    documented::is_woman(key).unwrap_or_else(|| SeededValues::new(key).below("gender", 2) == 0)
}

/// Returns the date this many days after the start of a year.
fn date((year, days): (i32, u64)) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, 1, 1).unwrap_or_default() + Days::new(days)
}

fn birth_date(lot: &SeededValues) -> NaiveDate {
    date((BIRTH_RANGE.0, lot.below("birth", BIRTH_RANGE.1)))
}

fn pick_other_than(lot: &SeededValues, from: &[&'static str], than: &str) -> &'static str {
    let others: Vec<&str> = from.iter().copied().filter(|name| *name != than).collect();
    lot.pick("middle", &others)
}

fn seeded_phone(lot: &SeededValues, name: &str) -> String {
    format!("+23480{}{}", lot.digits(name, 4), lot.digits(&format!("{name}, last"), 4))
}

fn address(lot: &SeededValues, whose: &str, (state, lga, town, _): Place) -> String {
    let street = lot.pick(&format!("{whose}street"), &names::STREETS);
    let house = 1 + lot.below(&format!("{whose}house"), 120);
    format!("{house} {street}, {town}, {lga}, {state}")
}

/// Returns the e-mail address, with the characters of the number that are valid in one.
pub(super) fn email(number: &str) -> String {
    let kept = |c: &char| c.is_ascii_alphanumeric() || "-_+".contains(*c);
    let local: String = number.chars().filter(kept).take(64).collect();
    format!("{}@people.example", local.to_ascii_lowercase())
}
