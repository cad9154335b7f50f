//! Sealing of stored secrets with XChaCha20-Poly1305 under the master key, and keyed digests.
//!
//! A sealed text is `v1.<key id>.<base64 of nonce and ciphertext>`. Its context (table, row,
//! column) is authenticated: it opens in no other row. One key seals; former keys only open.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305,
    aead::{Aead, Payload},
};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, digest::Update};

use crate::random::Random;

/// Label under which digest keys are derived from master keys.
const DIGEST_KEY: &[u8] = b"tollhouse digests v1";
const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;

/// Seals and opens texts. Cheap to clone.
#[derive(Clone)]
pub struct Sealer {
    /// The first key seals.
    keys: Arc<[Key]>,
    random: Random,
}

struct Key {
    id: String,
    cipher: XChaCha20Poly1305,
    /// Keyed, without input.
    mac: Hmac<Sha256>,
}

/// A column of sealed texts, with the statements that reseal it: see `sealed_column!`.
pub struct SealedColumn {
    /// `table.column`.
    pub name: &'static str,
    /// Counts rows by key id, which begins at the fourth character of a sealed text.
    pub count: &'static str,
    /// Selects company, id and nullable text of `$3` rows after company `$1` and id `$2`, in order.
    pub page: &'static str,
    /// Writes the text `$4` to the row of company `$1` and id `$2`, if it still contains `$3`.
    pub replace: &'static str,
    /// Context of a row's text, from its company and id as `page` returns them.
    pub context: fn(&str, &str) -> String,
    /// Context under which earlier versions sealed.
    pub former_context: Option<fn(&str, &str) -> String>,
}

/// Creates a [`SealedColumn`] from its table, the columns for company and row (or an expression for
/// the row, in parentheses), its name, its context and any former context.
#[rustfmt::skip] // one line of SQL per line
#[macro_export]
#[doc(hidden)]
macro_rules! __sealed_column {
    ($table:ident($company:ident, $id:tt).$column:ident, $context:expr $(, formerly $former:expr)?) => {
        $crate::crypto::seal::SealedColumn {
            name: concat!(stringify!($table), ".", stringify!($column)),
            count: stringify!(
                SELECT substr($column, 4, 8), COUNT(*) FROM $table
                WHERE $column IS NOT NULL GROUP BY 1
            ),
            page: concat!(
                stringify!(SELECT $company, $id, $column FROM $table WHERE ($company, $id) >),
                " ($1, $2) ", stringify!(ORDER BY $company, $id), " LIMIT $3",
            ),
            replace: concat!(
                stringify!(UPDATE $table SET $column =), " $4 ",
                stringify!(WHERE $company =), " $1 ",
                stringify!(AND $id =), " $2 ",
                stringify!(AND $column =), " $3",
            ),
            context: $context,
            former_context: [$(Some($former as fn(&str, &str) -> String),)? None][0],
        }
    };
}
pub use __sealed_column as sealed_column;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("a master key must be 64 hexadecimal characters (32 bytes)")]
    InvalidKey,
    #[error("a master key is listed twice: {0}")]
    DuplicateKey(String),
    #[error("a sealed value needs the key {0}, which this host does not have")]
    UnknownKey(String),
    #[error("a sealed value cannot be opened: it is damaged or belongs to another record")]
    Damaged,
}

/// Generates a master key, in hexadecimal.
pub fn new_master_key(random: &Random) -> String {
    hex::encode(random.bytes::<KEY_BYTES>())
}

impl Key {
    fn new(hexadecimal: &str) -> Result<Key, SealError> {
        let key: [u8; KEY_BYTES] = hex::decode(hexadecimal)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(SealError::InvalidKey)?;
        let id = hex::encode(&Sha256::digest(key)[..4]);
        let derived = mac(&key).chain_update(DIGEST_KEY).finalize().into_bytes();
        Ok(Key { id, cipher: XChaCha20Poly1305::new(&key.into()), mac: mac(&derived) })
    }

    fn digest<P: AsRef<[u8]>>(&self, parts: &[P]) -> Hmac<Sha256> {
        chain_parts(self.mac.clone(), parts)
    }

