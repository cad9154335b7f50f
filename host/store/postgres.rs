//! PostgreSQL: a pool of connections, whose sessions the server ends when this host cannot.

use std::{
    convert::Infallible,
    io,
    net::IpAddr,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use sqlx::{
    AssertSqlSafe, Connection as _, Executor,
    postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions, PgSslMode},
};
use tokio::time::sleep;

use super::{
    IDLE_DEADLINES, Limits, Result,
    pool::{Pool, Pooled},
};

/// A connection that nobody has used for so long is tested before somebody relies on it.
const IDLE: Duration = Duration::from_secs(1);
/// What a session of the server has gathered is given back after so long.
const OLD: Duration = Duration::from_secs(1_800);
/// Between two tries to connect: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(super) struct Postgres {
    pool: Pool<Sessions>,
    options: Arc<PgConnectOptions>,
    earliest: Earliest,
}

/// When a connection must have been opened to be used again.
#[derive(Clone, Default)]
struct Earliest(Arc<Mutex<Option<Instant>>>);

impl Postgres {
    pub(super) async fn open(url: &str, limits: Limits) -> Result<Postgres> {
        let options = PgConnectOptions::from_str(url)?;
        let earliest = Earliest::default();
        let (deadline, earlier) = (limits.deadline, earliest.clone());
        let sessions = Sessions { options: options.clone(), deadline, earliest: earlier };
        let pool = Pool::new(sessions, limits.connections, limits.wait);
        drop(pool.get().await?);
        Ok(Postgres { pool, options: options.into(), earliest })
    }

    /// How many there are, and how many of them are idle.
    pub(super) fn connections(&self) -> (usize, usize) {
        self.pool.connections()
    }

    pub(super) async fn connection(&self) -> Result<Pooled<Sessions>> {
        self.pool.get().await
    }

    pub(super) fn close_unused(&self) {
        self.pool.close_unused();
    }

    /// On a connection of its own, which is opened again when it breaks.
    pub(super) async fn listen(&self, channel: &str, heard: impl Fn()) -> Result<Infallible> {
        let pool =
            PgPoolOptions::new().max_connections(1).connect_lazy_with((*self.options).clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(channel).await?;
        loop {
            // What comes while the connection is broken is not told.
            heard();
            listener.try_recv().await?;
        }
    }

    /// Opens each connection anew before it is used again.
    pub(super) fn renew(&self) {
        *self.earliest.lock() = Some(Instant::now());
    }
}

impl Earliest {
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Sessions {
    options: PgConnectOptions,
    deadline: Duration,
    earliest: Earliest,
}

/// Connects, and sets what transactions rely on, because the server, the database or the role may have
/// other defaults.
pub(super) async fn connect(options: &PgConnectOptions) -> sqlx::Result<PgConnection> {
    let mut connection = PgConnection::connect_with(options).await?;
    let settings =
        "SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on";
    connection.execute(settings).await?;
    Ok(connection)
}

/// Returns the host name of a server that is neither on loopback nor behind a Unix socket, and whose
/// certificate the URL does not ask to verify.
#[must_use]
pub fn unverified_server(url: &str) -> Option<String> {
    let options = url.starts_with("postgres").then(|| PgConnectOptions::from_str(url).ok())??;
    let host = options.get_host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_near = options.get_socket().is_some()
        || host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback());
    let is_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
    (!is_near && !is_verified).then(|| host.to_owned())
}

impl Manager for Sessions {
    type Type = PgConnection;
    type Error = sqlx::Error;

    /// Waits for a server that starts, for as long as the pool lets it.
    async fn create(&self) -> sqlx::Result<PgConnection> {
        let mut pause = FIRST_PAUSE;
        loop {
            // Boxed, because it is large, rarely needed, and a part of each future that reads or writes.
            match Box::pin(self.connect()).await {
                Err(error) if is_starting(&error) => sleep(pause).await,
                done => return done,
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    async fn recycle(
        &self,
        connection: &mut PgConnection,
        metrics: &Metrics,
    ) -> RecycleResult<sqlx::Error> {
        let outdated = Some(metrics.created) < *self.earliest.lock();
        if outdated || metrics.age() > OLD {
            return Err(RecycleError::message("to be opened anew"));
        }
        if metrics.last_used() > IDLE {
            connection.ping().await?;
        }
        Ok(())
    }
}

impl Sessions {
    /// The server ends what a host has given up or left behind, and lets go of its locks.
    async fn connect(&self) -> sqlx::Result<PgConnection> {
        let mut connection = connect(&self.options).await?;
        let statement_ms = self.deadline.as_millis();
        let idle_ms = u128::from(IDLE_DEADLINES) * statement_ms;
        let limits = format!(
            "SET statement_timeout = {statement_ms}; SET idle_in_transaction_session_timeout = {idle_ms}"
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
