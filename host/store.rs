//! The database. This module is the only one that knows there are two engines.
//!
//! ```text
//! let payment = store.write(async move |tx| {
//!     let payment = payments::store::insert(tx, &new).await?;
//!     events::emit(tx, Event::of(&payment)).await?;
//!     Ok(payment)
//! }).await?;
//! ```
//!
//! What the closure returns as `Ok` is committed before `write` returns; on `Err` nothing of it remains. A closure waits for the
//! database and for nothing else: no plugin, no network. On SQLite every other writer waits for it.
//!
//! A closure may run more than once, each time on a clone of what it holds: after a deadlock or a broken connection, and when
//! the writes that share its commit could not be committed. Of the runs before the last nothing remains in the database, so it
//! should do nothing elsewhere. It has [`Limits::deadline`] for a run, and is rolled back after that. Once a statement has
//! failed, the transaction can do nothing more, whatever the closure makes of the error.
//!
//! [`Error::CommitUnknown`] is the one failure of which something may remain. No closure runs again after it.
//!
//! The SQL is one text for both engines, under five rules:
//!
//! 1. parameters are `$1`, `$2`, ... and all of them are bound;
//! 2. columns are `TEXT`, `BIGINT`, `BOOLEAN`, `JSONB` or `BYTEA`; JSON is read with `->>`;
//! 3. upserts are `ON CONFLICT`, new rows come back through `RETURNING`;
//! 4. a row lock is `FOR UPDATE` or `FOR UPDATE SKIP LOCKED`. SQLite never sees it: there a write is already alone;
//! 5. a parameter that may be NULL is compared as `CAST($1 AS TEXT) IS NULL`, sums are cast to `BIGINT`.

mod assembled;
mod backup;
mod columns;
mod error;
mod file;
mod lifespan;
mod look;
mod pool;
mod postgres;
mod roles;
mod schema;
mod sqlite;
mod tx;

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::migrate::Migrator;
pub use sqlx::{FromRow, Type, types::Json};
use tokio::{
    sync::{Notify, futures::Notified},
    time::timeout,
};
use tracing::Instrument;

pub use self::{
    assembled::{Assembled, Value},
    backup::{BackupError, backup, restore},
    error::{Error, Trouble, is_duplicate},
    look::{check_server, missing_migrations},
    postgres::unverified_server,
    roles::Role,
    tx::{Param, Record, Statement, Tx},
};
use self::{
    lifespan::Lifespan,
    postgres::Postgres,
    sqlite::Sqlite,
    tx::{Connection, Mode},
};
use crate::{
    random::Random,
    telemetry::{Each, Registry, StoreMetrics, spans},
};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What metrics and traces call a transaction.
const READ: &str = "read";
const WRITE: &str = "write";

/// Rows of a piece of a long work.
const PIECE: i64 = 1_000;
/// How often a transaction is tried that collides with others, or whose connection breaks.
const TRIES: u32 = 5;
/// The longest pause before the second try; each one after that may be twice as long.
const FIRST_PAUSE_MS: i64 = 40;
/// How long the server leaves a transaction alone whose host is silent, in deadlines.
const IDLE_DEADLINES: u32 = 3;

/// How much of the database a host may use, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections: all of them on PostgreSQL, readers on SQLite.
    pub connections: u32,
    /// How long to wait for a connection, or for the writer of SQLite.
    pub wait: Duration,
    /// How long one run of a closure may take, and how long its commit may.
    pub deadline: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 16, wait: Duration::from_secs(5), deadline: Duration::from_secs(10) }
    }
}

/// An open database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    limits: Limits,
    random: Random,
    jobs_woken: Arc<Notify>,
    metrics: StoreMetrics,
    lifespan: Lifespan,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// A run of a closure that came to nothing.
struct Failed<E> {
    error: E,
    /// What the database said, if it said something.
    cause: Option<Error>,
    /// Whether another run may well succeed.
    is_transient: bool,
}

impl<E: From<Error>> From<Error> for Failed<E> {
    fn from(error: Error) -> Failed<E> {
        Failed {
            is_transient: error.is_transient(),
            cause: Some(error.clone()),
            error: error.into(),
        }
    }
}

impl Store {
    /// Opens `sqlite://FILE` or `postgres://…` and applies the missing migrations.
    pub async fn open(url: &str, limits: Limits, random: Random) -> Result<Store> {
        check_url(url)?;
        if url.starts_with("postgres") {
            roles::migrate(url, &postgres_schema()).await?;
        }
        Store::connect(url, limits, random).await
    }

