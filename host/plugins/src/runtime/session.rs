//! The journal of a call, from which each run re-executes.
//!
//! A call is deterministic, so no instance is kept while a request is in flight: `http.send` ends
//! the instance, the host sends the request, and the function runs again with all responses so far.
//! A run that diverges from the previous one fails.

use super::{
    cache::{self, Cache},
    transcript::{Transcript, VaultResult},
    vault::{
        Placeholders, Secrets,
        transform::{Account, Results, Step},
    },
};
use crate::{EXAMPLE_SECRET, prelude::*};
use tollhouse_platform::crypto::seal::fingerprint;

/// Maximum size of a request with URL and headers. An image of 5 MiB fits as base64.
pub const MAX_REQUEST_BYTES: usize = 8 << 20;
/// Far fewer than the number at which the HTTP library panics.
const MAX_HEADERS: usize = 256;
const MAX_ENTRIES: usize = 256;
const MAX_LOG_LINES: usize = 100;
const MAX_LOG_BYTES: usize = 2 << 10;

/// Everything that a plugin may use with one set of credentials.
#[derive(Default)]
pub struct Grant {
    /// Component and credentials, which separate cached values.
    pub scope: String,
    pub secrets: Secrets,
    pub settings: HashMap<String, String>,
    /// Permitted origins of requests, for example `https://api.example.com`.
    pub origins: Vec<String>,
    /// Recorded cache reads and vault results, set in a replay.
    pub replayed: Option<Arc<Transcript>>,
}

impl Grant {
    /// Redacts secrets from a plugin's text.
    pub fn redact(&self, text: &str) -> String {
        self.secrets.redactor(None).redact_text(text)
    }

    pub fn redact_fault(&self, fault: Fault) -> Fault {
        let secrets = self.secrets.redactor(None);
        let details = fault.details.iter();
        let details = details.map(|(n, v)| (secrets.redact_text(n), secrets.redact_text(v)));
        Fault {
            code: secrets.redact_text(&fault.code),
            message: secrets.redact_text(&fault.message),
            details: details.collect(),
            ..fault
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub timeout_ms: Option<u32>,
}

/// Returns the size of a response.
pub fn response_bytes(response: &EgressResponse) -> usize {
    header_bytes(&response.headers) + response.body.len()
}

/// Returns the length in bytes.
pub fn header_bytes(headers: &[(String, String)]) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// A request or cache read, and its result.
pub enum JournalEntry {
    Http(HttpRequest, Result<EgressResponse, Fault>),
    CacheRead(String, Option<String>),
}

/// The reason why a host function ended the instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunEnded {
    #[error("the call waits for a response")]
    Waiting,
    /// The point of divergence, without the plugin's data.
    #[error("the call is not deterministic: {0}")]
    Nondeterministic(String),
    #[error("the call exceeded its limit of cache reads")]
    TooManyCacheReads,
}

impl HttpRequest {
    pub fn bytes(&self) -> usize {
        let body = self.body.as_ref().map_or(0, Vec::len);
        self.method.len() + self.url.len() + header_bytes(&self.headers) + body
    }

    pub fn may_have_side_effects(&self) -> bool {
        !["GET", "HEAD"].contains(&&*self.method)
    }

    fn is_too_large(&self) -> bool {
        self.bytes() > MAX_REQUEST_BYTES || self.headers.len() > MAX_HEADERS
    }

    /// Returns the first part in which two requests differ.
    fn differing_part(&self, other: &HttpRequest) -> String {
        let mut headers = self.headers.iter().zip(&other.headers);
        let part = if self.method != other.method {
            "method"
        } else if self.url != other.url {
            "URL"
        } else if self.headers.len() != other.headers.len() {
            "number of headers"
        } else if let Some(((name, _), _)) = headers.find(|(one, other)| one != other) {
            return format!("header {name}");
        } else if self.body != other.body {
            "body"
        } else {
            "timeout"
        };
        part.to_owned()
    }

