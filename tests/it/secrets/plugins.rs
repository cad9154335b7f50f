//! What operators do with the versions of a plugin.

use serde_json::json;
use tollhouse::{plugins::PrivateKey, random::Random};

use super::Lab;
use crate::sprout::repack;

/// A gateway is upgraded, tried, taken back and out of service, and its newer version removed.
pub async fn change_versions(lab: &Lab) {
    lab.name("plugin", &json!("termii"));
    let versions = lab.ask("GET /internal/v1/plugins/{plugin}", "").await;
    let old = versions["data"][0]["digest"].clone();
    let next = repack(artifacts::TERMII, |manifest| manifest["version"] = json!("9.0.0"));
    lab.ask("POST /internal/v1/plugins/examine", next.clone()).await;
    let next = lab.ask("POST /internal/v1/plugins", next).await["data"]["digest"].clone();
    let of = |what: &str| format!("POST /internal/v1/plugins/{{plugin}}/{what}");
    lab.call(&of("canary"), json!({ "digest": old, "percent": 50 })).await;
    for what in ["rollback", "rollback", "deactivate", "activate"] {
        lab.call(&of(what), json!({})).await;
    }
    lab.name("digest", &next);
    lab.call("DELETE /internal/v1/plugins/{plugin}/{digest}", json!({})).await;
    lab.name("publisher", &json!("acme"));
    let key = PrivateKey::draw(&Random::seeded(1)).public().to_line();
    lab.call("PUT /internal/v1/publishers/{publisher}", json!({ "keys": [key] })).await;
    lab.ask("GET /internal/v1/publishers", "").await;
    lab.call("DELETE /internal/v1/publishers/{publisher}", json!({})).await;
}
