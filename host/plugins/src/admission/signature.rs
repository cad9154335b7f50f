//! Component signatures: Ed25519 (RFC 8032) over the digest, in the component or in a separate
//! file.
//!
//! The signed message is one line of text, including its line feed:
//!
//! ```text
//! tollhouse plugin sha256:<digest of the component, in hexadecimal>
//! ```
//!
//! In the component, the signature is the last custom section, `tollhouse:signature`. It is removed
//! before any other processing, so that a component has one digest, signed or not.

use ed25519_dalek::{
    Signature, Signer, SigningKey, VerifyingKey,
    pkcs8::{
        DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes,
        spki::der::pem::LineEnding,
    },
};
use sha2::{Digest, Sha256};

use crate::prelude::*;

pub const SIGNATURE_BYTES: usize = 64;

/// Section id, section length, name length and name. Only the signature follows.
const SIGNATURE_SECTION_HEADER: &[u8] = b"\x00\x54\x13tollhouse:signature";

/// A component as submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedComponent {
    pub wasm: Arc<Vec<u8>>,
    /// Signatures from the component and from a separate file; each may be outdated.
    pub signatures: Vec<[u8; SIGNATURE_BYTES]>,
}

impl SignedComponent {
    pub fn parse(mut file: Vec<u8>) -> SignedComponent {
        let signatures = file.last_chunk().copied().into_iter().collect();
        let start = file.len().saturating_sub(SIGNATURE_SECTION_HEADER.len() + SIGNATURE_BYTES);
        if !file[start..].starts_with(SIGNATURE_SECTION_HEADER) {
            return SignedComponent { wasm: Arc::new(file), signatures: Vec::new() };
        }
        file.truncate(start);
        SignedComponent { wasm: Arc::new(file), signatures }
    }

    /// Returns the component without its signature, for uses that do not verify it.
    pub fn strip_signature(file: Vec<u8>) -> Vec<u8> {
        Arc::unwrap_or_clone(SignedComponent::parse(file).wasm)
    }

    /// Returns the SHA-256 in hexadecimal, by which hosts identify the component.
    pub fn digest(&self) -> String {
        digest(&self.wasm)
    }

    pub fn embed_signature(wasm: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> Vec<u8> {
        [wasm, SIGNATURE_SECTION_HEADER, signature].concat()
    }
}

pub fn digest(wasm: &[u8]) -> String {
    hex::encode(Sha256::digest(wasm))
}

fn message(digest: &str) -> String {
    format!("tollhouse plugin sha256:{digest}\n")
}

/// A publisher's signing key, in PKCS #8 PEM as by `openssl genpkey -algorithm ed25519`.
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    pub fn generate(random: &Random) -> PrivateKey {
        PrivateKey(SigningKey::from_bytes(&random.bytes()))
    }

    pub fn from_pem(pem: &str) -> Result<PrivateKey, String> {
        let key = SigningKey::from_pkcs8_pem(pem);
        key.map(PrivateKey)
            .map_err(|_| "it is not a private Ed25519 key (PKCS #8 in PEM)".to_owned())
    }

    /// Returns the PEM file, zeroized on drop.
    pub fn to_pem(&self) -> impl AsRef<[u8]> + use<> {
        // OpenSSL does not read a file that includes the public key.
        let key = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        key.to_pkcs8_pem(LineEnding::LF).expect("a key of 32 bytes can be written")
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub fn sign(&self, wasm: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(message(&digest(wasm)).as_bytes()).to_bytes()
    }
}

/// A publisher's verification key. Its text is the line between `BEGIN` and `END` of its PEM file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn from_pem(pem: &str) -> Result<PublicKey, String> {
        let key = VerifyingKey::from_public_key_pem(pem);
        key.map(PublicKey).map_err(|_| "it is not a public Ed25519 key in PEM".to_owned())
    }

    /// Returns `None` if the line is not an Ed25519 key or the key is weak.
    pub fn from_line(line: &str) -> Option<PublicKey> {
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{line}\n-----END PUBLIC KEY-----\n");
        let key = PublicKey::from_pem(&pem).ok()?;
        (!key.0.is_weak()).then_some(key)
    }

    pub fn to_pem(&self) -> String {
        self.0.to_public_key_pem(LineEnding::LF).expect("a key of 32 bytes can be written")
    }

    pub fn to_line(&self) -> String {
        self.to_pem().lines().nth(1).unwrap_or_default().to_owned()
    }

    /// Returns whether `signature` is valid for the component with this digest.
    #[must_use]
    pub fn verifies(&self, digest: &str, signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let signature = Signature::from_bytes(signature);
        self.0.verify_strict(message(digest).as_bytes(), &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_valid_only_for_its_component_and_key() {
        let random = Random::seeded(1);
        let (key, other) = (PrivateKey::generate(&random), PrivateKey::generate(&random));
        let (signature, component) = (key.sign(b"component"), digest(b"component"));
        assert!(key.public().verifies(&component, &signature));
        assert!(!key.public().verifies(&digest(b"Component"), &signature));
        assert!(!other.public().verifies(&component, &signature));
        let mut changed = signature;
        changed[9] ^= 1;
        assert!(!key.public().verifies(&component, &changed));
    }

    #[test]
    fn reading_a_signed_component_splits_off_the_signature() {
        let signature = PrivateKey::generate(&Random::seeded(1)).sign(b"component");
        let file = SignedComponent::embed_signature(b"component", &signature);
        assert_eq!(
            SignedComponent::parse(file),
            SignedComponent { wasm: Arc::new(b"component".to_vec()), signatures: vec![signature] }
        );
        for unsigned in [&b""[..], b"component", &signature, &SIGNATURE_SECTION_HEADER[1..]] {
            let read = SignedComponent::parse(unsigned.to_vec());
            assert_eq!(
                read,
                SignedComponent { wasm: Arc::new(unsigned.to_vec()), signatures: Vec::new() }
            );
        }
    }

    #[test]
    fn the_signature_is_a_custom_section() {
        let file = SignedComponent::embed_signature(b"\0asm\x0d\0\x01\0", &[7; SIGNATURE_BYTES]);
        let payloads: Result<Vec<_>, _> = wasmparser::Parser::new(0).parse_all(&file).collect();
        let has_section = payloads.unwrap().into_iter().any(|payload| {
            matches!(payload, wasmparser::Payload::CustomSection(section)
                if section.name() == "tollhouse:signature" && section.data() == [7; SIGNATURE_BYTES])
        });
        assert!(has_section);
    }

    #[test]
    fn keys_round_trip_through_their_text_forms() {
        let key = PrivateKey::generate(&Random::seeded(1));
        let pem = key.to_pem();
        let read = PrivateKey::from_pem(std::str::from_utf8(pem.as_ref()).unwrap()).unwrap();
        assert_eq!(read.public(), key.public());
        let public = key.public();
        assert_eq!(PublicKey::from_line(&public.to_line()), Some(public.clone()));
        assert_eq!(PublicKey::from_pem(&public.to_pem()), Ok(public));
        // RFC 8032, 7.1, test 1.
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let seed: [u8; 32] = hex::decode(seed).unwrap().try_into().unwrap();
        let known = PrivateKey(SigningKey::from_bytes(&seed)).public();
        assert_eq!(
            hex::encode(known.0.as_bytes()),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        );
    }

    #[test]
    fn weak_and_malformed_public_keys_are_rejected() {
        // The neutral element (RFC 8032, 5.1): anyone can forge signatures for it.
        let line = "MCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        assert_eq!(PublicKey::from_line(line), None);
        assert_eq!(PublicKey::from_line("hello"), None);
    }
}
