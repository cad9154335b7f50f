//! The JSON Schema of a manifest, with which authors' editors complete and check manifests.

use schemars::schema_for;
use serde_json::{Value, json};

use crate::{Manifest, manifest::examples::Examples};

/// The key under which a manifest may name this schema.
const SCHEMA_KEY: &str = "$schema";

impl Manifest {
    /// Returns the JSON Schema of a manifest in a component.
    ///
    /// # Panics
    /// If the schema of a struct is not an object, which schemars excludes.
    #[must_use]
    pub fn schema() -> Value {
        let mut schema = schema_for!(Manifest).to_value();
        let examples = schema_for!(Examples).to_value();
        schema["title"] = json!("Manifest of a Tollhouse plugin");
        let definitions = [&schema["$defs"], &examples["$defs"]].map(Value::as_object);
        let definitions = definitions.into_iter().flatten().flatten();
        schema["$defs"] =
            definitions.map(|(name, schema)| (name.clone(), schema.clone())).collect();
        let mut of_examples = examples;
        for key in [SCHEMA_KEY, "$defs", "title"] {
            of_examples.as_object_mut().expect("a schema is an object").remove(key);
        }
        schema["properties"]["examples"] = of_examples;
        schema["properties"][SCHEMA_KEY] = json!({ "type": "string" });
        schema
    }

    /// Returns the keys of a manifest that this host does not know, with their paths.
    pub fn unknown_keys(json: &[u8]) -> Vec<String> {
        let mut unknown = Vec::new();
        let mut json = serde_json::Deserializer::from_slice(json);
        // An optional object is part of the path as `?`.
        let mut note =
            |path: serde_ignored::Path<'_>| unknown.push(path.to_string().replace(".?", ""));
        let _: Result<Manifest, _> = serde_ignored::deserialize(&mut json, &mut note);
        unknown.retain(|path| path != SCHEMA_KEY);
        unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_found_at_each_level() {
        let manifest = json!({
            "$schema": "./manifest.schema.json", "kind": "provider", "name": "acme",
            "version": "1.0.0", "display_name": "Acme", "curencies": ["NGN"],
            "settings": { "base_url": { "kind": "url", "defualt": "https://a.example" } },
            "reference": { "alphabet": "-", "max_length": 50, "length": 1 },
            "examples": { "answers": [{ "to": "GET /", "body": {}, "code": 200 }] },
        });
        let unknown = Manifest::unknown_keys(manifest.to_string().as_bytes());
        let expected = [
            "curencies", "settings.base_url.defualt", "reference.length", "examples.answers.0.code",
        ];
        assert_eq!(unknown, expected);
        for component in artifacts::BUILT_IN {
            let manifest = Manifest::section(component.wasm).unwrap();
            assert_eq!(Manifest::unknown_keys(manifest), [""; 0]);
        }
    }

    #[test]
    fn the_schema_has_all_keys() {
        let schema = Manifest::schema();
        for key in ["$schema", "kind", "amounts", "country", "examples", "reference", "secrets"] {
            assert!(schema["properties"][key].is_object(), "{key}");
        }
        assert!(schema["properties"]["examples"]["properties"]["answers"].is_object());
        assert_eq!(schema["required"], json!(["kind", "name", "version", "display_name"]));
    }
}
