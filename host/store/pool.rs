//! A pool of connections, of either engine.
//!
//! Not sqlx's own: that one asks the database once more each time a connection is given back, which for one `SELECT` is as much
//! again.

use std::time::Duration;

use deadpool::{
    Runtime,
    managed::{self, Manager, Object, PoolConfig, PoolError, QueueMode, Timeouts},
};
use tokio::time::timeout;

use super::{Error, Result};

/// For a connection that may be dead to show that it lives.
const TEST: Duration = Duration::from_secs(1);
/// Nobody has missed what was not used for so long; of a server it holds memory, and on the way a place in a table of addresses.
const UNUSED: Duration = Duration::from_secs(600);

/// Cheap to clone.
pub(super) struct Pool<M: Manager> {
    pool: managed::Pool<M>,
    wait: Duration,
}

/// A connection, until it is dropped.
pub(super) type Pooled<M> = Object<M>;

impl<M: Manager<Error = sqlx::Error>> Pool<M> {
    /// `wait` is for a connection that is free and works, whatever that takes.
    pub(super) fn new(manager: M, most: u32, wait: Duration) -> Pool<M> {
        let timeouts = Timeouts { recycle: Some(TEST), ..Timeouts::default() };
        // Those that were used last are the readiest.
        let config = PoolConfig { max_size: most as usize, timeouts, queue_mode: QueueMode::Lifo };
        let pool = managed::Pool::builder(manager).config(config).runtime(Runtime::Tokio1).build();
        Pool { pool: pool.expect("it has a runtime for its timeouts"), wait }
    }

    pub(super) async fn get(&self) -> Result<Pooled<M>> {
        match timeout(self.wait, self.pool.get()).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(PoolError::Backend(error))) => Err(error.into()),
            Ok(Err(error)) => Err(Error::unreachable(error.to_string())),
            // All that there may be are open, so they are in use; else none could be opened.
            Err(_) if self.is_full() => Err(Error::busy(self.wait)),
            Err(_) => Err(Error::silent(self.wait)),
        }
    }

    fn is_full(&self) -> bool {
        let status = self.pool.status();
        status.size == status.max_size
    }

    /// Closes what has not been used lately. What is used least is at the bottom, and would stay there for good.
    pub(super) fn close_unused(&self) {
        drop(self.pool.retain(|_, metrics| metrics.last_used() < UNUSED));
    }

    /// How many there are, and how many of them are idle.
    pub(super) fn connections(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }
}

impl<M: Manager> Clone for Pool<M> {
    fn clone(&self) -> Pool<M> {
        Pool { pool: self.pool.clone(), wait: self.wait }
    }
}
