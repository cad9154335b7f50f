//! Lists: which page, which period, in which order.

use schemars::JsonSchema;
use serde::Serialize;

use crate::clock::Timestamp;

/// From the first millisecond to before the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub from: Timestamp,
    pub before: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// Counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub number: i64,
    pub limit: i64,
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListOf{T}")]
pub struct Listed<T> {
    /// How many there are in all.
    pub total: i64,
    /// Which page this is.
    pub page: i64,
    /// How many a page holds at most.
    pub per_page: i64,
    /// The page before this one, or 0.
    pub prev: i64,
    /// The page after this one, or 0.
    pub next: i64,
    /// How many pages there are.
    pub total_page: i64,
    /// What is on this page.
    pub docs: Vec<T>,
}

impl Page {
    #[must_use]
    pub fn offset(self) -> i64 {
        (self.number - 1).saturating_mul(self.limit)
    }

    #[must_use]
    pub fn of<T>(self, total: i64, docs: Vec<T>) -> Listed<T> {
        let pages = (total + self.limit - 1) / self.limit;
        Listed {
            total,
            page: self.number,
            per_page: self.limit,
            prev: self.number - 1,
            next: if self.number < pages { self.number + 1 } else { 0 },
            total_page: pages,
            docs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paging_arithmetic() {
        for (number, limit, total, prev, next, pages) in [
            (1, 20, 0, 0, 0, 0),
            (1, 20, 20, 0, 0, 1),
            (1, 20, 21, 0, 2, 2),
            (2, 20, 21, 1, 0, 2),
            (9, 20, 21, 8, 0, 2),
        ] {
            let listed = Page { number, limit }.of::<()>(total, vec![]);
            assert_eq!((listed.prev, listed.next, listed.total_page), (prev, next, pages));
        }
    }
}
