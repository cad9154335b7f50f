//! The country section of a manifest: its identity types and their requests, patterns and prices.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};

use super::is_word;
use crate::prelude::*;
use tollhouse_platform::values::money::Minor;

/// Maximum size of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 256 << 10;
const MAX_IDENTITIES: usize = 100;
/// Final path segments that are reserved for the host.
const RESERVED_SEGMENTS: [&str; 3] = ["lookup", "image", "with-face"];
/// Segments of the host's own paths in the position of a country.
const RESERVED_NAMES: [&str; 2] = ["identity", "uid"];

/// A country and its identity types.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Country {
    /// ISO 3166 code, two capital letters.
    pub code: String,
    /// Names of the countries where the identity types are valid.
    pub countries: Vec<String>,
    pub continents: Vec<String>,
    pub identities: Vec<IdentityType>,
}

/// A kind of identity that can be looked up.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct IdentityType {
    /// Unique in the country, for example `drivers_license`.
    pub name: String,
    /// The part of paths after the country, for example `drivers-license`.
    pub path: String,
    /// The name in messages, for example `Driver's license`.
    pub display_name: String,
    pub description: String,
    /// An https URL, or a `data:` URL of an image.
    pub image: String,
    /// The request field that holds the identifier.
    pub field: String,
    /// A regular expression that an entire identifier must match.
    #[schemars(with = "String")]
    pub pattern: Pattern,
    /// The rest of the error message about an invalid identifier, for example `must be 11 digits`.
    pub rule: String,
    /// Converts identifiers to capital letters.
    #[serde(default)]
    pub upper: bool,
    /// Supports comparing a selfie with the photo on record.
    #[serde(default)]
    pub face: bool,
    /// Supports lookups by a photo of a document.
    #[serde(default)]
    pub document: bool,
    /// Supports one-time passwords sent to the contact on record.
    #[serde(default)]
    pub otp: bool,
    /// Lookup prices where the subscription plan sets none.
    #[serde(default)]
    pub prices: Prices,
    /// A valid identifier, for documentation and measurements.
    pub example: String,
}

/// Prices in the major unit of the billing currency.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Prices {
    pub lookup: Minor,
    pub face: Minor,
    pub image: Minor,
}

/// A regular expression that must match an entire text.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Pattern, String> {
        let build = |text: &str| RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).build();
        // Compiled alone first, because it must not close the enclosing group.
        match build(&text).and_then(|_| build(&format!("^(?:{text})$"))) {
            Ok(regex) => Ok(Pattern { text, regex }),
            Err(error) => Err(format!("the pattern {text:?} cannot be used: {error}")),
        }
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.text
    }
}

