//! A host for native tests: it answers as the test says, keeps secrets as the real one does, and remembers what was
//! sent.
//!
//! See the crate's own documentation for an example. A request that no answer was given for fails the test.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use serde_json::Value;

use crate::log::Level;
use crate::types::Fault;

mod bindings;
mod calls;
mod examples;
pub(crate) mod port;

pub use examples::example_notification;

thread_local! {
    static CURRENT: RefCell<Option<Rc<RefCell<FakeHost>>>> = const { RefCell::new(None) };
}

/// What the plugin under test sees of the world. Make it, tell it, [`install`](FakeHost::install) it.
#[derive(Debug, Default)]
#[must_use = "only an installed host is seen by the plugin"]
pub struct FakeHost {
    secrets: BTreeMap<String, String>,
    settings: BTreeMap<String, String>,
    cache: BTreeMap<String, (String, u32)>,
    routes: Vec<Route>,
    placeholders: Vec<Placeholder>,
    /// Of the manifest, by the names of secrets.
    bindings: BTreeMap<String, Value>,
    sent: Vec<Sent>,
    logged: Vec<(Level, String)>,
}

/// A placeholder that was given out.
#[derive(Debug)]
struct Placeholder {
    /// Of the secrets.
    names: Vec<String>,
    text: String,
    /// What egress puts in its place.
    value: String,
}

#[derive(Debug)]
struct Route {
    method: String,
    url: String,
    /// Given in order; the last one for good.
    answers: VecDeque<Result<(u16, Vec<u8>), Fault>>,
}

/// A request as egress would send it: placeholders are filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// In capitals.
    pub method: String,
    /// Whole.
    pub url: String,
    /// Names as the plugin wrote them.
    pub headers: Vec<(String, String)>,
    /// Empty when there is none.
    pub body: Vec<u8>,
    /// What the plugin asked for.
    pub timeout_ms: Option<u32>,
}