    fn encode_digest<P: AsRef<[u8]>>(&self, parts: &[P]) -> String {
        format!("d1.{}.{}", self.id, hex::encode(self.digest(parts).finalize().into_bytes()))
    }
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl Sealer {
    /// `master_keys` are 32 bytes in hexadecimal each, separated by whitespace; the first seals.
    pub fn new(master_keys: &str, random: Random) -> Result<Sealer, SealError> {
        let mut keys: Vec<Key> = Vec::new();
        for key in master_keys.split_whitespace().map(Key::new) {
            let key = key?;
            if keys.iter().any(|known| known.id == key.id) {
                return Err(SealError::DuplicateKey(key.id));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(SealError::InvalidKey);
        }
        Ok(Sealer { keys: keys.into(), random })
    }

    /// Returns the id of the key that seals.
    pub fn key_id(&self) -> &str {
        &self.keys[0].id
    }

    /// Returns the ids of the keys that only open.
    pub fn former_key_ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().skip(1).map(|key| &*key.id)
    }

    /// Returns whether a text is sealed under a former key.
    pub fn is_under_former_key(&self, sealed: &str) -> bool {
        let key = sealed.split('.').nth(1);
        self.former_key_ids().any(|former| key == Some(former))
    }

    pub fn seal(&self, context: &str, text: &str) -> String {
        let key = &self.keys[0];
        let nonce = self.random.bytes::<NONCE_BYTES>();
        let payload = Payload { msg: text.as_bytes(), aad: context.as_bytes() };
        let sealed = key.cipher.encrypt(&nonce.into(), payload);
        let sealed = sealed.expect("a text in memory is shorter than the cipher's limit");
        format!("v1.{}.{}", key.id, BASE64.encode([&nonce[..], &sealed].concat()))
    }

    pub fn open(&self, context: &str, sealed: &str) -> Result<String, SealError> {
        let mut parts = sealed.splitn(3, '.');
        let (Some("v1"), Some(id), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(SealError::Damaged);
        };
        let key = self.keys.iter().find(|key| key.id == id);
        let key = key.ok_or_else(|| SealError::UnknownKey(id.to_owned()))?;
        let body = BASE64.decode(body).map_err(|_| SealError::Damaged)?;
        let (nonce, sealed) = body.split_at_checked(NONCE_BYTES).ok_or(SealError::Damaged)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| SealError::Damaged)?;
        let payload = Payload { msg: sealed, aad: context.as_bytes() };
        let text = key.cipher.decrypt(&nonce.into(), payload).map_err(|_| SealError::Damaged)?;
        String::from_utf8(text).map_err(|_| SealError::Damaged)
    }

    /// Returns the digest of texts under the key that seals: `d1.<key id>.<hexadecimal>`. Without
    /// the key, a short text such as a six-digit code cannot be found by brute force.
    pub fn digest<P: AsRef<[u8]>>(&self, parts: &[P]) -> String {
        self.keys[0].encode_digest(parts)
    }

    /// Returns the digest under each key, the sealing one first, to find older values.
    pub fn digests(&self, parts: &[&str]) -> Vec<String> {
        self.keys.iter().map(|key| key.encode_digest(parts)).collect()
    }

    /// Returns, in constant time, whether `digest` is that of these texts under any of the keys.
    pub fn verify_digest<P: AsRef<[u8]>>(&self, digest: &str, parts: &[P]) -> bool {
        let Some(("d1", rest)) = digest.split_once('.') else { return false };
        let Some((id, digest)) = rest.split_once('.') else { return false };
        let key = self.keys.iter().find(|key| key.id == id);
        let (Some(key), Ok(digest)) = (key, hex::decode(digest)) else { return false };
        key.digest(parts).verify_slice(&digest).is_ok()
    }
}

impl SealedColumn {
    /// Opens the text of a row, under its context or its former context.
    pub fn open(
        &self,
        sealer: &Sealer,
        [company_id, id]: [&str; 2],
        sealed: &str,
    ) -> Result<String, SealError> {
        match (sealer.open(&(self.context)(company_id, id), sealed), self.former_context) {
            (Err(SealError::Damaged), Some(former)) => sealer.open(&former(company_id, id), sealed),
            (opened, _) => opened,
        }
    }

    /// Returns whether the text of a row is sealed under a former key or the former context.
    pub fn is_stale(&self, sealer: &Sealer, [company_id, id]: [&str; 2], sealed: &str) -> bool {
        sealer.is_under_former_key(sealed)
            || self
                .former_context
                .is_some_and(|former| sealer.open(&former(company_id, id), sealed).is_ok())
    }
}

