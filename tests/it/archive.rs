//! Compatibility: components built for earlier hosts keep working.

use std::{fs, path::PathBuf};

use serde_json::json;
use tollhouse_plugins::Limits;
use tollhouse_tools::check;

use crate::{app::code_cache, plugins::try_install, sprout::repack};

const ARCHIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archive");

/// Returns the archived components with their paths.
fn archived() -> Vec<(PathBuf, Vec<u8>)> {
    let versions = fs::read_dir(ARCHIVE).unwrap().map(|entry| entry.unwrap().path());
    let files = versions
        .filter(|path| path.is_dir())
        .flat_map(|version| fs::read_dir(version).unwrap().map(|entry| entry.unwrap().path()));
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[tokio::test]
async fn every_archived_component_passes_the_conformance_check() {
    let components = archived();
    assert!(components.len() >= 3, "the archive is not empty");
    for (path, wasm) in components {
        let limits = Limits { code_cache: Some(code_cache()), ..Limits::default() };
        let report = check::check(wasm, limits).await.expect("an engine");
        assert_eq!(report.count().0, 0, "{}: {report}", path.display());
    }
}

both! {
    async fn an_archived_provider_takes_payments(app: TestApp) {
        let wasm = fs::read(format!("{ARCHIVE}/1.0.0/provider_a.wasm")).unwrap();
        let installed = app.install(&wasm).await;
        // The archived manifest does not bind its secret.
        let granted = installed["granted"].as_array().unwrap();
        assert!(granted.contains(&json!("secret:secret_key")), "{granted:?}");
        assert_eq!(installed["warnings"].as_array().map(Vec::len), Some(1));
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        let paid = app.fetch("order-1").await;
        assert_eq!((&paid["status"], &paid["payment_service"]), (&json!("success"), &json!("provider_a")));
        app.operator(
            reqwest::Method::POST,
            &format!("/companies/{}/payments/{}/refund", app.company.id, paid["id"].as_str().unwrap()),
            json!({}),
        )
        .await
        .data();
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        // The current version binds it, which needs no further grant.
        let next = repack(artifacts::PROVIDER_A, |manifest| manifest["version"] = json!("1.0.1"));
        let next = try_install(app, next, "").await.data().clone();
        assert_eq!((&next["state"], &next["warnings"]), (&json!("active"), &json!([])));
        app.initialize("order-2").await;
    }
}
