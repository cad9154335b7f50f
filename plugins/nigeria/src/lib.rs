//! Nigeria's registers, through Prembly or Dojah: the first available one in the setting `order`.
//!
//! Results are the same from both. Upstream messages are never forwarded, and log lines never
//! contain personal data.

mod by_dojah;
mod by_prembly;
mod failover;
mod identity;
mod shapes;

use tollhouse_plugin::identity::{Entry, Image, Question};
use tollhouse_plugin::identity_document::{self, Reading};
use tollhouse_plugin::identity_face::{self, Compared};
use tollhouse_plugin::identity_lookup;
use tollhouse_plugin::normal;
use tollhouse_plugin::types::Fault;

use crate::failover::Upstream;
use crate::identity::IdentityType;

/// The plugin.
#[derive(Debug)]
pub struct Nigeria;

tollhouse_plugin::export!(Nigeria: identity_lookup, identity_face, identity_document);

impl identity_lookup::Guest for Nigeria {
    fn lookup(question: Question) -> Result<Entry, Fault> {
        let identity = IdentityType::from_name(&question.identity)?;
        let record = failover::try_in_order(|upstream, ms| match upstream {
            Upstream::Prembly => by_prembly::lookup(identity, &question, ms),
            Upstream::Dojah => by_dojah::lookup(identity, &question, ms),
        })?;
        Ok(identity.shape().entry(&record))
    }
}

impl identity_face::Guest for Nigeria {
    fn compare(question: Question, selfie: Image) -> Result<Compared, Fault> {
        let identity = IdentityType::from_name(&question.identity)?;
        let selfie = encode_image(selfie);
        let (record, comparison) = failover::try_in_order(|upstream, ms| match upstream {
            Upstream::Prembly => by_prembly::compare(identity, &question, &selfie, ms),
            Upstream::Dojah => by_dojah::compare(identity, &question, &selfie, ms),
        })?;
        Ok(Compared { entry: identity.shape().entry(&record), comparison })
    }
}

impl identity_document::Guest for Nigeria {
    fn read(identity: String, document: Image) -> Result<Reading, Fault> {
        let identity = IdentityType::from_name(&identity)?;
        let document = encode_image(document);
        let (identifier, record) = failover::try_in_order(|upstream, ms| match upstream {
            Upstream::Prembly => by_prembly::read(identity, &document, ms),
            Upstream::Dojah => by_dojah::read(identity, &document, ms),
        })?;
        Ok(Reading { identifier, entry: identity.shape().entry(&record) })
    }
}

/// Takes the image by value, so that its bytes are freed once they are encoded.
fn encode_image(image: Image) -> String {
    normal::base64(&image.bytes)
}

#[cfg(test)]
mod tests;
