//! The types of identity of the manifest, and what Prembly is asked for each.

use prembly::Answer;
use serde_json::json;
use tollhouse_plugin::identity::Question;
use tollhouse_plugin::record::Shape;
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::shapes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    Passport,
    Ssnit,
    DriversLicense,
    VotersCard,
}

impl Identity {
    pub(crate) fn named(name: &str) -> Result<Identity, Fault> {
        match name {
            "passport" => Ok(Identity::Passport),
            "ssnit" => Ok(Identity::Ssnit),
            "drivers_license" => Ok(Identity::DriversLicense),
            "voters_card" => Ok(Identity::VotersCard),
            _ => Err(Fault::invalid("identity", "no such type of identity")),
        }
    }

    pub(crate) fn shape(self) -> &'static Shape {
        match self {
            Identity::Passport => &shapes::PASSPORT,
            Identity::Ssnit => &shapes::SSNIT,
            Identity::DriversLicense => &shapes::DRIVERS_LICENSE,
            Identity::VotersCard => &shapes::VOTERS_CARD,
        }
    }

    pub(crate) fn look_up(self, question: &Question, timeout_ms: u32) -> Result<Answer, Fault> {
        let number = json!({"number": question.identifier});
        match self {
            Identity::Passport => prembly::ask("gh/passport", &number, timeout_ms),
            Identity::Ssnit => prembly::ask("gh/ssnit", &number, timeout_ms),
            Identity::DriversLicense => {
                let born = question.person.as_ref().and_then(|who| who.date_of_birth.as_deref());
                let mut body = number;
                if let Some(born) = born.map(str::trim).filter(|born| !born.is_empty()) {
                    body["dob"] = born.into();
                }
                prembly::ask("gh/drivers_license", &body, timeout_ms)
            }
            Identity::VotersCard => voter(&question.identifier, timeout_ms),
        }
    }
}

/// There are two registers, and the number does not say which one it is of: whom the present one does not know may be in the
/// old one.
fn voter(number: &str, timeout_ms: u32) -> Result<Answer, Fault> {
    let ask = |register: &str| {
        let body = json!({"number": number, "type": register});
        prembly::ask("gh/voters", &body, timeout_ms / 2)
    };
    match ask("MAIN") {
        Err(fault) if fault.category == FaultCategory::NotFound => ask("OLD"),
        answer => answer,
    }
}
