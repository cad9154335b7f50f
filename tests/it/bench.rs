//! Plugins compared: every function is measured, by examples or without.

use serde_json::{Value, json};
use tokio::process::Command;
use tollhouse::{
    bench::{self, Effort, Subject},
    plugins::Limits,
};

use crate::sprout::repack;

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

/// `plugin` without its digest.
fn row<'r>(report: &'r Value, plugin: &str, function: &str) -> &'r Value {
    let mut rows = report["functions"].as_array().unwrap().iter();
    let is_of = |row: &Value| row["plugin"].as_str().unwrap().split('+').next() == Some(plugin);
    let row = rows.find(|row| is_of(row) && row["function"] == function);
    row.unwrap_or_else(|| panic!("{function} of {plugin} is not in {report}"))
}

#[tokio::test]
async fn every_function_is_measured_as_far_as_the_examples_lead() {
    let gateways = [artifacts::AFRICASTALKING, artifacts::TERMII, artifacts::TWILIO];
    let without_examples = repack(artifacts::SPROUT, |_| ());
    let providers = [artifacts::PROVIDER_A, &without_examples];
    let (report, text) = compare(&[&providers[..], &gateways].concat()).await;
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
        ("africastalking@1.0.0", "sms.send", "ok", 2),
        ("termii@1.0.0", "sms.send", "ok", 2),
        ("twilio@1.0.0", "sms.send", "ok", 2),
    ] {
        let row = row(&report, plugin, function);
        assert_eq!((&row["answer"], &row["runs"]), (&json!(answer), &json!(runs)), "{row}");
        for measured in ["p50_us", "p99_us", "cpu_us", "floor_p50_us", "ratio"] {
            assert!(row[measured].as_f64().unwrap() > 0.0, "{measured} of {row}");
        }
        assert!(row["peak_memory_kib"].as_u64().unwrap() > 0, "{row}");
        assert!(text.contains(function) && text.contains(plugin), "{text}");
    }
    assert_eq!(report["functions"].as_array().unwrap().len(), 14);
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn what_is_no_plugin_is_refused_with_a_reason() {
    let refused = Subject::load(b"hello".to_vec(), Limits::default()).await;
    assert!(refused.err().unwrap().contains("no WebAssembly"));
}

/// Runs `tollhouse bench …`: its exit code, and what it said.
async fn bench_command(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
    let ended = command.arg("bench").args(arguments).output().await.unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    (ended.status.code(), String::from_utf8(said).unwrap())
}

both! {
    async fn what_serves_is_compared_with_a_file(app: TestApp) {
        let file = app.database.dir.path().join("sprout.wasm");
        std::fs::write(&file, artifacts::SPROUT).unwrap();
        let (file, database) = (file.display().to_string(), &*app.database.url);
        let few = ["--iterations", "5", "--database", database];
        let run = async |arguments: &[&str]| bench_command(&[&few, arguments].concat()).await;

        let (code, said) = run(&["--plugin", "provider_a", "--file", &file, "--json"]).await;
        let report: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        assert_eq!((code, &row(&report, "provider_a@1.0.0", "checkout.start")["runs"]), (Some(0), &json!(2)));
        row(&report, "sprout@1.0.0", "checkout.start");

        let (code, said) = run(&["--plugin", "nobody"]).await;
        assert_eq!((code, &*said), (Some(1), "tollhouse: no plugin nobody is installed\n"));
        let (code, said) = run(&[]).await;
        assert!(code == Some(2) && said.contains("--plugin <NAME>|--file <FILE>"), "{said}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/none.db", folder.path().display());
    let (code, said) = bench_command(&["--plugin", "provider_a", "--database", &url]).await;
    assert_eq!((code, said), (Some(3), format!("tollhouse: there is no database at {url}\n")));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
