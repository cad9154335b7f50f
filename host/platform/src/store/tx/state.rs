//! The state of a transaction, and what is sent to PostgreSQL before a statement.

use sqlx::Executor;
use sqlx_postgres::PgConnection;

use crate::store::{Error, Result, postgres::batch::Batch};

/// The state of a transaction.
#[derive(Default)]
pub(in crate::store) struct TxState {
    pub(super) statements: usize,
    pub(super) is_running: bool,
    /// The error of a statement. No other may run after it: PostgreSQL refuses them, and SQLite may
    /// have ended the transaction.
    pub(in crate::store) failed: Option<Error>,
    /// A statement of a write transaction has locked or written something, or is about to.
    pub(super) needs_begin: bool,
    /// `BEGIN` was sent.
    pub(super) begun: bool,
    /// Deferred statements on PostgreSQL.
    pub(in crate::store) deferred: Vec<Batch>,
    /// Requests to the PostgreSQL server.
    pub(in crate::store) round_trips: u64,
}

impl TxState {
    pub(super) fn record_result<T>(&mut self, result: sqlx::Result<T>) -> Result<T> {
        self.is_running = false;
        result.map_err(|error| self.failed.insert(error.into()).clone())
    }

    /// Sends `BEGIN`, once, if it is needed, and what was deferred.
    pub(super) async fn flush(&mut self, connection: &mut PgConnection) -> Result<()> {
        if !self.begun && (self.needs_begin || !self.deferred.is_empty()) {
            self.begun = true; // even if this future is dropped before the response
            self.round_trips += 1;
            let begun = connection.execute("BEGIN").await.map(drop);
            self.record_result(begun)?;
        }
        for batch in std::mem::take(&mut self.deferred) {
            self.round_trips += 1;
            self.is_running = true;
            let done = batch.run(connection).await;
            self.record_result(done)?;
        }
        Ok(())
    }

    /// Prepares the connection for a statement.
    pub(super) async fn start(&mut self, connection: &mut PgConnection) -> Result<()> {
        self.flush(connection).await?;
        self.round_trips += 1;
        self.is_running = true;
        Ok(())
    }
}
