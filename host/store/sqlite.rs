//! SQLite as a server's database: many readers, one writer with group commit.
//!
//! A commit costs a sync of the disk, some milliseconds, and SQLite has one writer. So the writer is a thread with a queue: the
//! writes that wait together run one after the other, each under its own savepoint, and are committed together. Each caller
//! hears back after the commit, as if it had been alone. When a group cannot be committed, each of its writes runs again, alone.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use deadpool::managed::{Manager, Metrics, RecycleResult};
use futures::{FutureExt, future::LocalBoxFuture};
use sqlx::{
    Connection as _, SqliteConnection,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{sleep, timeout},
};
use tracing::{Instrument, Span, info_span};

use super::{
    Error, Limits, Result, Trouble, WRITE,
    file::{self, InUse},
    pool::{Pool, Pooled},
    tx::{Connection, Mode, Tx},
};
use crate::telemetry::StoreMetrics;

/// The most writes that share a commit, and how long they may keep the first of them waiting for it.
const GROUP: usize = 64;
const GROUP_TIME: Duration = Duration::from_millis(100);
/// The most writes that wait before `write` holds its callers.
const QUEUE: usize = 1024;
/// After so many steps of its virtual machine SQLite looks at the clock: some fractions of a millisecond.
const STEPS: i32 = 10_000;
/// Before the file is opened again when another host that starts was in the way.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub(super) struct Sqlite {
    readers: Pool<Handles>,
    writes: mpsc::Sender<Box<dyn Write>>,
    limits: Limits,
    metrics: StoreMetrics,
    _in_use: Arc<InUse>,
}

impl Sqlite {
    pub(super) async fn open(
        url: &str,
        limits: Limits,
        schema: &Migrator,
        jobs_woken: Arc<Notify>,
        metrics: StoreMetrics,
    ) -> Result<Sqlite> {
        let options = SqliteConnectOptions::from_str(url)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full) // what was answered survives a power cut
            .pragma("recursive_triggers", "ON") // else INSERT OR REPLACE deletes without a delete trigger
            .busy_timeout(limits.wait);
        let in_use = file::open_as_host(options.get_filename())?;
        // It says that the file is locked before the pool says that there is no connection.
        let writer = Handles { options: options.clone(), deadline: limits.deadline };
        let writer = Pool::new(writer, 1, 2 * limits.wait);
        open_beside_others(limits.wait, async || {
            Ok(schema.run(&mut writer.get().await?.connection).await?)
        })
        .await?;
        let readers = Handles { options: options.read_only(true), deadline: limits.deadline };
        let readers = Pool::new(readers, limits.connections, limits.wait);
        drop(readers.get().await?);

        let (writes, queue) = mpsc::channel(QUEUE);
        let in_use = Arc::new(in_use);
        let mut writer = Writer {
            connection: writer,
            _in_use: in_use.clone(),
            queue,
            jobs_woken,
            metrics: metrics.clone(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(sqlx::Error::Io)?;
        thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || {
                // The write that panicked hears that its outcome is unknown, and those after it have a writer.
                let mut run = || catch_unwind(AssertUnwindSafe(|| runtime.block_on(writer.run())));
                while run().is_err() {
                    tracing::error!("the writer of the database is begun again after a panic");
                }
            })
            .map_err(sqlx::Error::Io)?;
        Ok(Sqlite { readers, writes, limits, metrics, _in_use: in_use })
    }

    /// How many readers there are, and how many of them are idle.
    pub(super) fn connections(&self) -> (usize, usize) {
        self.readers.connections()
    }

    pub(super) fn close_unused(&self) {
        self.readers.close_unused();
    }

    pub(super) async fn reader(&self) -> Result<Pooled<Handles>> {
        let reader = self.readers.get().await?;
        reader.alarm.set();
        Ok(reader)
    }

    pub(super) async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (answer, mut answered) = oneshot::channel();
        let taken = Taken::default();
        let span = info_span!("write");
        let write = Waiting { work, span, taken: taken.clone(), done: None, answer };
        let queued = timeout(self.limits.wait, async {
            self.writes
                .send(Box::new(write))
                .await
                .map_err(|_| Error::unreachable("the writer has stopped"))?;
            Ok::<_, Error>((&mut answered).await)
        });
        let answered = match queued.await {
            Ok(answered) => answered?,
            Err(_) if taken.take() => {
                self.metrics.failed(WRITE);
                return Err(Error::no_turn(self.limits.wait).into());
            }
            Err(_) => answered.await,
        };
        match answered {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic), // in the caller's task, not in ours
            Err(_) => Err(Error::CommitUnknown("the writer has stopped".to_owned()).into()),
        }
    }
}

