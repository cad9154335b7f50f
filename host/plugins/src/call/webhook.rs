//! Webhooks as received from providers.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::runtime::session::Grant;

#[derive(Clone, Serialize, Deserialize)]
pub struct Webhook {
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    #[serde(serialize_with = "serialize_text", deserialize_with = "deserialize_text")]
    pub body: Bytes,
}

/// Replaces invalid UTF-8.
pub(super) fn serialize_text<S: Serializer>(
    bytes: &Bytes,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(bytes))
}

pub(super) fn deserialize_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Bytes, D::Error> {
    String::deserialize(deserializer).map(Bytes::from)
}

impl Webhook {
    /// Removes the account's secrets: some providers send one with each webhook.
    pub(crate) fn without_secrets(&self, grant: &Grant) -> Webhook {
        let secrets = grant.secrets.redactor(None);
        let headers = self.headers.iter();
        Webhook {
            headers: headers
                .map(|(name, value)| (name.clone(), secrets.redact_text(value)))
                .collect(),
            body: secrets.redact(&self.body).into(),
        }
    }
}
