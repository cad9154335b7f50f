//! The database. Only this module knows that there are two engines.
//!
//! ```text
//! let payment = store.write(async move |tx| {
//!     let payment = payments::store::insert(tx, &new).await?;
//!     events::emit(tx, Event::of(&payment)).await?;
//!     Ok(payment)
//! }).await?;
//! ```
//!
//! `Ok` is committed before `write` returns; `Err` is rolled back. A closure waits only for the
//! database, never for plugins or the network: on SQLite, every other writer waits for it.
//!
//! A closure may run several times, each time on a clone: after a deadlock or a broken connection,
//! and when a group commit failed. Earlier runs leave nothing in the database, so a closure must
//! have no other effects. A run is rolled back after [`StoreLimits::transaction_timeout`]. After a
//! failed statement, the transaction cannot continue, even if the closure ignores the error.
//!
//! Only [`Error::CommitUnknown`] may mean a committed transaction; the closure does not run again.
//!
//! Both engines share the SQL, under five rules:
//!
//! 1. parameters are `$1`, `$2`, ... and all of them are bound;
//! 2. columns are `TEXT`, `BIGINT`, `BOOLEAN`, `JSONB` or `BYTEA`; JSON is read with `->>`;
//! 3. upserts are `ON CONFLICT`, new rows are returned by `RETURNING`;
//! 4. a row lock is `FOR UPDATE` or `FOR UPDATE SKIP LOCKED`, removed for SQLite's single writer;
//! 5. nullable parameters are compared as `CAST($1 AS TEXT) IS NULL`, sums are cast to `BIGINT`.

mod crash_point;
mod dynamic_statement;
mod error;
pub mod metrics;
mod pool;
mod postgres;
mod preflight;
mod schema;
mod sqlite;
mod text_column;
mod tx;

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

pub use crate::{__params as params, __text_columns as text_columns};
use sqlx::migrate::Migrator;
pub use sqlx::{FromRow, types::Json};
pub use strum::{EnumString, IntoStaticStr};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, futures::Notified},
    time::{sleep, timeout},
};
use tracing::Instrument;

use self::{
    crash_point::CrashPoint,
    postgres::Postgres,
    sqlite::Sqlite,
    tx::{Connection, Mode},
};
pub use self::{
    dynamic_statement::{DynamicStatement, SqlValue},
    error::{Error, UnavailableReason, is_duplicate},
    postgres::unverified_server,
    preflight::{check_server, missing_migrations},
    tx::{
        Bind, Deferred, ListPosition, ListTotal, Param, Params, Record, Statement, Tx, only_reads,
    },
};
pub use crate::store::{
    postgres::roles::RolePolicy,
    sqlite::backup::{BackupError, backup, restore},
};
use crate::{
    limits::owner::OwnerLimiter,
    random::Random,
    store::metrics::StoreMetrics,
    telemetry::{Registry, computed_gauges, spans},
    values::id::Owner,
};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Common imports of the stores of records: `use tollhouse_platform::store::prelude::*`.
pub mod prelude {
    pub use super::{
        DynamicStatement, EnumString, FromRow, IntoStaticStr, Json, Result, Tx, params,
        text_columns,
    };
    pub use crate::{clock::Timestamp, values::id::CompanyId};
}

/// Names of transactions in metrics and traces.
const READ: &str = "read";
const WRITE: &str = "write";

/// Rows per batch of a long write.
const BATCH_ROWS: i64 = 1_000;
/// Maximum number of attempts of a transaction after conflicts or broken connections.
const MAX_ATTEMPTS: u32 = 5;
/// Maximum delay before the second attempt; it doubles with each further one.
const FIRST_BACKOFF_MS: i64 = 40;
/// Idle time after which the server ends a transaction, as a multiple of its timeout.
const IDLE_TIMEOUT_FACTOR: u32 = 3;

/// Limits of a host's use of the database.
#[derive(Clone, Copy, Debug)]
pub struct StoreLimits {
    /// Maximum number of connections; on SQLite, of readers.
    pub connections: u32,
    /// Timeout for a connection, or for the SQLite writer.
    pub acquire_timeout: Duration,
    /// Timeout of one run of a closure, and of its commit.
    pub transaction_timeout: Duration,
}

