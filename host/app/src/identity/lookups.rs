//! Identity lookups in the OpenAPI document: one route serves all, and country plugins define them.

use serde_json::{Value, json};

use super::catalog::{self, Identity, LookupMethod};
use tollhouse_http::openapi::docs::RuntimeOperations;
use tollhouse_plugins::{CountryPlugin, Plugins};

/// Path of the route in the document.
const PATH: &str = "/api/v1/kyc/{country}/{path}";
const OPERATION_ID: &str = "identity.look_up";
/// Schema of the fields of all lookups.
const FIELDS: &str = "Lookup";

/// Lookups of the installed country plugins.
pub struct Lookups(pub Plugins);

impl RuntimeOperations for Lookups {
    fn versions(&self) -> Vec<String> {
        let digest = |registers: &CountryPlugin| registers.digest().to_owned();
        self.0.active_country_plugins().iter().map(digest).collect()
    }

    fn add_to(&self, document: &mut Value) {
        with_lookups(document, &self.0);
    }
}

/// Replaces the generic route in the document by the available lookups.
pub fn with_lookups(document: &mut Value, plugins: &Plugins) {
    let fields = document["components"]["schemas"][FIELDS]["properties"].take();
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    schemas.shift_remove(FIELDS);
    let Some(paths) = document["paths"].as_object_mut() else { return };
    let Some(any) = paths.shift_remove(PATH) else { return };
    for identity in catalog::all(plugins) {
        for method in identity.methods() {
            let operation = operation(any["post"].clone(), &identity, method, &fields);
            paths.insert(identity.path(method), json!({ "post": operation }));
        }
    }
}

fn operation(
    mut operation: Value,
    identity: &Identity,
    method: LookupMethod,
    fields: &Value,
) -> Value {
    let item = identity.billing_item(method).name;
    let id = item.trim_start_matches("identity.");
    let name = &identity.identity_type().display_name;
    operation["operationId"] = json!(format!("{OPERATION_ID}.{id}"));
    operation["summary"] = json!(match method {
        LookupMethod::Number => format!("{name}: look up by number"),
        LookupMethod::Face => format!("{name}: look up and compare with a selfie"),
        LookupMethod::Document => format!("{name}: look up by the photo of the document"),
    });
    let parameters = operation["parameters"].as_array_mut();
    parameters.into_iter().for_each(|all| all.retain(|parameter| parameter["in"] != "path"));
    operation["requestBody"] = json!({
        "content": { "application/json": { "schema": body(identity, method, fields) } },
        "required": true,
    });
    operation
}

fn body(identity: &Identity, method: LookupMethod, fields: &Value) -> Value {
    let kind = identity.identity_type();
    let mut properties = json!({ "user_id": fields["user_id"], "send_otp": fields["send_otp"] });
    let mut required = Vec::new();
    if method != LookupMethod::Document {
        // No pattern: other letter case, spaces and hyphens may be accepted as well.
        properties[&kind.field] = json!({
            "type": "string",
            "description": format!(
                "{} It {}. Spaces and hyphens are ignored unless the format contains them.",
                kind.description, kind.rule
            ),
            "examples": [kind.example],
        });
        required.push(&*kind.field);
    }
    if method != LookupMethod::Number {
        properties["image"] = fields["image"].clone();
        required.push("image");
    }
    json!({ "type": "object", "properties": properties, "required": required })
}
