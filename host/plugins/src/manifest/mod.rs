//! Manifests: JSON in a component's custom section `tollhouse:manifest`, read without running it.

pub mod amounts;
pub mod bindings;
pub mod capabilities;
pub mod country;
pub mod examples;
pub mod reference;
mod schema;
pub mod sessions;

use url::Url;
use wasmparser::{BinaryReaderError, Encoding, Parser, Payload};

use crate::manifest::{
    amounts::AmountLimits, bindings::DeclaredSecrets, country::Country, examples::Examples,
    reference::ReferenceRules, sessions::SessionRules,
};
use crate::prelude::*;
use tollhouse_platform::store::{EnumString, IntoStaticStr, text_columns};

const SECTION: &str = "tollhouse:manifest";
const MAX_BYTES: usize = 64 << 10;

/// A plugin's manifest. Unknown keys are ignored, because later releases may define them.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Manifest {
    pub kind: PluginKind,
    /// The name in requests, accounts and URLs, for example `provider_a`.
    pub name: String,
    #[schemars(with = "String")]
    pub version: semver::Version,
    pub display_name: String,
    /// Hosts to which the plugin sends requests over https.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Secrets that the plugin uses, and the places to which each may be sent.
    #[serde(default)]
    pub secrets: DeclaredSecrets,
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// Secrets and settings that an account may omit.
    #[serde(default)]
    pub optional: Vec<String>,
    /// Payment currencies as ISO 4217 codes.
    #[serde(default)]
    pub currencies: Vec<String>,
    /// Limits of the amounts that the provider accepts, by currency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub amounts: BTreeMap<String, AmountLimits>,
    #[serde(default)]
    pub channels: Vec<String>,
    #[serde(default)]
    pub reference: ReferenceRules,
    /// The rules of the interface `sessions`.
    #[serde(default, skip_serializing_if = "SessionRules::is_default")]
    pub sessions: SessionRules,
    /// The country and its identity types, for plugins of the kind `country` only.
    #[serde(default)]
    pub country: Option<Country>,
    /// Example responses. They are long, and clients of this host do not need them.
    #[serde(default, skip_serializing)]
    #[schemars(skip)]
    pub examples: Examples,
}

/// The kind of a plugin, which determines the interfaces that it must export.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PluginKind")]
pub enum PluginKind {
    Provider,
    Sms,
    Country,
}

text_columns!(PluginKind);

/// A credential that is not secret.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Setting {
    /// `text`, or `url`: the plugin may also send requests to the URL's host.
    pub kind: String,
    #[serde(default)]
    pub default: Option<String>,
}

impl Manifest {
    /// Reads the manifest of the component, else of the only core module with one, where linkers
    /// put it for Rust guests. `Err` is a reason for the operator.
    pub fn read(wasm: &[u8]) -> Result<Manifest, String> {
        Manifest::read_installed(wasm)?.check_new()
    }

    /// Reads an installed component's manifest, without the checks that only new ones must pass.
    pub fn read_installed(wasm: &[u8]) -> Result<Manifest, String> {
        let manifest = Manifest::parse(wasm)?;
        manifest.check()?;
        Ok(manifest)
    }

    pub fn from_json(json: &[u8]) -> Result<Manifest, String> {
        let manifest = Manifest::parse_json(json)?;
        manifest.check()?;
        manifest.check_new()
    }

