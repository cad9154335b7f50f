//! Types that sqlx's traits require and [`Local`] does not have: connections and statements that
//! sqlx itself opens and prepares.

use std::str::FromStr;

use log::LevelFilter;
use sqlx::{
    ConnectOptions, Connection, Either, Error, FromRow, IntoArguments, Result, SqlStr, Statement,
    Transaction,
    query::{Query, QueryAs, QueryScalar},
};
use sqlx_core::transaction::TransactionManager;
use url::Url;

use super::types::{Local, LocalArguments, LocalColumn, LocalRow, Storage};

/// A type without values.
#[derive(Clone, Debug)]
pub enum Never {}

impl Connection for Never {
    type Database = Local;
    type Options = Never;

    async fn close(self) -> Result<()> {
        match self {}
    }

    async fn close_hard(self) -> Result<()> {
        match self {}
    }

    async fn ping(&mut self) -> Result<()> {
        match *self {}
    }

    async fn begin(&mut self) -> Result<Transaction<'_, Local>> {
        match *self {}
    }

    fn shrink_buffers(&mut self) {
        match *self {}
    }

    async fn flush(&mut self) -> Result<()> {
        match *self {}
    }

    fn should_flush(&self) -> bool {
        match *self {}
    }
}

impl ConnectOptions for Never {
    type Connection = Never;

    fn from_url(url: &Url) -> Result<Never> {
        url.as_str().parse()
    }

    async fn connect(&self) -> Result<Never> {
        match *self {}
    }

    fn log_statements(self, _: LevelFilter) -> Never {
        self
    }

    fn log_slow_statements(self, _: LevelFilter, _: std::time::Duration) -> Never {
        self
    }
}

impl FromStr for Never {
    type Err = Error;

    fn from_str(_: &str) -> Result<Never> {
        Err(Error::Configuration("sqlx opens no connection of this kind".into()))
    }
}

impl TransactionManager for Never {
    type Database = Local;

    async fn begin(connection: &mut Never, _: Option<SqlStr>) -> Result<()> {
        match *connection {}
    }

    async fn commit(connection: &mut Never) -> Result<()> {
        match *connection {}
    }

    async fn rollback(connection: &mut Never) -> Result<()> {
        match *connection {}
    }

    fn start_rollback(connection: &mut Never) {
        match *connection {}
    }

    fn get_transaction_depth(connection: &Never) -> usize {
        match *connection {}
    }
}

impl Statement for Never {
    type Database = Local;

    fn into_sql(self) -> SqlStr {
        match self {}
    }

    fn sql(&self) -> &SqlStr {
        match *self {}
    }

    fn parameters(&self) -> Option<Either<&[Storage], usize>> {
        match *self {}
    }

    fn columns(&self) -> &[LocalColumn] {
        match *self {}
    }

    fn query(&self) -> Query<'_, Local, LocalArguments> {
        match *self {}
    }

    fn query_with<A: IntoArguments<Local>>(&self, _: A) -> Query<'_, Local, A> {
        match *self {}
    }

    fn query_as<O: for<'r> FromRow<'r, LocalRow>>(&self) -> QueryAs<'_, Local, O, LocalArguments> {
        match *self {}
    }

    fn query_as_with<'s, O, A>(&'s self, _: A) -> QueryAs<'s, Local, O, A>
    where
        O: for<'r> FromRow<'r, LocalRow>,
        A: IntoArguments<Local>,
    {
        match *self {}
    }

    fn query_scalar<O>(&self) -> QueryScalar<'_, Local, O, LocalArguments>
    where
        (O,): for<'r> FromRow<'r, LocalRow>,
    {
        match *self {}
    }

    fn query_scalar_with<'s, O, A>(&'s self, _: A) -> QueryScalar<'s, Local, O, A>
    where
        (O,): for<'r> FromRow<'r, LocalRow>,
        A: IntoArguments<Local>,
    {
        match *self {}
    }
}
