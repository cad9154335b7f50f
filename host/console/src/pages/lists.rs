//! Lists of records: a table with filters and pages, or all records as CSV.

use std::collections::BTreeMap;

use axum::{
    extract::Query,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::Value;

use super::{ListPage, Parent, company_frame, views::SavedViews};
use crate::{
    api::{ApiFailure, ApiResult, path, unexpected},
    form::FieldsForm,
    format::{Column, Pages, Table, plain},
    page::{Frame, PageResult, render},
    session::Session,
};

/// Number of records on a page.
const PAGE_SIZE: &str = "25";
/// Number of records fetched at once for a CSV file, and its maximum number of records.
const EXPORT_PAGE_SIZE: &str = "1000";
const MAX_EXPORTED: usize = 50_000;

/// The query of a list's URL: its page and its filters, so that it can be bookmarked.
pub type ListQuery = Query<BTreeMap<String, String>>;

/// The filters of a list: each with its name in the interface, its label and its choices.
pub type Declared = &'static [(&'static str, &'static str, &'static [&'static str])];

/// A field that filters a list.
pub struct Filter {
    pub name: &'static str,
    pub label: &'static str,
    /// The values to choose from; empty for a text.
    pub choices: &'static [&'static str],
    pub value: String,
}

/// How the interface divides a list.
#[derive(Clone, Copy)]
pub enum Paging {
    /// Not at all.
    Whole,
    /// Not at all. The records are in the field with this name.
    WholeField(&'static str),
    /// By the number of the page.
    Numbered,
    /// By the number of the page or, so that no record is skipped or repeated, after the id of a
    /// record.
    NumberedOrKeyset,
    /// After a cursor. The records are in the field with this name.
    Cursor(&'static str),
}

impl Paging {
    fn records(self, found: &Value) -> &Value {
        match self {
            Paging::Whole => found,
            Paging::Numbered | Paging::NumberedOrKeyset => &found["docs"],
            Paging::Cursor(field) | Paging::WholeField(field) => &found[field],
        }
    }
}

/// A list of the interface.
pub struct List<'c> {
    pub title: &'static str,
    /// The segments of the list's path in the interface.
    pub source: &'c [&'c str],
    pub paging: Paging,
    pub filters: Declared,
    pub columns: Vec<Column<'c>>,
    /// Text for an empty list.
    pub empty: &'static str,
}

impl List<'_> {
    /// Shows a list of the service.
    pub async fn show(self, session: &Session, sent: &ListQuery) -> PageResult {
        if is_export(sent) {
            return Ok(self.export(session, sent).await?);
        }
        let (filters, table, _) = self.fetch(session, sent).await?;
        let frame = Frame::new(session, self.title, self.title);
        let views = SavedViews::fetch(session, self.source, &filters).await?;
        render(&ListPage { frame, parent: None, form: None, filters, views, table })
    }

    /// Shows a list of a company.
    pub async fn show_of_company(
        self,
        session: &Session,
        company: &str,
        sent: &ListQuery,
    ) -> PageResult {
        self.show_with(session, company, sent, None).await
    }

    /// Shows a list of a company, with a form above it.
    pub async fn show_with(
        self,
        session: &Session,
        company: &str,
        sent: &ListQuery,
        form: Option<FieldsForm>,
    ) -> PageResult {
        if is_export(sent) {
            return Ok(self.export(session, sent).await?);
        }
        let (filters, table, _) = self.fetch(session, sent).await?;
        render(&ListPage {
            frame: company_frame(session, company, self.title).await?,
            parent: Parent::of_company(session),
            form,
            views: SavedViews::fetch(session, self.source, &filters).await?,
            filters,
            table,
        })
    }

    /// Fetches a page of the list. Returns its filters, its table and the response.
    pub async fn fetch(
        &self,
        session: &Session,
        sent: &ListQuery,
    ) -> ApiResult<(Vec<Filter>, Table, Value)> {
        let (filters, value) = (self.filters(sent), |name| sent.get(name).map_or("", |v| v.trim()));
        let mut query = filter_query(&filters);
        match self.paging {
            Paging::Whole | Paging::WholeField(_) => {}
            Paging::Numbered | Paging::NumberedOrKeyset => {
                query.extend([("page", value("page")), ("limit", PAGE_SIZE)]);
            }
            Paging::Cursor(_) => query.extend([("after", value("after")), ("limit", PAGE_SIZE)]),
        }
        let found = session.get(self.source, &query).await?;
        let records = self.paging.records(&found);
        let table = Table::new(self.title, records, &self.columns, self.empty);
        let pages = self.pages(&filters, &found);
        Ok((filters, table.paged(pages), found))
    }

    fn filters(&self, sent: &ListQuery) -> Vec<Filter> {
        let filter = |&(name, label, choices)| {
            let value = sent.get(name).map(|value| value.trim().to_owned()).unwrap_or_default();
            Filter { name, label, choices, value }
        };
        self.filters.iter().map(filter).collect()
    }

    fn pages(&self, filters: &[Filter], found: &Value) -> Pages {
        let href = |more: &[(&str, &str)]| {
            let query = [filter_query(filters), more.to_vec()].concat();
            path(&[], &query).trim_start_matches('/').to_owned()
        };
        let number = |field: &str| found[field].as_u64().unwrap_or_default();
        let (page, count) = (number("page"), number("total_page"));
        let numbered = |page: u64| href(&[("page", &page.to_string())]);
        let (previous, next) = match self.paging {
            Paging::Whole | Paging::WholeField(_) => (None, None),
            Paging::Numbered | Paging::NumberedOrKeyset => {
                ((page > 1).then(|| numbered(page - 1)), (page < count).then(|| numbered(page + 1)))
            }
            Paging::Cursor(_) => {
                (None, found["next"].as_str().map(|next| href(&[("after", next)])))
            }
        };
        let position = match (self.paging, count) {
            (Paging::Numbered | Paging::NumberedOrKeyset, 2..) => {
                format!("Page {page} of {count}, {} in total", number("total"))
            }
            _ => String::new(),
        };
        Pages { position, previous, next, export: href(&[("format", "csv")]) }
    }

    /// Returns all records of the list as CSV.
    pub async fn export(&self, session: &Session, sent: &ListQuery) -> ApiResult<Response> {
        let filters = self.filters(sent);
        let (mut rows, mut position) = (Vec::new(), Some(String::new()));
        while let Some(from) = position {
            let mut query = filter_query(&filters);
            let by = if matches!(self.paging, Paging::Numbered) { "page" } else { "after" };
            if !matches!(self.paging, Paging::Whole | Paging::WholeField(_)) {
                query.extend([(by, &*from), ("limit", EXPORT_PAGE_SIZE)]);
            }
            let found = session.get(self.source, &query).await?;
            let records = self.paging.records(&found).as_array().map_or(&[][..], Vec::as_slice);
            rows.extend(records.iter().map(|record| csv_cells(&self.columns, record)));
            if rows.len() > MAX_EXPORTED {
                return Err(ApiFailure::too_many(MAX_EXPORTED));
            }
            position = self.next_position(&found, records);
        }
        let mut csv = csv::Writer::from_writer(Vec::new());
        csv.write_record(csv_headings(&self.columns)).map_err(unexpected)?;
        for row in rows {
            csv.write_record(row).map_err(unexpected)?;
        }
        let bytes = csv.into_inner().map_err(unexpected)?;
        let name = self.title.to_lowercase().replace(' ', "-");
        let headers = [
            (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
            (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.csv\"")),
        ];
        Ok((headers, bytes).into_response())
    }

    /// Returns the position of the page that follows, if there is one.
    fn next_position(&self, found: &Value, records: &[Value]) -> Option<String> {
        match self.paging {
            Paging::Whole | Paging::WholeField(_) => None,
            Paging::Numbered => {
                let page = found["page"].as_u64()?;
                (page < found["total_page"].as_u64()?).then(|| (page + 1).to_string())
            }
            Paging::NumberedOrKeyset => {
                let is_full = records.len() >= EXPORT_PAGE_SIZE.parse().ok()?;
                records.last().filter(|_| is_full).map(|last| plain(&last["id"]))
            }
            Paging::Cursor(_) => found["next"].as_str().map(str::to_owned),
        }
    }
}

/// Returns whether the list is to be downloaded.
pub fn is_export(sent: &ListQuery) -> bool {
    sent.get("format").is_some_and(|format| format == "csv")
}

fn filter_query(filters: &[Filter]) -> Vec<(&str, &str)> {
    filters.iter().map(|filter| (filter.name, &*filter.value)).collect()
}

/// Returns the headings of a file. An amount has a second column for its currency.
fn csv_headings(columns: &[Column<'_>]) -> Vec<String> {
    let mut headings = Vec::new();
    for column in columns.iter().filter(|column| !column.heading.is_empty()) {
        headings.push(column.heading.to_owned());
        headings.extend(column.is_money.then(|| format!("{} currency", column.heading)));
    }
    headings
}

fn csv_cells(columns: &[Column<'_>], record: &Value) -> Vec<String> {
    let mut cells = Vec::new();
    for column in columns.iter().filter(|column| !column.heading.is_empty()) {
        let (text, currency) = (column.cell)(record).into_csv();
        cells.push(text);
        cells.extend(column.is_money.then_some(currency));
    }
    cells
}
