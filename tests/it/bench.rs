//! `plugin bench`: measures every function, with or without examples, and reports a table, JSON and
//! an HTML page.

use serde_json::{Value, json};
use tokio::process::Command;
use tollhouse_plugins::Limits;
use tollhouse_tools::bench::{self, BenchReport, BenchSubject, Effort};

use crate::{app::code_cache, sprout::repack};

async fn compare(components: &[&[u8]]) -> BenchReport {
    let limits = Limits { code_cache: Some(code_cache()), instances: 4, ..Limits::default() };
    let mut subjects = Vec::new();
    for wasm in components {
        subjects.push(BenchSubject::load(wasm.to_vec(), limits.clone()).await.unwrap());
    }
    let effort = Effort { iterations: 10, cold_starts: 1 };
    bench::compare(subjects, effort).await.unwrap()
}

/// Returns the row of a function. `plugin` has no digest.
fn row<'r>(report: &'r Value, plugin: &str, function: &str) -> &'r Value {
    let mut rows = report["functions"].as_array().unwrap().iter();
    let is_of = |row: &Value| row["plugin"].as_str().unwrap().split('+').next() == Some(plugin);
    let row = rows.find(|row| is_of(row) && row["function"] == function);
    row.unwrap_or_else(|| panic!("{function} of {plugin} is not in {report}"))
}

#[tokio::test]
async fn every_function_is_measured_with_or_without_examples() {
    let gateways = [artifacts::AFRICASTALKING, artifacts::TERMII, artifacts::TWILIO];
    let without_examples = repack(artifacts::SPROUT, |_| ());
    let providers = [artifacts::PROVIDER_A, &without_examples];
    let report = compare(&[&providers[..], &gateways].concat()).await;
    let (summary, text) = (report.to_string(), report.detailed());
    let report = json!(report);
    for (plugin, function, response, runs) in [
        ("provider_a@1.0.0", "checkout.start", "ok", 2),
        ("provider_a@1.0.0", "verification.verify", "ok", 2),
        ("provider_a@1.0.0", "saved-card.charge", "ok", 2),
        ("provider_a@1.0.0", "saved-card.deauthorize", "ok", 2),
        ("provider_a@1.0.0", "direct-debit.debit", "ok", 2),
        ("provider_a@1.0.0", "partial-debits.charge-card", "ok", 2),
        ("provider_a@1.0.0", "declines.reason", "ok", 1),
        ("provider_a@1.0.0", "mandates.begin", "ok", 2),
        ("provider_a@1.0.0", "mandates.cancel", "ok", 3),
        ("provider_a@1.0.0", "refunds.start", "ok", 3),
        ("provider_a@1.0.0", "refunds.check", "ok", 2),
        ("provider_a@1.0.0", "partial-refunds.start", "ok", 3),
        ("provider_a@1.0.0", "notifications.parse", "ok", 1),
        ("sprout@1.0.0", "checkout.start", "unavailable", 2),
        ("sprout@1.0.0", "verification.verify", "unavailable", 2),
        ("sprout@1.0.0", "notifications.parse", "unauthentic", 1),
        ("africastalking@1.0.0", "sms.send", "ok", 2),
        ("termii@1.0.0", "sms.send", "ok", 2),
        ("twilio@1.0.0", "sms.send", "ok", 2),
    ] {
        let row = row(&report, plugin, function);
        assert_eq!((&row["answer"], &row["runs"]), (&json!(response), &json!(runs)), "{row}");
        assert_measured(row);
        assert!(text.contains(function) && text.contains(plugin), "{text}");
        let is_line =
            |line: &&str| line.starts_with(plugin) && line.contains(&format!(" {function} "));
        assert_eq!(summary.lines().filter(is_line).count(), 1, "{summary}");
    }
    assert_eq!(report["functions"].as_array().unwrap().len(), 26);
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
    let comparisons = report["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 5, "one per function of several plugins: {comparisons:?}");
    for component in report["components"].as_array().unwrap() {
        for cold in ["cold_compiled", "cold_cached"] {
            assert!(component[cold]["median_ms"].as_f64().unwrap() > 0.0, "{cold} of {component}");
        }
        assert!(component["size_kib"].as_u64().unwrap() > 0, "{component}");
        assert_eq!(component["idle_kib"].is_u64(), cfg!(target_os = "linux"), "{component}");
    }
}

/// Functions whose calls need the data of an earlier one: a session, a refund or an account.
#[tokio::test]
async fn functions_that_continue_an_earlier_call_are_measured() {
    let report = json!(compare(&[artifacts::MPESA, artifacts::PROVIDER_C]).await);
    for (plugin, functions) in [
        ("mpesa@1.0.0", &["sessions.verify", "session-refunds.check", "session-refunds.receive"]),
        (
            "provider_c@1.0.0",
            &[
                "virtual-accounts.find-transfer", "virtual-accounts.close",
                "account-enquiry.resolve",
            ],
        ),
    ] {
        for function in functions {
            let row = row(&report, plugin, function);
            assert_eq!(row["answer"], "ok", "{row}");
            assert_measured(row);
        }
    }
}

/// Asserts that every measurement is present. The values depend on the machine.
#[track_caller]
fn assert_measured(row: &Value) {
    for way in ["fresh", "warm", "baseline", "native"] {
        let percentiles = ["p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"];
        let latencies = percentiles.map(|name| row[way][name].as_f64().unwrap());
        assert!(latencies[0] > 0.0 && latencies.is_sorted(), "{way} of {row}");
    }
    for measured in ["cpu_us", "ratio", "peak_memory_kib"] {
        assert!(row[measured].as_f64().unwrap() > 0.0, "{measured} of {row}");
    }
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    let saturated = &row["saturated"];
    assert!(saturated["at_once"].as_u64().unwrap() >= 2 * cores, "{row}");
    assert!(saturated["per_second"].as_f64().unwrap() > 0.0, "{row}");
}

#[tokio::test]
async fn the_html_page_is_complete_and_self_contained() {
    let sprout = repack(artifacts::SPROUT, |manifest| manifest["version"] = json!("1.0.1"));
    let report = compare(&[artifacts::SPROUT, &sprout, artifacts::TERMII]).await;
    let (page, report) = (report.page(), json!(report));
    for component in report["components"].as_array().unwrap() {
        let plugin = component["plugin"].as_str().unwrap();
        assert!(page.matches(plugin).count() > 2, "{plugin} is not in the page");
    }
    for row in report["functions"].as_array().unwrap() {
        let function = row["function"].as_str().unwrap();
        assert_eq!(page.matches(&format!("\">{function}</h2>")).count(), 1, "{function}");
        let plugin = row["plugin"].as_str().unwrap();
        assert!(page.contains(&format!("{plugin}: median ")), "{plugin}");
    }
    assert!(
        page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">")
            && page.contains("<title>Plugins compared")
    );
    // Each plot has a text alternative and a table of its values.
    let count = |what: &str| page.matches(what).count();
    assert_eq!(count("<svg viewBox=\"0 0 560"), count(" role=\"img\" aria-label=\""));
    assert_eq!((count("<table>"), count("<path class=\"fresh\" d=\"M52 ")), (5, 7));
    assert!(page.contains("prefers-color-scheme: dark"));
    for foreign in
        ["http:", "https:", "url(", "@import", "src=", "href=", "<script", "<link", "NaN", "inf"]
    {
        assert!(!page.contains(foreign), "{foreign} is in the page");
    }
}

