//! Dropped transactions on PostgreSQL: a connection is used again only after its transaction has
//! ended.

use std::{future::poll_fn, pin::pin, task::Poll};

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

/// Number of transactions to drop, and of attempts to do so: a fast server may respond before the
/// client has to wait.
const DROPS: usize = 12;
const MAX_ATTEMPTS: usize = 1_000;
/// Transactions are dropped when they wait after fewer than this number of earlier waits.
const MAX_WAITS: usize = 4;

/// Returns whether the future was dropped, because it was pending once more than `waits` times.
async fn is_dropped(waits: usize, future: impl Future) -> bool {
    let (mut future, mut left) = (pin!(future), waits);
    poll_fn(|context| match (future.as_mut().poll(context), left) {
        (Poll::Ready(_), _) => Poll::Ready(false),
        (Poll::Pending, 0) => Poll::Ready(true),
        (Poll::Pending, _) => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

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
    for attempt in 0..MAX_ATTEMPTS {
        let waits = attempt % MAX_WAITS;
        dropped += usize::from(is_dropped(waits, read(store)).await);
        dropped += usize::from(is_dropped(waits, write_twice(store, company.clone())).await);
        let (company, subject) = (company.clone(), format!("kept-{attempt}"));
        let write = async move |tx: &mut Tx| -> store::Result<()> {
            jobs::enqueue(tx, &company, "none", &subject, Timestamp(i64::MAX)).await
        };
        store.write(write).await.expect("a write");
        kept += 1;
        let seen = other.select("SELECT COUNT(*) FROM jobs WHERE subject LIKE 'kept-%'").await;
        assert_eq!(seen, kept, "the write after {waits} waits is not committed");
        if dropped >= DROPS {
            break;
        }
    }
    assert!(dropped >= DROPS, "only {dropped} transactions were dropped");
    other.run("DELETE FROM jobs WHERE kind = 'none'").await.expect("no jobs");
    app.finish().await;
}
