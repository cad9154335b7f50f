//! Output of commands: the host's JSON, or text.

use std::io::Write;

use serde_json::Value;
use tollhouse_platform::values::money::Minor;

use super::failure::Failure;

/// The output of a command.
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

    /// Returns a table with one line per record.
    pub fn table(json: Value, records: &Value, columns: &[Column]) -> Report {
        let text = table(records.as_array().map_or(&[], Vec::as_slice), columns);
        Report::new(json, text)
    }

    /// Returns a page of a list, with the page number and the total.
    pub fn page(json: Value, columns: &[Column]) -> Report {
        let mut text = table(json["docs"].as_array().map_or(&[], Vec::as_slice), columns);
        if json["total_page"].as_i64().is_some_and(|pages| pages > 1) {
            let line = format!(
                "\npage {} of {}, {} in total",
                json["page"], json["total_page"], json["total"]
            );
            text.push_str(&line);
        }
        Report::new(json, text)
    }

    /// Returns a part of a feed, with the cursor of the next one.
    pub fn feed_page(json: Value, name: &str, columns: &[Column]) -> Report {
        let report = Report::table(json.clone(), &json[name], columns);
        match json["next"].as_str() {
            Some(next) => report.with_note(&format!("Continue with --after {next}")),
            None => report,
        }
    }

    /// Returns one record with one line per field.
    pub fn record(json: Value, fields: &[Column]) -> Report {
        let width = fields.iter().map(|field| field.title.len()).max().unwrap_or(0);
        let lines = fields.iter().map(|field| {
            format!("{:width$}  {}", field.title, without_control_characters(&(field.cell)(&json)))
                .trim_end()
                .to_owned()
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        Report::new(json, text)
    }

    /// Appends a table to the text.
    #[must_use]
    pub fn with_table(self, records: &Value, columns: &[Column]) -> Report {
        self.with_note(&table(records.as_array().map_or(&[], Vec::as_slice), columns))
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

/// A table column or a field of a record.
#[derive(Clone, Copy)]
pub struct Column {
    title: &'static str,
    cell: fn(&Value) -> String,
    right: bool,
}

pub const fn left(title: &'static str, cell: fn(&Value) -> String) -> Column {
    Column { title, cell, right: false }
}

pub const fn right(title: &'static str, cell: fn(&Value) -> String) -> Column {
    Column { title, cell, right: true }
}

/// Formats a value; `-` if it is missing or empty.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Formats an amount with two decimals and its currency.
pub fn money(amount: &Value, currency: &Value) -> String {
    let minor = match amount {
        Value::Number(number) => Minor::from_major(number).ok(),
        _ => None,
    };
    match minor {
        Some(Minor(minor)) => {
            let sign = if minor < 0 { "-" } else { "" };
            let (whole, cents) = (minor.unsigned_abs() / 100, minor.unsigned_abs() % 100);
            format!("{sign}{whole}.{cents:02} {}", text(currency))
        }
        None => format!("{} {}", text(amount), text(currency)),
    }
}

fn table(records: &[Value], columns: &[Column]) -> String {
    if records.is_empty() {
        return "none".to_owned();
    }
    let titles = columns.iter().map(|column| column.title.to_owned()).collect();
    let row = |record| {
        columns.iter().map(|column| without_control_characters(&(column.cell)(record))).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(titles).chain(records.iter().map(row)).collect();
    let width = |n: usize| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells =
            row.iter().zip(&widths).zip(columns).map(|((cell, width), column)| {
                match column.right {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:width$}"),
                }
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
        let columns = [
            left("NAME", |v| text(&v["name"])),
            right("AMOUNT", |v| money(&v["amount"], &v["currency"])),
            left("PAID", |v| text(&v["paid"])),
        ];
        let records = json!([
            { "name": "Ọlá", "amount": 2500.5, "currency": "NGN", "paid": true },
            { "name": "a\u{1b}[2J", "amount": -0.05, "currency": "USD", "paid": null },
        ]);
        let report = Report::table(records.clone(), &records, &columns);
        assert_eq!(
            report.text,
            "NAME        AMOUNT  PAID\nỌlá    2500.50 NGN  yes\na [2J    -0.05 USD  -"
        );
        let page = json!({ "docs": [], "total_page": 0, "page": 1, "total": 0 });
        assert_eq!(Report::page(page, &columns).text, "none");
        let page = json!({ "docs": records, "total_page": 3, "page": 2, "total": 5 });
        assert!(Report::page(page, &columns).text.ends_with("\npage 2 of 3, 5 in total"));
    }
}
