//! Identity lookups in the OpenAPI document: one route serves them all, and which there are is known when countries are installed.

use serde_json::{Value, json};

use crate::identity::Documented;

/// Of the route, as it stands in the document.
const PATH: &str = "/api/v1/kyc/{country}/{path}";
const ID: &str = "identity.look_up";
/// The schema of what all lookups may be sent.
const FIELDS: &str = "Lookup";

/// The document with the lookups that there are in the place of the one route that serves them all.
pub fn with_lookups(document: &mut Value, lookups: Vec<Documented>) {
    let fields = document["components"]["schemas"][FIELDS]["properties"].take();
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    schemas.shift_remove(FIELDS);
    let Some(paths) = document["paths"].as_object_mut() else { return };
    let Some(any) = paths.shift_remove(PATH) else { return };
    for lookup in lookups {
        let mut operation = any["post"].clone();
        operation["operationId"] = json!(format!("{}.{}", ID, lookup.id));
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

fn body(lookup: &Documented, fields: &Value) -> Value {
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
