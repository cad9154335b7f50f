//! The vault: plugins use secrets that they never see.
//!
//! A plugin receives a random placeholder, valid for one call, which egress replaces by the secret.
//! Fixed ones would let user input expand to a secret. Responses and logs are redacted.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use memchr::memmem;
use rand::{Rng, SeedableRng, rngs::StdRng};
use sha2::{Sha256, Sha512};
use subtle::ConstantTimeEq;

use crate::manifest::bindings::{AccountBinding, RequestPart};
use crate::prelude::*;

/// Minimum length of redacted values. Shorter ones would match by chance.
const MIN_REDACTED_BYTES: usize = 6;
/// Text that replaces a secret.
pub const REDACTED: &str = "[secret]";
const PLACEHOLDER_PREFIX: &str = "vault-";
/// Hexadecimal digits after the prefix.
const PLACEHOLDER_DIGITS: usize = 32;
/// Maximum size of the data of an HMAC or of a comparison.
const MAX_BYTES: usize = 1 << 20;
const MAX_PLACEHOLDERS: usize = 64;
const MAX_QUOTED_CHARS: usize = 100;

/// The secrets of one account, by their names in the manifest.
#[derive(Clone, Default)]
pub struct Secrets {
    values: HashMap<String, String>,
    /// Without unbound secrets.
    bindings: HashMap<String, AccountBinding>,
}

/// The placeholders of one call.
pub struct Placeholders {
    all: Vec<Placeholder>,
    rng: StdRng,
}

struct Placeholder {
    /// One secret, or user and password of basic authentication.
    names: Vec<String>,
    text: String,
    value: String,
    /// All of them must permit a place.
    bindings: Vec<AccountBinding>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("the account has no secret {0}, or the manifest's secrets do not name it")]
    UnknownSecret(String),
    #[error("the host does not support the algorithm {0}")]
    UnknownAlgorithm(String),
    #[error("a call may have at most 64 different placeholders")]
    TooManyPlaceholders,
    #[error("vault.hmac and vault.matches accept at most 1 MiB of data")]
    TooLarge,
}

impl From<VaultError> for Fault {
    fn from(error: VaultError) -> Fault {
        let (category, code) = match &error {
            VaultError::UnknownSecret(_) => (FaultCategory::Misconfigured, "no-secret"),
            VaultError::UnknownAlgorithm(_) => (FaultCategory::Invalid, "no-algorithm"),
            VaultError::TooManyPlaceholders => {
                (FaultCategory::Misconfigured, "too-many-placeholders")
            }
            VaultError::TooLarge => (FaultCategory::Misconfigured, "too-large"),
        };
        Fault::new(category, code, error.to_string())
    }
}

impl Secrets {
    pub fn new(values: HashMap<String, String>) -> Secrets {
        Secrets { values, bindings: HashMap::new() }
    }

    #[must_use]
    pub fn with_bindings(self, bindings: HashMap<String, AccountBinding>) -> Secrets {
        Secrets { bindings, ..self }
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.values.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    fn get(&self, name: &str) -> Result<&str, VaultError> {
        self.values
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| VaultError::UnknownSecret(truncate_name(name)))
    }

    pub fn hmac(&self, algorithm: &str, name: &str, data: &[u8]) -> Result<Vec<u8>, VaultError> {
        let key = self.get(name)?.as_bytes();
        if data.len() > MAX_BYTES {
            return Err(VaultError::TooLarge);
        }
        match algorithm {
            "sha256" => Ok(mac(Hmac::<Sha256>::new_from_slice(key), data)),
            "sha512" => Ok(mac(Hmac::<Sha512>::new_from_slice(key), data)),
            _ => Err(VaultError::UnknownAlgorithm(truncate_name(algorithm))),
        }
    }

    pub fn matches(&self, name: &str, candidate: &[u8]) -> Result<bool, VaultError> {
        let secret = self.get(name)?.as_bytes();
        if candidate.len() > MAX_BYTES {
            return Err(VaultError::TooLarge);
        }
        Ok(secret.ct_eq(candidate).into())
    }

    /// Returns a redactor for the secrets as they are, in JSON, and in basic authentication.
    pub fn redactor(&self, placeholders: Option<&Placeholders>) -> Redactor {
        let placeholders = placeholders.into_iter().flat_map(|placeholders| &placeholders.all);
        let values = self.values.values().chain(placeholders.map(|placeholder| &placeholder.value));
        let long = values.filter(|value| value.len() >= MIN_REDACTED_BYTES);
        let mut texts: Vec<String> = long.flat_map(|value| encodings(value)).collect();
        // Longest first, because a secret may begin with another one.
        texts.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        Redactor(texts.iter().map(|text| memmem::Finder::new(text).into_owned()).collect())
    }
}

