//! A statement with its parameters and results, for either engine.

use sqlx::{Arguments, Encode, FromRow, SqlStr, Type};
use sqlx_postgres::{PgArguments, PgConnection, PgRow, Postgres};

use super::state::TxState;
use crate::store::{
    Error, Result,
    sqlite::{
        local::LocalConnection,
        types::{Local, LocalArguments, LocalRow},
    },
};

/// A statement that has not run yet.
#[must_use = "a statement does nothing until its result is requested"]
pub struct Statement<'t> {
    pub(super) engine: Engine<'t>,
    pub(super) state: &'t mut TxState,
    pub(super) unbound: usize,
}

pub(super) enum Engine<'t> {
    Sqlite(&'t mut LocalConnection, SqlStr, LocalArguments),
    Postgres(&'t mut PgConnection, sqlx::query::Query<'t, Postgres, PgArguments>),
}

/// A value that both engines accept as a parameter.
pub trait Param<'t>:
    Type<Local> + Type<Postgres> + Encode<'t, Local> + Encode<'t, Postgres>
{
}
impl<'t, T> Param<'t> for T where
    T: Type<Local> + Type<Postgres> + Encode<'t, Local> + Encode<'t, Postgres>
{
}

/// A row type that both engines can read: a tuple or any `#[derive(sqlx::FromRow)]`.
pub trait Record: for<'r> FromRow<'r, LocalRow> + for<'r> FromRow<'r, PgRow> {}
impl<T> Record for T where T: for<'r> FromRow<'r, LocalRow> + for<'r> FromRow<'r, PgRow> {}

/// A statement that takes parameters.
pub trait Bind<'t> {
    fn bind(self, value: impl Param<'t>) -> Self;
}

/// The parameters of a statement, in order: see [`params!`](crate::store::params).
pub trait Params<'t> {
    fn bind_to<S: Bind<'t>>(self, statement: S) -> S;
}

impl<'t> Params<'t> for () {
    fn bind_to<S: Bind<'t>>(self, statement: S) -> S {
        statement
    }
}

impl<'t, Before: Params<'t>, Last: Param<'t>> Params<'t> for (Before, Last) {
    fn bind_to<S: Bind<'t>>(self, statement: S) -> S {
        self.0.bind_to(statement).bind(self.1)
    }
}

/// Lists the parameters of a statement for [`Statement::params`].
#[macro_export]
#[doc(hidden)]
macro_rules! __params {
    (@ $before:expr $(,)?) => { $before };
    (@ $before:expr, $value:expr $(, $rest:expr)* $(,)?) => {
        $crate::store::params!(@ ($before, $value) $(, $rest)*)
    };
    ($($value:expr),* $(,)?) => { $crate::store::params!(@ () $(, $value)*) };
}

impl<'t> Statement<'t> {
    pub fn bind(self, value: impl Param<'t>) -> Self {
        Bind::bind(self, value)
    }

    /// Binds several parameters: `params(params![a, b])`.
    pub fn params(self, params: impl Params<'t>) -> Self {
        params.bind_to(self)
    }

    pub async fn one<T: Record>(self) -> Result<T> {
        self.optional().await?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    pub async fn optional<T: Record>(self) -> Result<Option<T>> {
        let (engine, state) = self.require_all_bound()?;
        Ok(match engine {
            Engine::Sqlite(connection, sql, values) => {
                let rows = state.record_result(connection.rows(sql.as_str(), values, 1))?;
                rows.first().map(T::from_row).transpose()?
            }
            Engine::Postgres(connection, query) => {
                state.start(connection).await?;
                let row = state.record_result(query.fetch_optional(connection).await)?;
                row.as_ref().map(T::from_row).transpose()?
            }
        })
    }

    pub async fn all<T: Record>(self) -> Result<Vec<T>> {
        let (engine, state) = self.require_all_bound()?;
        let records: sqlx::Result<_> = match engine {
            Engine::Sqlite(connection, sql, values) => {
                let rows = connection.rows(sql.as_str(), values, usize::MAX);
                state.record_result(rows)?.iter().map(T::from_row).collect()
            }
            Engine::Postgres(connection, query) => {
                state.start(connection).await?;
                let rows = state.record_result(query.fetch_all(connection).await)?;
                rows.iter().map(T::from_row).collect()
            }
        };
        Ok(records?)
    }

    /// Like [`Statement::one`], for rows of one column.
    pub async fn value<T>(self) -> Result<T>
    where
        (T,): Record,
    {
        self.one().await.map(|(value,)| value)
    }

    /// Like [`Statement::optional`], for rows of one column.
    pub async fn optional_value<T>(self) -> Result<Option<T>>
    where
        (T,): Record,
    {
        Ok(self.optional().await?.map(|(value,)| value))
    }

    /// Like [`Statement::all`], for rows of one column.
    pub async fn values<T>(self) -> Result<Vec<T>>
    where
        (T,): Record,
    {
        Ok(self.all().await?.into_iter().map(|(value,)| value).collect())
    }

    pub async fn execute(self) -> Result<()> {
        self.run().await.map(drop)
    }

    /// Runs the statement. Returns the number of affected rows.
    pub async fn run(self) -> Result<u64> {
        self.count_rows().await.map(|(rows, _)| rows)
    }

    /// Runs the statement. Returns whether it affected one row.
    pub async fn affects_one(self) -> Result<bool> {
        self.run().await.map(|rows| rows == 1)
    }

    /// Runs the statement. If it does not affect one row, the transaction fails.
    pub(in crate::store) async fn require_one(self) -> Result<()> {
        match self.count_rows().await? {
            (1, _) => Ok(()),
            (_, state) => Err(state.failed.insert(Error::NotOneRow).clone()),
        }
    }

    async fn count_rows(self) -> Result<(u64, &'t mut TxState)> {
        let (engine, state) = self.require_all_bound()?;
        let rows = match engine {
            Engine::Sqlite(connection, sql, values) => {
                state.record_result(connection.run(sql.as_str(), values))?
            }
            Engine::Postgres(connection, query) => {
                state.start(connection).await?;
                state.record_result(query.execute(connection).await)?.rows_affected()
            }
        };
        Ok((rows, state))
    }

    /// Requires that all parameters are bound: SQLite would read a missing one as NULL.
    fn require_all_bound(self) -> Result<(Engine<'t>, &'t mut TxState)> {
        assert_eq!(self.unbound, 0, "fewer values than parameters");
        if self.state.failed.is_some() {
            return Err(Error::Aborted);
        }
        self.state.is_running = true;
        Ok((self.engine, self.state))
    }
}

impl<'t> Bind<'t> for Statement<'t> {
    fn bind(self, value: impl Param<'t>) -> Self {
        let engine = match self.engine {
            Engine::Sqlite(connection, sql, mut values) => {
                if let Err(error) = values.add(value) {
                    self.state.failed = Some(sqlx::Error::Encode(error).into());
                }
                Engine::Sqlite(connection, sql, values)
            }
            Engine::Postgres(conn, query) => Engine::Postgres(conn, query.bind(value)),
        };
        let unbound = self.unbound.checked_sub(1).expect("more values than parameters");
        Statement { engine, unbound, ..self }
    }
}

/// Returns the highest `$n` of a statement.
pub(super) fn count_parameters(sql: &str) -> usize {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let numbers = sql.split('$').skip(1).filter_map(|s| s[..digits(s)].parse().ok());
    numbers.max().unwrap_or(0)
}