    pub fn too_large_fault() -> Fault {
        let message =
            "a request may have at most 8 MiB, including its URL and headers, and 256 headers";
        Fault::new(FaultCategory::Misconfigured, "too-large", message)
    }
}

/// The state that is kept between the runs of a call.
pub struct Journal {
    pub seed: u64,
    pub began: Timestamp,
    pub entries: Vec<JournalEntry>,
    transformed: Results,
    logged: usize,
}

impl Journal {
    /// `seed` seeds the guest's randomness, `host_seed` the host's.
    pub fn new(seed: u64, host_seed: [u8; 32], began: Timestamp) -> Journal {
        let transformed = Results::new(host_seed);
        Journal { seed, began, entries: Vec::new(), transformed, logged: 0 }
    }
}

/// One run of a call.
pub struct Session {
    pub journal: Journal,
    pub grant: Arc<Grant>,
    pub pending_request: Option<HttpRequest>,
    pub placeholders: Placeholders,
    /// Vault results of this run.
    pub vault_results: Vec<VaultResult>,
    plugin: Arc<str>,
    cache: Arc<Cache>,
    position: usize,
    log_lines: usize,
}

impl Session {
    pub fn new(
        journal: Journal,
        grant: Arc<Grant>,
        plugin: Arc<str>,
        cache: Arc<Cache>,
    ) -> Session {
        Session {
            placeholders: Placeholders::new(journal.seed),
            journal,
            grant,
            plugin,
            cache,
            pending_request: None,
            vault_results: Vec::new(),
            position: 0,
            log_lines: 0,
        }
    }

    pub fn send(
        &mut self,
        request: HttpRequest,
    ) -> Result<Result<EgressResponse, Fault>, RunEnded> {
        if request.is_too_large() {
            return Ok(Err(HttpRequest::too_large_fault())); // the same in every run, so it needs no entry
        }
        let response = match self.journal.entries.get(self.position) {
            None => {
                self.pending_request = Some(request);
                return Err(RunEnded::Waiting);
            }
            Some(JournalEntry::Http(recorded, response)) if *recorded == request => {
                response.clone()
            }
            Some(JournalEntry::Http(recorded, _)) => {
                let how = format!("has another {}", recorded.differing_part(&request));
                return Err(self.divergence(&how));
            }
            Some(JournalEntry::CacheRead(..)) => {
                return Err(self.divergence("is a request, not a cache read"));
            }
        };
        self.position += 1;
        Ok(response)
    }

    pub fn cache_get(&mut self, key: String) -> Result<Option<String>, RunEnded> {
        if key.len() > cache::MAX_BYTES {
            return Ok(None); // never stored
        }
        if self.position == MAX_ENTRIES {
            return Err(RunEnded::TooManyCacheReads);
        }
        let value = match self.journal.entries.get(self.position) {
            None => {
                let value = self.read_cache(&key);
                self.journal.entries.push(JournalEntry::CacheRead(key, value.clone()));
                value
            }
            Some(JournalEntry::CacheRead(recorded, value)) if *recorded == key => value.clone(),
            Some(JournalEntry::CacheRead(..)) => {
                return Err(self.divergence("is a cache read with another key"));
            }
            Some(JournalEntry::Http(..)) => {
                return Err(self.divergence("is a cache read, not a request"));
            }
        };
        self.position += 1;
        Ok(value)
    }

    fn read_cache(&self, key: &str) -> Option<String> {
        let Grant { replayed, scope, .. } = &*self.grant;
        let same = |entry: &&JournalEntry| matches!(entry, JournalEntry::CacheRead(recorded, _) if recorded == key);
        let before = self.journal.entries.iter().filter(same).count();
        let replayed = replayed.iter().flat_map(|replayed| &replayed.cached);
        match replayed.filter(|(recorded, _)| recorded == key).nth(before) {
            Some((_, held)) => held.clone(),
            None => self.cache.get(scope, key, self.journal.began),
        }
    }

