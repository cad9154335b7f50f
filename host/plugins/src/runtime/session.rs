//! The journal of a call, from which each run re-executes.
//!
//! A call is deterministic, so no instance is kept while a request is in flight: `http.send` ends
//! the instance, the host sends the request, and the function runs again with all responses so far.
//! A run that diverges from the previous one fails.

use std::{collections::HashMap, sync::Arc};

use rand::{SeedableRng, rngs::StdRng};

use super::{
    cache::{self, Cache},
    heard::{Heard, Vouched},
    vault::{Placeholders, Secrets},
};
use crate::{Fault, FaultCategory};
use tollhouse_platform::{clock::Timestamp, crypto::seal::fingerprint};

/// Maximum size of a request with URL and headers. An image of 5 MiB fits as base64.
pub const MOST_REQUEST_BYTES: usize = 8 << 20;
/// Far fewer than the number at which the HTTP library panics.
const MOST_HEADERS: usize = 256;
const MOST_ENTRIES: usize = 256;
const MOST_LOG_LINES: usize = 100;
const MOST_LOG_BYTES: usize = 2 << 10;

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
    pub known: Option<Arc<Heard>>,
}

impl Grant {
    /// Redacts secrets from a plugin's text.
    pub fn redact(&self, text: &str) -> String {
        self.secrets.redactor(&Placeholders::default()).clean_text(text)
    }

    pub fn clean(&self, fault: Fault) -> Fault {
        let secrets = self.secrets.redactor(&Placeholders::default());
        let details = fault.details.iter();
        let details = details.map(|(n, v)| (secrets.clean_text(n), secrets.clean_text(v)));
        Fault {
            code: secrets.clean_text(&fault.code),
            message: secrets.clean_text(&fault.message),
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

#[derive(Clone, Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpResponse {
    pub fn bytes(&self) -> usize {
        length(&self.headers) + self.body.len()
    }
}

/// Returns the length in bytes.
pub fn length(headers: &[(String, String)]) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// A request or cache read, and its result.
pub enum Entry {
    Http(HttpRequest, Result<HttpResponse, Fault>),
    Cached(String, Option<String>),
}

/// The reason why a host function ended the instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    #[error("the call waits for a response")]
    Waiting,
    /// The point of divergence, without the plugin's data.
    #[error("the call is not deterministic: {0}")]
    Nondeterministic(String),
    #[error("the call exceeded its limit of cache reads")]
    TooManyQuestions,
}

impl HttpRequest {
    pub fn bytes(&self) -> usize {
        let body = self.body.as_ref().map_or(0, Vec::len);
        self.method.len() + self.url.len() + length(&self.headers) + body
    }

    pub fn may_change_something(&self) -> bool {
        !["GET", "HEAD"].contains(&&*self.method)
    }

    fn is_too_large(&self) -> bool {
        self.bytes() > MOST_REQUEST_BYTES || self.headers.len() > MOST_HEADERS
    }

    /// Returns the first part in which two requests differ.
    fn differs(&self, other: &HttpRequest) -> String {
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

    pub fn too_large() -> Fault {
        let message =
            "a request may have at most 8 MiB, including its URL and headers, and 256 headers";
        Fault::new(FaultCategory::Misconfigured, "too-large", message)
    }
}

/// The state that is kept between the runs of a call.
pub struct Journal {
    pub seed: u64,
    pub began: Timestamp,
    pub entries: Vec<Entry>,
    logged: usize,
}

impl Journal {
    pub fn new(seed: u64, began: Timestamp) -> Journal {
        Journal { seed, began, entries: Vec::new(), logged: 0 }
    }
}

/// One run of a call.
pub struct Session {
    pub journal: Journal,
    pub grant: Arc<Grant>,
    pub waiting_for: Option<HttpRequest>,
    pub placeholders: Placeholders,
    /// Vault results of this run.
    pub vouched: Vec<Vouched>,
    plugin: Arc<str>,
    cache: Arc<Cache>,
    rng: StdRng,
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
            rng: StdRng::seed_from_u64(journal.seed),
            journal,
            grant,
            plugin,
            cache,
            waiting_for: None,
            placeholders: Placeholders::default(),
            vouched: Vec::new(),
            position: 0,
            log_lines: 0,
        }
    }