impl Default for StoreLimits {
    fn default() -> StoreLimits {
        StoreLimits {
            connections: 16,
            acquire_timeout: Duration::from_secs(5),
            transaction_timeout: Duration::from_secs(10),
        }
    }
}

/// An open database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    limits: StoreLimits,
    random: Random,
    worker_wakeup: Arc<Notify>,
    metrics: StoreMetrics,
    /// Each owner may hold half of the connections, so that others get one while it waits.
    shares: OwnerLimiter<Owner>,
    pub crash_point: CrashPoint,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// A failed run of a closure, with the error of the database if there was one.
struct FailedRun<E> {
    error: E,
    cause: Option<Error>,
    /// It took too many steps for a thread on which other tasks wait.
    is_long: bool,
}

impl<E: From<Error>> From<Error> for FailedRun<E> {
    fn from(error: Error) -> FailedRun<E> {
        FailedRun { cause: Some(error.clone()), error: error.into(), is_long: false }
    }
}

impl Store {
    /// Opens `sqlite://FILE` or `postgres://…` and applies the missing migrations.
    pub async fn open(url: &str, limits: StoreLimits, random: Random) -> Result<Store> {
        check_url(url)?;
        if url.starts_with("postgres") {
            postgres::roles::migrate(url, &postgres_schema()).await?;
        }
        Store::connect(url, limits, random).await
    }

    /// Opens a database to serve from. SQLite is migrated. PostgreSQL is not: missing migrations
    /// are an error, and so is a role that could alter the tables if `role` forbids that.
    pub async fn open_migrated(
        url: &str,
        limits: StoreLimits,
        random: Random,
        role: RolePolicy,
    ) -> Result<Store> {
        check_url(url)?;
        if url.starts_with("postgres") {
            postgres::roles::check(url, &postgres_schema(), role).await?;
        }
        Store::connect(url, limits, random).await
    }

    async fn connect(url: &str, limits: StoreLimits, random: Random) -> Result<Store> {
        let (worker_wakeup, metrics) = (Arc::new(Notify::new()), StoreMetrics::default());
        let engine = if url.starts_with("postgres") {
            Engine::Postgres(Postgres::open(url, limits).await?)
        } else {
            let (schema, wakeup) = (sqlite_schema(), worker_wakeup.clone());
            Engine::Sqlite(Sqlite::open(url, limits, &schema, wakeup, metrics.clone()).await?)
        };
        let crash_point = CrashPoint::default();
        let shares = OwnerLimiter::new((limits.connections as usize).div_ceil(2));
        Ok(Store { engine, limits, random, worker_wakeup, metrics, shares, crash_point })
    }

    /// Runs `work` on one read-only snapshot.
    pub async fn read<T, E: From<Error>>(
        &self,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone,
    ) -> Result<T, E> {
        self.measure(READ, self.run(Mode::Read, work)).await
    }

    /// Runs `work`, which is one `SELECT`: on PostgreSQL one round trip, not three.
    pub async fn select<T, E: From<Error>>(
        &self,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone,
    ) -> Result<T, E> {
        self.measure(READ, self.run(Mode::Select, work)).await
    }

