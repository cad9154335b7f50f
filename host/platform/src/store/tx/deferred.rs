//! Statements whose effect is needed only later: see [`Tx::defer`](super::Tx::defer).

use sqlx::Arguments as _;

use super::{
    state::TxState,
    statement::{Bind, Param, Params, Statement, count_parameters},
};
use crate::store::{Error, Result};

/// A statement that has not been deferred yet.
#[must_use = "a statement does nothing until it is executed"]
pub struct Deferred<'t>(Target<'t>);

enum Target<'t> {
    /// SQLite.
    Now(Statement<'t>),
    /// PostgreSQL. The values are those of the last batch.
    Later { state: &'t mut TxState, sql: &'static str, bound: usize },
}

impl<'t> Deferred<'t> {
    pub(super) fn now(statement: Statement<'t>) -> Deferred<'t> {
        Deferred(Target::Now(statement))
    }

    pub(super) fn later(state: &'t mut TxState, sql: &'static str) -> Deferred<'t> {
        Deferred(Target::Later { state, sql, bound: 0 })
    }

    /// Binds all parameters: `params(params![a, b])`.
    pub fn params(self, params: impl Params<'t>) -> Self {
        params.bind_to(self)
    }

    pub async fn execute(self) -> Result<()> {
        match self.0 {
            Target::Now(statement) => statement.execute().await,
            Target::Later { state, sql, bound } => push(state, sql, bound, false),
        }
    }

    /// Like [`Deferred::execute`]. If the statement does not affect one row, the transaction fails
    /// with [`Error::NotOneRow`].
    pub async fn require_one(self) -> Result<()> {
        match self.0 {
            Target::Now(statement) => statement.require_one().await,
            Target::Later { state, sql, bound } => push(state, sql, bound, true),
        }
    }
}

impl<'t> Bind<'t> for Deferred<'t> {
    fn bind(self, value: impl Param<'t>) -> Self {
        Deferred(match self.0 {
            Target::Now(statement) => Target::Now(statement.bind(value)),
            Target::Later { state, sql, bound } => {
                if let Some(batch) = state.deferred.last_mut()
                    && let Err(error) = batch.values.add(value)
                {
                    state.failed = Some(sqlx::Error::Encode(error).into());
                }
                Target::Later { state, sql, bound: bound + 1 }
            }
        })
    }
}

fn push(state: &mut TxState, sql: &'static str, bound: usize, affects_one: bool) -> Result<()> {
    assert_eq!(bound, count_parameters(sql), "each parameter has one value");
    match state.deferred.last_mut() {
        Some(batch) if state.failed.is_none() => {
            batch.push(sql, bound, affects_one);
            Ok(())
        }
        _ => Err(Error::Aborted),
    }
}
