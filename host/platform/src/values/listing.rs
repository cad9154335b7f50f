//! Lists: pages, periods and sort order.

use chrono::{Datelike, Days, Months, NaiveDate, NaiveTime};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    clock::Timestamp,
    error::{Error, Result},
};

/// A period of time: includes `from`, excludes `before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub from: Timestamp,
    pub before: Timestamp,
}

impl Period {
    /// Returns a period of whole days in UTC, including `last`; `None` if no day follows it.
    pub fn of_days(first: NaiveDate, last: NaiveDate) -> Option<Period> {
        let begins =
            |day: NaiveDate| Timestamp(day.and_time(NaiveTime::MIN).and_utc().timestamp_millis());
        Some(Period { from: begins(first), before: begins(last.succ_opt()?) })
    }

    /// Returns the period of a name in [`PERIODS`], relative to `today`.
    pub fn named(name: &str, today: NaiveDate) -> Option<Period> {
        let monday = today - Days::new(today.weekday().num_days_from_monday().into());
        let (month, january) = (today.with_day(1)?, today.with_ordinal(1)?);
        let before = |day: NaiveDate| day.pred_opt();
        let (first, last) = match name {
            "today" => (today, today),
            "yesterday" => (before(today)?, before(today)?),
            "this_week" => (monday, monday + Days::new(6)),
            "last_week" => (monday - Days::new(7), before(monday)?),
            "this_month" => (month, before(month + Months::new(1))?),
            "last_month" => (month - Months::new(1), before(month)?),
            "this_year" => (january, before(january + Months::new(12))?),
            "last_year" => (january - Months::new(12), before(january)?),
            _ => return None,
        };
        Period::of_days(first, last)
    }
}

/// Names of periods; weeks begin on Monday.
pub const PERIODS: [&str; 8] = [
    "today", "yesterday", "this_week", "last_week", "this_month", "last_month", "this_year",
    "last_year",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    Ascending,
    Descending,
}

/// The order of records with times; ids break ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    Created(SortOrder),
    Updated(SortOrder),
}

impl ListOrder {
    /// `created` takes precedence. Default: newest first.
    pub fn new(created: Option<SortOrder>, updated: Option<SortOrder>) -> ListOrder {
        match (created, updated) {
            (None, Some(updated)) => ListOrder::Updated(updated),
            (created, _) => ListOrder::Created(created.unwrap_or(SortOrder::Descending)),
        }
    }

    /// Returns the `ORDER BY` clause.
    pub fn order_by(self) -> &'static str {
        match self {
            ListOrder::Created(SortOrder::Ascending) => " ORDER BY created_at, id",
            ListOrder::Created(SortOrder::Descending) => " ORDER BY created_at DESC, id DESC",
            ListOrder::Updated(SortOrder::Ascending) => " ORDER BY updated_at, id",
            ListOrder::Updated(SortOrder::Descending) => " ORDER BY updated_at DESC, id DESC",
        }
    }
}

/// A requested page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Counted from 1; 0 for the items after a known one.
    pub number: i64,
    pub limit: i64,
}

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListOf{T}")]
pub struct ListPage<T> {
    /// Total number of items.
    pub total: i64,
    /// Number of this page, counted from 1; 0 with `after`.
    pub page: i64,
    /// Maximum number of items per page.
    pub per_page: i64,
    /// Number of the previous page, or 0.
    pub prev: i64,
    /// Number of the next page, or 0. With `after`: 1 if items follow, else 0.
    pub next: i64,
    /// Total number of pages.
    pub total_page: i64,
    /// Items of this page.
    pub docs: Vec<T>,
}

impl<T> ListPage<T> {
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> ListPage<U> {
        let ListPage { total, page, per_page, prev, next, total_page, docs } = self;
        let docs = docs.into_iter().map(convert).collect();
        ListPage { total, page, per_page, prev, next, total_page, docs }
    }
}

