//! Statements that are assembled from fixed pieces. All other values are parameters.

use std::fmt::Write;

use crate::{clock::Timestamp, values::listing::Period};

/// A statement with its parameters.
#[derive(Clone, Debug, Default)]
pub struct DynamicStatement {
    pub(super) text: String,
    pub(super) values: Vec<SqlValue>,
}

/// A parameter of an assembled statement.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    Text(String),
    Integer(i64),
    Boolean(bool),
}

impl DynamicStatement {
    /// Appends a piece.
    #[must_use]
    pub fn append(mut self, piece: &'static str) -> DynamicStatement {
        self.text.push_str(piece);
        self
    }

    /// Appends a parameter.
    #[must_use]
    pub fn bind(mut self, value: impl Into<SqlValue>) -> DynamicStatement {
        self.values.push(value.into());
        let _ = write!(self.text, "${}", self.values.len()); // cannot fail
        self
    }

    /// Appends a condition and its parameter, if there is one.
    #[must_use]
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

    /// Appends the conditions for the first instant of a period and for the one after it.
    #[must_use]
    pub fn append_period(
        self,
        [from, before]: [&'static str; 2],
        period: Option<Period>,
    ) -> DynamicStatement {
        self.append_if(from, period.map(|period| period.from))
            .append_if(before, period.map(|period| period.before))
    }

    /// Appends `IN (…)`; an empty list matches nothing.
    #[must_use]
    pub fn append_in(self, texts: &[String]) -> DynamicStatement {
        let mut sql = self.append(" IN (");
        for (n, text) in texts.iter().enumerate() {
            sql = sql.append(if n == 0 { "" } else { ", " }).bind(text.as_str());
        }
        sql.append(if texts.is_empty() { "NULL)" } else { ")" })
    }
}

impl From<&'static str> for DynamicStatement {
    fn from(piece: &'static str) -> DynamicStatement {
        DynamicStatement::default().append(piece)
    }
}

impl From<&String> for SqlValue {
    fn from(text: &String) -> SqlValue {
        SqlValue::Text(text.clone())
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> SqlValue {
        SqlValue::Text(text.to_owned())
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> SqlValue {
        SqlValue::Text(text)
    }
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> SqlValue {
        SqlValue::Integer(number)
    }
}

impl From<bool> for SqlValue {
    fn from(flag: bool) -> SqlValue {
        SqlValue::Boolean(flag)
    }
}

impl From<Timestamp> for SqlValue {
    fn from(at: Timestamp) -> SqlValue {
        SqlValue::Integer(at.0)
    }
}