/// Hosts that start together meet at locks for which SQLite does not wait, and try the same migration: all but one find it done when
/// they look again.
async fn open_beside_others<T>(wait: Duration, open: impl AsyncFn() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        let opened = open().await;
        let met = matches!(
            opened,
            Err(Error::Unavailable { trouble: Trouble::Locked, .. } | Error::Sql(_))
        );
        if !met || began.elapsed() >= wait {
            return opened;
        }
        sleep(PAUSE).await;
    }
}

/// Connections to the file, each with a thread of its own. A file has no other end that hangs up: they are neither tested nor
/// replaced.
pub(super) struct Handles {
    options: SqliteConnectOptions,
    deadline: Duration,
}

pub(super) struct Handle {
    pub(super) connection: SqliteConnection,
    alarm: Alarm,
}

impl Manager for Handles {
    type Type = Handle;
    type Error = sqlx::Error;

    async fn create(&self) -> sqlx::Result<Handle> {
        // Boxed, because it is large, rarely needed, and a part of each future that reads.
        let mut connection = Box::pin(SqliteConnection::connect_with(&self.options)).await?;
        let alarm = Alarm::new(self.deadline);
        let heard = alarm.clone();
        connection.lock_handle().await?.set_progress_handler(STEPS, move || !heard.rings());
        Ok(Handle { connection, alarm })
    }