/// Returns the SHA-256 of texts, each preceded by its length, so that different lists differ. It is
/// not keyed: a short text can be found by brute force.
pub fn fingerprint<P: AsRef<[u8]>>(parts: &[P]) -> String {
    hex::encode(chain_parts(Sha256::new(), parts).finalize())
}

/// Each part is preceded by its length, so that different lists never have the same input.
fn chain_parts<H: Update, P: AsRef<[u8]>>(hash: H, parts: &[P]) -> H {
    parts
        .iter()
        .map(P::as_ref)
        .fold(hash, |hash, part| hash.chain((part.len() as u64).to_be_bytes()).chain(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(keys: &str) -> Sealer {
        Sealer::new(keys, Random::seeded(1)).unwrap()
    }

    #[test]
    fn a_fingerprint_depends_on_where_texts_are_split() {
        assert_ne!(fingerprint(&["POST", "/a", "bc"]), fingerprint(&["POST", "/ab", "c"]));
        assert_eq!(fingerprint(&["POST", "/a", "b"]), fingerprint(&["POST", "/a", "b"]));
    }

    #[test]
    fn digests_match_their_texts_under_any_of_the_keys() {
        let (old, new) = ("07".repeat(32), "08".repeat(32));
        let digest = sealer(&old).digest(&["acme", "login", "123456"]);
        let both = sealer(&format!("{new}\n{old}"));
        for (sealer, parts, same) in [
            (&both, ["acme", "login", "123456"], true),
            (&both, ["acme", "login", "123457"], false),
            (&both, ["acme", "login1", "23456"], false),
            (&both, ["acm", "elogin", "123456"], false),
            (&sealer(&new), ["acme", "login", "123456"], false),
        ] {
            assert_eq!(sealer.verify_digest(&digest, &parts), same, "{parts:?}");
        }
        assert_ne!(both.digest(&["acme", "login", "123456"]), digest);
        let parts = ["acme", "login", "123456"];
        assert_eq!(both.digests(&parts), [both.digest(&parts), digest.clone()]);
        for bad in ["", "d1", "d1.x", "v1.x.00", &digest[..digest.len() - 2]] {
            assert!(!both.verify_digest(bad, &["acme", "login", "123456"]), "{bad}");
        }
    }

    #[test]
    fn sealed_text_opens_only_with_its_key_and_context() {
        let (own, other) = (sealer(&"07".repeat(32)), sealer(&"08".repeat(32)));
        let sealed = own.seal("companies/1", "whsec_abc");
        assert!(!sealed.contains("whsec"));
        assert_eq!(own.open("companies/1", &sealed).unwrap(), "whsec_abc");
        assert!(matches!(own.open("companies/2", &sealed), Err(SealError::Damaged)));
        assert!(matches!(other.open("companies/1", &sealed), Err(SealError::UnknownKey(_))));
        assert!(matches!(own.open("companies/1", "v1.x"), Err(SealError::Damaged)));
    }

    #[test]
    fn the_first_key_seals_and_the_others_open() {
        let (old, new) = ("07".repeat(32), "08".repeat(32));
        let sealed = sealer(&old).seal("c", "text");
        let both = sealer(&format!("{new}\n{old}\n"));
        assert_eq!(both.open("c", &sealed).unwrap(), "text");
        let resealed = both.seal("c", "text");
        assert!(both.is_under_former_key(&sealed) && !both.is_under_former_key(&resealed));
        assert_eq!(sealer(&new).open("c", &resealed).unwrap(), "text");
        assert!(matches!(sealer(&old).open("c", &resealed), Err(SealError::UnknownKey(_))));
        let (first, second) = (sealer(&new), sealer(&old));
        assert_eq!(both.key_id(), first.key_id());
        assert_eq!(both.former_key_ids().collect::<Vec<_>>(), [second.key_id()]);
    }

    #[test]
    fn a_master_key_is_32_bytes_and_given_once() {
        let (key, half) = ("07".repeat(32), "07".repeat(16));
        for bad in ["", "abc", &half, &format!("{key} {half}"), &format!("{key}{key}")] {
            let refused = Sealer::new(bad, Random::seeded(1)).err();
            assert_eq!(refused, Some(SealError::InvalidKey), "{bad}");
        }
        let twice = Sealer::new(&format!("{key}\n{key}"), Random::seeded(1)).err();
        assert!(matches!(twice, Some(SealError::DuplicateKey(_))));
        let drawn = new_master_key(&Random::seeded(1));
        assert!(Sealer::new(&drawn, Random::seeded(1)).is_ok());
    }
}
