//! Formatting of values and tables.

use askama::Template;
use serde_json::Value;

use tollhouse_platform::values::spreadsheet::escape_formula;

/// A narrow space that does not break a line.
const THIN_SPACE: char = '\u{202F}';

/// A value in a table or a list of facts.
#[derive(Template)]
#[template(path = "cell.html")]
pub enum Cell {
    Empty,
    Text(String),
    /// An id or a code, in a font of fixed width.
    Code(String),
    /// An amount as a decimal number.
    Money {
        amount: String,
        currency: String,
    },
    Time {
        iso: String,
        text: String,
    },
    /// A state, with its tone: `good`, `bad`, `wait` or `plain`.
    State {
        text: String,
        tone: &'static str,
    },
    Link {
        href: String,
        text: String,
    },
    /// Texts below each other.
    List(Vec<String>),
    /// Names with values, for example the detail of an audit log entry.
    Pairs(Vec<(String, String)>),
    /// A form of one button.
    Button {
        action: String,
        label: &'static str,
        form_token: String,
        /// The question to confirm first; empty if there is none.
        question: &'static str,
    },
}

impl Cell {
    pub fn not_empty(self) -> Option<Cell> {
        (!matches!(self, Cell::Empty)).then_some(self)
    }

    pub fn text(value: &Value) -> Cell {
        match plain(value) {
            text if text.is_empty() => Cell::Empty,
            text => Cell::Text(text),
        }
    }

    pub fn code(value: &Value) -> Cell {
        match plain(value) {
            text if text.is_empty() => Cell::Empty,
            text => Cell::Code(text),
        }
    }

    pub fn money(amount: &Value, currency: &Value) -> Cell {
        match amount {
            Value::Number(amount) => {
                Cell::Money { amount: amount.to_string(), currency: plain(currency) }
            }
            _ => Cell::Empty,
        }
    }

    /// Formats a time in UTC. A script shows it in the zone of the browser.
    pub fn time(value: &Value) -> Cell {
        let Some(iso) = value.as_str() else { return Cell::Empty };
        let text = iso.get(..16).unwrap_or(iso).replace('T', " ");
        Cell::Time { iso: iso.to_owned(), text: format!("{text} UTC") }
    }

    pub fn state(value: &Value) -> Cell {
        match value.as_str() {
            None | Some("") => Cell::Empty,
            Some(state) => Cell::State { text: state.replace('_', " "), tone: tone(state) },
        }
    }

    /// Formats an object. A change shows the values before and after.
    pub fn pairs(value: &Value) -> Cell {
        let fields = value.as_object().into_iter().flatten();
        let pairs = fields.map(|(name, value)| {
            let value = match (value.get("before"), value.get("after")) {
                (Some(before), Some(after)) => format!("{} → {}", shown(before), shown(after)),
                _ => shown(value),
            };
            (name.replace('_', " "), value)
        });
        match pairs.collect::<Vec<_>>() {
            pairs if pairs.is_empty() => Cell::Empty,
            pairs => Cell::Pairs(pairs),
        }
    }

    pub fn link(href: String, value: &Value) -> Cell {
        Cell::Link { href, text: plain(value) }
    }

    /// Returns the text of a CSV file, and the currency of an amount.
    pub fn into_csv(self) -> (String, String) {
        let text = match self {
            Cell::Empty | Cell::Button { .. } => String::new(),
            Cell::Money { amount, currency } => return (amount, currency),
            Cell::Time { iso, .. } => iso,
            Cell::Text(text)
            | Cell::Code(text)
            | Cell::State { text, .. }
            | Cell::Link { text, .. } => escape_formula(&text),
            Cell::List(texts) => escape_formula(&texts.join("; ")),
            Cell::Pairs(pairs) => {
                let pairs = pairs.iter().map(|(name, value)| format!("{name}: {value}"));
                escape_formula(&pairs.collect::<Vec<_>>().join("; "))
            }
        };
        (text, String::new())
    }
}

/// Returns the tone of a state.
fn tone(state: &str) -> &'static str {
    match state {
        "success" | "succeeded" | "sent" | "delivered" | "done" | "approved" | "active"
        | "resolved" | "live" | "live, this host" | "ok" => "good",
        "failed" | "refused" | "rejected" | "reversed" | "undeliverable" | "exhausted"
        | "mismatched" | "stalled" | "lost" | "quarantined" | "unavailable" | "misconfigured"
        | "other" | "timed_out" => "bad",
        "pending" | "requested" | "queued" | "open" | "waiting" | "canary" | "former" => "wait",
        _ => "plain",
    }
}

