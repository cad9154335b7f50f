//! Identity lookups in the OpenAPI document: one route serves all, and country plugins define them.

use serde_json::{Value, json};

use crate::identity::{LookupDescription, describe_lookups};
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
        with_lookups(document, describe_lookups(&self.0));
    }
}

/// Replaces the generic route in the document by the available lookups.
pub fn with_lookups(document: &mut Value, lookups: Vec<LookupDescription>) {
    let fields = document["components"]["schemas"][FIELDS]["properties"].take();
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    schemas.shift_remove(FIELDS);
    let Some(paths) = document["paths"].as_object_mut() else { return };
    let Some(any) = paths.shift_remove(PATH) else { return };
    for lookup in lookups {
        let mut operation = any["post"].clone();
        operation["operationId"] = json!(format!("{}.{}", OPERATION_ID, lookup.id));
        operation["summary"] = json!(lookup.summary);
        let parameters = operation["parameters"].as_array_mut();
        parameters.into_iter().for_each(|all| all.retain(|parameter| parameter["in"] != "path"));
        operation["requestBody"] = json!({
            "content": { "application/json": { "schema": body(&lookup, &fields) } },
            "required": true,
        });
        paths.insert(lookup.path, json!({ "post": operation }));
    }
}

fn body(lookup: &LookupDescription, fields: &Value) -> Value {
    let mut properties = json!({ "user_id": fields["user_id"], "send_otp": fields["send_otp"] });
    let mut required = Vec::new();
    if let Some((name, schema)) = &lookup.identifier {
        properties[name] = schema.clone();
        required.push(&**name);
    }
    if lookup.takes_image {
        properties["image"] = fields["image"].clone();
        required.push("image");
    }
    json!({ "type": "object", "properties": properties, "required": required })
}
