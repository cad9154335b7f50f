//! Trusted publishers: the keys whose signatures a host accepts on components.
//!
//! The keys are those in the database, unless the host's settings pin them. Then only pinned keys
//! count, so write access to the database is not enough to run code on the host.

pub mod store;

use std::str::FromStr;

use self::store::PublisherKeyRow;
use super::signature::{PublicKey, SIGNATURE_BYTES, SignedComponent};
use crate::prelude::*;
use crate::{manifest::is_word, registry::store::PluginRow};
use tollhouse_platform::store::Result;

/// Signature requirements for loading a component.
#[derive(Clone, Debug, Default)]
pub struct TrustPolicy {
    /// Accepts components without a signature by a trusted publisher.
    pub accepts_unsigned: bool,
    /// Keys that replace those in the database; if empty, the database's keys count.
    pub pinned: Vec<TrustedKey>,
}

/// A signing key of a trusted publisher. Text form: `NAME=KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    pub publisher: String,
    pub key: PublicKey,
}

impl FromStr for TrustedKey {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<TrustedKey, String> {
        let (publisher, key) = text.split_once('=').ok_or("it must be NAME=KEY")?;
        check_name(publisher)?;
        let key = PublicKey::from_line(key);
        let key = key.ok_or("the key must be an Ed25519 key: the base64 line of its PEM file")?;
        Ok(TrustedKey { publisher: publisher.to_owned(), key })
    }
}

/// A signature that was verified with a trusted publisher's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    pub publisher: String,
    pub signature: [u8; SIGNATURE_BYTES],
}

impl TrustPolicy {
    pub fn is_pinned(&self) -> bool {
        !self.pinned.is_empty()
    }

    /// Returns the trusted publisher that signed a submitted component, if any.
    pub async fn signer(&self, tx: &mut Tx, component: &SignedComponent) -> Result<Option<Signer>> {
        if component.signatures.is_empty() {
            return Ok(None);
        }
        let (keys, digest) = (self.keys(tx, None).await?, component.digest());
        Ok(keys.into_iter().find_map(|TrustedKey { publisher, key }| {
            let mut signatures = component.signatures.iter();
            let signature = signatures.find(|signature| key.verifies(&digest, signature))?;
            Some(Signer { publisher, signature: *signature })
        }))
    }

    /// Checks whether a stored version may be loaded. The inner `Err` is a reason for the operator.
    pub async fn check_stored(
        &self,
        tx: &mut Tx,
        row: &PluginRow,
    ) -> Result<std::result::Result<(), String>> {
        if self.accepts_unsigned {
            return Ok(Ok(()));
        }
        let Some(signature) = &row.signature else { return Ok(Err(UNSIGNED.to_owned())) };
        if signature.is_empty() {
            // An earlier release verified this signature but did not store it. Without pinned keys
            // the row is as trustworthy as the keys: both are in the database.
            let missing = self.is_pinned().then(|| SIGNATURE_NOT_STORED.to_owned());
            return Ok(missing.map_or(Ok(()), Err));
        }
        let bytes = hex::decode(signature).ok();
        let Some(signature) = bytes.and_then(|bytes| bytes.try_into().ok()) else {
            return Ok(Err(self.untrusted_reason()));
        };
        let keys = self.keys(tx, Some(row.installed_at)).await?;
        let verified = keys.iter().any(|trusted| trusted.key.verifies(&row.digest, &signature));
        Ok(if verified { Ok(()) } else { Err(self.untrusted_reason()) })
    }

    /// Returns the keys that count; with `installed_at`, also those that were removed since.
    async fn keys(&self, tx: &mut Tx, installed_at: Option<Timestamp>) -> Result<Vec<TrustedKey>> {
        if self.is_pinned() {
            return Ok(self.pinned.clone());
        }
        let rows = match installed_at {
            Some(installed_at) => store::list_trusted_since(tx, installed_at).await?,
            None => store::list(tx).await?,
        };
        let key = |PublisherKeyRow { name: publisher, key, .. }| {
            PublicKey::from_line(&key).map(|key| TrustedKey { publisher, key })
        };
        Ok(rows.into_iter().filter_map(key).collect())
    }

    /// Describes the signature of a component. `Err`: the component is rejected.
    pub fn evaluate(
        &self,
        component: &SignedComponent,
        signer: Option<&Signer>,
    ) -> std::result::Result<String, String> {
        match (signer, component.signatures.is_empty(), self.accepts_unsigned) {
            (Some(signer), ..) => Ok(format!("by {}", signer.publisher)),
            (None, true, true) => Ok("none: this host accepts unsigned components".to_owned()),
            (None, false, true) => {
                Ok("by an untrusted publisher: it counts as unsigned".to_owned())
            }
            (None, true, false) => Err(UNSIGNED.to_owned()),
            (None, false, false) => Err(self.untrusted_reason()),
        }
    }

    fn untrusted_reason(&self) -> String {
        let what_to_do = match self.is_pinned() {
            true => "add the publisher's key to the setting plugin_publishers",
            false => "trust the publisher's key with `tollhouse publisher trust`",
        };
        format!("the component is not signed by a publisher that this host trusts: {what_to_do}")
    }
}

const UNSIGNED: &str = "the component is not signed: sign it with `tollhouse plugin sign`, or set \
    plugin_unsigned on the host to accept unsigned components";
const SIGNATURE_NOT_STORED: &str =
    "the signature of the component was not stored at installation: install the same file again";

/// Checks a publisher's name, which is shown in grants and parsed by programs.
pub fn check_name(name: &str) -> std::result::Result<(), &'static str> {
    match is_word(name, 60, &['_', '-', '.']) {
        true => Ok(()),
        false => Err("a publisher's name must be 1 to 60 characters of a-z, 0-9, _, - and ."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_key_is_a_name_and_a_line() {
        let line = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
        let pinned: TrustedKey = format!("acme={line}").parse().unwrap();
        assert_eq!((&*pinned.publisher, pinned.key.to_line()), ("acme", line.to_owned()));
        for (bad, reason) in [
            (line.trim_end_matches('='), "it must be NAME=KEY"),
            (line, "a publisher's name must be"),
            (&format!("={line}"), "a publisher's name must be"),
            ("acme=", "the key must be an Ed25519 key"),
            ("acme=hello", "the key must be an Ed25519 key"),
        ] {
            let refused = bad.parse::<TrustedKey>().unwrap_err();
            assert!(refused.starts_with(reason), "{bad}: {refused}");
        }
    }
}
