//! Identity lookups of the installed country plugins, as the OpenAPI document describes them.

use serde_json::{Value, json};

use super::catalog::{self, Identity, Way};
use tollhouse_plugins::Plugins;

/// Description of a lookup.
pub struct Documented {
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
pub fn documented(plugins: &Plugins) -> Vec<Documented> {
    let all = catalog::all(plugins);
    let ways = all.iter().flat_map(|identity| Way::ALL.map(|way| (identity, way)));
    ways.filter(|(identity, way)| identity.offers(*way))
        .map(|(identity, way)| document(identity, way))
        .collect()
}

fn document(identity: &Identity, way: Way) -> Documented {
    let name = &identity.kind().display_name;
    let summary = match way {
        Way::Number => format!("{name}: look up by number"),
        Way::Face => format!("{name}: look up and compare with a selfie"),
        Way::Document => format!("{name}: look up by the photo of the document"),
    };
    let item = identity.item(way);
    Documented {
        path: identity.path(way),
        id: item.trim_start_matches("identity.").to_owned(),
        summary,
        identifier: (way != Way::Document)
            .then(|| (identity.kind().field.clone(), identifier(identity))),
        takes_image: way != Way::Number,
    }
}

fn identifier(identity: &Identity) -> Value {
    let kind = identity.kind();
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