    fn divergence(&self, how: &str) -> RunEnded {
        RunEnded::Nondeterministic(format!(
            "in a later run, request or cache read {} {how}",
            self.position + 1
        ))
    }

    pub fn cache_put(&self, key: String, value: String, ttl_seconds: u32) {
        self.cache.put(&self.grant.scope, key, value, ttl_seconds, self.journal.began);
    }

    pub fn secret(&mut self, name: &str) -> Result<String, Fault> {
        Ok(self.placeholders.secret(&self.grant.secrets, name)?)
    }

    pub fn basic(&mut self, user: &str, password: &str) -> Result<String, Fault> {
        let Grant { secrets, settings, .. } = &*self.grant;
        Ok(self.placeholders.basic(secrets, settings, user, password)?)
    }

    pub fn transform(&mut self, template: &[u8], steps: &[Step]) -> Result<String, Fault> {
        let Grant { secrets, settings, replayed, .. } = &*self.grant;
        let results = &mut self.journal.transformed;
        if replayed.is_some() {
            results.set_replayed(EXAMPLE_SECRET);
        }
        Ok(self.placeholders.transform(Account { secrets, settings }, template, steps, results)?)
    }

    pub fn hmac(&mut self, algorithm: &str, secret: &str, data: &[u8]) -> Result<Vec<u8>, Fault> {
        let replayed = self.replayed_result(|result| match result {
            VaultResult::Mac { algorithm: by, secret: of, mac, .. } => {
                (by == algorithm && of == secret).then(|| mac.clone())
            }
            VaultResult::Matches { .. } => None,
        });
        let mac = match replayed.and_then(|mac| hex::decode(mac).ok()) {
            Some(mac) => mac,
            None => self.grant.secrets.hmac(algorithm, secret, data)?,
        };
        let (algorithm, secret) = (algorithm.to_owned(), secret.to_owned());
        let (of, hex) = (fingerprint(&[data]), hex::encode(&mac));
        self.record_vault_result(VaultResult::Mac { algorithm, secret, of, mac: hex });
        Ok(mac)
    }

    pub fn matches(&mut self, secret: &str, candidate: &[u8]) -> Result<bool, Fault> {
        let replayed = self.replayed_result(|result| match result {
            VaultResult::Matches { secret: of, matches, .. } => (of == secret).then_some(*matches),
            VaultResult::Mac { .. } => None,
        });
        let matches = match replayed {
            Some(matches) => matches,
            None => self.grant.secrets.matches(secret, candidate)?,
        };
        let (secret, of) = (secret.to_owned(), fingerprint(&[candidate]));
        self.record_vault_result(VaultResult::Matches { secret, of, matches });
        Ok(matches)
    }

    pub fn add_to_transcript(&self, transcript: &mut Transcript) {
        let cached = self.journal.entries.iter().filter_map(|entry| match entry {
            JournalEntry::CacheRead(key, held) => Some((key.clone(), held.clone())),
            JournalEntry::Http(..) => None,
        });
        transcript.cached = cached.collect();
        transcript.vouched.clone_from(&self.vault_results);
    }

    /// Returns the replayed result of the next operation of a kind.
    fn replayed_result<T>(&self, pick: impl Fn(&VaultResult) -> Option<T>) -> Option<T> {
        let before = self.vault_results.iter().filter_map(&pick).count();
        self.grant.replayed.as_ref()?.vouched.iter().filter_map(pick).nth(before)
    }

    fn record_vault_result(&mut self, result: VaultResult) {
        if self.vault_results.len() < MAX_ENTRIES {
            self.vault_results.push(result);
        }
    }

