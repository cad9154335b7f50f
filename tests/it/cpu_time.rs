//! CPU time of a call contains the host's work on its behalf.

use std::time::Duration;

use tollhouse_plugins::{Call, PluginHandle};
use tollhouse_tools::watch_usage;

use crate::{
    app::{Engine, TestApp, postgres},
    unruly::{arguments, failure_reason},
};

/// Returns the CPU time of a call with this narration.
async fn used_cpu(app: &TestApp, narration: &str) -> Duration {
    let plugin = app.app.plugins.provider("unruly", &app.company.id).expect("an active plugin");
    let (plugin, used) = watch_usage(PluginHandle::clone(&plugin));
    let (credentials, order) = arguments("http://127.0.0.1:1", narration);
    assert!(plugin.execute(&credentials, &Call::StartCheckout(order)).await.is_err());
    used.borrow().cpu
}

#[tokio::test]
async fn the_search_of_a_request_for_secrets_counts_as_cpu_time_of_the_call() {
    let app = TestApp::start_with(Engine::Sqlite, &[]).await;
    app.install(artifacts::UNRULY).await;
    let like_placeholders = "vault-%20".repeat(100_000);
    let plain = "x".repeat(like_placeholders.len());
    let [plain, searched] = [plain, like_placeholders].map(|text| format!("say {text}"));
    let (plain, searched) = (used_cpu(&app, &plain).await, used_cpu(&app, &searched).await);
    assert!(searched > plain * 2, "{searched:?}, without placeholders {plain:?}");
    app.finish().await;
}

/// CPU time of host functions counts for the call, and their input and output are bounded.
async fn host_functions_are_bounded(engine: Engine) {
    let app = TestApp::start_with(engine, &["--plugin-cpu-ms=100"]).await;
    app.install(artifacts::UNRULY).await;
    let exhausted = "the plugin exceeded its CPU budget";
    for narration in ["host-loop-random 65536", "host-loop-hmac 1048576", "host-loop-log 8000000"] {
        assert_eq!(failure_reason(&app, narration).await, exhausted, "{narration}");
    }
    for (narration, bound) in [
        ("host-loop-random 16777216", "exceeds limit 65536"),
        ("host-loop-hmac 1048577", "accept at most 1 MiB"),
    ] {
        let reason = failure_reason(&app, narration).await;
        assert!(reason.contains(bound), "{narration}: {reason}");
    }
    app.finish().await;
}

#[tokio::test]
async fn host_functions_are_bounded_on_sqlite() {
    host_functions_are_bounded(Engine::Sqlite).await;
}

#[tokio::test]
async fn host_functions_are_bounded_on_postgres() {
    let Some(server) = postgres() else { return };
    host_functions_are_bounded(Engine::Postgres(server)).await;
}
