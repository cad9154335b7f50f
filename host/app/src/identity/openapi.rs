//! Identity lookups of the installed country plugins, as the OpenAPI document describes them.

use serde_json::{Value, json};

use super::catalog::{self, Identity, LookupMethod};
use tollhouse_plugins::Plugins;

/// Description of a lookup.
pub struct LookupDescription {
    pub path: String,
    /// Suffix of the operation id, for example `nigeria.bvn.face`.
    pub id: String,
    pub summary: String,
    /// Field and schema of the identifier; `None` if it is read from a document.
    pub identifier: Option<(String, Value)>,
    pub takes_image: bool,
}

/// Returns all lookups of all countries.
#[must_use]
pub fn describe_lookups(plugins: &Plugins) -> Vec<LookupDescription> {
    let all = catalog::all(plugins);
    let ways = all.iter().flat_map(|identity| LookupMethod::ALL.map(|way| (identity, way)));
    ways.filter(|(identity, way)| identity.supports(*way))
        .map(|(identity, way)| describe(identity, way))
        .collect()
}

fn describe(identity: &Identity, way: LookupMethod) -> LookupDescription {
    let name = &identity.identity_type().display_name;
    let summary = match way {
        LookupMethod::Number => format!("{name}: look up by number"),
        LookupMethod::Face => format!("{name}: look up and compare with a selfie"),
        LookupMethod::Document => format!("{name}: look up by the photo of the document"),
    };
    let item = identity.billing_item(way);
    LookupDescription {
        path: identity.path(way),
        id: item.trim_start_matches("identity.").to_owned(),
        summary,
        identifier: (way != LookupMethod::Document)
            .then(|| (identity.identity_type().field.clone(), identifier(identity))),
        takes_image: way != LookupMethod::Number,
    }
}

fn identifier(identity: &Identity) -> Value {
    let kind = identity.identity_type();
    // No pattern: other letter case, spaces and hyphens may be accepted as well.
    json!({
        "type": "string",
        "description": format!(
            "{} It {}. Spaces and hyphens are ignored unless the format contains them.",
            kind.description, kind.rule
        ),
        "examples": [kind.example],
    })
}
