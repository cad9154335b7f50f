//! Plugins compared: every function is measured, by examples or without.

use serde_json::{Value, json};
use tollhouse::{
    bench::{self, Effort, Subject},
    plugins::Limits,
};

/// A short measurement, as `tollhouse bench --json` reports it.
async fn compare(components: &[&[u8]]) -> (Value, String) {
    let cache = format!("{}/plugin-cache", env!("CARGO_TARGET_TMPDIR"));
    let limits = Limits { compile_cache: Some(cache.into()), instances: 4, ..Limits::default() };
    let mut subjects = Vec::new();
    for wasm in components {
        subjects.push(Subject::load(wasm.to_vec(), limits.clone()).await.unwrap());
    }
    let effort = Effort { iterations: 10, concurrency: 2 };
    let report = bench::compare(subjects, effort).await.unwrap();
    (json!(report), report.to_string())
}

fn row<'r>(report: &'r Value, plugin: &str, function: &str) -> &'r Value {
    let mut rows = report["functions"].as_array().unwrap().iter();
    let row = rows.find(|row| row["plugin"] == plugin && row["function"] == function);
    row.unwrap_or_else(|| panic!("{function} of {plugin} is not in {report}"))
}

#[tokio::test]
async fn every_function_is_measured_as_far_as_the_examples_lead() {
    let (report, text) = compare(&[artifacts::PROVIDER_A, artifacts::SPROUT]).await;
    for (plugin, function, answer, runs) in [
        ("provider_a@1.0.0", "checkout.start", "ok", 2),
        ("provider_a@1.0.0", "verification.verify", "ok", 2),
        ("provider_a@1.0.0", "saved-card.charge", "ok", 2),
        ("provider_a@1.0.0", "saved-card.deauthorize", "ok", 2),
        ("provider_a@1.0.0", "direct-debit.debit", "ok", 2),
        ("provider_a@1.0.0", "refunds.start", "ok", 3),
        ("provider_a@1.0.0", "refunds.check", "ok", 2),
        ("provider_a@1.0.0", "notifications.parse", "ok", 1),
        ("sprout@1.0.0", "checkout.start", "unavailable", 2),
        ("sprout@1.0.0", "verification.verify", "unavailable", 2),
        ("sprout@1.0.0", "notifications.parse", "unauthentic", 1),
    ] {
        let row = row(&report, plugin, function);
        assert_eq!((&row["answer"], &row["runs"]), (&json!(answer), &json!(runs)), "{row}");
        for measured in ["p50_us", "p99_us", "cpu_us", "floor_p50_us", "ratio"] {
            assert!(row[measured].as_f64().unwrap() > 0.0, "{measured} of {row}");
        }
        assert!(row["peak_memory_kib"].as_u64().unwrap() > 0, "{row}");
        assert!(text.contains(function) && text.contains(plugin), "{text}");
    }
    assert_eq!(report["functions"].as_array().unwrap().len(), 11);
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn what_is_no_plugin_is_refused_with_a_reason() {
    let refused = Subject::load(b"hello".to_vec(), Limits::default()).await;
    assert!(refused.err().unwrap().contains("no WebAssembly"));
}
