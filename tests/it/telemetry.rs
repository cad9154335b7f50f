//! Metrics, traces and logs, and the documents that name them.

mod documents;
mod ledger;
pub mod logs;
pub mod metrics;
pub mod traces;

use reqwest::StatusCode;
use tollhouse_platform::store;

use crate::app::TestApp;

/// All metrics of a host, as text.
pub async fn scrape(app: &TestApp) -> String {
    let response = app.client.get(format!("{}/metrics", app.internal)).send().await;
    let response = response.expect("a response");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        response.headers()["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    response.text().await.expect("text")
}

/// The value of one series, by its name with all its labels in their order.
pub fn metric_value(page: &str, series: &str) -> Option<f64> {
    let rest = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    Some(rest.split(' ').next()?.parse().expect("a number"))
}

/// Runs a statement that no host would run.
pub async fn execute_sql(app: &TestApp, sql: &'static str) {
    let done = app.app.store.write(async move |tx| tx.sql(sql).run().await.map(drop)).await;
    let done: store::Result<()> = done;
    done.expect("a statement that runs");
}
