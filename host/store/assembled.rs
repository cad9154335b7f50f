//! Statements that are put together from fixed pieces; whatever came from elsewhere is a parameter.

use std::fmt::Write;

use crate::clock::Timestamp;

/// A statement with its parameters.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    pub(super) text: String,
    pub(super) values: Vec<Value>,
}

/// A parameter of a statement that is put together.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Whole(i64),
    Flag(bool),
}

impl Assembled {
    /// The next piece.
    #[must_use]
    pub fn then(mut self, piece: &'static str) -> Assembled {
        self.text.push_str(piece);
        self
    }

    /// A parameter in this place.
    #[must_use]
    pub fn value(mut self, value: impl Into<Value>) -> Assembled {
        self.values.push(value.into());
        let _ = write!(self.text, "${}", self.values.len()); // a text takes whatever is written
        self
    }

    /// That what stands before is one of these; of none, nothing is.
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