    pub fn send(&mut self, request: HttpRequest) -> Result<Result<HttpResponse, Fault>, Ended> {
        if request.is_too_large() {
            return Ok(Err(HttpRequest::too_large())); // the same in every run, so it needs no entry
        }
        let answer = match self.journal.entries.get(self.position) {
            None => {
                self.waiting_for = Some(request);
                return Err(Ended::Waiting);
            }
            Some(Entry::Http(asked, answer)) if *asked == request => answer.clone(),
            Some(Entry::Http(asked, _)) => {
                return Err(self.astray(&format!("has another {}", asked.differs(&request))));
            }
            Some(Entry::Cached(..)) => {
                return Err(self.astray("is a request, not a cache read"));
            }
        };
        self.position += 1;
        Ok(answer)
    }

    pub fn cached(&mut self, key: String) -> Result<Option<String>, Ended> {
        if key.len() > cache::MOST_BYTES {
            return Ok(None); // never stored
        }
        if self.position == MOST_ENTRIES {
            return Err(Ended::TooManyQuestions);
        }
        let value = match self.journal.entries.get(self.position) {
            None => {
                let value = self.look_up(&key);
                self.journal.entries.push(Entry::Cached(key, value.clone()));
                value
            }
            Some(Entry::Cached(asked, value)) if *asked == key => value.clone(),
            Some(Entry::Cached(..)) => {
                return Err(self.astray("is a cache read with another key"));
            }
            Some(Entry::Http(..)) => {
                return Err(self.astray("is a cache read, not a request"));
            }
        };
        self.position += 1;
        Ok(value)
    }

    fn look_up(&self, key: &str) -> Option<String> {
        let same = |entry: &&Entry| matches!(entry, Entry::Cached(asked, _) if asked == key);
        let before = self.journal.entries.iter().filter(same).count();
        let known = self.grant.known.as_ref().and_then(|known| known.cached(key, before));
        known.unwrap_or_else(|| self.cache.get(&self.grant.scope, key, self.journal.began))
    }

    fn astray(&self, how: &str) -> Ended {
        Ended::Nondeterministic(format!(
            "in a later run, request or cache read {} {how}",
            self.position + 1
        ))
    }

    pub fn keep(&self, key: String, value: String, ttl_seconds: u32) {
        self.cache.put(&self.grant.scope, key, value, ttl_seconds, self.journal.began);
    }

    pub fn secret(&mut self, name: &str) -> Result<String, Fault> {
        Ok(self.placeholders.secret(&self.grant.secrets, &mut self.rng, name)?)
    }

    pub fn basic(&mut self, user: &str, password: &str) -> Result<String, Fault> {
        let Grant { secrets, settings, .. } = &*self.grant;
        Ok(self.placeholders.basic(secrets, settings, &mut self.rng, user, password)?)
    }

    pub fn hmac(&mut self, algorithm: &str, secret: &str, data: &[u8]) -> Result<Vec<u8>, Fault> {
        let is_it = |vouched: &Vouched| match vouched {
            Vouched::Mac { algorithm: by, secret: of, .. } => by == algorithm && of == secret,
            Vouched::Matches { .. } => false,
        };
        let known = match self.known(is_it) {
            Some(Vouched::Mac { mac, .. }) => hex::decode(mac).ok(),
            _ => None,
        };
        let mac = known.map_or_else(|| self.grant.secrets.hmac(algorithm, secret, data), Ok)?;
        let (algorithm, secret) = (algorithm.to_owned(), secret.to_owned());
        let of = fingerprint(&[data]);
        self.vouch(Vouched::Mac { algorithm, secret, of, mac: hex::encode(&mac) });
        Ok(mac)
    }

