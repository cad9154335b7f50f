//! Output of commands: the host's JSON, or text.
//!
//! Columns of tables and fields of records are declared as a list of `heading: value as format`.
//! The value is a JSON pointer without its first slash, and also the default heading. The default
//! format is `text`. Tables show headings in upper case.

use std::{fmt::Display, io::Write};

use serde_json::Value;

use super::{failure::Failure, format::format_value};

pub struct Report {
    pub json: Value,
    pub text: String,
    /// The failure with which the program exits after it has printed the report.
    pub failure: Option<Failure>,
}

impl Report {
    pub fn new(json: Value, text: impl Into<String>) -> Report {
        Report { json, text: text.into(), failure: None }
    }

    /// Returns a table of a list. If it is a page, adds the page number and the total; if it is a
    /// part of a feed, the cursor of the next part.
    pub fn list(json: Value, columns: &str) -> Report {
        let mut members = json.as_object().into_iter().flat_map(|part| part.values());
        let records = members.find(|member| member.is_array()).unwrap_or(&json);
        let mut text = table(records, columns);
        if json["total_page"].as_i64().is_some_and(|pages| pages > 1) {
            text += &format!(
                "\npage {} of {}, {} in total",
                json["page"], json["total_page"], json["total"]
            );
        }
        if let Some(next) = json["next"].as_str() {
            text += &format!("\n\nContinue with --after {next}");
        }
        Report::new(json, text)
    }

    /// Returns one record with one line per field.
    pub fn record(json: Value, fields: &str) -> Report {
        let fields: Vec<Column> = fields.split(", ").map(Column::parse).collect();
        let width = fields.iter().map(|field| field.heading.len()).max().unwrap_or(0);
        let line = |field: &Column| {
            let line = format!("{:width$}  {}", field.heading, field.cell(&json));
            line.trim_end().to_owned()
        };
        let text = fields.iter().map(line).collect::<Vec<_>>().join("\n");
        Report::new(json, text)
    }

    /// Appends a note to the text.
    #[must_use]
    pub fn with_note(mut self, line: &str) -> Report {
        self.text = format!("{}\n\n{line}", self.text);
        self
    }

    #[must_use]
    pub fn with_failure(self, failure: Failure) -> Report {
        Report { failure: Some(failure), ..self }
    }

    /// Adds the failure if `condition` holds.
    #[must_use]
    pub fn refused_if(self, condition: bool, message: impl Display) -> Report {
        if condition { self.with_failure(Failure::refused(message)) } else { self }
    }

    pub fn print(&self, json: bool) {
        let mut out = std::io::stdout().lock();
        let written = match json {
            true => writeln!(out, "{:#}", self.json),
            false if self.text.is_empty() => Ok(()),
            false => writeln!(out, "{}", self.text.trim_end()),
        };
        // The reader may have closed the pipe.
        drop(written);
    }
}

/// A column of a table or a field of a record.
struct Column<'d> {
    heading: &'d str,
    /// Begins with a slash.
    pointer: String,
    format: &'d str,
}

impl<'d> Column<'d> {
    fn parse(declared: &'d str) -> Column<'d> {
        let (heading, value) = declared.split_once(": ").unwrap_or(("", declared));
        let (path, format) = value.split_once(" as ").unwrap_or((value, "text"));
        let heading = if heading.is_empty() { path } else { heading };
        Column { heading, pointer: format!("/{path}"), format }
    }

    fn cell(&self, record: &Value) -> String {
        let at = |pointer: &str| record.pointer(pointer).unwrap_or(&Value::Null);
        let (parent, _) = self.pointer.rsplit_once('/').unwrap_or_default();
        without_control_characters(&format_value(at(&self.pointer), self.format, at(parent)))
    }

    fn is_aligned_right(&self) -> bool {
        ["money", "ms", "number"].contains(&self.format)
    }
}

/// Returns a table with one line per record.
pub fn table(records: &Value, columns: &str) -> String {
    let records = records.as_array().map_or(&[][..], Vec::as_slice);
    if records.is_empty() {
        return "none".to_owned();
    }
    let columns: Vec<Column> = columns.split(", ").map(Column::parse).collect();
    let headings = columns.iter().map(|column| column.heading.to_uppercase()).collect();
    let row = |record| columns.iter().map(|column| column.cell(record)).collect();
    let rows: Vec<Vec<String>> = std::iter::once(headings).chain(records.iter().map(row)).collect();
    let width = |n: usize| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).zip(&columns);
        let cells = cells.map(|((cell, width), column)| match column.is_aligned_right() {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Replaces control characters, which could move the terminal's cursor.
pub fn without_control_characters(cell: &str) -> String {
    cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_are_aligned_and_amounts_have_two_decimals() {
        let columns = "name, amount as money, paid";
        let records = json!([
            { "name": "Ọlá", "amount": 2500.5, "currency": "NGN", "paid": true },
            { "name": "a\u{1b}[2J", "amount": -0.05, "currency": "USD", "paid": null },
        ]);
        assert_eq!(
            Report::list(records.clone(), columns).text,
            "NAME        AMOUNT  PAID\nỌlá    2500.50 NGN  yes\na [2J    -0.05 USD  -"
        );
        let page = json!({ "docs": [], "total_page": 0, "page": 1, "total": 0 });
        assert_eq!(Report::list(page, columns).text, "none");
        let page = json!({ "docs": records, "total_page": 3, "page": 2, "total": 5 });
        assert!(Report::list(page, columns).text.ends_with("\npage 2 of 3, 5 in total"));
    }
}