#[tokio::test]
async fn a_file_that_is_not_webassembly_is_rejected_with_a_reason() {
    let refused = BenchSubject::load(b"hello".to_vec(), Limits::default()).await;
    assert!(refused.err().unwrap().contains("not WebAssembly"));
}

/// Runs `tollhouse plugin bench` and returns its exit code and output.
async fn bench_command(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
    let ended = command.args(["plugin", "bench"]).args(arguments).output().await.unwrap();
    let output = [ended.stdout, ended.stderr].concat();
    (ended.status.code(), String::from_utf8(output).unwrap())
}

both! {
    async fn an_installed_plugin_is_compared_with_a_file(app: TestApp) {
        app.install(artifacts::SPROUT).await;
        let file = app.database.dir.path().join("termii.wasm");
        std::fs::write(&file, artifacts::TERMII).unwrap();
        let (file, database) = (file.display().to_string(), &*app.database.url);
        let few = ["--iterations", "5", "--cold-starts", "1", "--database", database];
        let run = async |arguments: &[&str]| bench_command(&[&few, arguments].concat()).await;

        let (code, output) = run(&["--installed", "sprout"]).await;
        let is_refused = output.contains("sprout: the component is not signed");
        assert!(code == Some(1) && is_refused, "{output}");
        let compared = ["--installed", "sprout", "--plugin-unsigned", &file, "--json"];
        let (code, output) = run(&compared).await;
        let report: Value = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}"));
        let measured = row(&report, "sprout@1.0.0", "checkout.start");
        assert_eq!((code, &measured["runs"]), (Some(0), &json!(2)));
        row(&report, "termii@1.0.0", "sms.send");

        let (code, output) = run(&["--installed", "nobody"]).await;
        assert_eq!((code, &*output), (Some(1), "tollhouse: no plugin nobody is installed\n"));
        let (code, output) = run(&[]).await;
        assert!(code == Some(2) && output.contains("<FILE|--installed <NAME>>"), "{output}");
    }
}

#[tokio::test]
async fn a_missing_database_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/none.db", folder.path().display());
    let (code, output) = bench_command(&["--installed", "provider_a", "--database", &url]).await;
    assert_eq!((code, output), (Some(3), format!("tollhouse: there is no database at {url}\n")));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn unusable_files_are_reported_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (good, bad, page) = (path("termii.wasm"), path("bad.wasm"), path("compared.html"));
    std::fs::write(&good, artifacts::TERMII).unwrap();
    std::fs::write(&bad, "once upon a time").unwrap();

    let (code, output) = bench_command(&[&good, &path("none.wasm")]).await;
    assert!(
        code == Some(2) && output.starts_with(&format!("tollhouse: {}: ", path("none.wasm"))),
        "{output}"
    );
    let (code, output) = bench_command(&[&good, &bad, "--html", &page]).await;
    assert!(
        code == Some(1)
            && output.starts_with(&format!("tollhouse: {bad}: the file is not WebAssembly")),
        "{output}"
    );
    assert!(!std::path::Path::new(&page).exists());
    let (code, output) = bench_command(&[&good, "--html", &path("no/page.html")]).await;
    assert!(
        code == Some(2) && output.starts_with(&format!("tollhouse: {}: ", path("no/page.html"))),
        "{output}"
    );

    let few = ["--iterations", "5", "--cold-starts", "1"];
    let (code, output) = bench_command(&[&few[..], &[&good, "--html", &page]].concat()).await;
    assert!(code == Some(0) && output.contains(" sms.send "), "{output}");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.ends_with("</html>") && page.contains("termii@1.0.0"), "{page}");
}