    /// Runs `work` in a transaction and commits it, unless `work` fails.
    pub async fn write<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone + Send + 'static,
    ) -> Result<T, E> {
        match &self.engine {
            Engine::Sqlite(sqlite) => self.measure(WRITE, sqlite.write(work)).await,
            Engine::Postgres(_) => self.measure(WRITE, self.run(Mode::Write, work)).await,
        }
    }

    /// Runs `work` on batches of 1,000 rows until it returns 0, each in its own transaction so that
    /// other writers can interleave. Returns the sum.
    pub async fn write_in_batches(
        &self,
        work: impl AsyncFnOnce(&mut Tx, i64) -> Result<u64> + Clone + Send + 'static,
    ) -> Result<u64> {
        let mut found = 0;
        loop {
            let work = work.clone();
            match self.write(async move |tx| work(tx, BATCH_ROWS).await).await? {
                0 => return Ok(found),
                some => found += some,
            }
        }
    }

    /// Checks that data can be read and that a write transaction can begin and end, without a sync.
    pub async fn probe(&self) -> Result<()> {
        let one = async |tx: &mut Tx| tx.sql("SELECT id FROM companies LIMIT 1").execute().await;
        self.select(one).await?;
        self.write(one).await
    }

    /// Refreshes PostgreSQL's statistics of one table whose rows have changed much since the last
    /// time, so that statements are planned for its size. Call it periodically.
    pub async fn refresh_statistics(&self) -> Result<()> {
        if !self.is_postgres() {
            return Ok(());
        }
        self.write(async |tx: &mut Tx| tx.sql("SELECT analyze_grown_table()").execute().await).await
    }

    /// Closes idle connections. Call it periodically.
    pub fn close_idle(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.readers.close_idle(),
            Engine::Postgres(postgres) => postgres.pool.close_idle(),
        }
    }

    /// Returns the time after which no transaction can still be committed, on any host with these
    /// limits: one run, the server's idle timeout, and the commit.
    pub fn max_transaction_time(&self) -> Duration {
        self.limits.transaction_timeout * (1 + IDLE_TIMEOUT_FACTOR + 1)
    }

    /// Calls `on_notification` after each announcement on a channel by any host, and when one may
    /// have been missed. Returns only an error; on SQLite, never.
    pub async fn listen(
        &self,
        channel: &'static str,
        on_notification: impl Fn(),
    ) -> Result<Infallible> {
        match &self.engine {
            Engine::Sqlite(_) => std::future::pending().await,
            Engine::Postgres(postgres) => postgres.listen(channel, on_notification).await,
        }
    }

    /// Returns whether the engine is PostgreSQL; else it is SQLite.
    pub fn is_postgres(&self) -> bool {
        matches!(self.engine, Engine::Postgres(_))
    }

    /// Resolves when this process commits a transaction that wakes jobs.
    pub fn worker_wakeup(&self) -> Notified<'_> {
        self.worker_wakeup.notified()
    }

    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        let engine = self.engine.clone();
        let connections = move || {
            let (all, idle) = match &engine {
                Engine::Sqlite(sqlite) => sqlite.readers.connections(),
                Engine::Postgres(postgres) => postgres.pool.connections(),
            };
            let used = all.saturating_sub(idle);
            vec![([("state", "used")], used as f64), ([("state", "idle")], idle as f64)]
        };
        let connections = computed_gauges(connections);
        registry.register("store_connections", "Pooled connections by state", connections);
    }

    async fn measure<F: Future>(&self, operation: &'static str, work: F) -> F::Output {
        self.crash_point.begin().await;
        let began = Instant::now();
        let done = work.instrument(spans::transaction(operation)).await;
        self.metrics.record_duration(operation, began.elapsed());
        done
    }

    async fn run<T, E: From<Error>>(
        &self,
        mode: Mode,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone,
    ) -> Result<T, E> {
        let operation = if mode == Mode::Write { WRITE } else { READ };
        // On SQLite, a read runs on the caller's thread until it proves to be long.
        let mut is_short = mode != Mode::Write;
        for tries in 1.. {
            let acquired = Box::pin(self.connection()).await;
            // A run without a connection is not retried: it has already waited for one.
            let may_retry = acquired.is_ok() && tries < MAX_ATTEMPTS;
            // Boxed, so that callers do not hold it on the stack.
            let run = Box::pin(async {
                let (_share, mut connection) = acquired?;
                if is_short {
                    connection.limit_steps();
                }
                self.run_once(connection, mode, work.clone()).await
            });
            let blocks = matches!(self.engine, Engine::Sqlite(_)) && !is_short;
            let done = if blocks { sqlite::block_in_place(run).await } else { run.await };
            let FailedRun { error, cause, is_long } = match done {
                Ok(done) => return Ok(done),
                Err(failed) => failed,
            };
            if is_long && is_short {
                is_short = false;
                continue;
            }
            if let Engine::Postgres(postgres) = &self.engine
                && cause.as_ref().is_some_and(Error::invalidates_connections)
            {
                postgres.invalidate_connections();
            }
            if !may_retry || !cause.as_ref().is_some_and(Error::is_transient) {
                if cause.as_ref().is_some_and(Error::is_unavailable) {
                    self.metrics.record_error(operation);
                }
                return Err(error);
            }
            self.metrics.record_retry(operation);
            // Longer each time, with jitter, so that conflicting transactions do not meet again.
            let half = (FIRST_BACKOFF_MS << (tries - 1)) / 2;
            let ms = self.random.up_to(half) + half;
            sleep(Duration::from_millis(ms.unsigned_abs())).await;
        }
        unreachable!("the last try returns")
    }

    async fn run_once<T, E: From<Error>>(
        &self,
        connection: Connection,
        mode: Mode,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E>,
    ) -> Result<T, FailedRun<E>> {
        let mut tx = Tx::new(connection, mode);
        let done = self.run_in(&mut tx, work).await;
        self.metrics.record_round_trips(tx.state.round_trips);
        done
    }

    async fn run_in<T, E: From<Error>>(
        &self,
        tx: &mut Tx,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E>,
    ) -> Result<T, FailedRun<E>> {
        let deadline = self.limits.transaction_timeout;
        let run = timeout(deadline, async {
            tx.begin().await?;
            work(tx).await
        });
        let done = run.await.map_err(|_| timed_out(deadline))?;
        let is_long = tx.is_long();
        // An interrupted statement may have been ignored.
        let done = if is_long { done.and(Err(Error::Aborted.into())) } else { done };
        let cause = || tx.state.failed.clone();
        let done = done.map_err(|error| FailedRun { error, cause: cause(), is_long })?;
        if tx.writes() {
            let committed = timeout(deadline, tx.commit()).await;
            let late = || Error::CommitUnknown("it was not received in time".to_owned());
            committed.unwrap_or_else(|_| Err(late()))?;
            if tx.wakes_workers {
                self.worker_wakeup.notify_waiters();
            }
        }
        Ok(done)
    }

    /// Returns a connection, and the permit to hold it.
    async fn connection(&self) -> Result<(Option<OwnedSemaphorePermit>, Connection)> {
        let (limit, share) = (self.limits.acquire_timeout, self.shares.acquire_current());
        let late = |_| Error::late(UnavailableReason::PoolExhausted, "it did not begin", limit);
        let share = timeout(limit, share).await.map_err(late)?;
        let connection = match &self.engine {
            Engine::Sqlite(sqlite) => Connection::Sqlite(sqlite.reader().await?),
            Engine::Postgres(postgres) => Connection::Postgres(postgres.pool.get().await?),
        };
        Ok((share, connection))
    }
}

