//! SQLite as a server's database: many readers, one writer with group commit.
//!
//! A commit costs a sync of the disk, some milliseconds, and SQLite has one writer. So
//! the writer is a thread with a queue: the writes that wait together run one after the
//! other, each under its own savepoint, and are committed together. Each caller hears
//! back after the commit, as if it had been alone.

use std::{panic::AssertUnwindSafe, str::FromStr, sync::Arc, time::Duration};

use futures::{FutureExt, future::LocalBoxFuture};
use sqlx::{
    migrate::Migrator,
    sqlite::{
        SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
    },
};
use tokio::sync::{Notify, mpsc, oneshot};

use super::{
    Result,
    tx::{Connection, Tx},
};

/// The most writes that share a commit, and the most that wait before `write` holds its callers.
const GROUP: usize = 64;
const QUEUE: usize = 1024;

/// A write on its way. What it leaves is called after the commit, or dropped without one.
type Job = Box<dyn for<'t> FnOnce(&'t mut Tx) -> LocalBoxFuture<'t, Result<Answer>> + Send>;
type Answer = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
pub struct Sqlite {
    readers: SqlitePool,
    jobs: mpsc::Sender<Job>,
}

impl Sqlite {
    pub(super) async fn open(
        url: &str,
        connections: u32,
        schema: Migrator,
        jobs_woken: Arc<Notify>,
    ) -> Result<Sqlite> {
        let options = SqliteConnectOptions::from_str(url)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full) // what was answered survives a power cut
            .busy_timeout(Duration::from_secs(5));
        let writer = SqlitePoolOptions::new().max_connections(1);
        let writer = writer.connect_with(options.clone()).await?;
        schema.run(&writer).await?;
        let readers = SqlitePoolOptions::new().max_connections(connections);
        let readers = readers.connect_with(options.read_only(true)).await?;

        let (jobs, queue) = mpsc::channel(QUEUE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || runtime.block_on(commit_in_groups(writer, queue, jobs_woken)))?;
        Ok(Sqlite { readers, jobs })
    }

    pub(super) async fn begin_read(&self) -> Result<Tx> {
        Ok(Tx::new(Connection::Sqlite(self.readers.begin().await?)))
    }

    pub(super) async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<sqlx::Error> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |tx| {
            Box::pin(async move {
                tx.sql("SAVEPOINT job").run().await?;
                let done = AssertUnwindSafe(work(tx)).catch_unwind().await;
                if !matches!(done, Ok(Ok(_))) {
                    tx.sql("ROLLBACK TO job").run().await?;
                }
                tx.sql("RELEASE job").run().await?;
                // Not sent: the caller gave up waiting, and the write stands.
                Ok(Box::new(move || drop(answer.send(done))) as Answer)
            })
        });
        self.jobs.send(job).await.map_err(|_| sqlx::Error::WorkerCrashed)?;
        match answered.await.map_err(|_| sqlx::Error::WorkerCrashed)? {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic), // in the caller's task, not in ours
        }
    }
}

async fn commit_in_groups(
    writer: SqlitePool,
    mut queue: mpsc::Receiver<Job>,
    jobs_woken: Arc<Notify>,
) {
    while let Some(job) = queue.recv().await {
        match commit_group(&writer, job, &mut queue).await {
            Ok(true) => jobs_woken.notify_waiters(),
            Ok(false) => {}
            // Its answers were dropped: so its callers know that it was not confirmed.
            Err(error) => tracing::error!(%error, "a group of writes was not committed"),
        }
    }
}

/// Whether any of the group woke jobs.
async fn commit_group(
    writer: &SqlitePool,
    first: Job,
    queue: &mut mpsc::Receiver<Job>,
) -> Result<bool> {
    let mut tx = Tx::new(Connection::Sqlite(writer.begin_with("BEGIN IMMEDIATE").await?));
    let mut answers = vec![first(&mut tx).await?];
    while answers.len() < GROUP
        && let Ok(job) = queue.try_recv()
    {
        answers.push(job(&mut tx).await?);
    }
    let woke_jobs = tx.commit().await?;
    answers.into_iter().for_each(|answer| answer());
    Ok(woke_jobs)
}