/// Returns the id of the last item of a list that was read up to `limit`: the cursor of the next
/// request. `None` if nothing can follow.
pub fn next_cursor<T>(items: &[T], limit: i64, id: impl Fn(&T) -> &str) -> Option<String> {
    let is_full = i64::try_from(items.len()).is_ok_and(|read| read == limit);
    items.last().filter(|_| is_full).map(|last| id(last).to_owned())
}

/// The error of a request with an unknown `after`.
pub fn unknown_after() -> Error {
    Error::invalid("the after field must be the id of a listed record")
}

/// The error of a request with `after` for an order in which the place of a record can change.
pub fn unstable_order() -> Error {
    Error::invalid("the after field must be omitted if the list is not sorted by created_at")
}

impl PageRequest {
    /// Returns the request for a page, or for up to `limit` items after a known one.
    pub fn new(number: i64, limit: i64, after: Option<&str>) -> Result<PageRequest> {
        match after {
            None => Ok(PageRequest { number, limit }),
            Some(_) if number == 1 => Ok(PageRequest { number: 0, limit }),
            Some(_) => Err(Error::invalid("the page field must be omitted if after is set")),
        }
    }

    pub fn offset(self) -> i64 {
        (self.number - 1).max(0).saturating_mul(self.limit)
    }

    /// Returns the number of items to read: after a known item one more, which shows whether others
    /// follow.
    pub fn items_to_read(self) -> i64 {
        self.limit + i64::from(self.number == 0)
    }

    pub fn to_list_page<T>(self, total: i64, mut docs: Vec<T>) -> ListPage<T> {
        let pages = (total + self.limit - 1) / self.limit;
        let has_next = match self.number {
            0 => i64::try_from(docs.len()).is_ok_and(|read| read > self.limit),
            page => page < pages,
        };
        docs.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        ListPage {
            total,
            page: self.number,
            per_page: self.limit,
            prev: (self.number - 1).max(0),
            next: if has_next { self.number + 1 } else { 0 },
            total_page: pages,
            docs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_periods_are_relative_to_today() {
        for (today, name, first, last) in [
            ("2026-11-22", "today", "2026-11-22", "2026-11-22"),
            ("2026-01-01", "yesterday", "2025-12-31", "2025-12-31"),
            ("2026-11-22", "this_week", "2026-11-16", "2026-11-22"), // a Sunday
            ("2026-11-23", "this_week", "2026-11-23", "2026-11-29"), // a Monday
            ("2026-01-01", "last_week", "2025-12-22", "2025-12-28"),
            ("2024-02-29", "this_month", "2024-02-01", "2024-02-29"),
            ("2024-03-31", "last_month", "2024-02-01", "2024-02-29"),
            ("2026-01-31", "last_month", "2025-12-01", "2025-12-31"),
            ("2026-11-22", "this_year", "2026-01-01", "2026-12-31"),
            ("2024-02-29", "last_year", "2023-01-01", "2023-12-31"),
        ] {
            let day = |text: &str| text.parse::<NaiveDate>().unwrap();
            let expected = Period::of_days(day(first), day(last));
            assert_eq!(Period::named(name, day(today)), expected, "{name} on {today}");
        }
        assert_eq!(Period::named("next_year", NaiveDate::default()), None);
    }

    #[test]
    fn prev_is_0_on_the_first_page_and_next_on_the_last() {
        for (number, limit, total, prev, next, pages) in [
            (1, 20, 0, 0, 0, 0),
            (1, 20, 20, 0, 0, 1),
            (1, 20, 21, 0, 2, 2),
            (2, 20, 21, 1, 0, 2),
            (9, 20, 21, 8, 0, 2),
        ] {
            let listed = PageRequest { number, limit }.to_list_page::<()>(total, vec![]);
            assert_eq!((listed.prev, listed.next, listed.total_page), (prev, next, pages));
        }
    }
}
