//! Operator actions on versions of a plugin.

use std::time::Duration;

use serde_json::json;
use tollhouse_platform::random::Random;
use tollhouse_plugins::PrivateKey;

use super::Lab;
use crate::sprout::repack;

/// Upgrades a gateway, starts and ends a canary, deactivates it, and removes the newer version.
pub async fn change_versions(lab: &Lab) {
    lab.name("plugin", &json!("termii"));
    let versions = lab.send("GET /internal/v1/plugins/{plugin}", "").await;
    let old = versions["data"][0]["digest"].clone();
    let next = repack(artifacts::TERMII, |manifest| manifest["version"] = json!("9.0.0"));
    lab.send("POST /internal/v1/plugins/examine", next.clone()).await;
    let next = lab.send("POST /internal/v1/plugins", next).await["data"]["digest"].clone();
    let of = |what: &str| format!("POST /internal/v1/plugins/{{plugin}}/{what}");
    lab.call(&of("canary"), json!({ "digest": old, "percent": 50 })).await;
    for what in ["rollback", "rollback", "deactivate", "activate"] {
        lab.call(&of(what), json!({})).await;
    }
    lab.name("digest", &next);
    lab.call("DELETE /internal/v1/plugins/{plugin}/{digest}", json!({})).await;
    read_recordings(lab).await;
    lab.name("publisher", &json!("acme"));
    let key = PrivateKey::generate(&Random::seeded(1)).public().to_line();
    lab.call("PUT /internal/v1/publishers/{publisher}", json!({ "keys": [key] })).await;
    lab.send("GET /internal/v1/publishers", "").await;
    lab.call("DELETE /internal/v1/publishers/{publisher}", json!({})).await;
}

/// Reads the recordings of all calls so far.
async fn read_recordings(lab: &Lab) {
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    for plugin in ["termii", "provider_a"] {
        lab.name("plugin", &json!(plugin));
        let written = async {
            loop {
                looks.tick().await;
                let route = "GET /internal/v1/plugins/{plugin}/recordings";
                let listed = lab.send(route, "").await["data"]["docs"].clone();
                if listed.as_array().is_some_and(|calls| !calls.is_empty()) {
                    return listed;
                }
            }
        };
        let written = tokio::time::timeout(Duration::from_secs(60), written).await;
        for call in written.expect("a recording").as_array().into_iter().flatten() {
            lab.name("recording", &call["id"]);
            lab.send("GET /internal/v1/plugins/{plugin}/recordings/{recording}", "").await;
        }
    }
}
