//! Prembly's lookups and their parameters.

use serde_json::Value;

use super::{documents, ghana, records};
use crate::registers::{kinds::Kind, people::Person};

pub(super) struct Lookup {
    pub path: &'static str,
    kinds: &'static [Kind],
    /// The parameters that may contain the identifier.
    pub numbers: &'static [&'static str],
    pub input: LookupInput,
    key: &'static str,
    pub write: fn(&Person) -> Value,
}

#[derive(Clone, Copy)]
pub(super) enum LookupInput {
    Number,
    /// With a selfie, which is compared with the photo on record.
    Face(Scale),
    /// By the picture of a document, which shows the number.
    Document,
}

/// The scale of a confidence, which differs between lookups.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    Percent,
    Fraction,
}

impl Scale {
    pub(super) fn scale_percent(self, percent: f64) -> f64 {
        match self {
            Scale::Percent => percent,
            Scale::Fraction => (percent * 100.0).round() / 10_000.0,
        }
    }
}

impl Lookup {
    pub(super) fn kind_of(&self, number: &str) -> Option<Kind> {
        self.kinds.iter().copied().find(|kind| kind.canonical_form(number).is_some())
    }

    /// Returns the name of the field with the record. Some lookups formerly used another name.
    pub(super) fn data_key(&self, old: bool) -> &'static str {
        match (self.key, self.kinds) {
            ("data", [Kind::Bvn]) if old => "bvn_data",
            ("data", [Kind::Voter]) if old => "vc_data",
            (key, _) => key,
        }
    }

    pub(super) fn reports_watch_list(&self) -> bool {
        self.kinds == [Kind::Bvn]
    }
}

type RenderRecord = fn(&Person) -> Value;

const fn by_number(
    path: &'static str,
    kinds: &'static [Kind],
    key: &'static str,
    write: RenderRecord,
) -> Lookup {
    Lookup { path, kinds, numbers: &["number"], input: LookupInput::Number, key, write }
}

const fn with_parameters(numbers: &'static [&'static str], lookup: Lookup) -> Lookup {
    Lookup { numbers, ..lookup }
}

const fn with_face(scale: Scale, lookup: Lookup) -> Lookup {
    Lookup { input: LookupInput::Face(scale), ..lookup }
}

const fn by_document(lookup: Lookup) -> Lookup {
    Lookup { input: LookupInput::Document, ..lookup }
}

const BVN: &[Kind] = &[Kind::Bvn];
const NIN: &[Kind] = &[Kind::Nin, Kind::Vnin];
const LICENSE: &[Kind] = &[Kind::License];
const PASSPORT: &[Kind] = &[Kind::Passport];
const VOTER: &[Kind] = &[Kind::Voter];
const COMPANY: &[Kind] = &[Kind::Company];
const PHONE: &[Kind] = &[Kind::Phone];
const NIN_PARAMETERS: &[&str] = &["number_nin", "number"];
const COMPANY_PARAMETERS: &[&str] = &["rc_number"];

pub(super) static LOOKUPS: [Lookup; 31] = [
    by_number("bvn_validation", BVN, "data", records::bvn_basic),
    by_number("bvn", BVN, "data", records::bvn),
    with_face(Scale::Percent, by_number("bvn_w_face", BVN, "bvn_data", records::bvn)),
    with_parameters(NIN_PARAMETERS, by_number("vnin-basic", NIN, "nin_data", records::nin_basic)),
    with_parameters(NIN_PARAMETERS, by_number("vnin", NIN, "nin_data", records::nin)),
    with_parameters(NIN_PARAMETERS, by_number("nin_wo_face", NIN, "nin_data", records::nin)),
    with_face(
        Scale::Fraction,
        with_parameters(NIN_PARAMETERS, by_number("nin_w_face", NIN, "nin_data", records::nin)),
    ),
    with_face(
        Scale::Fraction,
        with_parameters(NIN_PARAMETERS, by_number("nin", NIN, "nin_data", records::nin)),
    ),
    by_document(by_number("nin/image", NIN, "nin_data", records::nin)),
    by_number("drivers_license", LICENSE, "frsc_data", documents::license),
    by_number("drivers_license/basic", LICENSE, "frsc_data", documents::license_verified),
    by_number("drivers_license/advance", LICENSE, "frsc_data", documents::license_advance),
    by_number("drivers_license/advance/v2", LICENSE, "frsc_data", documents::license_v2),
    by_document(by_number("drivers_license/image", LICENSE, "frsc_data", documents::license)),
    with_face(
        Scale::Percent,
        by_number("drivers_license/face", LICENSE, "frsc_data", documents::license),
    ),
    with_face(
        Scale::Percent,
        by_number("drivers_license_with_face", LICENSE, "frsc_data", documents::license),
    ),
    by_number("national_passport", PASSPORT, "data", documents::passport),
    by_number("national_passport_v2", PASSPORT, "data", documents::passport_v2),
    by_document(by_number("national_passport_image", PASSPORT, "data", documents::passport)),
    with_face(
        Scale::Percent,
        by_number("national_passport_with_face", PASSPORT, "data", documents::passport),
    ),
    by_number("voters_card", VOTER, "data", documents::voter),
    by_document(by_number("voters_card/image", VOTER, "vc_data", documents::voter)),
    with_parameters(COMPANY_PARAMETERS, by_number("cac", COMPANY, "data", documents::company)),
    with_parameters(
        COMPANY_PARAMETERS,
        by_number("cac/advance", COMPANY, "data", documents::company_advance),
    ),
    by_number("phone_number", PHONE, "data", records::phone_basic),
    by_number("phone_number/advance", PHONE, "data", records::phone_advance),
    by_number("gh/ssnit", &[Kind::GhSsnit], "data", ghana::ssnit),
    with_face(Scale::Fraction, by_number("gh/ssnit/face", &[Kind::GhSsnit], "data", ghana::ssnit)),
    by_number("gh/passport", &[Kind::GhPassport], "data", ghana::passport),
    by_number("gh/drivers_license", &[Kind::GhLicense], "data", ghana::license),
    by_number("gh/voters", &[Kind::GhVoter], "data", ghana::voter),
];
