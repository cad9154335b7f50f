//! SQLite for a server: many readers, one writer with group commit.
//!
//! A commit syncs the disk, which takes milliseconds, and SQLite has one writer. Therefore a writer
//! thread takes queued writes, runs them one after the other, each under its own savepoint, and
//! commits them together. Callers get their results after the commit. If a group cannot be
//! committed, each of its writes runs again alone.
//!
//! No statement is handed to another thread: those of writes run on the writer's thread, and those
//! of reads on the reader's.

pub mod backup;
pub mod file;
pub mod local;
mod never;
pub mod types;

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    pin::pin,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::AcqRel},
    },
    thread,
    time::{Duration, Instant},
};

use deadpool::managed::{Manager, Metrics, RecycleResult};
use futures::{FutureExt, future::LocalBoxFuture};
use sqlx::{Connection as _, migrate::Migrator};
use sqlx_sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{Notify, mpsc, oneshot},
    task,
    time::{sleep, timeout},
};
use tracing::{Instrument, Span, info_span};

use self::{
    file::DatabaseLock,
    local::{Alarm, LocalConnection},
};
use super::{
    Error, Result, StoreLimits,
    UnavailableReason::{Locked, Unreachable, WriterBusy},
    WRITE,
    pool::{Pool, PooledConnection},
    timed_out,
    tx::{Connection, Mode, Tx},
};
use crate::{limits::owner::OwnerLimiter, store::metrics::StoreMetrics, values::id::Owner};

/// Maximum number of writes per commit, and the time within which they may join it.
const MAX_GROUP_SIZE: usize = 64;
const MAX_GROUP_TIME: Duration = Duration::from_millis(100);
/// Maximum number of queued writes; beyond it `write` waits.
const MAX_QUEUED_WRITES: usize = 1024;
/// Delay before the file is reopened after a conflict with another starting host.
const REOPEN_DELAY: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub(super) struct Sqlite {
    pub(super) readers: Pool<SqliteManager>,
    writes: mpsc::Sender<Box<dyn QueuedWrite>>,
    /// Limits the queued writes of each owner.
    shares: OwnerLimiter<Owner>,
    limits: StoreLimits,
    metrics: StoreMetrics,
    _in_use: Arc<DatabaseLock>,
}

impl Sqlite {
    pub(super) async fn open(
        url: &str,
        limits: StoreLimits,
        schema: &Migrator,
        worker_wakeup: Arc<Notify>,
        metrics: StoreMetrics,
    ) -> Result<Sqlite> {
        let options = SqliteConnectOptions::from_str(url)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(limits.acquire_timeout);
        let in_use = file::open_as_host(options.get_filename())?;
        open_with_retry(limits.acquire_timeout, async || {
            let mut connection = Box::pin(SqliteConnection::connect_with(&options)).await?;
            schema.run(&mut connection).await?;
            Ok(connection.close().await?)
        })
        .await?;
        let connections = |is_writer| SqliteManager {
            file: options.get_filename().into(),
            is_writer,
            busy_timeout: limits.acquire_timeout,
        };
        // Longer, so that SQLite reports a locked file before the pool times out.
        let writer = Pool::new(connections(true), 1, 2 * limits.acquire_timeout);
        drop(writer.get().await?);
        let readers = Pool::new(connections(false), limits.connections, limits.acquire_timeout);
        drop(readers.get().await?);

        let (writes, queue) = mpsc::channel(MAX_QUEUED_WRITES);
        let in_use = Arc::new(in_use);
        let mut writer = Writer {
            connection: writer,
            _in_use: in_use.clone(),
            queue,
            jobs_woken: worker_wakeup,
            metrics: metrics.clone(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(sqlx::Error::Io)?;
        thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || {
                // After a panic, the outcome of the write is unknown, and the writer continues.
                let mut run = || catch_unwind(AssertUnwindSafe(|| runtime.block_on(writer.run())));
                while run().is_err() {
                    tracing::error!("database writer is restarted after a panic");
                }
            })
            .map_err(sqlx::Error::Io)?;
        let shares = OwnerLimiter::new(MAX_GROUP_SIZE / 2);
        Ok(Sqlite { readers, writes, shares, limits, metrics, _in_use: in_use })
    }

    pub(super) async fn reader(&self) -> Result<PooledConnection<SqliteManager>> {
        let reader = self.readers.get().await?;
        reader.alarm.set(self.limits.transaction_timeout);
        Ok(reader)
    }

    pub(super) async fn write<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone + Send + 'static,
    ) -> Result<T, E> {
        let (reply, mut result) = oneshot::channel();
        let taken = Arc::new(AtomicBool::new(false));
        let span = info_span!("write");
        let limit = self.limits.transaction_timeout;
        let write = PendingWrite { work, limit, span, taken: taken.clone(), done: None, reply };
        let queued = timeout(self.limits.acquire_timeout, async {
            let _share = self.shares.acquire_current().await;
            let sent = self.writes.send(Box::new(write)).await;
            sent.map_err(|_| Error::unavailable(Unreachable, "the writer has stopped"))?;
            Ok::<_, Error>((&mut result).await)
        });
        let result = match queued.await {
            Ok(result) => result?,
            Err(_) if !taken.swap(true, AcqRel) => {
                self.metrics.record_error(WRITE);
                let limit = self.limits.acquire_timeout;
                return Err(Error::late(WriterBusy, "it did not begin", limit).into());
            }
            Err(_) => result.await,
        };
        match result {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic), // panics in the caller's task
            Err(_) => Err(Error::CommitUnknown("the writer has stopped".to_owned()).into()),
        }
    }
}