    fn check_new(self) -> Result<Manifest, String> {
        let is_code =
            |code: &&String| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase());
        self.check_amounts()?;
        self.sessions.check()?;
        let mut examples = self.examples.credentials().keys();
        if let Some(name) = examples.find(|name| !self.has_credential(name)) {
            return Err(format!(
                "the manifest's examples.credentials {name:?} is neither a secret nor a setting"
            ));
        }
        match self.currencies.iter().find(|code| !is_code(code)) {
            Some(code) => {
                Err(format!("the manifest's currency {code:?} is not an ISO 4217 code, like NGN"))
            }
            None if self.reference.is_too_short() => Err(format!(
                "the manifest's reference.max_length must be at least {}: references that this host generates would not be unique",
                ReferenceRules::MIN_LENGTH
            )),
            None => Ok(self),
        }
    }

    /// Reads the manifest without checks.
    pub fn parse(wasm: &[u8]) -> Result<Manifest, String> {
        Manifest::parse_json(Manifest::section(wasm)?)
    }

    /// Returns the JSON of the manifest.
    pub fn section(wasm: &[u8]) -> Result<&[u8], String> {
        let (outer, inner) = sections(wasm)?;
        match (&outer[..], &inner[..]) {
            ([json], _) | ([], [json]) => Ok(*json),
            ([], []) => Err(format!(
                "the component has no {SECTION} section: add manifest.json as a custom section of that name"
            )),
            _ => Err(format!("the component has more than one {SECTION} section")),
        }
    }

    fn parse_json(json: &[u8]) -> Result<Manifest, String> {
        if json.len() > MAX_BYTES {
            return Err("the manifest is larger than 64 KiB".to_owned());
        }
        let mut json = serde_json::Deserializer::from_slice(json);
        let manifest = serde_path_to_error::deserialize(&mut json);
        manifest.map_err(|error| match error.path().iter().next() {
            Some(_) => format!("the manifest's {} cannot be read: {}", error.path(), error.inner()),
            None => format!("the manifest cannot be read: {}", error.inner()),
        })
    }

    /// Rejects another kind under the same name, and a setting that was a secret in an earlier
    /// version: accounts keep their credentials, so this version would read the secret in clear.
    pub fn check_compatible(
        &self,
        kind: PluginKind,
        secrets: &[String],
        version: &str,
    ) -> Result<(), String> {
        if self.kind != kind {
            let name = &self.name;
            return Err(format!(
                "{name} was a plugin of another kind in version {version}; give the new one another name"
            ));
        }
        match secrets.iter().find(|name| self.settings.contains_key(*name)) {
            Some(name) => Err(format!(
                "the manifest's setting {name:?} was a secret in version {version}; give the setting another name"
            )),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<(), String> {
        if !is_word(&self.name, 40, &['_', '-']) {
            return Err(
                "the manifest's name must be 1 to 40 characters of a-z, 0-9, _ and -".to_owned()
            );
        }
        // Operators see them in a prompt of one line.
        let is_plain = |name: &str| is_word(&name.to_ascii_lowercase(), 40, &['_', '-', '.']);
        let mut names = self.secrets.names().chain(self.settings.keys());
        if let Some(name) = names.find(|name| !is_plain(name)) {
            return Err(format!(
                "the name of the manifest's secret or setting {name:?} must be 1 to 40 characters of A-Z, a-z, 0-9, _, - and ."
            ));
        }
        let is_host = |host: &String| {
            Url::parse(&format!("https://{host}/"))
                .is_ok_and(|url| url.host_str() == Some(host) && url.port().is_none())
        };
        if let Some(host) = self.hosts.iter().find(|host| !is_host(host)) {
            return Err(format!(
                "the manifest's host {host:?} must be a host name without scheme, port and path"
            ));
        }
        if let Some(name) = self.secrets.names().find(|name| self.settings.contains_key(*name)) {
            return Err(format!("the manifest's {name:?} must be a secret or a setting, not both"));
        }
        let is_url = |name: &str| self.settings.get(name).is_some_and(|s| s.kind == "url");
        self.secrets.check(&self.hosts, is_url)?;
        match self.optional.iter().find(|name| !self.has_credential(name)) {
            Some(name) => {
                Err(format!("the manifest's optional {name:?} is neither a secret nor a setting"))
            }
            None => Ok(()),
        }
    }

    /// Returns whether a secret or a setting has this name.
    pub fn has_credential(&self, name: &str) -> bool {
        self.secrets.contains(name) || self.settings.contains_key(name)
    }

    /// Checks the country section against the kind and the exported interfaces.
    pub fn check_country(&self, interfaces: &[&str]) -> Result<(), String> {
        match (&self.country, self.kind) {
            (Some(country), PluginKind::Country) => country.check(&self.name, interfaces),
            (None, PluginKind::Country) => {
                Err("the manifest of a country must have the key country".to_owned())
            }
            (Some(_), _) => {
                Err("only the manifest of a country may have the key country".to_owned())
            }
            (None, _) => Ok(()),
        }
    }
}

/// Returns whether a text has 1 to `max_bytes` characters of a-z, 0-9 and `others`.
pub(crate) fn is_word(text: &str, max_bytes: usize, others: &[char]) -> bool {
    let is_usual = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || others.contains(&c);
    (1..=max_bytes).contains(&text.len()) && text.chars().all(is_usual)
}

/// Puts the error on one line: some of the parser's messages have several.
fn parse_error(error: BinaryReaderError) -> String {
    let reason = error.to_string();
    let words: Vec<&str> = reason.split_whitespace().collect();
    format!("the file is not WebAssembly: {}", words.join(" "))
}

/// Manifest sections: those of the component itself, and those of modules inside it.
type Sections<'w> = (Vec<&'w [u8]>, Vec<&'w [u8]>);

/// Returns the manifest sections. Rejects files that are not components.
pub fn sections(wasm: &[u8]) -> Result<Sections<'_>, String> {
    let (mut depth, mut outer, mut inner) = (0usize, Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(parse_error)? {
            Payload::Version { encoding, .. } if depth == 0 && encoding != Encoding::Component => {
                return Err(
                    "the file is a module, not a component: build it for wasm32-wasip2".to_owned()
                );
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(s) if s.name() == SECTION && depth == 0 => outer.push(s.data()),
            Payload::CustomSection(s) if s.name() == SECTION => inner.push(s.data()),
            _ => {}
        }
    }
    Ok((outer, inner))
}

/// The names of a component's imports and exports.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Surface {
    pub imports: Vec<String>,
    pub exports: Vec<String>,
}

