//! PostgreSQL: a pool of connections, whose sessions the server ends when this host cannot.

use std::{
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::FutureExt;
use sqlx::{
    AssertSqlSafe, Connection as _, Executor,
    migrate::Migrator,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions},
};

use super::{Limits, Result};

/// A connection that nobody has used for so long is tested before somebody relies on it.
const IDLE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Postgres {
    pool: PgPool,
    /// Connections that are older are not used again.
    oldest: Arc<Mutex<Option<Instant>>>,
}

impl Postgres {
    pub(super) async fn open(url: &str, limits: Limits, schema: &Migrator) -> Result<Postgres> {
        let options = PgConnectOptions::from_str(url)?;
        // Without the pool's limits: hosts that start together wait for the one that migrates.
        let mut connection = PgConnection::connect_with(&options).await?;
        schema.run(&mut connection).await?;
        connection.close().await?;
        let oldest = Arc::<Mutex<Option<Instant>>>::default();
        let required = oldest.clone();
        let pool = PgPoolOptions::new()
            .max_connections(limits.connections)
            .acquire_timeout(limits.wait)
            .test_before_acquire(false)
            .before_acquire(move |connection, last| {
                let opened = Instant::now().checked_sub(last.age);
                let is_outdated = opened < *required.lock().unwrap_or_else(PoisonError::into_inner);
                async move {
                    if is_outdated {
                        return Ok(false);
                    }
                    if last.idle_for > IDLE {
                        connection.ping().await?;
                    }
                    Ok(true)
                }
                .boxed()
            })
            .after_connect(move |connection, _| limit(connection, limits.deadline).boxed());
        Ok(Postgres { pool: pool.connect_with(options).await?, oldest })
    }

    /// Opens each connection anew before it is used again.
    pub(super) fn renew(&self) {
        *self.oldest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// How many there are, and how many of them are idle.
    pub(super) fn connections(&self) -> (usize, usize) {
        (self.pool.size() as usize, self.pool.num_idle())
    }

    pub(super) async fn connection(&self) -> sqlx::Result<PoolConnection<sqlx::Postgres>> {
        self.pool.acquire().await
    }
}

/// The server ends what a host has given up or left behind, and lets go of its locks.
async fn limit(connection: &mut PgConnection, deadline: Duration) -> sqlx::Result<()> {
    let statement_ms = deadline.as_millis();
    let idle_ms = 3 * statement_ms;
    let limits = format!(
        "SET statement_timeout = {statement_ms}; SET idle_in_transaction_session_timeout = {idle_ms}"
    );
    connection.execute(AssertSqlSafe(limits)).await.map(drop) // safe: two numbers
}