    /// Logs the name of a missing setting, for the plugin's author.
    pub fn log_missing_setting(&self, setting: &str) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let name: String = setting.chars().take(MAX_NAME_CHARS).collect();
            let name = self.grant.secrets.redactor(Some(&self.placeholders)).redact_text(&name);
            tracing::debug!(plugin = &*self.plugin, "{MISSING_SETTING_PREFIX}{name:?}");
        }
    }

    /// Logs a line, once per call: later runs repeat it.
    pub fn log(&mut self, level: tracing::Level, message: &str) {
        self.log_lines += 1;
        if self.log_lines <= self.journal.logged || self.log_lines > MAX_LOG_LINES {
            return;
        }
        self.journal.logged = self.log_lines;
        let end = message.floor_char_boundary(MAX_LOG_BYTES);
        let secrets = self.grant.secrets.redactor(Some(&self.placeholders));
        let (plugin, message) = (&*self.plugin, secrets.redact_text(&message[..end]));
        let message = escape_controls(&message);
        match level {
            tracing::Level::ERROR => tracing::error!(plugin, "{message}"),
            tracing::Level::WARN => tracing::warn!(plugin, "{message}"),
            tracing::Level::INFO => tracing::info!(plugin, "{message}"),
            _ => tracing::debug!(plugin, "{message}"),
        }
    }
}

/// Start of the log line that names a missing setting.
pub const MISSING_SETTING_PREFIX: &str = "there is no setting ";

/// Maximum length of the name in that line.
const MAX_NAME_CHARS: usize = 40;

