//! What a component asks an operator for: hosts that it wants to reach, secrets that it wants to use, and trust in whoever made it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::Manifest;

/// As operators read and grant them: `host:api.example.com` (over https), `address:base_url` (wherever that setting of an account
/// points), `secret:api_key`, `publisher:acme` or `unsigned`. A set, so that what was granted and what is asked for can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Capabilities(BTreeSet<String>);

impl Capabilities {
    /// All that a component with this manifest can use.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Capabilities {
        let hosts = manifest.hosts.iter().map(|host| format!("host:{host}"));
        let urls = manifest.settings.iter().filter(|(_, setting)| setting.kind == "url");
        let addresses = urls.clone().map(|(name, _)| format!("address:{name}"));
        // Where it goes for accounts that say nothing else.
        let defaults = urls.filter_map(|(_, setting)| host_of(setting.default.as_deref()?));
        let secrets = manifest.secrets.iter().map(|name| format!("secret:{name}"));
        Capabilities(hosts.chain(addresses).chain(defaults).chain(secrets).collect())
    }

    /// With trust in who signed it.
    #[must_use]
    pub fn signed_by(mut self, publisher: Option<&str>) -> Capabilities {
        self.0.insert(match publisher {
            Some(publisher) => format!("publisher:{publisher}"),
            None => "unsigned".to_owned(),
        });
        self
    }

    /// What of these is not among those that were granted.
    #[must_use]
    pub fn beyond(&self, granted: &Capabilities) -> Capabilities {
        Capabilities(self.0.difference(&granted.0).cloned().collect())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// As the manifest's hosts are named; another scheme or port is another origin.
fn host_of(url: &str) -> Option<String> {
    let origin = Url::parse(url).ok()?.origin().ascii_serialization();
    let host = origin.strip_prefix("https://").unwrap_or(&origin);
    Some(format!("host:{host}"))
}

impl std::fmt::Display for Capabilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<&str> = self.0.iter().map(String::as_str).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(manifest: serde_json::Value) -> Capabilities {
        Capabilities::of(&serde_json::from_value(manifest).unwrap())
    }

    #[test]
    fn a_later_version_may_ask_for_more() {
        let first = asked(json!({
            "kind": "sms", "name": "acme", "version": "1.0.0", "display_name": "Acme",
            "hosts": ["api.acme.example"], "secrets": ["key"],
            "settings": { "sender": { "kind": "text" }, "base_url": { "kind": "url" } },
        }));
        assert_eq!(first.to_string(), "address:base_url, host:api.acme.example, secret:key");
        let next = asked(json!({
            "kind": "sms", "name": "acme", "version": "1.1.0", "display_name": "Acme",
            "hosts": ["api.acme.example", "files.acme.example"], "secrets": [],
        }));
        assert_eq!(next.beyond(&first).to_string(), "host:files.acme.example");
        let elsewhere = asked(json!({
            "kind": "sms", "name": "acme", "version": "1.0.1", "display_name": "Acme",
            "hosts": ["api.acme.example"], "secrets": ["key"],
            "settings": { "base_url": { "kind": "url", "default": "https://evil.example/api" } },
        }));
        assert_eq!(elsewhere.beyond(&first).to_string(), "host:evil.example");
        let (ours, theirs) = (next.clone().signed_by(Some("acme")), next.clone().signed_by(None));
        assert_eq!(ours.beyond(&theirs).to_string(), "publisher:acme");
        assert_eq!(theirs.beyond(&ours).to_string(), "unsigned");
        assert!(first.beyond(&first).is_empty() && !first.beyond(&next).is_empty());
    }
}
