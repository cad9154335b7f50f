//! Secrets of a manifest, bound to the origins and request parts to which they may be sent.
//!
//! A list of names, as in manifests of the first releases, declares unbound secrets, which may be
//! sent in any header and in the body to every origin of the plugin. No secret may be sent in a
//! URL, a method or a header name.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use super::is_word;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

/// Separates a secret from its place in a capability. Names of secrets have no spaces.
pub const ARROW: &str = " -> ";
/// The place of a secret that is used for signatures and comparisons only.
pub const NOT_SENT: &str = "not sent";
const MAX_NAME_BYTES: usize = 60;

/// The secrets of a manifest by name; `None`: unbound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredSecrets(BTreeMap<String, Option<SecretBinding>>);

/// The destinations of a secret. Without any, it is used for signatures and comparisons only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
// An unknown key could be a restriction that this host would ignore.
#[serde(deny_unknown_fields)]
#[schemars(rename = "SecretBinding")]
pub struct SecretBinding {
    /// Names from `hosts` or of `url` settings; for a setting, the address in the account applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    to: Vec<String>,
    /// `header:NAME` with the name in lower case, `body`, or `tls` for a client certificate.
    #[serde(default, rename = "in", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    places: Vec<SecretPlace>,
}

/// A request part that may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum SecretPlace {
    /// The value of the header with this name, which is in lower case.
    Header(String),
    Body,
    /// The client certificate of the connection.
    Tls,
}

/// A request part in which a placeholder was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPart<'r> {
    Method,
    Url,
    HeaderName,
    Header(&'r str),
    Body,
    Tls,
}

/// A binding with the origins of one account.
#[derive(Clone, Debug, Default)]
pub struct AccountBinding {
    origins: Vec<String>,
    places: Vec<SecretPlace>,
}

impl DeclaredSecrets {
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns one sentence about each unbound secret.
    pub fn warnings(&self) -> Vec<String> {
        let unbound = self.0.iter().filter(|(_, binding)| binding.is_none());
        let warning = |(name, _)| {
            format!(
                "the secret {name} is not bound: it may be sent in any header and in the body, to every origin that the plugin may reach; bind it with \"to\" and \"in\""
            )
        };
        unbound.map(warning).collect()
    }

    /// Returns capabilities: `secret:key -> header authorization at base_url` or, if unbound,
    /// `secret:key`.
    ///
    /// `default_of` returns the host in the default of a `url` setting. Binding a secret to the
    /// setting needs a grant for that host, too: another version's default sends it elsewhere.
    pub(crate) fn capabilities(
        &self,
        default_of: impl Fn(&str) -> Option<String>,
    ) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(move |(name, binding)| match binding {
            None => vec![format!("secret:{name}")],
            Some(binding) if binding.to.is_empty() => {
                vec![format!("secret:{name}{ARROW}{NOT_SENT}")]
            }
            Some(SecretBinding { to, places }) => {
                let defaults = to.iter().filter_map(|to| default_of(to));
                let hosts: Vec<String> = to.iter().cloned().chain(defaults).collect();
                let at = |(place, host)| format!("secret:{name}{ARROW}{place} at {host}");
                let each =
                    places.iter().flat_map(|place| hosts.iter().map(move |host| (place, host)));
                each.map(at).collect()
            }
        })
    }

    /// Returns an account's bindings. `origin_of` returns the origin of a host or of a setting.
    pub(crate) fn account_bindings(
        &self,
        origin_of: impl Fn(&str) -> Option<String>,
    ) -> impl Iterator<Item = (String, AccountBinding)> {
        self.0.iter().filter_map(move |(name, binding)| {
            let SecretBinding { to, places } = binding.as_ref()?;
            let origins = to.iter().filter_map(|to| origin_of(to)).collect();
            Some((name.clone(), AccountBinding { origins, places: places.clone() }))
        })
    }

    /// Rejects, with a reason for the operator, a binding that is ambiguous or incomplete.
    pub(crate) fn check(
        &self,
        hosts: &[String],
        is_url_setting: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        for (name, binding) in &self.0 {
            let Some(SecretBinding { to, places }) = binding else { continue };
            if to.is_empty() != places.is_empty() {
                return Err(format!(
                    "the manifest's secret {name:?} must have both \"to\" and \"in\", or neither"
                ));
            }
            for to in to {
                let what = match (hosts.contains(to), is_url_setting(to)) {
                    (true, false) | (false, true) => continue,
                    (false, false) => "neither one of its hosts nor one of its url settings",
                    (true, true) => "both one of its hosts and one of its settings",
                };
                return Err(format!(
                    "the manifest's secret {name:?} is bound to {to:?}, which is {what}"
                ));
            }
        }
        Ok(())
    }
}

