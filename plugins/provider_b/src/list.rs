//! Lists that Flutterwave filters by transaction: refunds and chargebacks.

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
pub(crate) fn fetch_page(name: &str, query: &str, page: u64) -> Result<(Vec<RawJson>, u64), Fault> {
    let response = api::get(&format!("/{name}?{query}&page={page}"))?;
    let pages = response.meta["page_info"]["total_pages"].as_u64().unwrap_or(1);
    Ok((response.data.read()?, pages))
}