/// Applies the missing migrations. On PostgreSQL it also grants `host_role`, and each role of an
/// earlier call, what a host needs, and returns these roles.
pub async fn migrate(
    url: &str,
    limits: StoreLimits,
    random: Random,
    host_role: Option<&str>,
) -> Result<Vec<String>> {
    let is_postgres = url.starts_with("postgres");
    match host_role {
        Some(role) if is_postgres => postgres::roles::check_host_role(url, role).await?,
        Some(_) => {
            let text = "--host-role is for PostgreSQL: SQLite has no roles";
            return Err(Error::Misconfigured(text.to_owned()));
        }
        None => {}
    }
    Store::open(url, limits, random).await?;
    match is_postgres {
        true => postgres::roles::grant_host_roles(url, host_role).await,
        false => Ok(Vec::new()),
    }
}

fn timed_out(deadline: Duration) -> Error {
    Error::late(UnavailableReason::TimedOut, "it did not end", deadline)
}

fn check_url(url: &str) -> Result<()> {
    let memory = url.contains(":memory:") || url.contains("mode=memory");
    if !memory && ["sqlite:", "postgres:", "postgresql:"].iter().any(|start| url.starts_with(start))
    {
        return Ok(());
    }
    Err(Error::Misconfigured("the database must be sqlite://FILE or postgres://…".to_owned()))
}

fn sqlite_schema() -> Migrator {
    static OWN: Migrator = sqlx::migrate!("../../migrations/sqlite");
    schema(&OWN)
}

fn postgres_schema() -> Migrator {
    static OWN: Migrator = sqlx::migrate!("../../migrations/postgres");
    schema(&OWN)
}

/// Returns the common migrations and those of one engine.
fn schema(own: &Migrator) -> Migrator {
    static COMMON: Migrator = sqlx::migrate!("../../migrations");
    Migrator::with_migrations(COMMON.iter().chain(own.iter()).cloned().collect())
}
