//! Statements that are assembled from fixed pieces. All other values are parameters.

use std::fmt::Write;

use crate::clock::Timestamp;

/// A statement with its parameters.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    pub(super) text: String,
    pub(super) values: Vec<Value>,
}

/// A parameter of an assembled statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Whole(i64),
    Flag(bool),
}

impl Assembled {
    /// Appends a piece.
    #[must_use]
    pub fn then(mut self, piece: &'static str) -> Assembled {
        self.text.push_str(piece);
        self
    }

    /// Appends a parameter.
    #[must_use]
    pub fn value(mut self, value: impl Into<Value>) -> Assembled {
        self.values.push(value.into());
        let _ = write!(self.text, "${}", self.values.len()); // cannot fail
        self
    }

    /// Appends `IN (…)`; an empty list matches nothing.
    #[must_use]
    pub fn among(self, texts: &[String]) -> Assembled {
        let mut sql = self.then(" IN (");
        for (n, text) in texts.iter().enumerate() {
            sql = sql.then(if n == 0 { "" } else { ", " }).value(text.as_str());
        }
        sql.then(if texts.is_empty() { "NULL)" } else { ")" })
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Whole(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Flag(flag)
    }
}

impl From<Timestamp> for Value {
    fn from(at: Timestamp) -> Value {
        Value::Whole(at.0)
    }
}
