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
//! The SQL is one text for both engines, under five rules:
//!
//! 1. parameters are `$1`, `$2`, ... and all of them are bound;
//! 2. columns are `TEXT`, `BIGINT`, `BOOLEAN`, `JSONB` or `BYTEA`; JSON is read with `->>`;
//! 3. upserts are `ON CONFLICT`, new rows come back through `RETURNING`;
//! 4. a row lock is `FOR UPDATE` or `FOR UPDATE SKIP LOCKED`. SQLite never sees it: there a write is already alone;
//! 5. a parameter that may be NULL is compared as `CAST($1 AS TEXT) IS NULL`, sums are cast to `BIGINT`.

mod columns;
mod sqlite;
mod tx;

use std::{str::FromStr, sync::Arc};

use sqlx::{
    Connection as _, Executor,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions},
};
pub use sqlx::{Error, FromRow, Type, types::Json};
use tokio::sync::{Notify, futures::Notified};

use self::tx::Connection;
pub use self::tx::{Param, Record, Statement, Tx};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A transaction that hangs lets go of its locks, and nobody waits for them longer than callers do.
const LIMITS: &str = "SET idle_in_transaction_session_timeout = '30s'; SET lock_timeout = '10s'";

/// Whether a statement failed because a row with the same unique key is there.
#[must_use]
pub fn is_duplicate(error: &Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}

/// An open database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    jobs_woken: Arc<Notify>,
}

#[derive(Clone)]
enum Engine {
    Sqlite(sqlite::Sqlite),
    Postgres(PgPool),
}

impl Store {
    /// Opens `sqlite://path` or `postgres://...` and applies the missing migrations.
    pub async fn open(url: &str, connections: u32) -> Result<Store> {
        static COMMON: Migrator = sqlx::migrate!("./migrations");
        static SQLITE: Migrator = sqlx::migrate!("./migrations/sqlite");
        static POSTGRES: Migrator = sqlx::migrate!("./migrations/postgres");
        let with = |own: &Migrator| {
            Migrator::with_migrations(COMMON.iter().chain(own.iter()).cloned().collect())
        };
        let jobs_woken = Arc::new(Notify::new());
        let engine = if url.starts_with("postgres") {
            let options = PgConnectOptions::from_str(url)?;
            // Without the pool's limits: hosts that start together wait for the one that migrates.
            let mut connection = PgConnection::connect_with(&options).await?;
            with(&POSTGRES).run(&mut connection).await?;
            connection.close().await?;
            let pool =
                PgPoolOptions::new().max_connections(connections).after_connect(|connection, _| {
                    Box::pin(async move { connection.execute(LIMITS).await.map(drop) })
                });
            Engine::Postgres(pool.connect_with(options).await?)
        } else if url.starts_with("sqlite:") {
            let sqlite = sqlite::Sqlite::open(url, connections, with(&SQLITE), jobs_woken.clone());
            Engine::Sqlite(sqlite.await?)
        } else {
            return Err(Error::Configuration(
                "the database must be sqlite://FILE or postgres://…".into(),
            ));
        };
        Ok(Store { engine, jobs_woken })
    }

    /// Runs `work` on one snapshot of the data. It cannot change any.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E>,
        E: From<Error>,
    {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut tx = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.begin_read().await?,
            Engine::Postgres(pool) => Tx::new(Connection::Postgres(pool.begin_with(BEGIN).await?)),
        };
        work(&mut tx).await
    }

    /// Runs `work` in a transaction and commits it, unless `work` fails.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(work).await,
            Engine::Postgres(pool) => {
                let mut tx = Tx::new(Connection::Postgres(pool.begin().await?));
                let done = work(&mut tx).await?;
                if tx.commit().await? {
                    self.jobs_woken.notify_waiters();
                }
                Ok(done)
            }
        }
    }

    /// Resolves when a transaction of this process that woke jobs was committed.
    pub fn jobs_woken(&self) -> Notified<'_> {
        self.jobs_woken.notified()
    }
}