impl Sent {
    /// The first header of that name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        crate::http::header(&self.headers, name)
    }

    /// The body as JSON; fails the test when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the plugin sent a body that is no JSON")
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl FakeHost {
    /// A host that knows nothing and answers nothing.
    pub fn new() -> FakeHost {
        FakeHost::default()
    }

    /// Takes the defaults of a manifest's settings and the bindings of its secrets, as the real host does.
    pub fn manifest(mut self, json: &str) -> FakeHost {
        let manifest: Value = serde_json::from_str(json).expect("the manifest is no JSON");
        for (name, setting) in manifest["settings"].as_object().into_iter().flatten() {
            if let Some(default) = setting["default"].as_str() {
                self.settings.entry(name.clone()).or_insert_with(|| default.to_owned());
            }
        }
        self.bind(&manifest);
        self
    }

    /// A secret's value. Secrets that were not given are `misconfigured`.
    pub fn secret(mut self, name: &str, value: &str) -> FakeHost {
        self.secrets.insert(name.to_owned(), value.to_owned());
        self
    }

    /// What the operator set.
    pub fn setting(mut self, name: &str, value: &str) -> FakeHost {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Something an earlier call left in the cache.
    pub fn cached(mut self, key: &str, value: &str) -> FakeHost {
        self.cache.insert(key.to_owned(), (value.to_owned(), u32::MAX));
        self
    }

    /// Answers a request with JSON. `url` is the whole URL or its end, with or without the query. Several answers for
    /// the same request are given one after the other, the last one for good.
    pub fn answer(self, method: &str, url: &str, status: u16, json: Value) -> FakeHost {
        self.answer_text(method, url, status, &json.to_string())
    }

    /// The same with any text as the body.
    pub fn answer_text(self, method: &str, url: &str, status: u16, body: &str) -> FakeHost {
        self.route(method, url, Ok((status, body.as_bytes().to_vec())))
    }

    /// Answers with a fault of the host's.
    pub fn fault(self, method: &str, url: &str, fault: Fault) -> FakeHost {
        self.route(method, url, Err(fault))
    }

    /// The request leaves, and no answer comes in time.
    pub fn timeout(self, method: &str, url: &str) -> FakeHost {
        self.fault(method, url, Fault::unavailable("no answer in time").with_code("timeout"))
    }

    /// No connection comes about.
    pub fn no_connection(self, method: &str, url: &str) -> FakeHost {
        self.fault(method, url, Fault::unavailable("no connection").with_code("connect"))
    }

    /// The connection ends amid the answer.
    pub fn cut(self, method: &str, url: &str) -> FakeHost {
        self.fault(method, url, Fault::unavailable("the answer was cut off").with_code("cut"))
    }

    fn route(mut self, method: &str, url: &str, answer: Result<(u16, Vec<u8>), Fault>) -> FakeHost {
        match self.routes.iter_mut().find(|r| r.method == method && r.url == url) {
            Some(route) => route.answers.push_back(answer),
            None => self.routes.push(Route {
                method: method.to_owned(),
                url: url.to_owned(),
                answers: VecDeque::from([answer]),
            }),
        }
        self
    }

    /// Makes this the host of the current thread until the returned guard is dropped.
    pub fn install(self) -> Installed {
        let host = Rc::new(RefCell::new(self));
        let before = CURRENT.replace(Some(Rc::clone(&host)));
        Installed { host, before }
    }
}

/// The host of this thread, for as long as this is kept.
#[derive(Debug)]
#[must_use = "dropping it uninstalls the host"]
pub struct Installed {
    host: Rc<RefCell<FakeHost>>,
    before: Option<Rc<RefCell<FakeHost>>>,
}

impl Installed {
    /// All requests so far, in order, placeholders filled in.
    pub fn requests(&self) -> Vec<Sent> {
        self.host.borrow().sent.clone()
    }

    /// All lines logged so far.
    pub fn logs(&self) -> Vec<(Level, String)> {
        self.host.borrow().logged.clone()
    }

    /// What is in the cache under a key, and for how many seconds it was put there.
    pub fn cached(&self, key: &str) -> Option<(String, u32)> {
        self.host.borrow().cache.get(key).cloned()
    }

    /// Ends the time of everything in the cache.
    pub fn expire_cache(&self) {
        self.host.borrow_mut().cache.clear();
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::FaultCategory;
    use crate::{cache, http, log, settings, vault};

    #[test]
    fn fills_in_placeholders_and_remembers_what_was_sent() {
        let host = FakeHost::new()
            .secret("token", "t0p")
            .setting("user", "ada")
            .answer("POST", "/x", 201, json!({"n": 1}))
            .answer("POST", "/x", 409, json!({"n": 2}))
            .install();
        let token = vault::secret("token").unwrap();
        let basic = vault::basic("user", "token").unwrap();
        assert!(!token.contains("t0p") && token != vault::secret("token").unwrap());
        for status in [201, 409, 409] {
            let request = http::Request::post("https://a.test/x?q=1").basic(&basic);
            assert_eq!(request.json(&json!({"key": token})).send().unwrap().status, status);
        }
        let sent = &host.requests()[0];
        assert_eq!(sent.json(), json!({"key": "t0p"}));
        assert_eq!(sent.header("Authorization"), Some("Basic YWRhOnQwcA=="));
        assert_eq!(sent.header("content-type"), Some("application/json"));
    }

    #[test]
    fn signs_and_compares() {
        // RFC 4231, test case 2.
        let _host = FakeHost::new().secret("key", "Jefe").install();
        let data = b"what do ya want for nothing?";
        let hex = "5BDCC146BF60754E6A042426089575C75A003F089D2739839DEC58B964EC3843";
        assert!(vault::signed_hex("sha256", "key", data, hex).unwrap());
        assert!(!vault::signed_hex("sha256", "key", b"else", hex).unwrap());
        assert!(!vault::signed_hex("sha256", "key", data, "").unwrap());
        let base64 = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";
        assert!(vault::signed_base64("sha256", "key", data, base64).unwrap());
        assert!(!vault::signed_base64("sha256", "key", b"else", base64).unwrap());
        assert!(!vault::signed_base64("sha256", "key", data, "").unwrap());
        assert_eq!(vault::hmac("sha512", "key", data).unwrap().len(), 64);
        assert!(vault::hmac("md5", "key", data).is_err());
        assert!(vault::matches("key", b"Jefe").unwrap());
        assert!(!vault::matches("key", b"Jeff").unwrap());
        assert_eq!(vault::secret("none").unwrap_err().category, FaultCategory::Misconfigured);
    }

    #[test]
    fn faults_settings_cache_and_logs() {
        let host = FakeHost::new()
            .manifest(r#"{"settings":{"base_url":{"default":"https://a.test/"},"mode":{}}}"#)
            .timeout("GET", "/slow")
            .no_connection("GET", "https://a.test/down")
            .cut("GET", "/cut")
            .install();
        let code = |path: &str| {
            let url = settings::url("base_url", path).unwrap();
            http::Request::get(url).send().unwrap_err().code
        };
        assert_eq!([code("/slow"), code("down"), code("cut")], ["timeout", "connect", "cut"]);
        assert_eq!(settings::get_or("mode", "live"), "live");
        assert_eq!(settings::required("mode").unwrap_err().category, FaultCategory::Misconfigured);
        assert_eq!(cache::get("k"), None);
        cache::put("k", "v", 60);
        assert_eq!(cache::get("k").as_deref(), Some("v"));
        assert_eq!(host.cached("k"), Some(("v".into(), 60)));
        host.expire_cache();
        assert_eq!(cache::get("k"), None);
        log::warn("hm");
        assert_eq!(host.logs(), [(Level::Warn, "hm".into())]);
    }

    #[test]
    #[should_panic(expected = "no answer for GET https://a.test/y")]
    fn an_unexpected_request_fails_the_test() {
        let _host = FakeHost::new().answer("GET", "/x", 200, json!({})).install();
        let _ = http::Request::get("https://a.test/y").send();
    }
}
