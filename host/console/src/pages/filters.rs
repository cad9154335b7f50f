//! The page and the filters of a list. Both are in the URL, so that a list can be bookmarked.

use std::collections::BTreeMap;

use axum::extract::Query;

use super::PAGE_SIZE;
use crate::api::path;

/// The query of a list's URL.
pub type ListQuery = Query<BTreeMap<String, String>>;

/// A field that filters a list.
pub struct Filter {
    pub name: &'static str,
    pub label: &'static str,
    /// The values to choose from; empty for a text.
    pub choices: &'static [&'static str],
    pub value: String,
}

/// The filters of a list: each with its name in the interface, its label and its choices.
pub type Declared = &'static [(&'static str, &'static str, &'static [&'static str])];

/// A list with its page and its filters.
pub struct Filtered {
    pub filters: Vec<Filter>,
    page: String,
}

impl Filtered {
    pub fn new(Query(sent): &ListQuery, declared: Declared) -> Filtered {
        let value = |name: &str| sent.get(name).map(|value| value.trim().to_owned());
        let filter = |&(name, label, choices)| {
            let value = value(name).unwrap_or_default();
            Filter { name, label, choices, value }
        };
        let filters = declared.iter().map(filter).collect();
        Filtered { filters, page: value("page").unwrap_or_default() }
    }

    /// Returns the query for the interface.
    pub fn query(&self) -> Vec<(&str, &str)> {
        let mut query = vec![("page", &*self.page), ("limit", PAGE_SIZE)];
        query.extend(self.values());
        query
    }

    fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.filters.iter().map(|filter| (filter.name, &*filter.value))
    }

    /// Returns the path of another page of the list under these segments.
    pub fn page(&self, segments: &[&str], page: u64) -> String {
        let page = page.to_string();
        let query: Vec<_> = [("page", &*page)].into_iter().chain(self.values()).collect();
        path(segments, &query)
    }
}
