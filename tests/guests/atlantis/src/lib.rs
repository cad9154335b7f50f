//! A country plugin that returns invalid results, to test how the host handles them. The identifier
//! selects the misbehaviour; an unknown one returns a valid entry. On a document, the identifier
//! follows the first three bytes.

use tollhouse_plugin::identity::{Entry, Image, Question};
use tollhouse_plugin::identity_document::{self, Reading};
use tollhouse_plugin::identity_face::{self, Compared, Comparison};
use tollhouse_plugin::identity_lookup;
use tollhouse_plugin::types::{Fault, FaultCategory};

/// The plugin.
#[derive(Debug)]
pub struct Atlantis;

tollhouse_plugin::export!(Atlantis: identity_lookup, identity_face, identity_document);

const MIB: usize = 1 << 20;
/// A person's name, reversed, so that it is found in this component's responses but not in the
/// component.
const NAME: &str = "saitirC";

fn name() -> String {
    NAME.chars().rev().collect()
}

/// A message with personal data, which a fault must not contain.
fn personal_message() -> String {
    format!("{} owes a lot", name())
}

fn entry_for(identifier: &str) -> Result<Entry, Fault> {
    let entry = |details: String| Entry {
        details,
        email: Some(format!("{}@people.example", name().to_lowercase())),
        phone: Some("+306900000000".into()),
    };
    Ok(match identifier {
        "list" => entry("[]".into()),
        "broken" => entry(format!("{{\"first_name\": \"{}", name())),
        "deep" => entry(format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000))),
        "large" => entry(format!("{{\"photo\":\"{}\"}}", "x".repeat(MIB))),
        "huge" => entry("x".repeat(40 * MIB)),
        "unreachable" => {
            Entry { email: Some("nowhere".into()), phone: Some("12".into()), ..entry("{}".into()) }
        }
        "gossip" => return Err(Fault::other(personal_message())),
        "invalid" => return Err(fault(FaultCategory::Invalid)),
        "refused" => return Err(fault(FaultCategory::Refused)),
        "not-found" => return Err(fault(FaultCategory::NotFound)),
        "unavailable" => return Err(fault(FaultCategory::Unavailable)),
        "misconfigured" => return Err(fault(FaultCategory::Misconfigured)),
        "trap" => panic!("told to"),
        _ => entry(format!("{{\"first_name\":\"{}\"}}", name())),
    })
}

fn fault(category: FaultCategory) -> Fault {
    Fault { category, ..Fault::other(personal_message()) }
}

impl identity_lookup::Guest for Atlantis {
    fn lookup(question: Question) -> Result<Entry, Fault> {
        entry_for(&question.identifier)
    }
}

impl identity_face::Guest for Atlantis {
    /// Returns a confidence above 100 % and a very long message.
    fn compare(question: Question, _: Image) -> Result<Compared, Fault> {
        let comparison =
            Comparison { matches: true, confidence: u32::MAX, message: "same ".repeat(MIB) };
        Ok(Compared { entry: entry_for(&question.identifier)?, comparison })
    }
}

impl identity_document::Guest for Atlantis {
    fn read(_: String, document: Image) -> Result<Reading, Fault> {
        let written = document.bytes.get(3..).unwrap_or_default();
        let identifier = String::from_utf8_lossy(written).into_owned();
        Ok(Reading { entry: entry_for(&identifier)?, identifier })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_identifiers_return_a_valid_entry() {
        assert_eq!(entry_for("well").unwrap().details, "{\"first_name\":\"Critias\"}");
        assert_eq!(entry_for("gossip").unwrap_err().message, "Critias owes a lot");
    }
}
