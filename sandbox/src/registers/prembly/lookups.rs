//! What Prembly can be asked, and in which words.

use serde_json::Value;

use super::{documents, ghana, records};
use crate::registers::{kinds::Kind, people::Person};

pub(super) struct Lookup {
    pub path: &'static str,
    kinds: &'static [Kind],
    /// The parameters that may hold the identifier.
    pub numbers: &'static [&'static str],
    pub asks: Asks,
    key: &'static str,
    pub write: fn(&Person) -> Value,
}

#[derive(Clone, Copy)]
pub(super) enum Asks {
    Number,
    /// With a selfie, which is compared with the photo on record.
    Face(Scale),
    /// By the picture of a document, which has the number on it.
    Document,
}

/// How a confidence is written, which is not the same everywhere.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    Percent,
    Fraction,
}

impl Scale {
    pub(super) fn of_percent(self, percent: f64) -> f64 {
        match self {
            Scale::Percent => percent,
            Scale::Fraction => (percent * 100.0).round() / 10_000.0,
        }
    }
}

impl Lookup {
    pub(super) fn kind_of(&self, number: &str) -> Option<Kind> {
        self.kinds.iter().copied().find(|kind| kind.key(number).is_some())
    }

    /// Where the record stands in the answer, which for some was another name once.
    pub(super) fn data_key(&self, old: bool) -> &'static str {
        match (self.key, self.kinds) {
            ("data", [Kind::Bvn]) if old => "bvn_data",
            ("data", [Kind::Voter]) if old => "vc_data",
            (key, _) => key,
        }
    }

    pub(super) fn knows_watch_list(&self) -> bool {
        self.kinds == [Kind::Bvn]
    }
}

type Write = fn(&Person) -> Value;

const fn number(
    path: &'static str,
    kinds: &'static [Kind],
    key: &'static str,
    write: Write,
) -> Lookup {
    Lookup { path, kinds, numbers: &["number"], asks: Asks::Number, key, write }
}

const fn named(numbers: &'static [&'static str], lookup: Lookup) -> Lookup {
    Lookup { numbers, ..lookup }
}

const fn face(scale: Scale, lookup: Lookup) -> Lookup {
    Lookup { asks: Asks::Face(scale), ..lookup }
}

const fn document(lookup: Lookup) -> Lookup {
    Lookup { asks: Asks::Document, ..lookup }
}

const BVN: &[Kind] = &[Kind::Bvn];
const NIN: &[Kind] = &[Kind::Nin, Kind::Vnin];
const LICENSE: &[Kind] = &[Kind::License];
const PASSPORT: &[Kind] = &[Kind::Passport];
const VOTER: &[Kind] = &[Kind::Voter];
const COMPANY: &[Kind] = &[Kind::Company];
const PHONE: &[Kind] = &[Kind::Phone];
const NIN_NAMES: &[&str] = &["number_nin", "number"];
const COMPANY_NAMES: &[&str] = &["rc_number"];

pub(super) static LOOKUPS: [Lookup; 31] = [
    number("bvn_validation", BVN, "data", records::bvn_basic),
    number("bvn", BVN, "data", records::bvn),
    face(Scale::Percent, number("bvn_w_face", BVN, "bvn_data", records::bvn)),
    named(NIN_NAMES, number("vnin-basic", NIN, "nin_data", records::nin_basic)),
    named(NIN_NAMES, number("vnin", NIN, "nin_data", records::nin)),
    named(NIN_NAMES, number("nin_wo_face", NIN, "nin_data", records::nin)),
    face(Scale::Fraction, named(NIN_NAMES, number("nin_w_face", NIN, "nin_data", records::nin))),
    face(Scale::Fraction, named(NIN_NAMES, number("nin", NIN, "nin_data", records::nin))),
    document(number("nin/image", NIN, "nin_data", records::nin)),
    number("drivers_license", LICENSE, "frsc_data", documents::license),
    number("drivers_license/basic", LICENSE, "frsc_data", documents::license_verified),
    number("drivers_license/advance", LICENSE, "frsc_data", documents::license_advance),
    number("drivers_license/advance/v2", LICENSE, "frsc_data", documents::license_v2),
    document(number("drivers_license/image", LICENSE, "frsc_data", documents::license)),
    face(Scale::Percent, number("drivers_license/face", LICENSE, "frsc_data", documents::license)),
    face(
        Scale::Percent,
        number("drivers_license_with_face", LICENSE, "frsc_data", documents::license),
    ),
    number("national_passport", PASSPORT, "data", documents::passport),
    number("national_passport_v2", PASSPORT, "data", documents::passport_v2),
    document(number("national_passport_image", PASSPORT, "data", documents::passport)),
    face(
        Scale::Percent,
        number("national_passport_with_face", PASSPORT, "data", documents::passport),
    ),
    number("voters_card", VOTER, "data", documents::voter),
    document(number("voters_card/image", VOTER, "vc_data", documents::voter)),
    named(COMPANY_NAMES, number("cac", COMPANY, "data", documents::company)),
    named(COMPANY_NAMES, number("cac/advance", COMPANY, "data", documents::company_advance)),
    number("phone_number", PHONE, "data", records::phone_basic),
    number("phone_number/advance", PHONE, "data", records::phone_advance),
    number("gh/ssnit", &[Kind::GhSsnit], "data", ghana::ssnit),
    face(Scale::Fraction, number("gh/ssnit/face", &[Kind::GhSsnit], "data", ghana::ssnit)),
    number("gh/passport", &[Kind::GhPassport], "data", ghana::passport),
    number("gh/drivers_license", &[Kind::GhLicense], "data", ghana::license),
    number("gh/voters", &[Kind::GhVoter], "data", ghana::voter),
];
