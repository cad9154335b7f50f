//! A fake host for native tests: it returns scripted responses, handles secrets as the real host
//! does, and records requests.
//!
//! The crate documentation has an example. A request without a scripted response fails the test.
//! RSA is not computed: a signature is the text `rsa-sha256(KEY, DIGEST)`, with the name of the
//! secret and the SHA-256 of the data in hexadecimal; a ciphertext is `rsa-encrypt(KEY, DATA)`.

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

/// The fake host of a plugin under test. Configure it, then [`install`](FakeHost::install) it.
#[derive(Debug, Default)]
#[must_use = "the plugin sees a host only once it is installed"]
pub struct FakeHost {
    secrets: BTreeMap<String, String>,
    settings: BTreeMap<String, String>,
    cache: BTreeMap<String, (String, u32)>,
    routes: Vec<Route>,
    placeholders: Vec<Placeholder>,
    /// From the manifest, by secret name.
    bindings: BTreeMap<String, Value>,
    sent: Vec<Sent>,
    logged: Vec<(Level, String)>,
}

/// A placeholder issued to the plugin.
#[derive(Debug)]
struct Placeholder {
    /// Names of the secrets in it.
    names: Vec<String>,
    text: String,
    /// The value that egress replaces it with.
    value: String,
}

#[derive(Debug)]
struct Route {
    method: String,
    url: String,
    /// Returned in order; the last one repeats.
    responses: VecDeque<Result<(u16, Vec<u8>), Fault>>,
}

/// A request as egress would send it: placeholders are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// In upper case.
    pub method: String,
    /// The complete URL.
    pub url: String,
    /// Names as the plugin wrote them, and values.
    pub headers: Vec<(String, String)>,
    /// Empty if there is none.
    pub body: Vec<u8>,
    /// The timeout that the plugin set.
    pub timeout_ms: Option<u32>,
}

