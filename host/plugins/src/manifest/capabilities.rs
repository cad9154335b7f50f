//! Requested capabilities: hosts, destinations of secrets, prices, and trust in the publisher.

use std::{collections::BTreeSet, ops::Bound};

use url::Url;

use super::bindings::{ARROW, NOT_SENT};
use crate::prelude::*;

/// Capabilities, such as `host:api.example.com`, `address:base_url` (any URL in that setting),
/// `secret:key -> header authorization at base_url` (`secret:key` alone: any header and the body,
/// to every origin), `price:identity.nigeria.bvn=100`, `publisher:acme` or `unsigned`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Capabilities(BTreeSet<String>);

impl Capabilities {
    /// Returns everything that a component with this manifest can use.
    pub fn of(manifest: &Manifest) -> Capabilities {
        let hosts = manifest.hosts.iter().map(|host| format!("host:{host}"));
        let urls = manifest.settings.iter().filter(|(_, setting)| setting.kind == "url");
        let addresses = urls.clone().map(|(name, _)| format!("address:{name}"));
        let default_of = |name: &str| {
            let setting = manifest.settings.get(name).filter(|setting| setting.kind == "url")?;
            host_of(setting.default.as_deref()?)
        };
        // Hosts for accounts that omit the setting.
        let defaults = urls.filter_map(|(name, _)| Some(format!("host:{}", default_of(name)?)));
        let secrets = manifest.secrets.capabilities(default_of);
        let prices = manifest.prices();
        let prices =
            prices.map(|(item, price)| format!("{PRICE_PREFIX}{item}={}", price.to_major()));
        Capabilities(hosts.chain(addresses).chain(defaults).chain(secrets).chain(prices).collect())
    }

    /// Adds trust in the publisher, or in an unsigned component.
    #[must_use]
    pub fn with_publisher(mut self, publisher: Option<&str>) -> Capabilities {
        self.0.insert(match publisher {
            Some(publisher) => format!("publisher:{publisher}"),
            None => "unsigned".to_owned(),
        });
        self
    }

    #[must_use]
    pub fn union(mut self, others: &Capabilities) -> Capabilities {
        self.0.extend(others.0.iter().cloned());
        self
    }

    #[must_use]
    pub fn not_covered_by(&self, granted: &Capabilities) -> Capabilities {
        Capabilities(self.0.iter().filter(|wanted| !granted.covers(wanted)).cloned().collect())
    }

    /// Returns whether these cover `wanted`. An unbound secret covers each of its places; any place
    /// of a secret also covers `not sent`. A price that was not granted counts as 0.
    fn covers(&self, wanted: &str) -> bool {
        if self.0.contains(wanted) {
            return true;
        }
        if let Some((secret, place)) = wanted.split_once(ARROW) {
            return self.0.contains(secret)
                || place == NOT_SENT && self.has_any(&format!("{secret}{ARROW}"));
        }
        match wanted.strip_prefix(PRICE_PREFIX).and_then(|price| price.split_once('=')) {
            Some((item, "0")) => !self.has_any(&format!("{PRICE_PREFIX}{item}=")),
            _ => false,
        }
    }