fn shown(value: &Value) -> String {
    match plain(value) {
        text if text.is_empty() => "–".to_owned(),
        text => text,
    }
}

/// Returns a value as text; a list with commas.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Groups the digits of a decimal number by thousands, with at least two decimals.
pub fn grouped(number: &str) -> String {
    let (sign, digits) =
        number.strip_prefix('-').map_or(("", number), |digits| ("\u{2212}", digits));
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let mut text = String::from(sign);
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n) % 3 == 0 {
            text.push(THIN_SPACE);
        }
        text.push(digit);
    }
    format!("{text}.{decimals:0<2}")
}

/// A column of a table: its heading, and the cell of a record. Amounts and other numbers are
/// aligned right.
pub struct Column<'c> {
    pub heading: &'static str,
    pub right: bool,
    pub is_money: bool,
    pub cell: Box<dyn Fn(&Value) -> Cell + Send + Sync + 'c>,
}

pub fn column<'c>(
    heading: &'static str,
    cell: impl Fn(&Value) -> Cell + Send + Sync + 'c,
) -> Column<'c> {
    Column { heading, right: false, is_money: false, cell: Box::new(cell) }
}

pub fn right<'c>(
    heading: &'static str,
    cell: impl Fn(&Value) -> Cell + Send + Sync + 'c,
) -> Column<'c> {
    Column { right: true, ..column(heading, cell) }
}

/// Returns a column of amounts. `amount` and `currency` are names of fields of a record.
pub fn money(
    heading: &'static str,
    amount: &'static str,
    currency: &'static str,
) -> Column<'static> {
    let cell = move |record: &Value| Cell::money(&record[amount], &record[currency]);
    Column { is_money: true, ..right(heading, cell) }
}

/// A table of records.
#[derive(Template)]
#[template(path = "table.html")]
pub struct Table {
    caption: String,
    headings: Vec<(&'static str, bool)>,
    rows: Vec<Vec<(Cell, bool)>>,
    /// Text for an empty table.
    empty: &'static str,
    pages: Option<Pages>,
}

/// The position of a page in a list, and links.
pub struct Pages {
    /// Empty if there is only one page, or if pages are not counted.
    pub position: String,
    pub previous: Option<String>,
    pub next: Option<String>,
    /// The list as CSV.
    pub export: String,
}

impl Table {
    /// Creates a table of a list.
    pub fn new(
        caption: &str,
        records: &Value,
        columns: &[Column<'_>],
        empty: &'static str,
    ) -> Table {
        let records = records.as_array().map_or(&[][..], Vec::as_slice);
        let row = |record| columns.iter().map(|c| ((c.cell)(record), c.right)).collect();
        Table {
            caption: caption.to_owned(),
            headings: columns.iter().map(|column| (column.heading, column.right)).collect(),
            rows: records.iter().map(row).collect(),
            empty,
            pages: None,
        }
    }

    /// Adds links to the other pages of a list.
    #[must_use]
    pub fn paged(self, pages: Pages) -> Table {
        Table { pages: Some(pages), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn money_is_grouped_by_thousands() {
        for (number, expected) in [
            ("0", "0.00"),
            ("2500.5", "2\u{202F}500.50"),
            ("-1234567.89", "\u{2212}1\u{202F}234\u{202F}567.89"),
            ("999", "999.00"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn cells_escape_what_they_show() {
        let cell = Cell::text(&json!("<script>")).render().unwrap();
        assert!(!cell.contains("<script>"), "{cell}");
        let change = json!({ "name": { "before": null, "after": "<b>" }, "email": null });
        let pairs = Cell::pairs(&change).render().unwrap();
        assert!(pairs.contains("name") && pairs.contains("– → &#60;b&#62;"), "{pairs}");
        assert!(pairs.contains("<dt>email</dt><dd>–</dd>"), "{pairs}");
        let time = Cell::time(&json!("2026-11-21T09:00:00.000Z")).render().unwrap();
        assert!(time.contains("2026-11-21 09:00 UTC"), "{time}");
    }
}
