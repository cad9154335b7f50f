//! Flutterwave's lists: all items of a transaction, or a part of a longer list.

use tollhouse_plugin::http;
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::{Fault, FaultCategory};

use crate::api;

/// Limit on the pages to read, in case Flutterwave ignores the filter.
const MAX_PAGES: u64 = 10;

/// Returns all items of a list for a transaction, and possibly items of other transactions.
///
/// An incomplete list is a fault. `not-found` and [`api::FORBIDDEN`] mean that Flutterwave does not
/// have the list or does not show it to this account; other refusals are `unavailable`.
pub(crate) fn fetch(name: &str, transaction: &str) -> Result<Vec<RawJson>, Fault> {
    let mut all = Vec::new();
    for page in 1..=MAX_PAGES {
        let query = format!("id={}", http::encode(transaction));
        let (items, pages) = match fetch_page(name, &query, page) {
            Ok(found) => found,
            Err(fault) if fault.category == FaultCategory::NotFound && page == 1 => {
                return Err(fault);
            }
            Err(fault) if fault.is_refusal() => return Err(fault.into_unavailable()),
            Err(fault) => return Err(fault),
        };
        all.extend(items);
        if pages <= page {
            return Ok(all);
        }
    }
    Err(Fault::unavailable(format!("Flutterwave's list of {name} is too long to search")))
}

/// Returns a page of a list with this query, and the number of pages.
fn fetch_page(name: &str, query: &str, page: u64) -> Result<(Vec<RawJson>, u64), Fault> {
    let response = api::get(&format!("/{name}?{query}&page={page}"))?;
    let pages = response.meta["page_info"]["total_pages"].as_u64().unwrap_or(1);
    Ok((response.data.read()?, pages))
}

/// Returns at most `size` items of a list with this query, and the cursor of the next part.
pub(crate) fn fetch_part(
    name: &str,
    query: &str,
    cursor: Option<&str>,
    size: usize,
) -> Result<(Vec<RawJson>, Option<String>), Fault> {
    let position = Position::parse(cursor)?;
    let (items, pages) = match fetch_page(name, query, position.page) {
        // The first page exists, so the refusal does not mean that the list is empty.
        Err(fault) if fault.is_refusal() && position.page > 1 => {
            return Err(fault.into_unavailable());
        }
        found => found?,
    };
    Ok(position.split(items, size, pages))
}

/// A part of a page of Flutterwave's list.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    page: u64,
    /// Items of the page before this part.
    offset: usize,
}

impl Position {
    /// Parses a cursor: the number of the page, a dot, and the offset.
    pub(crate) fn parse(cursor: Option<&str>) -> Result<Position, Fault> {
        let Some(cursor) = cursor else { return Ok(Position { page: 1, offset: 0 }) };
        let parts = cursor.split_once('.');
        parts
            .and_then(|(page, offset)| {
                Some(Position { page: page.parse().ok()?, offset: offset.parse().ok()? })
            })
            .ok_or_else(|| Fault::invalid("cursor", "not a cursor of this plugin"))
    }

    /// Returns at most `size` items of the page at this position, and the cursor of the next part,
    /// which is in this page or the next one.
    pub(crate) fn split(
        self,
        items: Vec<RawJson>,
        size: usize,
        pages: u64,
    ) -> (Vec<RawJson>, Option<String>) {
        let Position { page, offset } = self;
        let next = match offset.saturating_add(size) {
            offset if offset < items.len() => Some(format!("{page}.{offset}")),
            _ if page < pages => Some(format!("{}.0", page + 1)),
            _ => None,
        };
        (items.into_iter().skip(offset).take(size).collect(), next)
    }
}
