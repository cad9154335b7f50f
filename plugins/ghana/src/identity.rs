//! The identity types of the manifest, and the requests to Prembly for each.

use prembly::LookupResult;
use serde_json::json;
use tollhouse_plugin::identity::Question;
use tollhouse_plugin::record::Shape;
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::shapes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdentityType {
    Passport,
    Ssnit,
    DriversLicense,
    VotersCard,
}

impl IdentityType {
    pub(crate) fn from_name(name: &str) -> Result<IdentityType, Fault> {
        match name {
            "passport" => Ok(IdentityType::Passport),
            "ssnit" => Ok(IdentityType::Ssnit),
            "drivers_license" => Ok(IdentityType::DriversLicense),
            "voters_card" => Ok(IdentityType::VotersCard),
            _ => Err(Fault::invalid("identity", "unknown identity type")),
        }
    }

    pub(crate) fn shape(self) -> &'static Shape {
        match self {
            IdentityType::Passport => &shapes::PASSPORT,
            IdentityType::Ssnit => &shapes::SSNIT,
            IdentityType::DriversLicense => &shapes::DRIVERS_LICENSE,
            IdentityType::VotersCard => &shapes::VOTERS_CARD,
        }
    }

    pub(crate) fn look_up(
        self,
        question: &Question,
        timeout_ms: u32,
    ) -> Result<LookupResult, Fault> {
        let number = json!({"number": question.identifier});
        match self {
            IdentityType::Passport => prembly::call("gh/passport", &number, timeout_ms),
            IdentityType::Ssnit => prembly::call("gh/ssnit", &number, timeout_ms),
            IdentityType::DriversLicense => {
                let born = question.person.as_ref().and_then(|who| who.date_of_birth.as_deref());
                let mut body = number;
                if let Some(born) = born.map(str::trim).filter(|born| !born.is_empty()) {
                    body["dob"] = born.into();
                }
                prembly::call("gh/drivers_license", &body, timeout_ms)
            }
            IdentityType::VotersCard => look_up_voter(&question.identifier, timeout_ms),
        }
    }
}

/// Looks a voter up in the current register, then in the old one: the number does not show to which
/// register it belongs.
fn look_up_voter(number: &str, timeout_ms: u32) -> Result<LookupResult, Fault> {
    let query = |register: &str| {
        let body = json!({"number": number, "type": register});
        prembly::call("gh/voters", &body, timeout_ms / 2)
    };
    match query("MAIN") {
        Err(fault) if fault.category == FaultCategory::NotFound => query("OLD"),
        result => result,
    }
}
