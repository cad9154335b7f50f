//! The manifest key `reference`: the references that a provider accepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The references that the provider accepts unchanged.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ReferenceRules {
    /// Permitted characters besides ASCII letters and digits.
    pub alphabet: String,
    pub max_length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ReferenceFormat>,
}

/// The form of all references, in place of alphabet and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceFormat {
    /// A UUID of version 4, in lower case.
    Uuid,
}

impl Default for ReferenceRules {
    fn default() -> ReferenceRules {
        ReferenceRules { alphabet: "-".to_owned(), max_length: 50, format: None }
    }
}

impl ReferenceRules {
    /// Minimum of `max_length`: 12 characters of 32 hold 60 bits, so that references are unique.
    pub(super) const MIN_LENGTH: usize = 12;
    /// Maximum length of derived references: 120 bits are enough.
    const MAX_LENGTH: usize = 24;

    /// Returns `wanted` if the provider accepts it, else a reference of at least 60 bits derived
    /// from it. Equal inputs give equal references, so that a retry is recognized.
    pub fn conform(&self, wanted: &str) -> String {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        if self.accepts(wanted) {
            return wanted.to_owned();
        }
        if self.format == Some(ReferenceFormat::Uuid) {
            return derive_uuid(&Sha256::digest(wanted.as_bytes()));
        }
        // Older manifests may permit less. Exceeding them is better than equal references.
        let length = self.max_length.clamp(Self::MIN_LENGTH, Self::MAX_LENGTH);
        let digest = Sha256::digest(wanted.as_bytes());
        digest.iter().take(length).map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
    }

    pub(super) fn is_too_short(&self) -> bool {
        self.format.is_none() && self.max_length < Self::MIN_LENGTH
    }

    pub fn accepts(&self, reference: &str) -> bool {
        if self.format == Some(ReferenceFormat::Uuid) {
            return is_uuid(reference);
        }
        reference.len() <= self.max_length
            && reference.chars().all(|c| c.is_ascii_alphanumeric() || self.alphabet.contains(c))
    }
}

/// Returns the UUID of version 4 with the bits of a digest.
fn derive_uuid(digest: &[u8]) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Returns whether a text is a UUID of version 4 in lower case.
fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.chars().all(is_hex))
        && parts[2].starts_with('4')
        && parts[3].starts_with(['8', '9', 'a', 'b'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_must_match_the_alphabet_and_the_length() {
        let rules = ReferenceRules {
            alphabet: "-.=".to_owned(),
            max_length: 5,
            ..ReferenceRules::default()
        };
        for (reference, accepted) in
            [("a-1.=", true), ("a_1", false), ("123456", false), ("é", false)]
        {
            assert_eq!(rules.accepts(reference), accepted, "{reference}");
        }
    }

    #[test]
    fn unaccepted_references_are_replaced_by_derived_ones() {
        let rules = |alphabet: &str, max_length| ReferenceRules {
            alphabet: alphabet.to_owned(),
            max_length,
            format: None,
        };
        for (alphabet, max_length, length) in
            [("", 100, 24), ("_", 24, 24), ("", 20, 20), ("-", 12, 12), ("", 11, 12), ("", 0, 12)]
        {
            let rules = rules(alphabet, max_length);
            let fitted = rules.conform("pay-6c01f2d00000000000000001");
            assert_eq!(fitted.len(), length, "{alphabet} {max_length}");
            assert!(max_length < 12 || rules.accepts(&fitted), "{fitted}");
            assert_eq!(fitted, rules.conform("pay-6c01f2d00000000000000001"));
            assert_ne!(fitted, rules.conform("pay-6c01f2d00000000000000002"));
        }
        let taken = "pay-6c01f2d00000000000000001";
        assert_eq!(rules("-", 28).conform(taken), taken);
    }

    #[test]
    fn a_provider_may_require_uuids() {
        let rules: ReferenceRules = serde_json::from_str(r#"{"format": "uuid"}"#).unwrap();
        for (reference, accepted) in [
            ("6d8f5c1e-2f6b-4c3a-9e1d-0a1b2c3d4e5f", true),
            ("6D8F5C1E-2f6b-4c3a-9e1d-0a1b2c3d4e5f", false),
            ("6d8f5c1e-2f6b-1c3a-9e1d-0a1b2c3d4e5f", false), // version 1
            ("6d8f5c1e-2f6b-4c3a-ce1d-0a1b2c3d4e5f", false), // another variant
            ("6d8f5c1e2f6b4c3a9e1d0a1b2c3d4e5f", false),
            ("pay-6c01f2d00000000000000001", false),
        ] {
            assert_eq!(rules.accepts(reference), accepted, "{reference}");
        }
        for n in 0..100 {
            let derived = rules.conform(&format!("pay-{n}"));
            assert!(rules.accepts(&derived), "{derived}");
            assert_eq!(derived, rules.conform(&format!("pay-{n}")));
            assert_ne!(derived, rules.conform(&format!("pay-{n}0")));
        }
    }
}