/// Polls a future that blocks its thread where no other task waits for it. A runtime of one thread
/// has no such place.
pub(super) async fn block_in_place<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|context| match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => task::block_in_place(|| work.as_mut().poll(context)),
        _ => work.as_mut().poll(context),
    })
    .await
}

/// Retries `open`: hosts that start together conflict on locks for which SQLite does not wait, and
/// attempt the same migration, which all but one then find applied.
async fn open_with_retry<T>(wait: Duration, open: impl AsyncFn() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        let opened = open().await;
        let met = matches!(opened, Err(Error::Unavailable { reason: Locked, .. } | Error::Sql(_)));
        if !met || began.elapsed() >= wait {
            return opened;
        }
        sleep(REOPEN_DELAY).await;
    }
}

/// Connections to the file. They need no test: a file never disconnects.
#[derive(Clone)]
pub(super) struct SqliteManager {
    file: Box<Path>,
    is_writer: bool,
    busy_timeout: Duration,
}

impl Manager for SqliteManager {
    type Type = Box<LocalConnection>;
    type Error = sqlx::Error;

    async fn create(&self) -> sqlx::Result<Self::Type> {
        LocalConnection::open(&self.file, self.is_writer, self.busy_timeout).map(Box::new)
    }

    async fn recycle(&self, _: &mut Self::Type, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

// ---- queued writes ------------------------------------------------------------------------------

/// A queued write of any result type.
trait QueuedWrite: Send {
    /// Returns `false` if the caller has withdrawn the write.
    fn try_begin(&self) -> bool;
    /// Applies the write to the group's transaction, or nothing. `Err`: the transaction has ended.
    fn run<'w>(&'w mut self, tx: &'w mut Tx, alarm: &'w Alarm) -> LocalBoxFuture<'w, Result<()>>;
    /// Sends the result to the caller; `Err` is the failure of the commit.
    fn complete(self: Box<Self>, committed: Result<()>);
    /// Sends the failure of a write that ended the group's transaction.
    fn fail(self: Box<Self>, error: Error);
}

struct PendingWrite<F, T, E> {
    work: F,
    /// Maximum time that `work` may take.
    limit: Duration,
    /// The caller's span, for log lines of `work` on the writer's thread.
    span: Span,
    /// Set by the writer that begins the write, or by the caller that withdraws it.
    taken: Arc<AtomicBool>,
    done: Option<WriteResult<T, E>>,
    reply: oneshot::Sender<WriteResult<T, E>>,
}

/// The result of a write, or its panic.
type WriteResult<T, E> = thread::Result<Result<T, E>>;

impl<F, T, E> QueuedWrite for PendingWrite<F, T, E>
where
    F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn try_begin(&self) -> bool {
        !self.taken.swap(true, AcqRel)
    }

    fn run<'w>(&'w mut self, tx: &'w mut Tx, alarm: &'w Alarm) -> LocalBoxFuture<'w, Result<()>> {
        let run = async move {
            tx.connection().execute("SAVEPOINT write").await?;
            let limit = self.limit;
            alarm.set(limit);
            let work = AssertUnwindSafe(self.work.clone()(tx)).catch_unwind();
            let work = work.instrument(self.span.clone());
            let done = timeout(limit, work).await;
            let done = done.unwrap_or_else(|_| Ok(Err(timed_out(limit).into())));
            alarm.clear();
            let keep = matches!(done, Ok(Ok(_))) && tx.state.failed.is_none();
            self.done = Some(match done {
                Ok(Ok(_)) if !keep => Ok(Err(Error::Aborted.into())),
                done => done,
            });
            if !keep {
                tx.connection().execute("ROLLBACK TO write").await?;
                tx.state.failed = None;
            }
            Ok(tx.connection().execute("RELEASE write").await?)
        };
        run.boxed_local()
    }

    fn complete(self: Box<Self>, committed: Result<()>) {
        let done = match committed {
            Ok(()) => self.done.expect("the write has run"),
            Err(error) => Ok(Err(error.into())),
        };
        // Ignored: the caller may have stopped waiting.
        drop(self.reply.send(done));
    }

    fn fail(self: Box<Self>, error: Error) {
        let has_failed = matches!(self.done, Some(Err(_) | Ok(Err(_))));
        self.complete(if has_failed { Ok(()) } else { Err(error) });
    }
}

// ---- the writer ---------------------------------------------------------------------------------

