//! Placeholders: random texts, valid for one call, that egress replaces by secrets. A fixed text
//! would let user input expand to a secret.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use memchr::memmem;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    Secrets, VaultError,
    transform::{Account, MAX_TRANSFORMED_BYTES, Results, Step, check, digest},
};
use crate::manifest::bindings::{AccountBinding, RequestPart};
use crate::prelude::*;

const PLACEHOLDER_PREFIX: &str = "vault-";
/// Hexadecimal digits after the prefix.
const PLACEHOLDER_DIGITS: usize = 32;
pub(super) const MAX_PLACEHOLDERS: usize = 64;

/// The placeholders of one call.
pub struct Placeholders {
    all: Vec<Placeholder>,
    rng: StdRng,
}

struct Placeholder {
    /// One secret, user and password of basic authentication, or the secrets in a template.
    names: Vec<String>,
    /// The digest of a transformation's template and steps.
    transformed: Option<[u8; 32]>,
    text: String,
    value: String,
    /// All of them must permit a place.
    bindings: Vec<AccountBinding>,
}

impl Placeholders {
    /// Creates the placeholders of a call: its runs have the same seed.
    pub fn new(seed: u64) -> Placeholders {
        Placeholders { all: Vec::new(), rng: StdRng::seed_from_u64(seed) }
    }

    pub fn secret(&mut self, secrets: &Secrets, name: &str) -> Result<String, VaultError> {
        let value = secrets.get(name)?.to_owned();
        self.placeholder_for(secrets, &[name], value)
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

    /// Fills the template with its placeholders, and applies the steps. All bindings of the
    /// template's secrets apply to the result.
    pub fn transform(
        &mut self,
        account: Account<'_>,
        template: &[u8],
        steps: &[Step],
        results: &mut Results,
    ) -> Result<String, VaultError> {
        check(template, steps)?;
        let filled = self.fill(template, MAX_TRANSFORMED_BYTES);
        let filled = filled.ok_or(VaultError::TemplateTooLarge)?;
        let source = digest(template, &filled, steps);
        if let Some(same) = self.all.iter().find(|known| known.transformed == Some(source)) {
            return Ok(same.text.clone());
        }
        let value = results.get_or_transform(account, source, filled, steps)?;
        let parts = self.find_in(template).map(|(_, placeholder)| placeholder);
        let (names, bindings): (Vec<_>, Vec<_>) =
            parts.map(|part| (part.names.clone(), part.bindings.clone())).unzip();
        self.insert(Placeholder {
            names: names.concat(),
            transformed: Some(source),
            text: String::new(),
            value,
            bindings: bindings.concat(),
        })
    }

    /// Returns all values.
    pub(super) fn values(&self) -> impl Iterator<Item = &String> {
        self.all.iter().map(|placeholder| &placeholder.value)
    }

    /// Returns the placeholder for these names, the same throughout the call.
    fn placeholder_for(
        &mut self,
        secrets: &Secrets,
        names: &[&str],
        value: String,
    ) -> Result<String, VaultError> {
        let is_same = |known: &&Placeholder| known.transformed.is_none() && known.names == names;
        if let Some(known) = self.all.iter().find(is_same) {
            return Ok(known.text.clone());
        }
        let bindings = names.iter().filter_map(|&name| secrets.bindings.get(name));
        let bindings = bindings.cloned().collect();
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let (text, transformed) = (String::new(), None);
        self.insert(Placeholder { names, transformed, text, value, bindings })
    }

    /// Adds a placeholder with a random text, and returns the text.
    fn insert(&mut self, new: Placeholder) -> Result<String, VaultError> {
        if self.all.len() == MAX_PLACEHOLDERS {
            return Err(VaultError::TooManyPlaceholders);
        }
        let mut random = [0; PLACEHOLDER_DIGITS / 2];
        self.rng.fill_bytes(&mut random);
        let text = format!("{PLACEHOLDER_PREFIX}{}", hex::encode(random));
        self.all.push(Placeholder { text: text.clone(), ..new });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::vault::REDACTED;

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
    fn a_transformed_template_obeys_the_bindings_of_its_secrets_and_not_of_its_keys() {
        let values = ["pass", "key"].map(|name| (name.to_owned(), format!("{name} value")));
        let manifest = serde_json::json!({ "pass": { "to": ["url"], "in": ["body"] }, "key": {} });
        let declared: crate::DeclaredSecrets = serde_json::from_value(manifest).unwrap();
        let at = |name: &str| Some(format!("https://{name}"));
        let secrets =
            Secrets::new(values.into()).with_bindings(declared.account_bindings(at).collect());
        let account = Account { secrets: &secrets, settings: &HashMap::new() };
        let step = |name: &str, key: Option<&str>| Step {
            name: name.to_owned(),
            key: key.map(str::to_owned),
        };
        let mut all = Placeholders::new(1);
        let pass = all.secret(&secrets, "pass").unwrap();
        let mut results = Results::new([0; 32]);
        let mut transform = |template: &str, steps: &[Step]| {
            all.transform(account, template.as_bytes(), steps, &mut results).unwrap()
        };
        let encoded = transform(&format!("1{pass}2"), &[step("base64", None)]);
        let nested = transform(&encoded, &[step("hex", None)]);
        let keyed = [step("hmac-sha256", Some("key")), step("hex", None)];
        let signed = transform("text", &keyed);
        assert_eq!(transform("text", &keyed), signed);
        assert_ne!(transform(&pass, &keyed), signed);
        for (text, in_body, in_header) in
            [(&encoded, None, Some("pass")), (&nested, None, Some("pass")), (&signed, None, None)]
        {
            let misplaced = |part| all.find_misplaced(text.as_bytes(), part, "https://url");
            assert_eq!(misplaced(RequestPart::Body).as_deref(), in_body);
            assert_eq!(misplaced(RequestPart::Header("x")).as_deref(), in_header);
            assert!(misplaced(RequestPart::Url).is_some());
        }
        let base64 = BASE64.encode("1pass value2");
        let filled = all.fill(format!("{encoded} {nested}").as_bytes(), 100).unwrap();
        assert_eq!(filled, format!("{base64} {}", hex::encode(&base64)).into_bytes());
        let redacted = secrets.redactor(Some(&all)).redact(base64.as_bytes());
        assert_eq!(redacted, REDACTED.as_bytes());
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
}
