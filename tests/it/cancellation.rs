//! Dropped transactions on PostgreSQL: a connection is used again only after its transaction has
//! ended.

use std::time::Duration;

use tokio::time::timeout;
use tollhouse_platform::{
    background::jobs,
    clock::Timestamp,
    store::{self, Store, Tx},
    values::id::CompanyId,
};

use crate::{
    app::{Engine, TestApp, postgres},
    ledger::ForeignConnection,
};

/// Drops a transaction after each of these times, in microseconds.
const STEPS: std::ops::Range<u64> = 0..80;
const STEP_US: u64 = 20;

async fn read(store: &Store) -> store::Result<i64> {
    store.read(async |tx: &mut Tx| tx.sql("SELECT COUNT(*) FROM jobs").value().await).await
}

/// Defers two statements of one kind, which are sent one after the other.
async fn write_twice(store: &Store, company: CompanyId) -> store::Result<()> {
    let write = async move |tx: &mut Tx| {
        for subject in ["dropped-1", "dropped-2"] {
            jobs::enqueue(tx, &company, "none", subject, Timestamp(i64::MAX)).await?;
        }
        Ok(())
    };
    store.write(write).await
}

#[tokio::test]
async fn a_dropped_transaction_affects_no_later_one() {
    let Some(server) = postgres() else { return };
    let app = TestApp::start_with(Engine::Postgres(server), &["--database-connections=1"]).await;
    let (store, company) = (&app.app.store, app.company.id.clone());
    let mut other = ForeignConnection::connect(&app.database.url).await;
    let (mut dropped, mut kept) = (0, 0);
    for step in STEPS {
        let limit = Duration::from_micros(step * STEP_US);
        dropped += i32::from(timeout(limit, read(store)).await.is_err());
        dropped += i32::from(timeout(limit, write_twice(store, company.clone())).await.is_err());
        let (company, subject) = (company.clone(), format!("kept-{step}"));
        let write = async move |tx: &mut Tx| -> store::Result<()> {
            jobs::enqueue(tx, &company, "none", &subject, Timestamp(i64::MAX)).await
        };
        store.write(write).await.expect("a write");
        kept += 1;
        let seen = other.select("SELECT COUNT(*) FROM jobs WHERE subject LIKE 'kept-%'").await;
        assert_eq!(seen, kept, "the write after {limit:?} is not committed");
    }
    assert!(dropped > 2, "only {dropped} transactions were dropped");
    other.run("DELETE FROM jobs WHERE kind = 'none'").await.expect("no jobs");
    app.finish().await;
}