    pub fn matches(&mut self, secret: &str, candidate: &[u8]) -> Result<bool, Fault> {
        let is_it = |vouched: &Vouched| match vouched {
            Vouched::Matches { secret: of, .. } => of == secret,
            Vouched::Mac { .. } => false,
        };
        let known = match self.known(is_it) {
            Some(Vouched::Matches { matches, .. }) => Some(matches),
            _ => None,
        };
        let matches = known.map_or_else(|| self.grant.secrets.matches(secret, candidate), Ok)?;
        let (secret, of) = (secret.to_owned(), fingerprint(&[candidate]));
        self.vouch(Vouched::Matches { secret, of, matches });
        Ok(matches)
    }

    /// Adds cache reads and vault results to the transcript.
    pub fn tell(&self, heard: &mut Heard) {
        let cached = self.journal.entries.iter().filter_map(|entry| match entry {
            Entry::Cached(key, held) => Some((key.clone(), held.clone())),
            Entry::Http(..) => None,
        });
        heard.cached = cached.collect();
        heard.vouched.clone_from(&self.vouched);
    }

    fn known(&self, is_it: impl Fn(&Vouched) -> bool) -> Option<Vouched> {
        let before = self.vouched.iter().filter(|vouched| is_it(vouched)).count();
        self.grant.known.as_ref()?.vouched(is_it, before).cloned()
    }

    fn vouch(&mut self, vouched: Vouched) {
        if self.vouched.len() < MOST_ENTRIES {
            self.vouched.push(vouched);
        }
    }

    /// Logs the name of a missing setting, for the plugin's author.
    pub fn note_unset(&self, setting: &str) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let name: String = setting.chars().take(MOST_NAME_CHARS).collect();
            let name = self.grant.secrets.redactor(&self.placeholders).clean_text(&name);
            tracing::debug!(plugin = &*self.plugin, "{NO_SETTING}{name:?}");
        }
    }

    /// Logs a line, once per call: later runs repeat it.
    pub fn log(&mut self, level: tracing::Level, message: &str) {
        self.log_lines += 1;
        if self.log_lines <= self.journal.logged || self.log_lines > MOST_LOG_LINES {
            return;
        }
        self.journal.logged = self.log_lines;
        let end = message.floor_char_boundary(MOST_LOG_BYTES);
        let secrets = self.grant.secrets.redactor(&self.placeholders);
        let (plugin, message) = (&*self.plugin, secrets.clean_text(&message[..end]));
        let message = one_line(&message);
        match level {
            tracing::Level::ERROR => tracing::error!(plugin, "{message}"),
            tracing::Level::WARN => tracing::warn!(plugin, "{message}"),
            tracing::Level::INFO => tracing::info!(plugin, "{message}"),
            _ => tracing::debug!(plugin, "{message}"),
        }
    }
}

/// Start of the log line that names a missing setting.
pub const NO_SETTING: &str = "there is no setting ";

/// Maximum length of the name in that line.
const MOST_NAME_CHARS: usize = 40;