/// Returns the value as it is, in JSON, and in JSON with escaped slashes.
fn encodings(value: &str) -> [String; 3] {
    let json = serde_json::Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let escaped = json.replace('/', "\\/");
    [value.to_owned(), json, escaped]
}

/// Searches for each text, longest first. For a few, building an automaton takes longer.
pub struct Redactor(Vec<memmem::Finder<'static>>);

impl Redactor {
    /// Redacts the secrets, with one search for each.
    pub fn redact(&self, text: &[u8]) -> Vec<u8> {
        let found = self.0.iter().filter_map(|secret| Some((secret, secret.find(text)?)));
        let mut found: Vec<(&memmem::Finder<'_>, usize)> = found.collect();
        let mut clean = Vec::with_capacity(text.len());
        let mut rest = 0;
        // The first one at a position is the longest.
        while let Some(&(secret, at)) = found.iter().min_by_key(|(_, at)| *at) {
            clean.extend_from_slice(&text[rest..at]);
            clean.extend_from_slice(REDACTED.as_bytes());
            rest = at + secret.needle().len();
            found.retain_mut(|(secret, at)| {
                if *at < rest {
                    let Some(next) = secret.find(&text[rest..]) else { return false };
                    *at = rest + next;
                }
                true
            });
        }
        clean.extend_from_slice(&text[rest..]);
        clean
    }

    pub fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact(text.as_bytes())).into_owned()
    }
}

impl Placeholders {
    /// Creates the placeholders of a call: its runs have the same seed.
    pub fn new(seed: u64) -> Placeholders {
        Placeholders { all: Vec::new(), rng: StdRng::seed_from_u64(seed) }
    }

    pub fn secret(&mut self, secrets: &Secrets, name: &str) -> Result<String, VaultError> {
        self.placeholder_for(secrets, &[name], secrets.get(name)?.to_owned())
    }

    /// `user` may name a setting, because account numbers are often not secret.
    pub fn basic(
        &mut self,
        secrets: &Secrets,
        settings: &HashMap<String, String>,
        user: &str,
        password: &str,
    ) -> Result<String, VaultError> {
        let name = settings.get(user).map(String::as_str);
        let name = name.map_or_else(|| secrets.get(user), Ok)?;
        let pair = format!("{name}:{}", secrets.get(password)?);
        self.placeholder_for(secrets, &[user, password], BASE64.encode(pair))
    }

    /// Returns the placeholder for these names, the same throughout the call.
    fn placeholder_for(
        &mut self,
        secrets: &Secrets,
        names: &[&str],
        value: String,
    ) -> Result<String, VaultError> {
        if let Some(known) = self.all.iter().find(|known| known.names == names) {
            return Ok(known.text.clone());
        }
        if self.all.len() == MAX_PLACEHOLDERS {
            return Err(VaultError::TooManyPlaceholders);
        }
        let mut random = [0; PLACEHOLDER_DIGITS / 2];
        self.rng.fill_bytes(&mut random);
        let text = format!("{PLACEHOLDER_PREFIX}{}", hex::encode(random));
        let bindings = names.iter().filter_map(|&name| secrets.bindings.get(name));
        let bindings = bindings.cloned().collect();
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.all.push(Placeholder { names, text: text.clone(), value, bindings });
        Ok(text)
    }

    /// Inserts the secrets in one pass. `None`: the result exceeds `max_bytes`.
    pub fn fill(&self, text: &[u8], max_bytes: usize) -> Option<Vec<u8>> {
        let mut filled = Vec::with_capacity(text.len());
        let mut rest = 0;
        for (at, known) in self.find_in(text) {
            filled.extend_from_slice(&text[rest..at]);
            filled.extend_from_slice(known.value.as_bytes());
            rest = at + known.text.len();
            if filled.len() > max_bytes {
                return None;
            }
        }
        filled.extend_from_slice(&text[rest..]);
        (filled.len() <= max_bytes).then_some(filled)
    }

    /// Returns the name of the first secret that may not be sent in this part of a request to
    /// `origin`. Percent-encoded placeholders are found, too.
    #[must_use]
    pub fn find_misplaced(
        &self,
        text: &[u8],
        part: RequestPart<'_>,
        origin: &str,
    ) -> Option<String> {
        if self.all.is_empty() {
            return None;
        }
        let is_misplaced = |placeholder: &&Placeholder| {
            let permits = |binding: &AccountBinding| binding.permits(origin, part);
            !part.may_hold_secrets() || !placeholder.bindings.iter().all(permits)
        };
        let first = |text: &[u8]| {
            let found =
                self.find_in(text).map(|(_, placeholder)| placeholder).find(&is_misplaced)?;
            Some(found.names.join(" with "))
        };
        let encoded = || {
            memchr::memchr(b'%', text)?;
            // Placeholders contain no separators of names and values.
            let mut decoded = url::form_urlencoded::parse(text);
            decoded.find_map(|(name, value)| {
                first(name.as_bytes()).or_else(|| first(value.as_bytes()))
            })
        };
        first(text).or_else(encoded)
    }