impl AccountBinding {
    #[must_use]
    pub fn permits(&self, origin: &str, part: RequestPart<'_>) -> bool {
        let is_here = |place: &SecretPlace| match (place, part) {
            (SecretPlace::Header(bound), RequestPart::Header(name)) => {
                name.eq_ignore_ascii_case(bound)
            }
            (SecretPlace::Body, RequestPart::Body) | (SecretPlace::Tls, RequestPart::Tls) => true,
            _ => false,
        };
        self.origins.iter().any(|bound| bound == origin) && self.places.iter().any(is_here)
    }
}

impl RequestPart<'_> {
    pub fn may_hold_secrets(self) -> bool {
        matches!(self, RequestPart::Header(_) | RequestPart::Body)
    }
}

impl fmt::Display for RequestPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestPart::Method => f.write_str("the method"),
            RequestPart::Url => f.write_str("the URL"),
            RequestPart::HeaderName => f.write_str("the name of a header"),
            RequestPart::Header(name) => {
                let name = name.chars().filter(char::is_ascii_graphic).take(MAX_NAME_BYTES);
                write!(f, "the header {}", name.collect::<String>())
            }
            RequestPart::Body => f.write_str("the body"),
            RequestPart::Tls => f.write_str("the client certificate"),
        }
    }
}

impl TryFrom<String> for SecretPlace {
    type Error = String;

    fn try_from(text: String) -> Result<SecretPlace, String> {
        match text.split_once(':') {
            None if text == "body" => Ok(SecretPlace::Body),
            None if text == "tls" => Ok(SecretPlace::Tls),
            Some(("header", name)) if is_word(name, MAX_NAME_BYTES, &['-', '_']) => {
                Ok(SecretPlace::Header(name.to_owned()))
            }
            _ => Err(format!(
                "{text:?} must be body, tls, or header:NAME with the name in lower case"
            )),
        }
    }
}

impl From<SecretPlace> for String {
    fn from(place: SecretPlace) -> String {
        match place {
            SecretPlace::Header(name) => format!("header:{name}"),
            SecretPlace::Body => "body".to_owned(),
            SecretPlace::Tls => "tls".to_owned(),
        }
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretPlace::Header(name) => write!(f, "header {name}"),
            SecretPlace::Body => f.write_str("body"),
            SecretPlace::Tls => f.write_str("tls"),
        }
    }
}

// ---- JSON: a list of names, or an object of bindings --------------------------------------------

impl<'de> Deserialize<'de> for DeclaredSecrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DeclaredSecrets, D::Error> {
        deserializer.deserialize_any(DeclaredSecretsVisitor)
    }
}

struct DeclaredSecretsVisitor;

impl<'de> Visitor<'de> for DeclaredSecretsVisitor {
    type Value = DeclaredSecrets;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of bindings by name, or a list of names")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<DeclaredSecrets, A::Error> {
        let names = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(DeclaredSecrets(names.into_iter().map(|name| (name, None)).collect()))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<DeclaredSecrets, A::Error> {
        let bindings = BTreeMap::deserialize(MapAccessDeserializer::new(object))?;
        let bindings = bindings.into_iter().map(|(name, binding)| (name, Some(binding)));
        Ok(DeclaredSecrets(bindings.collect()))
    }
}

impl Serialize for DeclaredSecrets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.values().all(Option::is_some) {
            true => serializer.collect_map(&self.0),
            false => serializer.collect_seq(self.names()),
        }
    }
}