impl Surface {
    pub fn of(wasm: &[u8]) -> Result<Surface, String> {
        let (mut depth, mut surface) = (0usize, Surface::default());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.map_err(parse_error)? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(imports) if depth == 0 => {
                    for import in imports {
                        surface.imports.push(import.map_err(parse_error)?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 0 => {
                    for export in exports {
                        surface.exports.push(export.map_err(parse_error)?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(surface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_max_length_below_12_is_rejected_in_new_components_only() {
        let manifest = |max_length: usize| {
            let json = serde_json::json!({
                "kind": "provider", "name": "acme", "version": "1.0.0", "display_name": "Acme",
                "reference": { "alphabet": "-", "max_length": max_length },
            });
            json.to_string()
        };
        assert!(Manifest::from_json(manifest(12).as_bytes()).is_ok());
        let refused = Manifest::from_json(manifest(11).as_bytes()).unwrap_err();
        assert!(
            refused.starts_with("the manifest's reference.max_length must be at least 12"),
            "{refused}"
        );
        // Installed components are exempt.
        let component = |json: &str| {
            let name = b"\x12tollhouse:manifest";
            let size = u8::try_from(name.len() + json.len()).expect("a short manifest");
            assert!(size >= 0x80, "its length has two bytes");
            let head = &b"\0asm\x0d\0\x01\0\0"[..];
            [head, &[size, 1], name, json.as_bytes()].concat()
        };
        let wasm = component(&manifest(11));
        assert!(Manifest::read_installed(&wasm).is_ok(), "{:?}", Manifest::read_installed(&wasm));
        assert_eq!(Manifest::read(&wasm).unwrap_err(), refused);
    }

    #[test]
    fn errors_name_the_invalid_key() {
        for (json, prefix) in [
            (
                r#"{"kind":"sms","name":"a","version":"1.0","display_name":"A"}"#,
                "the manifest's version cannot be read: ",
            ),
            (
                r#"{"kind":"sms","name":"a","version":"1.0.0","display_name":"A","settings":{"url":"x"}}"#,
                "the manifest's settings.url cannot be read: ",
            ),
            (
                r#"{"kind":"sms","name":"a","version":"1.0.0","display_name":"A","currencies":["naira"]}"#,
                "the manifest's currency \"naira\" is not an ISO 4217 code",
            ),
            (r#"{"kind":"sms"}"#, "the manifest cannot be read: missing field `name`"),
            ("[", "the manifest cannot be read: "),
        ] {
            let refused = Manifest::from_json(json.as_bytes()).unwrap_err();
            assert!(refused.starts_with(prefix), "{refused}");
        }
    }

    #[test]
    fn names_that_could_overwrite_the_prompt_are_rejected() {
        let with = |secret: &str| {
            let manifest = serde_json::json!({
                "kind": "sms", "name": "acme", "version": "1.0.0", "display_name": "Acme", "secrets": [secret],
            });
            Manifest::from_json(manifest.to_string().as_bytes())
        };
        assert!(with("api_key").is_ok());
        for bad in ["", "key\u{1b}[2K\rnothing", "key, nothing", "é", &"k".repeat(41)] {
            assert!(with(bad).unwrap_err().contains("must be 1 to 40"), "{bad:?}");
        }
    }

    #[test]
    fn files_that_are_not_components_are_rejected_with_a_reason() {
        let refused = Manifest::read(b"hello").unwrap_err();
        assert!(refused.contains("not WebAssembly") && !refused.contains('\n'), "{refused}");
        assert!(Manifest::read(b"\0asm\x01\0\0\0").unwrap_err().contains("not a component"));
        assert!(
            Manifest::read(b"\0asm\x0d\0\x01\0").unwrap_err().contains("no tollhouse:manifest")
        );
    }
}
