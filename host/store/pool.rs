//! A pool of connections, of either engine.
//!
//! Not sqlx's own: that one asks the database once more each time a connection is given back, which for one `SELECT` is as much
//! again.

use std::time::Duration;

use deadpool::{
    Runtime,
    managed::{self, Manager, Object, PoolConfig, PoolError, QueueMode, TimeoutType, Timeouts},
};

use super::{Error, Result};

/// Cheap to clone.
pub(super) struct Pool<M: Manager> {
    pool: managed::Pool<M>,
    wait: Duration,
}

/// A connection, until it is dropped.
pub(super) type Pooled<M> = Object<M>;

impl<M: Manager<Error = sqlx::Error>> Pool<M> {
    /// `wait` is for a connection to be free, and then for one to be opened.
    pub(super) fn new(manager: M, most: u32, wait: Duration) -> Pool<M> {
        let timeouts = Timeouts { wait: Some(wait), create: Some(wait), recycle: Some(wait) };
        // Those that were used last are the readiest.
        let config = PoolConfig { max_size: most as usize, timeouts, queue_mode: QueueMode::Lifo };
        let pool = managed::Pool::builder(manager).config(config).runtime(Runtime::Tokio1).build();
        Pool { pool: pool.expect("it has a runtime for its timeouts"), wait }
    }

    pub(super) async fn get(&self) -> Result<Pooled<M>> {
        self.pool.get().await.map_err(|error| match error {
            // Unless all who were before us wait for one to be opened.
            PoolError::Timeout(TimeoutType::Wait) if self.pool.status().size > 0 => {
                Error::busy(self.wait)
            }
            PoolError::Timeout(_) => Error::silent(self.wait),
            PoolError::Backend(error) => error.into(),
            error => Error::unreachable(error.to_string()),
        })
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