impl Sent {
    /// Returns the first header of this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        crate::http::header(&self.headers, name)
    }

    /// Returns the body as JSON. Panics if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the plugin sent a body that is not JSON")
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl FakeHost {
    /// Creates a host without secrets, settings or responses.
    pub fn new() -> FakeHost {
        FakeHost::default()
    }

    /// Applies the defaults of a manifest's settings and the bindings of its secrets, as the real
    /// host does.
    pub fn manifest(mut self, json: &str) -> FakeHost {
        let manifest: Value = serde_json::from_str(json).expect("the manifest is not JSON");
        for (name, setting) in manifest["settings"].as_object().into_iter().flatten() {
            if let Some(default) = setting["default"].as_str() {
                self.settings.entry(name.clone()).or_insert_with(|| default.to_owned());
            }
        }
        self.bind(&manifest);
        self
    }

    /// Sets a secret. Reading a secret that is not set is `misconfigured`.
    pub fn secret(mut self, name: &str, value: &str) -> FakeHost {
        self.secrets.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets a setting.
    pub fn setting(mut self, name: &str, value: &str) -> FakeHost {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Caches a value, as an earlier call would.
    pub fn cached(mut self, key: &str, value: &str) -> FakeHost {
        self.cache.insert(key.to_owned(), (value.to_owned(), u32::MAX));
        self
    }

    /// Adds a JSON response to a request. `url` is the complete URL or its end, with or without the
    /// query. Several responses to the same request are returned in order; the last one repeats.
    pub fn answer(self, method: &str, url: &str, status: u16, json: Value) -> FakeHost {
        self.answer_text(method, url, status, &json.to_string())
    }

    /// Like [`FakeHost::answer`], with any text as the body.
    pub fn answer_text(self, method: &str, url: &str, status: u16, body: &str) -> FakeHost {
        self.route(method, url, Ok((status, body.as_bytes().to_vec())))
    }

    /// Fails a request with a fault of the host.
    pub fn fault(self, method: &str, url: &str, fault: Fault) -> FakeHost {
        self.route(method, url, Err(fault))
    }

    /// Simulates a timeout: the request is sent, and no response arrives in time.
    pub fn timeout(self, method: &str, url: &str) -> FakeHost {
        self.fault(method, url, Fault::unavailable("no response in time").with_code("timeout"))
    }

    /// Simulates a connection failure.
    pub fn no_connection(self, method: &str, url: &str) -> FakeHost {
        self.fault(method, url, Fault::unavailable("no connection").with_code("connect"))
    }

    /// Simulates a connection that ends during the response.
    pub fn cut(self, method: &str, url: &str) -> FakeHost {
        self.fault(method, url, Fault::unavailable("the response was cut off").with_code("cut"))
    }

    fn route(
        mut self,
        method: &str,
        url: &str,
        response: Result<(u16, Vec<u8>), Fault>,
    ) -> FakeHost {
        match self.routes.iter_mut().find(|r| r.method == method && r.url == url) {
            Some(route) => route.responses.push_back(response),
            None => self.routes.push(Route {
                method: method.to_owned(),
                url: url.to_owned(),
                responses: VecDeque::from([response]),
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

/// A guard of the installed host. Dropping it restores the previous one.
#[derive(Debug)]
#[must_use = "dropping it uninstalls the host"]
pub struct Installed {
    host: Rc<RefCell<FakeHost>>,
    before: Option<Rc<RefCell<FakeHost>>>,
}

impl Installed {
    /// Returns all requests so far, in order, with placeholders replaced.
    pub fn requests(&self) -> Vec<Sent> {
        self.host.borrow().sent.clone()
    }

    /// Returns all lines logged so far.
    pub fn logs(&self) -> Vec<(Level, String)> {
        self.host.borrow().logged.clone()
    }

    /// Returns the cached value of a key and its TTL in seconds.
    pub fn cached(&self, key: &str) -> Option<(String, u32)> {
        self.host.borrow().cache.get(key).cloned()
    }

    /// Expires all cached values.
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
    fn placeholders_are_replaced_and_requests_are_recorded() {
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
    fn signatures_and_secrets_are_verified() {
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
    fn a_template_is_transformed_with_its_secrets() {
        let host = FakeHost::new()
            .manifest(r#"{"secrets":{"pass":{"to":["a.test"],"in":["body"]},"key":{}}}"#)
            .secret("pass", "p4ss")
            .secret("key", "k3y")
            .setting("certificate", "PEM")
            .answer("POST", "/x", 200, json!({}))
            .install();
        let password = format!("174379{}20210628", vault::secret("pass").unwrap());
        let transformed = |steps: &[vault::Step]| vault::transform(&*password, steps).unwrap();
        let body = json!({
            "password": transformed(&[vault::Step::base64()]),
            "hash": transformed(&[vault::Step::sha256(), vault::Step::hex()]),
            "signature": transformed(&[vault::Step::rsa_sha256("key")]),
            "encrypted": transformed(&[vault::Step::rsa_encrypt("certificate")]),
        });
        http::Request::post("https://a.test/x").json(&body).send().unwrap();
        let hash = "1fc92f34b72bc5c33c087deb4e63bb91e0f4fdca5ec86375b5be4dbeaed3bae7";
        let sent = host.requests()[0].json();
        assert_eq!(sent["password"], "MTc0Mzc5cDRzczIwMjEwNjI4");
        assert_eq!(sent["hash"], hash);
        assert_eq!(sent["signature"], format!("rsa-sha256(key, {hash})"));
        assert_eq!(sent["encrypted"], "rsa-encrypt(certificate, 174379p4ss20210628)");
        let raw = vault::transform(&*password, &[vault::Step::sha256()]);
        assert_eq!(raw.unwrap_err().category, FaultCategory::Misconfigured);
    }

    #[test]
    fn faults_settings_cache_and_logs_work_as_on_the_host() {
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
    #[should_panic(expected = "no response for GET https://a.test/y")]
    fn a_request_without_a_response_fails_the_test() {
        let _host = FakeHost::new().answer("GET", "/x", 200, json!({})).install();
        let _ = http::Request::get("https://a.test/y").send();
    }
}
