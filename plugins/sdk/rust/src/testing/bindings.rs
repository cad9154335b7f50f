//! Secret bindings of a manifest in native tests: a request that the real host would reject fails
//! the test.

use serde_json::Value;

use super::FakeHost;
use crate::http::encode;
use crate::shared::tollhouse::plugin::http::Request;

impl FakeHost {
    /// Adds the bindings in a manifest. Secrets that it only names are unbound.
    pub(super) fn bind(&mut self, manifest: &Value) {
        let bindings = manifest["secrets"].as_object().into_iter().flatten();
        self.bindings.extend(bindings.map(|(name, binding)| (name.clone(), binding.clone())));
    }

    /// Panics if a placeholder is in a place where its secret must not be sent.
    pub(super) fn check_bindings(&self, request: &Request) {
        for placeholder in &self.placeholders {
            let encoded = encode(&placeholder.text);
            let holds = |text: &str| text.contains(&placeholder.text) || text.contains(&encoded);
            let refuse_in = |place: &str, may_hold: bool| {
                for name in &placeholder.names {
                    let binding = self.bindings.get(name);
                    let permits = |binding| self.permits(binding, place, &request.url);
                    assert!(
                        may_hold && binding.is_none_or(permits),
                        "the host rejects a request to {}: the secret {name} is in {place}, where the manifest does not bind it",
                        origin(&request.url)
                    );
                }
            };
            if holds(&request.method) || holds(&request.url) {
                refuse_in("the method or the URL", false);
            }
            for (name, value) in &request.headers {
                if holds(name) {
                    refuse_in("the name of a header", false);
                }
                if holds(value) {
                    refuse_in(&format!("header:{}", name.to_ascii_lowercase()), true);
                }
            }
            if holds(&String::from_utf8_lossy(request.body.as_deref().unwrap_or_default())) {
                refuse_in("body", true);
            }
        }
    }

    fn permits(&self, binding: &Value, place: &str, url: &str) -> bool {
        let list = |key: &str| binding[key].as_array().into_iter().flatten();
        let is_origin = |to: &Value| {
            let to = to.as_str().unwrap_or_default();
            let address = self.settings.get(to).cloned();
            origin(&address.unwrap_or_else(|| format!("https://{to}"))) == origin(url)
        };
        list("in").any(|bound| bound == place) && list("to").any(is_origin)
    }
}

/// Returns scheme, host and port.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
    &url[..end]
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde_json::json;

    use super::*;
    use crate::http::Request;
    use crate::vault;

    const MANIFEST: &str = r#"{
        "settings": {"base_url": {"kind": "url", "default": "https://a.test/v1"}},
        "secrets": {"key": {"to": ["base_url", "b.test"], "in": ["header:x-key", "body"]}, "other": {}}
    }"#;

    /// Returns whether the host sends a request that contains the secret.
    fn is_sent(name: &str, request: impl Fn(&str) -> Request) -> bool {
        let host = FakeHost::new().manifest(MANIFEST).secret("key", "k3y").secret("other", "0ther");
        let host = ["GET", "POST"]
            .into_iter()
            .fold(host, |host, method| host.answer(method, "/x", 200, json!({})));
        let host = host.install();
        let placeholder = vault::secret(name).unwrap();
        let sent = catch_unwind(AssertUnwindSafe(|| request(&placeholder).send()));
        assert_eq!(sent.is_ok(), host.requests().len() == 1);
        sent.is_ok()
    }

    #[test]
    fn a_secret_is_sent_only_where_the_manifest_binds_it() {
        const URL: &str = "https://a.test/x";
        assert!(is_sent("key", |key| Request::get(URL).header("X-Key", key)));
        assert!(is_sent("key", |key| Request::post("https://b.test/x").body(key)));
        assert!(!is_sent("key", |key| Request::get(URL).bearer(key)));
        assert!(!is_sent("key", |key| Request::get("https://c.test/x").header("x-key", key)));
        assert!(!is_sent("key", |key| Request::get(format!("{URL}?key={}", encode(key)))));
        assert!(!is_sent("key", |key| Request::get(URL).header(key, "1")));
        assert!(!is_sent("other", |key| Request::get(URL).header("x-key", key)));
        assert!(is_sent("other", |_| Request::get(URL)));
    }
}