/// Escapes control characters, so that a plugin's text cannot imitate a log line of the host.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
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
        let mut first = session(Journal::new(1, Timestamp(0)));
        assert_eq!(first.cached("token".into()), Ok(None));
        assert_eq!(first.send(request("a")).unwrap_err(), Ended::Waiting);
        assert_eq!(first.waiting_for, Some(request("a")));

        let mut journal = first.journal;
        let answer = HttpResponse { status: 200, headers: vec![], body: vec![] };
        journal.entries.push(Entry::Http(request("a"), Ok(answer)));
        let mut again = session(journal);
        assert_eq!(again.cached("token".into()), Ok(None));
        assert_eq!(again.send(request("a")).unwrap().unwrap().status, 200);
        assert_eq!(again.send(request("b")).unwrap_err(), Ended::Waiting);

        let mut astray = session(again.journal);
        let ended = astray.send(request("a")).unwrap_err().to_string();
        let how = "in a later run, request or cache read 1 is a request, not a cache read";
        assert!(ended.ends_with(how), "{ended}");
    }

    #[test]
    fn a_divergent_run_fails_with_the_part_that_differs() {
        let header = |value: &str| vec![("x-id".to_owned(), value.to_owned())];
        let asked = HttpRequest { headers: header("1"), body: Some(vec![1]), ..request("a") };
        for (other, how) in [
            (HttpRequest { method: "PUT".into(), ..asked.clone() }, "another method"),
            (HttpRequest { url: "b".into(), ..asked.clone() }, "another URL"),
            (HttpRequest { headers: vec![], ..asked.clone() }, "another number of headers"),
            (HttpRequest { headers: header("2"), ..asked.clone() }, "another header x-id"),
            (HttpRequest { body: None, ..asked.clone() }, "another body"),
            (HttpRequest { timeout_ms: Some(1), ..asked.clone() }, "another timeout"),
        ] {
            let mut journal = Journal::new(1, Timestamp(0));
            let answer = HttpResponse { status: 200, headers: vec![], body: vec![] };
            journal.entries.push(Entry::Http(asked.clone(), Ok(answer)));
            let ended = session(journal).send(other).unwrap_err().to_string();
            assert!(ended.ends_with(&format!("read 1 has {how}")), "{ended}");
        }
    }

    #[test]
    fn a_journal_stays_bounded() {
        let mut asking = session(Journal::new(1, Timestamp(0)));
        assert_eq!(asking.cached("k".repeat(cache::MOST_BYTES + 1)), Ok(None));
        assert!(asking.journal.entries.is_empty());
        for n in 0..MOST_ENTRIES {
            assert_eq!(asking.cached(n.to_string()), Ok(None));
        }
        assert_eq!(asking.cached("one more".into()), Err(Ended::TooManyQuestions));

        let large = HttpRequest { body: Some(vec![0; MOST_REQUEST_BYTES]), ..request("a") };
        let mut sending = session(Journal::new(1, Timestamp(0)));
        assert_eq!(sending.send(large).unwrap().unwrap_err().code, "too-large");
        let header = ("x".to_owned(), String::new());
        let flood = HttpRequest { headers: vec![header; MOST_HEADERS + 1], ..request("a") };
        assert_eq!(sending.send(flood).unwrap().unwrap_err().code, "too-large");
        assert!(sending.waiting_for.is_none());
        let fits = HttpRequest { body: Some(vec![0; MOST_REQUEST_BYTES - 4]), ..request("a") };
        assert_eq!(sending.send(fits).unwrap_err(), Ended::Waiting);
    }

    #[test]
    fn secrets_are_redacted_from_faults() {
        let secrets = Secrets::new([("k".to_owned(), "hidden value".to_owned())].into());
        let grant = Grant { secrets, ..Grant::default() };
        let told = "it was hidden value";
        let mut fault = Fault::new(FaultCategory::Other, told, told);
        fault.details.push((told.to_owned(), told.to_owned()));
        let Fault { code, message, details, .. } = grant.clean(fault);
        for text in [&code, &message, &details[0].0, &details[0].1] {
            assert_eq!(text, "it was [secret]");
        }
    }

    #[test]
    fn a_log_line_is_one_line() {
        assert_eq!(one_line("say \"é\"\n\r\u{1b}[31m"), "say \"é\"\\n\\r\\u{1b}[31m");
    }

    #[test]
    fn runs_of_a_call_have_the_same_placeholders() {
        let grant = Arc::new(Grant {
            secrets: Secrets::new([("k".to_owned(), "value".to_owned())].into()),
            ..Grant::default()
        });
        let draw = |seed| {
            let journal = Journal::new(seed, Timestamp(0));
            Session::new(journal, grant.clone(), "p".into(), Arc::default()).secret("k").unwrap()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