impl JsonSchema for DeclaredSecrets {
    fn schema_name() -> Cow<'static, str> {
        "DeclaredSecrets".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let binding = generator.subschema_for::<SecretBinding>();
        json_schema!({
            "description": "Bindings by the names of the secrets, or names alone: such secrets are not bound.",
            "anyOf": [
                { "type": "object", "additionalProperties": binding },
                { "type": "array", "items": { "type": "string" } },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn declared(secrets: Value) -> Result<DeclaredSecrets, String> {
        serde_json::from_value(secrets).map_err(|error| error.to_string())
    }

    #[test]
    fn each_pair_of_place_and_origin_is_a_capability() {
        for (secrets, capabilities) in [
            (json!([]), ""),
            (json!({}), ""),
            (json!(["b", "a"]), "secret:a, secret:b"),
            (json!({ "a": {} }), "secret:a -> not sent"),
            (
                json!({ "a": { "to": ["url", "x.example"], "in": ["header:x-key", "body"] } }),
                "secret:a -> header x-key at url, secret:a -> header x-key at x.example, \
                 secret:a -> body at url, secret:a -> body at x.example",
            ),
        ] {
            let declared = declared(secrets.clone()).unwrap();
            let each: Vec<String> = declared.capabilities(|_| None).collect();
            assert_eq!(each.join(", "), capabilities, "{secrets}");
            let is_list = declared.names().count() > 0 && secrets.is_array();
            assert_eq!(declared.warnings().len(), if is_list { 2 } else { 0 });
        }
    }

    #[test]
    fn declarations_round_trip_through_json() {
        for secrets in [
            json!(["a", "b"]),
            json!({ "a": {}, "b": { "to": ["url"], "in": ["header:x", "body"] } }),
        ] {
            assert_eq!(json!(declared(secrets.clone()).unwrap()), secrets);
        }
    }

    #[test]
    fn ambiguous_and_incomplete_bindings_are_rejected() {
        for (binding, reason) in [
            (json!({ "to": ["url"] }), "must have both"),
            (json!({ "in": ["body"] }), "must have both"),
            (json!({ "to": ["text"], "in": ["body"] }), "neither one of its hosts"),
            (json!({ "to": ["y.example"], "in": ["body"] }), "neither one of its hosts"),
            (json!({ "to": ["both"], "in": ["body"] }), "both one of its hosts"),
            (json!({ "to": ["url"], "in": ["query"] }), "must be body, tls, or header"),
            (json!({ "to": ["url"], "in": ["header:X-Key"] }), "must be body, tls, or header"),
            (json!({ "to": ["url"], "in": ["header:"] }), "must be body, tls, or header"),
            (json!({ "to": ["url"], "in": ["header:a b"] }), "must be body, tls, or header"),
            (json!({ "to": ["url"], "in": ["body"], "methods": ["GET"] }), "unknown field"),
            (json!("url"), "invalid type"),
        ] {
            let hosts = ["x.example".to_owned(), "both".to_owned()];
            let checked = declared(json!({ "a": binding })).and_then(|declared| {
                declared.check(&hosts, |name| ["url", "both"].contains(&name))
            });
            let refused = checked.unwrap_err();
            assert!(refused.contains(reason), "{binding}: {refused}");
        }
    }

    #[test]
    fn a_binding_permits_its_places_at_its_origins() {
        let secrets =
            json!({ "a": { "to": ["url", "x.example"], "in": ["header:x-key", "body"] } });
        let declared = declared(secrets).unwrap();
        let origin_of = |to: &str| Some(format!("https://{to}"));
        let bound: BTreeMap<String, AccountBinding> =
            declared.account_bindings(origin_of).collect();
        for (origin, part, permitted) in [
            ("https://url", RequestPart::Header("X-Key"), true),
            ("https://x.example", RequestPart::Header("x-key"), true),
            ("https://url", RequestPart::Body, true),
            ("https://url", RequestPart::Header("authorization"), false),
            ("https://url", RequestPart::HeaderName, false),
            ("https://url", RequestPart::Url, false),
            ("https://url", RequestPart::Method, false),
            ("http://url", RequestPart::Body, false),
            ("https://url:8443", RequestPart::Body, false),
            ("", RequestPart::Body, false),
        ] {
            assert_eq!(bound["a"].permits(origin, part), permitted, "{origin} {part}");
        }
    }
}
