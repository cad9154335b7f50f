//! Statements that are assembled from fixed pieces. All other values are parameters.

use std::{fmt::Write, ops::Deref};

use crate::{clock::Timestamp, values::listing::Period};

/// A statement with its parameters.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct DynamicStatement {
    pub(super) text: String,
    pub(super) values: Vec<SqlValue>,
}

/// A parameter of an assembled statement.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    Text(String),
    /// A text or `NULL`.
    NullableText(Option<String>),
    Integer(i64),
    Boolean(bool),
}

impl DynamicStatement {
    pub fn append(mut self, piece: &'static str) -> DynamicStatement {
        self.text.push_str(piece);
        self
    }

    pub fn bind(mut self, value: impl Into<SqlValue>) -> DynamicStatement {
        self.values.push(value.into());
        let _ = write!(self.text, "${}", self.values.len()); // cannot fail
        self
    }

    /// Appends a condition and its parameter, if there is one.
    pub fn append_if(
        self,
        condition: &'static str,
        value: Option<impl Into<SqlValue>>,
    ) -> DynamicStatement {
        match value {
            Some(value) => self.append(condition).bind(value),
            None => self,
        }
    }

    /// Appends the conditions for the first instant of a period and for the first one after it.
    pub fn append_period(
        self,
        [from, before]: [&'static str; 2],
        period: Option<Period>,
    ) -> DynamicStatement {
        self.append_if(from, period.map(|period| period.from))
            .append_if(before, period.map(|period| period.before))
    }

    /// Appends `IN (…)`; an empty list matches nothing.
    pub fn append_in<T: Deref<Target = str>>(self, texts: &[T]) -> DynamicStatement {
        let mut sql = self.append(" IN (");
        for (n, text) in texts.iter().enumerate() {
            sql = sql.append(if n == 0 { "" } else { ", " }).bind(&**text);
        }
        sql.append(if texts.is_empty() { "NULL)" } else { ")" })
    }

    /// Appends the values of a row in parentheses, after a comma if it is not the first one.
    pub(super) fn append_row(self, is_first: bool, row: Vec<SqlValue>) -> DynamicStatement {
        let mut sql = self.append(if is_first { "(" } else { ", (" });
        for (n, value) in row.into_iter().enumerate() {
            sql = sql.append(if n == 0 { "" } else { ", " }).bind(value);
        }
        sql.append(")")
    }
}

impl From<&'static str> for DynamicStatement {
    fn from(piece: &'static str) -> DynamicStatement {
        DynamicStatement::default().append(piece)
    }
}

macro_rules! sql_values {
    ($($kind:ident: $($from:ty as $convert:expr),+;)+) => {$($(
        impl From<$from> for SqlValue {
            fn from(value: $from) -> SqlValue {
                SqlValue::$kind($convert(value))
            }
        }
    )+)+};
}

sql_values! {
    Text: String as String::from, &String as String::from, &str as String::from;
    NullableText: Option<String> as Option::from;
    Integer: i64 as i64::from, Timestamp as |at: Timestamp| at.0;
    Boolean: bool as bool::from;
}
