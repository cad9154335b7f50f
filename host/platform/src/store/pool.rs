//! A connection pool for either engine.
//!
//! It replaces sqlx's pool, which pings on each return: that doubles the cost of a single `SELECT`.

use std::time::Duration;

use deadpool::{
    Runtime,
    managed::{self, Manager, Object, PoolConfig, PoolError, QueueMode, Timeouts},
};
use tokio::time::timeout;

use super::{
    Error, Result,
    UnavailableReason::{PoolExhausted, Unreachable},
};

/// Timeout of the check that a connection still works.
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// Idle time after which a connection is closed, to free resources of server and network.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// A pool of connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool<M: Manager> {
    pool: managed::Pool<M>,
    acquire_timeout: Duration,
}

/// A connection, returned to the pool when dropped.
pub(super) type PooledConnection<M> = Object<M>;

impl<M: Manager<Error = sqlx::Error>> Pool<M> {
    /// `wait` is the timeout for a working connection, including the time to open one.
    pub(super) fn new(manager: M, most: u32, wait: Duration) -> Pool<M> {
        let timeouts = Timeouts { recycle: Some(HEALTH_CHECK_TIMEOUT), ..Timeouts::default() };
        // The most recently used connections are warm.
        let config = PoolConfig { max_size: most as usize, timeouts, queue_mode: QueueMode::Lifo };
        let pool = managed::Pool::builder(manager).config(config).runtime(Runtime::Tokio1).build();
        Pool { pool: pool.expect("a runtime is set for the timeouts"), acquire_timeout: wait }
    }

    pub(super) async fn get(&self) -> Result<PooledConnection<M>> {
        match timeout(self.acquire_timeout, self.pool.get()).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(PoolError::Backend(error))) => Err(error.into()),
            Ok(Err(error)) => Err(Error::unavailable(Unreachable, error.to_string())),
            Err(_) => {
                let status = self.pool.status();
                // If all permitted connections exist, they are in use.
                let (reason, what) = match status.size == status.max_size {
                    true => (PoolExhausted, "it did not begin"),
                    false => (Unreachable, "no connection could be opened"),
                };
                Err(Error::late(reason, what, self.acquire_timeout))
            }
        }
    }

    pub(super) fn manager(&self) -> &M {
        self.pool.manager()
    }

    /// Closes idle connections. A LIFO pool would keep the least recently used ones open.
    pub(super) fn close_idle(&self) {
        drop(self.pool.retain(|_, metrics| metrics.last_used() < IDLE_TIMEOUT));
    }

    /// Returns the number of connections and how many of them are idle.
    pub(super) fn connections(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }
}
