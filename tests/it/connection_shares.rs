//! Connections to the database: one company leaves others their share.

use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::{
    app::{Engine, TestApp, postgres},
    codes::{credit, email_request, set_prices},
    ledger::ForeignConnection,
    telemetry::{metric_value, scrape},
};

const CONNECTIONS: f64 = 4.0;
/// Requests of the company that waits for its own locks.
const WAITING: usize = 12;

/// Another program locks the wallet of one company, whose requests then wait in the database.
#[tokio::test]
async fn requests_that_wait_for_locks_leave_connections_to_other_companies() {
    let Some(server) = postgres() else { return };
    let flags = [&*format!("--database-connections={CONNECTIONS}")];
    let app = TestApp::start_with(Engine::Postgres(server), &flags).await;
    set_prices(&app).await;
    credit(&app, 10_000, "first").await;
    let other = app.new_company("Other").await;
    let mut foreign = ForeignConnection::connect(&app.database.url).await;
    let lock = format!(
        "BEGIN; SELECT FROM ledger_balances WHERE company_id = '{}' FOR UPDATE",
        app.company.id
    );
    foreign.run(&lock).await.expect("a lock");
    let sends = (0..WAITING).map(|n| {
        app.post("/otp/send", email_request(json!({ "identifier": format!("login-{n}") })))
    });
    let waiting = join_all(sends);
    let others = async {
        let used = || async {
            let page = scrape(&app).await;
            metric_value(&page, "tollhouse_store_connections{state=\"used\"}").unwrap_or_default()
        };
        while used().await < CONNECTIONS / 2.0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for n in 0..5 {
            let order = Some(app.order(&format!("order-{n}")));
            let paid = app.request(&other, Method::POST, "/payment/initialize", order).await;
            assert_eq!(paid.data()["status"], "pending");
        }
        assert!(used().await >= CONNECTIONS / 2.0, "the first company does not wait any more");
        foreign.run("ROLLBACK").await.expect("the end of the lock");
    };
    let (replies, ()) = tokio::join!(waiting, others);
    // Those that waited too long were refused.
    assert!(replies.iter().all(|reply| [200, 503].contains(&reply.status.as_u16())));
    assert!(replies.iter().any(|reply| reply.status == 200), "none ran after the lock ended");
    app.run_until_idle().await;
    app.finish().await;
}