/// Escapes control characters, so that a plugin's text cannot imitate a log line of the host.
fn escape_controls(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn session(journal: Journal) -> Session {
        Session::new(journal, Arc::default(), "p".into(), Arc::default())
    }

    fn request(url: &str) -> HttpRequest {
        let url = url.to_owned();
        HttpRequest { method: "GET".into(), url, headers: vec![], body: None, timeout_ms: None }
    }

    #[test]
    fn a_run_gets_responses_from_the_journal_and_must_not_diverge() {
        let mut first = session(Journal::new(1, [0; 32], Timestamp(0)));
        assert_eq!(first.cache_get("token".into()), Ok(None));
        assert_eq!(first.send(request("a")).unwrap_err(), RunEnded::Waiting);
        assert_eq!(first.pending_request, Some(request("a")));

        let mut journal = first.journal;
        let response = EgressResponse { status: 200, headers: vec![], body: Bytes::new() };
        journal.entries.push(JournalEntry::Http(request("a"), Ok(response)));
        let mut again = session(journal);
        assert_eq!(again.cache_get("token".into()), Ok(None));
        assert_eq!(again.send(request("a")).unwrap().unwrap().status, 200);
        assert_eq!(again.send(request("b")).unwrap_err(), RunEnded::Waiting);

        let mut astray = session(again.journal);
        let ended = astray.send(request("a")).unwrap_err().to_string();
        let how = "in a later run, request or cache read 1 is a request, not a cache read";
        assert!(ended.ends_with(how), "{ended}");
    }

    #[test]
    fn a_divergent_run_fails_with_the_part_that_differs() {
        let header = |value: &str| vec![("x-id".to_owned(), value.to_owned())];
        let recorded = HttpRequest { headers: header("1"), body: Some(vec![1]), ..request("a") };
        for (other, how) in [
            (HttpRequest { method: "PUT".into(), ..recorded.clone() }, "another method"),
            (HttpRequest { url: "b".into(), ..recorded.clone() }, "another URL"),
            (HttpRequest { headers: vec![], ..recorded.clone() }, "another number of headers"),
            (HttpRequest { headers: header("2"), ..recorded.clone() }, "another header x-id"),
            (HttpRequest { body: None, ..recorded.clone() }, "another body"),
            (HttpRequest { timeout_ms: Some(1), ..recorded.clone() }, "another timeout"),
        ] {
            let mut journal = Journal::new(1, [0; 32], Timestamp(0));
            let response = EgressResponse { status: 200, headers: vec![], body: Bytes::new() };
            journal.entries.push(JournalEntry::Http(recorded.clone(), Ok(response)));
            let ended = session(journal).send(other).unwrap_err().to_string();
            assert!(ended.ends_with(&format!("read 1 has {how}")), "{ended}");
        }
    }

    #[test]
    fn a_journal_stays_bounded() {
        let mut reader = session(Journal::new(1, [0; 32], Timestamp(0)));
        assert_eq!(reader.cache_get("k".repeat(cache::MAX_BYTES + 1)), Ok(None));
        assert!(reader.journal.entries.is_empty());
        for n in 0..MAX_ENTRIES {
            assert_eq!(reader.cache_get(n.to_string()), Ok(None));
        }
        assert_eq!(reader.cache_get("one more".into()), Err(RunEnded::TooManyCacheReads));

        let large = HttpRequest { body: Some(vec![0; MAX_REQUEST_BYTES]), ..request("a") };
        let mut sending = session(Journal::new(1, [0; 32], Timestamp(0)));
        assert_eq!(sending.send(large).unwrap().unwrap_err().code, "too-large");
        let header = ("x".to_owned(), String::new());
        let flood = HttpRequest { headers: vec![header; MAX_HEADERS + 1], ..request("a") };
        assert_eq!(sending.send(flood).unwrap().unwrap_err().code, "too-large");
        assert!(sending.pending_request.is_none());
        let fits = HttpRequest { body: Some(vec![0; MAX_REQUEST_BYTES - 4]), ..request("a") };
        assert_eq!(sending.send(fits).unwrap_err(), RunEnded::Waiting);
    }

    #[test]
    fn secrets_are_redacted_from_faults() {
        let secrets = Secrets::new([("k".to_owned(), "hidden value".to_owned())].into());
        let grant = Grant { secrets, ..Grant::default() };
        let with_secret = "it was hidden value";
        let mut fault = Fault::new(FaultCategory::Other, with_secret, with_secret);
        fault.details.push((with_secret.to_owned(), with_secret.to_owned()));
        let Fault { code, message, details, .. } = grant.redact_fault(fault);
        for text in [&code, &message, &details[0].0, &details[0].1] {
            assert_eq!(text, "it was [secret]");
        }
    }

    #[test]
    fn a_log_line_is_one_line() {
        assert_eq!(escape_controls("say \"é\"\n\r\u{1b}[31m"), "say \"é\"\\n\\r\\u{1b}[31m");
    }

    #[test]
    fn a_later_run_reuses_the_results_of_transformations() {
        let setting =
            ("certificate".to_owned(), include_str!("vault/testdata/certificate.pem").into());
        let grant = Arc::new(Grant { settings: [setting].into(), ..Grant::default() });
        let run = |journal, templates: [&str; 3]| {
            let mut session = Session::new(journal, grant.clone(), "p".into(), Arc::default());
            let values = templates.map(|template: &str| {
                let step = |name: &str, key| Step { name: name.to_owned(), key };
                let encrypt = step("rsa-encrypt", Some("certificate".to_owned()));
                let steps = [encrypt, step("base64", None)];
                let placeholder = session.transform(template.as_bytes(), &steps).unwrap();
                session.placeholders.fill(placeholder.as_bytes(), 1_000).unwrap()
            });
            (values, session.journal)
        };
        let (first, journal) = run(Journal::new(1, [1; 32], Timestamp(0)), ["a", "b", "a"]);
        assert!(first[0] == first[2] && first[0] != first[1]);
        // A divergent run does not get the result of another template.
        let (again, _) = run(journal, ["b", "a", "c"]);
        assert_eq!([&again[0], &again[1]], [&first[1], &first[0]]);
        let (other, _) = run(Journal::new(1, [2; 32], Timestamp(0)), ["a", "b", "a"]);
        assert_ne!(other[0], first[0]);
    }

    #[test]
    fn runs_of_a_call_have_the_same_placeholders() {
        let grant = Arc::new(Grant {
            secrets: Secrets::new([("k".to_owned(), "value".to_owned())].into()),
            ..Grant::default()
        });
        let draw = |seed| {
            let journal = Journal::new(seed, [0; 32], Timestamp(0));
            Session::new(journal, grant.clone(), "p".into(), Arc::default()).secret("k").unwrap()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
