//! The dashboard, the alert rules and the operators' handbook name metrics that exist, and the
//! handbook names them all.

use std::{collections::BTreeSet, io::Write, path::Path, process::Command};

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::operations::monitor::Monitor;
use tollhouse_sandbox::{Fault, FaultKind};

use super::scrape;
use crate::{
    app::{Engine, TestApp},
    codes::email_request,
    unruly::{initialize_with_narration, install_unruly},
};

/// Suffixes that series add to the name of their family.
const SUFFIXES: [&str; 5] = ["_total", "_bucket", "_count", "_sum", "_info"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Databases and roles in the handbook's examples, whose names look like those of metrics.
const DATABASE_NAMES: [&str; 4] =
    ["tollhouse_db", "tollhouse_drill", "tollhouse_host", "tollhouse_owner"];

/// All names of metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("tollhouse_") || word.starts_with("process_"));
    let whole = ours.filter(|word| !word.ends_with('_') && !DATABASE_NAMES.contains(word));
    whole.map(str::to_owned).collect()
}

/// Names of the metric families in a scrape.
fn families(page: &str) -> BTreeSet<String> {
    let declared = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    declared.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The names of a scrape's series.
fn series(page: &str) -> BTreeSet<String> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// Scrapes a host on which every counted event has happened.
async fn scrape_after_all_events() -> String {
    let app = TestApp::start(Engine::Sqlite).await;
    app.paid_payment("order-1").await;
    let payment = app.initialize("order-2").await;
    app.complete(&payment, "success").await;
    assert!(app.simulators.paystack().tamper("order-2", 100, "NGN"));
    app.simulators.faults().push(Fault::new("events", FaultKind::Error500).times(1));
    app.run_until_idle().await;
    app.post("/otp/send", email_request(json!({}))).await;
    app.run_until_idle().await;
    install_unruly(&app).await;
    initialize_with_narration(&app, "order-3", "cached").await.data();
    app.operator(Method::GET, "/plugins", Value::Null).await.data();
    Monitor::default().poll(&app.app).await;
    app.app.server.metrics.listeners.set_certificate_expiry("public", app.app.clock.now());
    app.app.server.metrics.listeners.record_refused("public");
    let page = scrape(&app).await;
    app.finish().await;
    page
}

#[tokio::test]
async fn documents_name_all_metrics_and_only_existing_ones() {
    let page = scrape_after_all_events().await;
    let (families, series) = (families(&page), series(&page));
    assert!(families.len() > 40, "{families:?}");
    for file in ["deploy/monitoring/grafana.json", "deploy/monitoring/alerts.yml"] {
        let used = named(&read(file));
        assert!(used.len() > 10, "{file} names {used:?}");
        let unknown: Vec<_> = used.difference(&series).collect();
        assert!(unknown.is_empty(), "{file} names unknown metrics: {unknown:?}");
    }
    // A family is named by itself, or by one of its series.
    let handbook = named(&read("docs/OPERATING.md"));
    let family = |name: &String| {
        let cut = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
        families.get(name).or_else(|| families.get(cut?)).cloned()
    };
    let unknown: Vec<_> = handbook.iter().filter(|name| family(name).is_none()).collect();
    assert!(unknown.is_empty(), "docs/OPERATING.md names unknown metrics: {unknown:?}");
    let documented: BTreeSet<String> = handbook.iter().filter_map(family).collect();
    let undocumented: Vec<_> = families.difference(&documented).collect();
    assert!(undocumented.is_empty(), "docs/OPERATING.md does not name {undocumented:?}");
}

#[test]
fn every_alert_has_a_section_in_the_handbook() {
    let rules = read("deploy/monitoring/alerts.yml");
    let handbook = read("docs/OPERATING.md");
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() >= 10, "only {} alerts", alerts.len());
    for alert in alerts {
        let name = alert.lines().next().unwrap_or_default();
        for part in ["expr:", "severity:", "summary:", "description:", "runbook_url:"] {
            assert!(alert.contains(part), "{name} has no {part}");
        }
        let link = alert.lines().find_map(|line| line.trim().strip_prefix("runbook_url: "));
        let anchor = link.and_then(|link| link.rsplit_once('#')).map(|(_, anchor)| anchor);
        let heading = format!("### {name}\n");
        assert!(handbook.contains(&heading), "docs/OPERATING.md has no section {name}");
        assert_eq!(anchor, Some(&*name.to_lowercase()), "the link of {name}");
    }
}

#[test]
fn the_dashboard_is_complete() {
    let dashboard: Value =
        serde_json::from_str(&read("deploy/monitoring/grafana.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.len() > 20);
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(
            ids.insert(panel["id"].as_u64().expect("an id")),
            "two panels have one id: {panel}"
        );
        if panel["type"] == "row" {
            continue;
        }
        let title = panel["title"].as_str().expect("a title");
        assert!(
            !panel["description"].as_str().unwrap_or_default().is_empty(),
            "{title} is not described"
        );
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
        let targets = panel["targets"].as_array().expect("queries");
        assert!(
            targets.iter().all(|target| target["expr"].is_string()) && !targets.is_empty(),
            "{title}"
        );
    }
}

/// Skipped if promtool is not installed.
#[test]
fn promtool_accepts_the_alert_rules() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring/alerts.yml");
    match Command::new("promtool").args(["check", "rules"]).arg(rules).output() {
        Ok(checked) => {
            let output =
                String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
            assert!(checked.status.success(), "{output}");
        }
        Err(_) => {
            let text =
                "SKIPPED: promtool is not installed, so Prometheus has not read the alert rules\n";
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }
}
