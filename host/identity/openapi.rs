//! The lookups that there are, as the OpenAPI document needs to know them: they come with the countries that are installed.

use serde_json::{Value, json};

use super::catalog::{self, Identity, Way};
use crate::plugins::Plugins;

/// A lookup.
pub struct Documented {
    pub path: String,
    /// What is behind the handler's own id: `nigeria.bvn.face`.
    pub id: String,
    pub summary: String,
    /// The field that holds the identifier, and its schema; `None` where a document says it.
    pub identifier: Option<(String, Value)>,
    pub takes_image: bool,
}

/// All lookups of all countries.
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
    // Without the pattern: letters of either case, spaces and hyphens may be taken as well.
    json!({
        "type": "string",
        "description": format!(
            "{} It {}. Spaces and hyphens are ignored unless the format contains them.",
            kind.description, kind.rule
        ),
        "examples": [kind.example],
    })
}
