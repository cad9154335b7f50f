//! PostgreSQL: a pool of connections, whose sessions the server ends if this host cannot.

pub(super) mod batch;
pub mod roles;

use std::{
    convert::Infallible,
    io,
    str::FromStr,
    time::{Duration, Instant},
};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use sqlx::{AssertSqlSafe, Connection as _, Executor};
use sqlx_postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions, PgSslMode};
use tokio::{sync::watch, time::sleep};

use super::{IDLE_TIMEOUT_FACTOR, Result, StoreLimits, pool::Pool};
use crate::outbound::is_loopback;

/// Idle time after which a connection is tested before reuse.
const TEST_AFTER_IDLE: Duration = Duration::from_secs(1);
/// Age at which a connection is replaced, to free the memory of its server session.
const MAX_AGE: Duration = Duration::from_secs(1_800);
/// Number of prepared statements of a connection. Those of a host, without lists, are fewer.
const MAX_PREPARED: usize = 500;
/// Delay before the second attempt to connect; it doubles up to [`MAX_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(super) struct Postgres {
    pub(super) pool: Pool<PostgresManager>,
}

impl Postgres {
    pub(super) async fn open(url: &str, limits: StoreLimits) -> Result<Postgres> {
        let sessions = PostgresManager {
            options: PgConnectOptions::from_str(url)?.statement_cache_capacity(MAX_PREPARED),
            deadline: limits.transaction_timeout,
            earliest: watch::Sender::default(),
        };
        let pool = Pool::new(sessions, limits.connections, limits.acquire_timeout);
        drop(pool.get().await?);
        Ok(Postgres { pool })
    }

    /// Listens on a dedicated connection, which is reopened when it breaks.
    pub(super) async fn listen(
        &self,
        channel: &str,
        on_notification: impl Fn(),
    ) -> Result<Infallible> {
        let options = self.pool.manager().options.clone();
        let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(channel).await?;
        loop {
            // Also called after a reconnect, because notifications may have been lost.
            on_notification();
            listener.try_recv().await?;
        }
    }

    /// Marks all connections as outdated: they are replaced before reuse.
    pub(super) fn invalidate_connections(&self) {
        self.pool.manager().earliest.send_replace(Some(Instant::now()));
    }
}

#[derive(Clone)]
pub(super) struct PostgresManager {
    options: PgConnectOptions,
    deadline: Duration,
    /// Connections opened before this time are not reused.
    earliest: watch::Sender<Option<Instant>>,
}

/// Connects, and sets what transactions rely on, whatever the defaults of server and role are.
pub(super) async fn connect(options: &PgConnectOptions) -> sqlx::Result<PgConnection> {
    let mut connection = PgConnection::connect_with(options).await?;
    let settings = "SET default_transaction_isolation = 'read committed';
         SET synchronous_commit = on;
         SET jit = off"; // compilation takes longer than a short statement
    connection.execute(settings).await?;
    Ok(connection)
}

/// Returns the host of a server beyond loopback whose certificate the URL does not verify.
pub fn unverified_server(url: &str) -> Option<String> {
    let options = url.starts_with("postgres").then(|| PgConnectOptions::from_str(url).ok())??;
    let host = options.get_host();
    let is_near = options.get_socket().is_some() || host.starts_with('/') || is_loopback(host);
    let is_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
    (!is_near && !is_verified).then(|| host.to_owned())
}

impl Manager for PostgresManager {
    type Type = PgConnection;
    type Error = sqlx::Error;

    /// Waits for a server that is starting, within the pool's timeout.
    async fn create(&self) -> sqlx::Result<PgConnection> {
        let mut pause = FIRST_BACKOFF;
        loop {
            // Boxed, because it is large, rarely used, and part of each future.
            match Box::pin(self.connect()).await {
                Err(error) if is_starting(&error) => sleep(pause).await,
                done => return done,
            }
            pause = MAX_BACKOFF.min(pause * 2);
        }
    }

    async fn recycle(
        &self,
        connection: &mut PgConnection,
        metrics: &Metrics,
    ) -> RecycleResult<sqlx::Error> {
        let outdated = Some(metrics.created) < *self.earliest.borrow();
        if outdated || metrics.age() > MAX_AGE {
            return Err(RecycleError::message("to be reopened"));
        }
        if metrics.last_used() > TEST_AFTER_IDLE {
            connection.ping().await?;
        }
        Ok(())
    }
}

impl PostgresManager {
    /// Connects with timeouts, so that the server ends abandoned transactions.
    async fn connect(&self) -> sqlx::Result<PgConnection> {
        let mut connection = connect(&self.options).await?;
        let statement_ms = self.deadline.as_millis();
        let idle_ms = u128::from(IDLE_TIMEOUT_FACTOR) * statement_ms;
        let limits = format!(
            "SET statement_timeout = {statement_ms};
                 SET idle_in_transaction_session_timeout = {idle_ms}"
        );
        connection.execute(AssertSqlSafe(limits)).await?; // safe: two numbers
        Ok(connection)
    }
}

fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => {
            use io::ErrorKind::{ConnectionRefused, ConnectionReset, UnexpectedEof};
            [ConnectionRefused, ConnectionReset, UnexpectedEof].contains(&error.kind())
        }
        sqlx::Error::Database(error) => error.is_transient_in_connect_phase(),
        _ => false,
    }
}