    async fn recycle(&self, _: &mut Handle, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

/// Interrupts the statements of a connection, but never the writer's `BEGIN` and `COMMIT`: of one that is interrupted, SQLite does not
/// say whether it was done.
#[derive(Clone)]
struct Alarm {
    deadline: Duration,
    /// What the time is measured from.
    zero: Instant,
    /// In milliseconds; the greatest number: it does not ring.
    at: Arc<AtomicU64>,
}

impl Alarm {
    fn new(deadline: Duration) -> Alarm {
        Alarm { deadline, zero: Instant::now(), at: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    fn set(&self) {
        let at = (self.zero.elapsed() + self.deadline).as_millis();
        self.at.store(u64::try_from(at).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn clear(&self) {
        self.at.store(u64::MAX, Ordering::Relaxed);
    }

    fn rings(&self) -> bool {
        self.zero.elapsed().as_millis() >= u128::from(self.at.load(Ordering::Relaxed))
    }
}

// ---- the writes that wait -----------------------------------------------------------------------

/// Either the writer begins a write, or its caller withdraws it: whoever is first.
#[derive(Clone, Default)]
struct Taken(Arc<AtomicBool>);

impl Taken {
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// A write on its way, whatever it returns.
trait Write: Send {
    /// `false`: its caller has withdrawn it.
    fn begin(&self) -> bool;
    /// Leaves in the group's transaction what it writes, or nothing. `Err`: it has ended that transaction.
    fn run<'w>(&'w mut self, tx: &'w mut Tx, alarm: &'w Alarm) -> LocalBoxFuture<'w, Result<()>>;
    /// Tells its caller; `Err` is why it was not committed.
    fn answer(self: Box<Self>, committed: Result<()>);
    /// Tells its caller after it has ended the group's transaction.
    fn fail(self: Box<Self>, error: Error);
}

struct Waiting<F, T, E> {
    work: F,
    /// By which lines that `work` logs, on the writer's thread, belong to their request or job.
    span: Span,
    taken: Taken,
    done: Option<Done<T, E>>,
    answer: oneshot::Sender<Done<T, E>>,
}

/// What a write returned, or what it panicked with.
type Done<T, E> = thread::Result<Result<T, E>>;

impl<F, T, E> Write for Waiting<F, T, E>
where
    F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn begin(&self) -> bool {
        self.taken.take()
    }

    fn run<'w>(&'w mut self, tx: &'w mut Tx, alarm: &'w Alarm) -> LocalBoxFuture<'w, Result<()>> {
        let run = async move {
            tx.connection().execute("SAVEPOINT write").await?;
            alarm.set();
            let work = AssertUnwindSafe(self.work.clone()(tx)).catch_unwind();
            let work = work.instrument(self.span.clone());
            let done = timeout(alarm.deadline, work).await;
            let done = done.unwrap_or_else(|_| Ok(Err(Error::slow(alarm.deadline).into())));
            let keep = matches!(done, Ok(Ok(_))) && tx.failed().is_none();
            self.done = Some(match done {
                Ok(Ok(_)) if !keep => Ok(Err(Error::Aborted.into())),
                done => done,
            });
            if !keep {
                // Behind a statement that still runs, until the alarm ends it.
                tx.connection().execute("ROLLBACK TO write").await?;
                tx.forget_failure();
            }
            alarm.clear();
            Ok(tx.connection().execute("RELEASE write").await?)
        };
        run.boxed_local()
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let done = match committed {
            Ok(()) => self.done.expect("it has run"),
            Err(error) => Ok(Err(error.into())),
        };
        // Not sent: the caller gave up waiting, and the write stands.
        drop(self.answer.send(done));
    }

    fn fail(self: Box<Self>, error: Error) {
        let has_failed = matches!(self.done, Some(Err(_) | Ok(Err(_))));
        self.answer(if has_failed { Ok(()) } else { Err(error) });
    }
}

// ---- the writer ---------------------------------------------------------------------------------

struct Writer {
    /// A pool of one, which is opened anew after a failure.
    connection: Pool<Handles>,
    _in_use: Arc<InUse>,
    queue: mpsc::Receiver<Box<dyn Write>>,
    jobs_woken: Arc<Notify>,
    metrics: StoreMetrics,
}

type Group = Vec<Box<dyn Write>>;

/// Why nothing of a group stands, or may not.
enum Undone {
    /// One of them ended the transaction, or all were too much for it.
    RunAlone,
    Failed(Error),
}

impl Writer {
    async fn run(&mut self) {
        while let Some(first) = self.queue.recv().await {
            if !first.begin() {
                continue;
            }
            let mut group = vec![first];
            match self.commit(&mut group, GROUP).await {
                Err(Undone::RunAlone) => {
                    for write in group {
                        self.metrics.retried(WRITE);
                        let mut alone = vec![write];
                        let committed = self.commit(&mut alone, 1).await;
                        self.tell(alone, committed);
                    }
                }
                committed => self.tell(group, committed),
            }
        }
        // Before the file counts as unused.
        if let Ok(connection) = self.connection.get().await {
            let _ = Pooled::take(connection).connection.close().await;
        }
    }

    /// Commits the write in `group`, and up to `most` with those that join it. One that fails them all has left it.
    async fn commit(&mut self, group: &mut Group, most: usize) -> Result<(), Undone> {
        let (mut tx, alarm) = self.begin().await.map_err(Undone::Failed)?;
        if let Err(error) = self.run_group(&mut tx, &alarm, group, most).await {
            tx.discard();
            if let Some(culprit) = group.pop() {
                self.metrics.failed(WRITE);
                culprit.fail(error);
            }
            return Err(Undone::RunAlone);
        }
        let woke_jobs = tx.woke_jobs();
        tx.commit().await.map_err(|error| match error {
            Error::CommitUnknown(_) => Undone::Failed(error),
            _ if group.len() > 1 => Undone::RunAlone,
            _ => Undone::Failed(error),
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

    /// `Err`: the last of the group has ended the transaction.
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
            if group.len() == most || began.elapsed() > GROUP_TIME {
                return Ok(());
            }
            match self.next() {
                Some(write) => group.push(write),
                None => return Ok(()),
            }
        }
    }

    fn tell(&self, group: Group, committed: Result<(), Undone>) {
        match &committed {
            Ok(()) => self.metrics.grouped(group.len()),
            Err(_) => group.iter().for_each(|_| self.metrics.failed(WRITE)),
        }
        for write in group {
            write.answer(match &committed {
                Err(Undone::Failed(error)) => Err(error.clone()),
                _ => Ok(()),
            });
        }
    }

    /// What waits already, and was not withdrawn.
    fn next(&mut self) -> Option<Box<dyn Write>> {
        std::iter::from_fn(|| self.queue.try_recv().ok()).find(|write| write.begin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        random::Random,
        store::{Engine, Store},
    };

    /// A write that meets a bug of the writer's own.
    struct Bug(oneshot::Sender<()>);

    impl Write for Bug {
        fn begin(&self) -> bool {
            true
        }

        fn run<'w>(&'w mut self, _: &'w mut Tx, _: &'w Alarm) -> LocalBoxFuture<'w, Result<()>> {
            async { panic!("of the writer") }.boxed_local()
        }

        fn answer(self: Box<Self>, _: Result<()>) {
            drop(self.0);
        }

        fn fail(self: Box<Self>, _: Error) {}
    }

    #[tokio::test]
    async fn a_writer_that_panics_goes_on_with_the_next_write() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", dir.path().join("test.db").display());
        let store = Store::open(&url, Limits::default(), Random::seeded(1)).await.unwrap();
        let Engine::Sqlite(sqlite) = &store.engine else { panic!("another engine") };
        for _ in 0..2 {
            let (bug, gone) = oneshot::channel();
            assert!(sqlite.writes.send(Box::new(Bug(bug))).await.is_ok());
            assert!(gone.await.is_err());
            let written =
                store.write(async |tx| tx.sql("UPDATE companies SET name = ''").run().await);
            let written: Result<u64> = written.await;
            assert_eq!(written.unwrap(), 0);
        }
    }
}