struct Writer {
    /// A pool of one connection, which is reopened after a failure.
    connection: Pool<SqliteManager>,
    _in_use: Arc<DatabaseLock>,
    queue: mpsc::Receiver<Box<dyn QueuedWrite>>,
    jobs_woken: Arc<Notify>,
    metrics: StoreMetrics,
}

type Group = Vec<Box<dyn QueuedWrite>>;

/// A group of which nothing is committed, or whose outcome is unknown.
enum GroupFailure {
    /// A write ended the transaction, or the group's commit failed.
    RetryAlone,
    Failed(Error),
}

impl Writer {
    async fn run(&mut self) {
        while let Some(first) = self.queue.recv().await {
            if !first.try_begin() {
                continue;
            }
            let mut group = vec![first];
            match self.commit(&mut group, MAX_GROUP_SIZE).await {
                Err(GroupFailure::RetryAlone) => {
                    for write in group {
                        self.metrics.record_retry(WRITE);
                        let mut alone = vec![write];
                        let committed = self.commit(&mut alone, 1).await;
                        self.send_results(alone, committed);
                    }
                }
                committed => self.send_results(group, committed),
            }
        }
        // Closed before the lock on the file is released.
        if let Ok(connection) = self.connection.get().await {
            drop(PooledConnection::take(connection));
        }
    }

    /// Commits the write in `group` with up to `most - 1` others that join it. One that ended the
    /// transaction is removed from the group and gets its own failure.
    async fn commit(&mut self, group: &mut Group, most: usize) -> Result<(), GroupFailure> {
        let (mut tx, alarm) = self.begin().await.map_err(GroupFailure::Failed)?;
        if let Err(error) = self.run_group(&mut tx, &alarm, group, most).await {
            tx.discard();
            if let Some(culprit) = group.pop() {
                self.metrics.record_error(WRITE);
                culprit.fail(error);
            }
            return Err(GroupFailure::RetryAlone);
        }
        let woke_jobs = tx.wakes_workers;
        tx.commit().await.map_err(|error| match error {
            Error::CommitUnknown(_) => GroupFailure::Failed(error),
            _ if group.len() > 1 => GroupFailure::RetryAlone,
            _ => GroupFailure::Failed(error),
        })?;
        if woke_jobs {
            self.jobs_woken.notify_waiters();
        }
        Ok(())
    }

    async fn begin(&self) -> Result<(Tx, Alarm)> {
        let connection = self.connection.get().await?;
        let alarm = connection.alarm.clone();
        alarm.clear();
        let mut tx = Tx::new(Connection::Sqlite(connection), Mode::Write);
        tx.begin().await?;
        Ok((tx, alarm))
    }

    /// `Err`: the last write of the group has ended the transaction.
    async fn run_group(
        &mut self,
        tx: &mut Tx,
        alarm: &Alarm,
        group: &mut Group,
        most: usize,
    ) -> Result<()> {
        let began = Instant::now();
        loop {
            let write = group.last_mut().expect("a group of one or more");
            write.run(tx, alarm).await?;
            if group.len() == most || began.elapsed() > MAX_GROUP_TIME {
                return Ok(());
            }
            let mut queued = std::iter::from_fn(|| self.queue.try_recv().ok());
            match queued.find(|write| write.try_begin()) {
                Some(write) => group.push(write),
                None => return Ok(()),
            }
        }
    }

    fn send_results(&self, group: Group, committed: Result<(), GroupFailure>) {
        match &committed {
            Ok(()) => self.metrics.group.observe(group.len() as f64),
            Err(_) => group.iter().for_each(|_| self.metrics.record_error(WRITE)),
        }
        for write in group {
            write.complete(match &committed {
                Err(GroupFailure::Failed(error)) => Err(error.clone()),
                _ => Ok(()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        random::Random,
        store::{Engine, Store},
    };

    /// A write that panics in the writer itself.
    struct PanickingWrite(oneshot::Sender<()>);

    impl QueuedWrite for PanickingWrite {
        fn try_begin(&self) -> bool {
            true
        }

        fn run<'w>(&'w mut self, _: &'w mut Tx, _: &'w Alarm) -> LocalBoxFuture<'w, Result<()>> {
            async { panic!("of the writer") }.boxed_local()
        }

        fn complete(self: Box<Self>, _: Result<()>) {
            drop(self.0);
        }

        fn fail(self: Box<Self>, _: Error) {}
    }

    #[tokio::test]
    async fn the_writer_continues_after_a_panic() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", dir.path().join("test.db").display());
        let store = Store::open(&url, StoreLimits::default(), Random::seeded(1)).await.unwrap();
        let Engine::Sqlite(sqlite) = &store.engine else { panic!("another engine") };
        for _ in 0..2 {
            let (bug, gone) = oneshot::channel();
            assert!(sqlite.writes.send(Box::new(PanickingWrite(bug))).await.is_ok());
            assert!(gone.await.is_err());
            let written =
                store.write(async |tx| tx.sql("UPDATE companies SET name = ''").run().await);
            let written: Result<u64> = written.await;
            assert_eq!(written.unwrap(), 0);
        }
    }
}