impl Pattern {
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the expression without anchors.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Manifest {
    /// Returns the billing items of lookups with their prices, used where a plan sets none.
    pub fn prices(&self) -> impl Iterator<Item = (String, Minor)> {
        let types = self.country.iter().flat_map(|country| &country.identities);
        types.flat_map(|kind| {
            let item = format!("identity.{}.{}", self.name, kind.name);
            let Prices { lookup, face, image } = kind.prices;
            let face = kind.face.then(|| (format!("{item}.face"), face));
            let image = kind.document.then(|| (format!("{item}.image"), image));
            [Some((item, lookup)), face, image].into_iter().flatten()
        })
    }
}

impl IdentityType {
    /// Returns the identifier as it matches the pattern: as written, else without spaces, without
    /// hyphens, or without both, so that all spellings give one identifier. `None`: no match.
    pub fn normalize_identifier(&self, written: &str) -> Option<String> {
        let written = if self.upper { written.to_ascii_uppercase() } else { written.to_owned() };
        let spaceless = written.replace(char::is_whitespace, "");
        let (unhyphenated, neither) =
            (written.replace(is_hyphen, ""), spaceless.replace(is_hyphen, ""));
        let spellings = [written, spaceless, unhyphenated, neither];
        spellings.into_iter().find(|spelling| self.pattern.matches(spelling))
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let must = |what: &str| Err(format!("the manifest's identity {name:?} must {what}"));
        let is_name = |text: &str, separator: char| is_word(text, 50, &[separator]);
        let segments: Vec<&str> = self.path.split('/').collect();
        if !is_name(name, '_') || ["face", "image"].contains(&&**name) {
            return must(
                "have a name of 1 to 50 characters of a-z, 0-9 and _, other than face and image",
            );
        }
        if segments.len() > 3
            || !segments.iter().all(|part| is_name(part, '-') && !RESERVED_SEGMENTS.contains(part))
        {
            return must(
                "have a path of 1 to 3 parts of a-z, 0-9 and -, none of which is lookup, image or with-face",
            );
        }
        if !is_name(&self.field, '_') || ["user_id", "send_otp", "image"].contains(&&*self.field) {
            return must(
                "have a field of 1 to 50 characters of a-z, 0-9 and _, other than user_id, send_otp and image",
            );
        }
        if !self.image.starts_with("https://") && !self.image.starts_with("data:image/") {
            return must("have an image with an https URL or a data URL");
        }
        if self.display_name.trim().is_empty() || self.rule.trim().is_empty() {
            return must("have a display_name and a rule");
        }
        let texts = [&self.display_name, &self.description, &self.image, &self.rule, &self.example];
        if texts.iter().any(|text| text.chars().any(char::is_control)) {
            return must("have no control characters in its texts");
        }
        let Prices { lookup, face, image } = self.prices;
        if [lookup, face, image].iter().any(|price| *price < Minor(0)) {
            return must("have prices of at least 0");
        }
        match self.normalize_identifier(&self.example) {
            Some(_) => Ok(()),
            None => must("have an example that fits its pattern"),
        }
    }
}

/// Recognizes the hyphens of keyboards and of word processors.
fn is_hyphen(c: char) -> bool {
    ['-', '\u{2010}', '\u{2011}'].contains(&c)
}

impl Country {
    /// Rejects ambiguous or unreachable identity types with a reason for the operator.
    /// `interfaces`: those that the component exports.
    pub(crate) fn check(&self, name: &str, interfaces: &[&str]) -> Result<(), String> {
        if RESERVED_NAMES.contains(&name) || name.contains('-') {
            return Err(format!(
                "a country cannot have the name {name}: names with a hyphen, identity and uid are not allowed"
            ));
        }
        if self.code.len() != 2 || !self.code.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err("a country's code must be two capital letters".to_owned());
        }
        let mut places = self.countries.iter().chain(&self.continents);
        if places.any(|name| name.is_empty() || name.chars().any(char::is_control)) {
            return Err(
                "the names of countries and continents must be non-empty single-line texts"
                    .to_owned(),
            );
        }
        if !(1..=MAX_IDENTITIES).contains(&self.identities.len()) {
            return Err(format!("a country must have 1 to {MAX_IDENTITIES} identities"));
        }
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for identity in &self.identities {
            identity.check()?;
            if !names.insert(&identity.name) {
                let name = &identity.name;
                return Err(format!("the manifest has two identities with the name {name:?}"));
            }
            if !paths.insert(&identity.path) {
                let path = &identity.path;
                return Err(format!("the manifest has two identities with the path {path:?}"));
            }
            for (wanted, interface) in
                [(identity.face, "identity-face"), (identity.document, "identity-document")]
            {
                if wanted && !interfaces.contains(&interface) {
                    return Err(format!(
                        "the identity {:?} needs the interface {interface}, which the component does not export",
                        identity.name
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn country(change: impl FnOnce(&mut Value)) -> Result<Country, String> {
        let mut json = json!({
            "code": "NG", "countries": ["Nigeria"], "continents": ["Africa"],
            "identities": [{
                "name": "virtual_nin", "path": "nin/virtual", "display_name": "Virtual NIN", "description": "A number.",
                "image": "data:image/svg+xml;base64,PHN2Zy8+", "field": "virtual_nin", "pattern": "[A-Z]{2}[0-9]{2}|X",
                "rule": "must be two letters and two digits", "upper": true, "face": true, "example": "ab12",
            }],
        });
        change(&mut json["identities"][0]);
        let country: Country = serde_json::from_value(json).map_err(|error| error.to_string())?;
        country.check("nigeria", &["identity-lookup", "identity-face"]).map(|()| country)
    }

    #[test]
    fn an_identifier_must_match_the_entire_pattern() {
        let country = country(|_| ()).unwrap();
        let identity = &country.identities[0];
        for (written, expected) in [
            ("AB12", Some("AB12")),
            ("ab12", Some("AB12")),
            ("x", Some("X")),
            (" ab 12", Some("AB12")),
            ("A-B-1-2", Some("AB12")),
            ("ab\u{2011}1 2", Some("AB12")),
            ("x\u{a0}", Some("X")),
            (" - ", None),
            ("AB_12", None),
            ("AB123", None),
            ("1AB12", None),
            ("", None),
        ] {
            assert_eq!(identity.normalize_identifier(written).as_deref(), expected, "{written:?}");
        }
        assert_eq!(identity.prices.lookup, Minor(0));
    }

    #[test]
    fn spaces_and_hyphens_in_the_pattern_are_kept() {
        let of = |pattern: &str, example: &str| {
            let changed = country(|identity| {
                identity["pattern"] = json!(pattern);
                identity["example"] = json!(example);
            });
            changed.unwrap().identities.remove(0)
        };
        let hyphens = of("[A-Z0-9][A-Z0-9-]{4,24}", "AAA-1-2");
        for (written, expected) in [
            ("AAA-2105-123", "AAA-2105-123"),
            ("aaa-2105 - 123", "AAA-2105-123"),
            ("AAA2105123", "AAA2105123"),
        ] {
            assert_eq!(
                hyphens.normalize_identifier(written).as_deref(),
                Some(expected),
                "{written}"
            );
        }
        let spaces = of("[A-Z]+ [0-9]+", "AB 12");
        for (written, expected) in
            [("AB 12", Some("AB 12")), ("A-B 1-2", Some("AB 12")), ("AB12", None)]
        {
            assert_eq!(spaces.normalize_identifier(written).as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn unreachable_and_ambiguous_identity_types_are_rejected() {
        for (field, value, reason) in [
            ("name", json!("Virtual"), "have a name"),
            ("name", json!("face"), "have a name"),
            ("path", json!("nin/lookup"), "have a path"),
            ("path", json!("nin/"), "have a path"),
            ("path", json!("a/b/c/d"), "have a path"),
            ("field", json!("user_id"), "have a field"),
            ("image", json!("http://a.example/x.png"), "have an image"),
            ("rule", json!(" "), "a rule"),
            ("description", json!("a\u{1b}[2J"), "no control characters"),
            ("example", json!("12ab"), "have an example"),
            ("prices", json!({ "face": -1 }), "prices of at least 0"),
            ("prices", json!({ "face": 0.001 }), "two decimals"),
            ("pattern", json!("["), "cannot be used"),
            ("pattern", json!("a)|(?:.*"), "cannot be used"),
            ("pattern", json!("(a{1000}){1000}"), "cannot be used"),
            ("document", json!(true), "needs the interface identity-document"),
        ] {
            let refused = country(|identity| identity[field] = value.clone()).unwrap_err();
            assert!(refused.contains(reason), "{field} {value}: {refused}");
        }
        let country = country(|_| ()).unwrap();
        for (code, place) in [("ng", "Nigeria"), ("NGA", "Nigeria"), ("NG", ""), ("NG", "a\nb")] {
            let odd = Country {
                code: code.to_owned(),
                countries: vec![place.to_owned()],
                ..country.clone()
            };
            assert!(odd.check("nigeria", &["identity-face"]).is_err(), "{code} {place:?}");
        }
        for name in ["uid", "identity", "south-africa"] {
            assert!(country.check(name, &["identity-face"]).is_err(), "{name}");
        }
        let twice = Country {
            identities: [country.identities.clone(), country.identities].concat(),
            ..country
        };
        assert!(twice.check("nigeria", &["identity-face"]).unwrap_err().contains("two identities"));
    }
}
