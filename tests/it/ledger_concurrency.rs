//! Concurrent ledger transactions on PostgreSQL, beside folds, on connections that are killed.

use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, Executor};
use sqlx_postgres::PgConnection;
use tollhouse_platform::random::Random;

use crate::app::{Engine, TestApp, postgres};

const WORKERS: usize = 8;
const STEPS: usize = 80;
const CREDIT: i64 = 100;

/// A worker's connection, which [`kill`] may end at any time.
pub struct Worker {
    pub url: String,
    pub company: String,
    pub number: usize,
    pub connection: Option<PgConnection>,
    pub pids: Arc<Mutex<Vec<i32>>>,
}

impl Worker {
    pub async fn run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let done = self.connection().await?.execute(AssertSqlSafe(sql.to_owned())).await;
        if done.as_ref().is_err_and(|error| error.as_database_error().is_none()) {
            self.connection = None;
        }
        done.map(drop)
    }

    async fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut new = PgConnection::connect(&self.url).await?;
                let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut new).await?;
                self.pids.lock().expect("no panic")[self.number] = pid;
                new
            }
        };
        Ok(self.connection.insert(connection))
    }

    fn insert(&self, key: &str, from: &str, to: &str, minor: i64) -> String {
        format!(
            "INSERT INTO ledger_transactions (company_id, id, key, kind, created_at, debit, credit, currency, amount_minor)
             VALUES ('{}', '{key}', '{key}', 'test', 0, '{from}', '{to}', 'NGN', {minor})",
            self.company
        )
    }

    /// Demands more than is credited. Every second transaction has a step between debit and commit.
    async fn work(mut self, random: Random) {
        for step in 0..STEPS {
            let key = format!("{}-{step}", self.number);
            let sql = match random.up_to(9) {
                0..=5 => self.insert(&key, "wallet", "billing", 1 + random.up_to(2 * CREDIT)),
                6..=8 => self.insert(&key, "provider:paystack", "wallet", CREDIT),
                _ => format!("SELECT fold_ledger_account('{}', 'wallet', 'NGN', 3)", self.company),
            };
            let sql = match random.up_to(1) {
                0 => sql,
                _ => format!("BEGIN; {sql}; SELECT pg_sleep(0.002); COMMIT"),
            };
            if self.run(&sql).await.is_err() && self.run("ROLLBACK").await.is_err() {
                self.connection = None;
            }
        }
    }
}

/// Ends a random worker's connection, every few milliseconds. Returns how many were open.
pub async fn kill(url: String, pids: Arc<Mutex<Vec<i32>>>, random: Random) -> i64 {
    let mut connection = PgConnection::connect(&url).await.expect("the server");
    let last = pids.lock().expect("no panic").len() as i64 - 1;
    let mut killed = 0;
    for _ in 0..WORKERS * STEPS / 20 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let pid = {
            let pids = pids.lock().expect("no panic");
            pids[usize::try_from(random.up_to(last)).expect("an index")]
        };
        if pid == 0 {
            continue; // not connected yet
        }
        let sql = "SELECT pg_terminate_backend($1)";
        let ended: bool =
            sqlx::query_scalar(sql).bind(pid).fetch_one(&mut connection).await.expect("a result");
        killed += i64::from(ended);
    }
    killed
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_debits_credits_and_folds_on_killed_connections_never_overdraw_a_wallet() {
    let Some(server) = postgres() else { return };
    let app = TestApp::start(Engine::Postgres(server)).await;
    let path = format!("/companies/{}/wallet/credit", app.company.id);
    app.operator(Method::POST, &path, json!({ "amount": 5, "key": "first" })).await.data();
    let url = app.database.url.clone();
    let pids = Arc::new(Mutex::new(vec![0; WORKERS]));
    let seed = Random::system().up_to(i64::MAX).unsigned_abs();
    println!("seed {seed}");
    let workers = (0..WORKERS).map(|number| {
        let (url, company) = (url.clone(), app.company.id.to_string());
        let worker = Worker { url, company, number, connection: None, pids: pids.clone() };
        tokio::spawn(worker.work(Random::seeded(seed.wrapping_add(number as u64))))
    });
    let workers: Vec<_> = workers.collect();
    let killed = kill(url.clone(), pids, Random::seeded(seed)).await;
    for worker in workers {
        worker.await.expect("a worker that ends");
    }
    assert!(killed > 0, "no connection was killed");
    app.check_ledger().await;
    // Exactly what is left can be debited.
    let mut last = PgConnection::connect(&url).await.expect("the server");
    let sum = "SELECT CAST(SUM(amount_minor) AS BIGINT), COUNT(*) FILTER (WHERE amount_minor < 0)
               FROM ledger_entries WHERE account = 'wallet'";
    let (left, debits): (i64, i64) = sqlx::query_as(sum).fetch_one(&mut last).await.expect("a sum");
    assert!(left >= 0, "overdrawn: {left}");
    assert!(debits > 10, "only {debits} debits");
    let mut worker = Worker {
        url,
        company: app.company.id.to_string(),
        number: 0,
        connection: Some(last),
        pids: Arc::default(),
    };
    let more = worker.insert("more", "wallet", "billing", left + 1);
    let refused = worker.run(&more).await.expect_err("an overdraft").to_string();
    assert!(refused.contains("does not cover"), "{refused}");
    if left > 0 {
        let all = worker.insert("all", "wallet", "billing", left);
        worker.run(&all).await.expect("what is left");
    }
    assert_eq!(app.wallet().await["balance"], 0);
    app.finish().await;
}