    /// Opens a database to serve from. On PostgreSQL it changes no table: it fails when migrations are
    /// missing, or when the URL's role could change the tables and `role` forbids that. SQLite has no
    /// roles, and is migrated.
    pub async fn open_migrated(
        url: &str,
        limits: Limits,
        random: Random,
        role: Role,
    ) -> Result<Store> {
        check_url(url)?;
        if url.starts_with("postgres") {
            roles::check(url, &postgres_schema(), role).await?;
        }
        Store::connect(url, limits, random).await
    }

    async fn connect(url: &str, limits: Limits, random: Random) -> Result<Store> {
        let (jobs_woken, metrics) = (Arc::new(Notify::new()), StoreMetrics::default());
        let engine = if url.starts_with("postgres") {
            Engine::Postgres(Postgres::open(url, limits).await?)
        } else {
            let woken = jobs_woken.clone();
            Engine::Sqlite(
                Sqlite::open(url, limits, &sqlite_schema(), woken, metrics.clone()).await?,
            )
        };
        Ok(Store { engine, limits, random, jobs_woken, metrics, lifespan: Lifespan::default() })
    }

    /// Runs `work` on one snapshot of the data. It cannot change any.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone,
        E: From<Error>,
    {
        self.measured(READ, self.run(Mode::Read, work)).await
    }

    /// Runs `work`, which is one `SELECT`: on PostgreSQL a third of the way that `read` goes.
    pub async fn select<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone,
        E: From<Error>,
    {
        self.measured(READ, self.run(Mode::Select, work)).await
    }

