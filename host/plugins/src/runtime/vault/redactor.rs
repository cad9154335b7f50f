//! Redaction of secrets from responses and logs.

use memchr::memmem;

/// Minimum length of redacted values. Shorter ones would match by chance.
const MIN_REDACTED_BYTES: usize = 6;
/// Text that replaces a secret.
pub const REDACTED: &str = "[secret]";

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
    /// Creates a redactor for these values, as they are and in JSON.
    pub fn new<'v>(values: impl Iterator<Item = &'v String>) -> Redactor {
        let long = values.filter(|value| value.len() >= MIN_REDACTED_BYTES);
        let mut texts: Vec<String> = long.flat_map(|value| encodings(value)).collect();
        // Longest first, because a secret may begin with another one.
        texts.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        Redactor(texts.iter().map(|text| memmem::Finder::new(text).into_owned()).collect())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_and_json_encoded_secrets_are_redacted() {
        let of = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
            Redactor::new(values.iter())
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
}