    /// Returns the placeholders in a text with their positions.
    fn find_in<'s>(&'s self, text: &'s [u8]) -> impl Iterator<Item = (usize, &'s Placeholder)> {
        memmem::find_iter(text, PLACEHOLDER_PREFIX).filter_map(move |at| {
            let here = text.get(at..at + PLACEHOLDER_PREFIX.len() + PLACEHOLDER_DIGITS)?;
            let known = self.all.iter().find(|known| known.text.as_bytes() == here)?;
            Some((at, known))
        })
    }
}

/// Returns the start of an unknown name for error messages.
fn truncate_name(name: &str) -> String {
    name.chars().take(MAX_QUOTED_CHARS).collect()
}

fn mac<M: Mac, E: std::fmt::Debug>(keyed: Result<M, E>, data: &[u8]) -> Vec<u8> {
    let mut mac = keyed.expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        Secrets::new([("secret_key".to_owned(), "sk_test_abc123".to_owned())].into())
    }

    #[test]
    fn a_placeholder_is_random_per_call_and_filled_only_by_its_call() {
        let draw = |seed| {
            let mut placeholders = Placeholders::new(seed);
            let name = placeholders.secret(&secrets(), "secret_key").unwrap();
            (name, placeholders)
        };
        let (first, one) = draw(1);
        let (second, other) = draw(2);
        assert!(first != second && draw(1).0 == first);
        let fill = |by: &Placeholders, text: &str| by.fill(text.as_bytes(), 100).unwrap();
        assert_eq!(fill(&one, &format!("Bearer {first}")), b"Bearer sk_test_abc123");
        assert_eq!(fill(&other, &first), first.as_bytes());
    }

    #[test]
    fn a_secret_has_one_placeholder_per_call() {
        let names = (0..MAX_PLACEHOLDERS).map(|n| (format!("k{n}"), format!("value {n}")));
        let secrets = Secrets::new(names.collect());
        let mut placeholders = Placeholders::new(1);
        let first = placeholders.secret(&secrets, "k0").unwrap();
        for n in 1..MAX_PLACEHOLDERS {
            placeholders.secret(&secrets, &format!("k{n}")).unwrap();
            assert_eq!(placeholders.secret(&secrets, "k0"), Ok(first.clone()));
        }
        let one_more = placeholders.basic(&secrets, &HashMap::new(), "k0", "k1");
        assert_eq!(one_more, Err(VaultError::TooManyPlaceholders));

        let last = placeholders.secret(&secrets, "k63").unwrap();
        let text = format!("vault-{first}{last}, {last} vault- {}", &first[..20]);
        let filled = format!("vault-value 0value 63, value 63 vault- {}", &first[..20]);
        let most = filled.len();
        assert_eq!(placeholders.fill(text.as_bytes(), most), Some(filled.into_bytes()));
        assert_eq!(placeholders.fill(text.as_bytes(), most - 1), None);
    }

    #[test]
    fn a_placeholder_is_misplaced_unless_all_bindings_permit_the_place() {
        let values = ["bound", "other", "free"].map(|name| (name.to_owned(), name.to_owned()));
        let manifest = serde_json::json!({
            "bound": { "to": ["url"], "in": ["header:authorization", "body"] },
            "other": { "to": ["url"], "in": ["header:authorization"] },
        });
        let declared: crate::DeclaredSecrets = serde_json::from_value(manifest).unwrap();
        let at = |name: &str| Some(format!("https://{name}"));
        let secrets =
            Secrets::new(values.into()).with_bindings(declared.account_bindings(at).collect());
        let mut all = Placeholders::new(1);
        let bound = all.secret(&secrets, "bound").unwrap();
        let free = all.secret(&secrets, "free").unwrap();
        let settings = [("account".to_owned(), "AC1".to_owned())].into();
        let both = all.basic(&secrets, &settings, "bound", "other").unwrap();
        let of_setting = all.basic(&secrets, &settings, "account", "bound").unwrap();
        let encoded = |text: &str| text.replace('v', "%76").replace('-', "%2D");
        let (here, there) = ("https://url", "https://else");
        let header = RequestPart::Header("Authorization");
        for (text, part, origin, named) in [
            (&bound, header, here, None),
            (&bound, RequestPart::Body, here, None),
            (&bound, RequestPart::Header("x-key"), here, Some("bound")),
            (&bound, header, there, Some("bound")),
            (&bound, RequestPart::Url, here, Some("bound")),
            (&encoded(&bound), RequestPart::Url, here, Some("bound")),
            (&encoded(&bound), RequestPart::Body, there, Some("bound")),
            (&both, header, here, None),
            (&both, RequestPart::Body, here, Some("bound with other")),
            (&of_setting, RequestPart::Body, here, None),
            (&of_setting, RequestPart::Body, there, Some("account with bound")),
            (&free, RequestPart::Header("x-key"), there, None),
            (&free, RequestPart::Body, there, None),
            (&free, RequestPart::Url, here, Some("free")),
            (&free, RequestPart::Method, here, Some("free")),
            (&free, RequestPart::HeaderName, here, Some("free")),
            (&bound[..20].to_owned(), RequestPart::Url, there, None),
        ] {
            let text = format!("{free} is before a=100%&b={text}");
            let text = if part.may_hold_secrets() { text } else { text[free.len()..].to_owned() };
            let misplaced = all.find_misplaced(text.as_bytes(), part, origin);
            assert_eq!(misplaced.as_deref(), named, "{text} in {part}");
        }
        assert_eq!(
            Placeholders::new(1).find_misplaced(bound.as_bytes(), RequestPart::Url, here),
            None
        );
    }

    #[test]
    fn secrets_are_redacted_from_responses() {
        let mut placeholders = Placeholders::new(1);
        placeholders.basic(&secrets(), &HashMap::new(), "secret_key", "secret_key").unwrap();
        let hidden = BASE64.encode("sk_test_abc123:sk_test_abc123");
        let text = format!("you sent sk_test_abc123 and {hidden}");
        let clean = secrets().redactor(Some(&placeholders)).redact(text.as_bytes());
        assert_eq!(clean, b"you sent [secret] and [secret]");
    }

    #[test]
    fn the_user_may_be_a_setting_but_not_the_password() {
        let mut placeholders = Placeholders::new(1);
        let settings = [("account".to_owned(), "AC1".to_owned())].into();
        let mut basic =
            |user: &str, password: &str| placeholders.basic(&secrets(), &settings, user, password);
        let text = basic("account", "secret_key").unwrap();
        let missing = |name: &str| Err(VaultError::UnknownSecret(name.to_owned()));
        assert_eq!(basic("secret_key", "account"), missing("account"));
        assert_eq!(basic("unknown", "secret_key"), missing("unknown"));
        let filled = placeholders.fill(text.as_bytes(), 100).unwrap();
        assert_eq!(filled, BASE64.encode("AC1:sk_test_abc123").into_bytes());
    }

    #[test]
    fn overlapping_and_json_encoded_secrets_are_redacted() {
        let of = |values: &[&str]| {
            let named = values.iter().enumerate();
            let named = named.map(|(n, value)| (n.to_string(), (*value).to_owned()));
            Secrets::new(named.collect()).redactor(None)
        };
        for _ in 0..20 {
            let one_in_another = of(&["sk_test", "sk_test_abc123", "short"]);
            assert_eq!(one_in_another.redact_text("sk_test_abc123 short"), "[secret] short");
        }
        let overlapping = of(&["one secret", "secret two", "secret"]);
        let text = "one secret two, secret two one, secret; one secre";
        assert_eq!(
            overlapping.redact_text(text),
            "[secret] two, [secret] one, [secret]; one secre"
        );
        let odd = of(&["pass\"wo/rd\n"]);
        for text in ["pass\"wo/rd\n", r#"pass\"wo/rd\n"#, r#"pass\"wo\/rd\n"#] {
            assert_eq!(odd.redact_text(text), "[secret]", "{text}");
        }
    }

    #[test]
    fn hmac_matches_the_vector_and_limits_its_data() {
        let body = br#"{"event":"charge.success","data":{"reference":"pay-1","amount":10000}}"#;
        let mac = secrets().hmac("sha512", "secret_key", body).unwrap();
        assert!(hex::encode(mac).starts_with("dc7cd888540ba73cdf492d2d0f92eb41"));
        assert_eq!(
            secrets().hmac("md5", "secret_key", body),
            Err(VaultError::UnknownAlgorithm("md5".into()))
        );
        let long = vec![0; MAX_BYTES + 1];
        assert!(secrets().hmac("sha256", "secret_key", &long[1..]).is_ok());
        assert_eq!(secrets().hmac("sha256", "secret_key", &long), Err(VaultError::TooLarge));
        assert_eq!(secrets().matches("secret_key", &long), Err(VaultError::TooLarge));
        assert_eq!(secrets().matches("secret_key", &long[1..]), Ok(false));
        assert_eq!(secrets().matches("other", b""), Err(VaultError::UnknownSecret("other".into())));
    }
}