    fn has_any(&self, prefix: &str) -> bool {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        self.0.range::<str, _>(from).next().is_some_and(|first| first.starts_with(prefix))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Prefix of a capability for the price of a billing item.
const PRICE_PREFIX: &str = "price:";

/// Returns the origin of a URL, without `https://` like the manifest's hosts.
fn host_of(url: &str) -> Option<String> {
    let origin = Url::parse(url).ok()?.origin().ascii_serialization();
    Some(origin.strip_prefix("https://").unwrap_or(&origin).to_owned())
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

    /// Returns what a manifest with these keys requests.
    fn requested(keys: serde_json::Value) -> Capabilities {
        let mut manifest = json!({
            "kind": "sms", "name": "acme", "version": "1.0.0", "display_name": "Acme",
        });
        manifest.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        Capabilities::of(&serde_json::from_value(manifest).unwrap())
    }

    #[test]
    fn new_capabilities_of_a_later_version_are_found() {
        let first = requested(json!({
            "hosts": ["api.acme.example"], "secrets": ["key"],
            "settings": { "sender": { "kind": "text" }, "base_url": { "kind": "url" } },
        }));
        assert_eq!(first.to_string(), "address:base_url, host:api.acme.example, secret:key");
        let next = requested(json!({ "hosts": ["api.acme.example", "files.acme.example"] }));
        assert_eq!(next.not_covered_by(&first).to_string(), "host:files.acme.example");
        let elsewhere = requested(json!({
            "hosts": ["api.acme.example"], "secrets": ["key"],
            "settings": { "base_url": { "kind": "url", "default": "https://evil.example/api" } },
        }));
        assert_eq!(elsewhere.not_covered_by(&first).to_string(), "host:evil.example");
        let (ours, theirs) =
            (next.clone().with_publisher(Some("acme")), next.clone().with_publisher(None));
        assert_eq!(ours.not_covered_by(&theirs).to_string(), "publisher:acme");
        assert_eq!(theirs.not_covered_by(&ours).to_string(), "unsigned");
        assert!(first.not_covered_by(&first).is_empty() && !first.not_covered_by(&next).is_empty());
    }

    #[test]
    fn a_wider_binding_is_beyond_a_narrower_one() {
        let with = |secrets: serde_json::Value| {
            let settings = json!({ "url": { "kind": "url" } });
            requested(json!({ "hosts": ["a.example"], "secrets": secrets, "settings": settings }))
        };
        let unbound = with(json!(["key"]));
        let unsent = with(json!({ "key": {} }));
        let header = with(json!({ "key": { "to": ["url"], "in": ["header:x-key"] } }));
        let body = with(json!({ "key": { "to": ["url"], "in": ["body"] } }));
        let there = with(json!({ "key": { "to": ["a.example"], "in": ["header:x-key"] } }));
        let more = with(json!({ "key": { "to": ["url"], "in": ["header:x-key", "body"] } }));
        let other = with(json!({ "key": {}, "key2": {} }));
        let by_default = |url: &str| {
            requested(json!({
                "hosts": ["a.example", "b.example"],
                "secrets": { "key": { "to": ["url"], "in": ["header:x-key"] } },
                "settings": { "url": { "kind": "url", "default": url } },
            }))
        };
        let (to_a, to_b) = (by_default("https://a.example/v1"), by_default("https://b.example/v1"));
        for (requested, granted, beyond) in [
            (&header, &unbound, ""),
            (&more, &unbound, ""),
            (&unsent, &unbound, ""),
            (&unsent, &header, ""),
            (&header, &more, ""),
            (&unbound, &more, "secret:key"),
            (&header, &unsent, "secret:key -> header x-key at url"),
            (&body, &header, "secret:key -> body at url"),
            (&more, &header, "secret:key -> body at url"),
            (&there, &header, "secret:key -> header x-key at a.example"),
            (&other, &more, "secret:key2 -> not sent"),
            // Both hosts are granted, but the secret for one of them only.
            (&to_b, &to_a, "secret:key -> header x-key at b.example"),
        ] {
            assert_eq!(
                requested.not_covered_by(granted).to_string(),
                beyond,
                "{requested} after {granted}"
            );
        }
    }

    #[test]
    fn a_changed_price_is_beyond_the_granted_one() {
        let with = |prices: serde_json::Value| {
            requested(json!({
                "kind": "country", "name": "atlantis",
                "country": { "code": "AT", "countries": [], "continents": [], "identities": [{
                    "name": "citizen", "path": "citizen", "display_name": "Citizen", "description": "", "image": "",
                    "field": "number", "pattern": "[0-9]", "rule": "", "face": true, "example": "1", "prices": prices,
                }]},
            }))
        };
        let free = with(json!({}));
        let paid = with(json!({ "lookup": 100, "face": 0.5, "image": 7 }));
        let item = "price:identity.atlantis.citizen";
        // Without document lookups, the price for images does not apply.
        assert_eq!(paid.to_string(), format!("{item}.face=0.5, {item}=100"));
        for (requested, granted, beyond) in [
            (&paid, &Capabilities::default(), paid.to_string()),
            (&paid, &free, paid.to_string()),
            (&free, &Capabilities::default(), String::new()),
            (&free, &paid, format!("{item}.face=0, {item}=0")),
            (&with(json!({ "lookup": 99.99, "face": 0.5 })), &paid, format!("{item}=99.99")),
            (&with(json!({ "lookup": 1000, "face": 0.5 })), &paid, format!("{item}=1000")),
        ] {
            assert_eq!(
                requested.not_covered_by(granted).to_string(),
                beyond,
                "{requested} after {granted}"
            );
        }
    }
}