    /// Runs `work` in a transaction and commits it, unless `work` fails.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => self.measured(WRITE, sqlite.write(work)).await,
            Engine::Postgres(_) => self.measured(WRITE, self.run(Mode::Write, work)).await,
        }
    }

    /// Runs `work` on pieces of so many rows, each in a transaction of its own so that other writers get in between, until it
    /// answers that it found none; answers how many it found in all.
    pub async fn write_in_pieces<F>(&self, work: F) -> Result<u64>
    where
        F: AsyncFnOnce(&mut Tx, i64) -> Result<u64> + Clone + Send + 'static,
    {
        let mut found = 0;
        loop {
            let work = work.clone();
            match self.write(async move |tx| work(tx, PIECE).await).await? {
                0 => return Ok(found),
                some => found += some,
            }
        }
    }

    /// Whether data can be read, and a transaction that could write begins and ends. Costs no sync of the disk.
    pub async fn probe(&self) -> Result<()> {
        let one = async |tx: &mut Tx| tx.sql("SELECT id FROM companies LIMIT 1").optional().await;
        let _: Option<(String,)> = self.select(one).await?;
        self.write(async |_| Ok(())).await
    }

    /// Closes connections that nobody needs any more; to be called now and then.
    pub fn close_unused(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close_unused(),
            Engine::Postgres(postgres) => postgres.close_unused(),
        }
    }

    /// For tests: whoever asks for more than so many transactions waits for good, as if the host had died between two of them.
    pub fn end_after(&self, transactions: usize) {
        self.lifespan.end_after(transactions);
    }

    /// Resolves when more was asked for than [`Store::end_after`] grants.
    pub async fn ended(&self) {
        self.lifespan.ended().await;
    }

    /// What has not been committed so long after its transaction began never will be, on any host with these limits: it is the
    /// time of a run, of silence before its commit, and of the commit.
    #[must_use]
    pub fn longest_transaction(&self) -> Duration {
        self.limits.deadline * (1 + IDLE_DEADLINES + 1)
    }

    /// Calls `heard` whenever something was announced on a channel, by whichever host, or may have been missed. Ends with an error
    /// only; on SQLite it waits for good.
    pub async fn listen(&self, channel: &'static str, heard: impl Fn()) -> Result<Infallible> {
        match &self.engine {
            Engine::Sqlite(_) => std::future::pending().await,
            Engine::Postgres(postgres) => postgres.listen(channel, heard).await,
        }
    }

    /// Resolves when a transaction of this process that woke jobs was committed.
    pub fn jobs_woken(&self) -> Notified<'_> {
        self.jobs_woken.notified()
    }

    /// What this host counts of its transactions.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        let engine = self.engine.clone();
        let connections = move || {
            let (all, idle) = match &engine {
                Engine::Sqlite(sqlite) => sqlite.connections(),
                Engine::Postgres(postgres) => postgres.connections(),
            };
            let used = all.saturating_sub(idle);
            vec![([("state", "used")], used as f64), ([("state", "idle")], idle as f64)]
        };
        registry.register("store_connections", "Connections of the pool", Each(connections));
    }

    async fn measured<F: Future>(&self, operation: &'static str, work: F) -> F::Output {
        self.lifespan.begin().await;
        let began = Instant::now();
        let done = work.instrument(spans::transaction(operation)).await;
        self.metrics.ended(operation, began.elapsed());
        done
    }

    async fn run<T, E, F>(&self, mode: Mode, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Clone,
        E: From<Error>,
    {
        let operation = if mode == Mode::Write { WRITE } else { READ };
        for tries in 1.. {
            // Boxed: what waits for a transaction, and what waits for that, need not hold it on the stack.
            let run = Box::pin(self.run_once(mode, work.clone()));
            let Failed { error, cause, is_transient } = match run.await {
                Ok(done) => return Ok(done),
                Err(failed) => failed,
            };
            if let Engine::Postgres(postgres) = &self.engine
                && cause.as_ref().is_some_and(Error::concerns_all)
            {
                postgres.renew();
            }
            if tries == TRIES || !is_transient {
                if cause.as_ref().is_some_and(Error::is_trouble) {
                    self.metrics.failed(operation);
                }
                return Err(error);
            }
            self.metrics.retried(operation);
            self.pause(tries).await;
        }
        unreachable!("the last try returns")
    }

    async fn run_once<T, E, F>(&self, mode: Mode, work: F) -> Result<T, Failed<E>>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E>,
        E: From<Error>,
    {
        let deadline = self.limits.deadline;
        let connection = self.connection().await;
        // It was waited for already.
        let connection =
            connection.map_err(|error| Failed { is_transient: false, ..Failed::from(error) })?;
        let mut tx = Tx::new(connection, mode);
        let run = timeout(deadline, async {
            tx.begin().await?;
            work(&mut tx).await
        });
        let done = run.await.map_err(|_| Error::slow(deadline))?;
        let done = done.map_err(|error| {
            let cause = tx.failed().cloned();
            Failed { is_transient: cause.as_ref().is_some_and(Error::is_transient), error, cause }
        })?;
        if mode == Mode::Write {
            let woke_jobs = tx.woke_jobs();
            let committed = timeout(deadline, tx.commit()).await;
            let late = || Error::CommitUnknown("it did not come in time".to_owned());
            committed.unwrap_or_else(|_| Err(late()))?;
            if woke_jobs {
                self.jobs_woken.notify_waiters();
            }
        }
        Ok(done)
    }

    async fn connection(&self) -> Result<Connection> {
        Ok(match &self.engine {
            Engine::Sqlite(sqlite) => Connection::Sqlite(sqlite.reader().await?),
            Engine::Postgres(postgres) => Connection::Postgres(postgres.connection().await?),
        })
    }

    /// Longer each time, and by chance, so that those who collided do not meet again.
    async fn pause(&self, tries: u32) {
        let most = FIRST_PAUSE_MS << (tries - 1);
        let ms = self.random.up_to(most / 2) + most / 2;
        tokio::time::sleep(Duration::from_millis(ms.unsigned_abs())).await;
    }
}

/// Applies the missing migrations. On PostgreSQL also grants `host_role`, and each role that an earlier
/// call named, what a host needs; returns these roles.
pub async fn migrate(
    url: &str,
    limits: Limits,
    random: Random,
    host_role: Option<&str>,
) -> Result<Vec<String>> {
    let is_postgres = url.starts_with("postgres");
    match host_role {
        Some(role) if is_postgres => roles::check_host_role(url, role).await?,
        Some(_) => {
            let text = "a role for hosts is for PostgreSQL: SQLite has none";
            return Err(Error::Misconfigured(text.to_owned()));
        }
        None => {}
    }
    Store::open(url, limits, random).await?;
    if is_postgres { roles::grant(url, host_role).await } else { Ok(Vec::new()) }
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
    static OWN: Migrator = sqlx::migrate!("./migrations/sqlite");
    schema(&OWN)
}

fn postgres_schema() -> Migrator {
    static OWN: Migrator = sqlx::migrate!("./migrations/postgres");
    schema(&OWN)
}

/// What both engines have, and what only one has.
fn schema(own: &Migrator) -> Migrator {
    static COMMON: Migrator = sqlx::migrate!("./migrations");
    Migrator::with_migrations(COMMON.iter().chain(own.iter()).cloned().collect())
}
