//! Users as CSV (RFC 4180): writing of exports, reading of uploads.
//!
//! Cells that a spreadsheet may take for a formula, among them all phone numbers, get a leading
//! apostrophe, which is removed when they are read. Values survive a round trip unchanged.

use csv::{ReaderBuilder, StringRecord};

use super::User;
use crate::state::prelude::*;
use tollhouse_platform::values::spreadsheet::{escape_formula, is_formula};

/// Columns of an export, as specified.
pub const COLUMNS: [&str; 23] = [
    "user_id", "first_name", "last_name", "middle_name", "email", "phone", "date_of_birth",
    "gender", "address", "country", "state", "city", "country_code", "image", "employment_states",
    "years_of_employment", "email_verified", "phone_verified", "active", "age", "metadata",
    "created_at", "updated_at",
];

/// The sample file: the columns to fill in, and two users.
pub const SAMPLE: &str = "user_id,first_name,last_name,middle_name,email,phone,date_of_birth,gender,image,country,state,city,address,employment_status,active\r
customer-1,Ada,Obi,,ada@example.com,'+2348012345678,10/12/1990,female,https://example.com/ada.png,nigeria,Lagos,Ikeja,1 Marina Road,employed,true\r
,Kofi,Mensah,Yaw,kofi@example.com,'+233241234567,29/02/1988,male,,ghana,Greater Accra,Accra,,self-employed,true\r
";

/// Accepted column names of the employment status; the second is the field's name.
const EMPLOYMENT_COLUMNS: [&str; 2] = ["employment_states", "employment_status"];

/// Returns the name of a column's field.
fn field_of(column: &str) -> &str {
    if EMPLOYMENT_COLUMNS.contains(&column) { EMPLOYMENT_COLUMNS[1] } else { column }
}

/// Returns the cells of a user, in the order of [`COLUMNS`].
pub fn cells(user: &User, now: Timestamp) -> Result<[String; 23]> {
    let fields = serde_json::to_value(user.clone().view(now)).map_err(Error::internal)?;
    let moment = |at: Timestamp| at.to_datetime().format("%b %d, %Y %H:%M:%S UTC").to_string();
    let missing = || Error::internal("a column of the export is no field of a user");
    if COLUMNS.iter().any(|column| fields.get(field_of(column)).is_none()) {
        return Err(missing());
    }
    Ok(COLUMNS.map(|column| match (column, &fields[field_of(column)]) {
        ("created_at", _) => moment(user.created_at),
        ("updated_at", _) => moment(user.updated_at),
        (_, Value::Null) => String::new(),
        (_, Value::String(text)) => escape_formula(text),
        (_, value) => value.to_string(),
    }))
}

/// Reads the rows of a file, each as the JSON object of a request. 400 if it is not CSV by name and
/// content, or has more than `most` rows.
pub fn parse_rows(
    name: Option<&str>,
    bytes: &[u8],
    most: usize,
) -> Result<Vec<Map<String, Value>>> {
    let no_csv = || Error::invalid("invalid file type, only csv files are allowed");
    let named = name.is_none_or(|name| name.to_ascii_lowercase().ends_with(".csv"));
    let text = std::str::from_utf8(bytes).ok().filter(|_| named).ok_or_else(no_csv)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.chars().any(|c| c.is_control() && !['\r', '\n', '\t'].contains(&c)) {
        return Err(no_csv());
    }
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header: Vec<String> = reader
        .headers()
        .map_err(|_| no_csv())?
        .iter()
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let is_known =
        |name: &String| COLUMNS.contains(&&**name) || EMPLOYMENT_COLUMNS.contains(&&**name);
    if !header.iter().any(is_known) {
        return Err(no_csv());
    }
    let mut rows = Vec::new();
    for (number, record) in (1..).zip(reader.records()) {
        if number > most {
            return Err(Error::invalid(format!("the users field must be at most {most}")));
        }
        let record = record.map_err(|_| Error::invalid(format!("row {number} cannot be read")))?;
        if record.len() > header.len() {
            return Err(Error::invalid(format!("row {number} has more cells than the first line")));
        }
        rows.push(to_object(&header, &record));
    }
    Ok(rows)
}

fn to_object(header: &[String], record: &StringRecord) -> Map<String, Value> {
    let named = header.iter().zip(record).filter(|(_, cell)| !cell.is_empty());
    let field = |(name, cell): (&String, &str)| (field_of(name).to_owned(), parse_cell(name, cell));
    named.map(field).collect()
}

/// Converts a cell to the type of its column. An invalid value stays text and is rejected later.
fn parse_cell(name: &str, cell: &str) -> Value {
    let text = cell.strip_prefix('\'').filter(|rest| is_formula(rest)).unwrap_or(cell);
    let parse = |json: &str| serde_json::from_str::<Value>(json).ok();
    let typed = match name {
        "active" | "years_of_employment" => {
            parse(&text.trim().to_ascii_lowercase()).filter(|value| !value.is_string())
        }
        "metadata" => parse(text).filter(Value::is_object),
        _ => None,
    };
    typed.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<Map<String, Value>>> {
        parse_rows(Some("users.csv"), text.as_bytes(), 3)
    }

    fn refused(name: Option<&str>, bytes: &[u8]) -> String {
        parse_rows(name, bytes, 3).unwrap_err().to_string()
    }

    #[test]
    fn csv_variants_are_read_alike() {
        let expected = json!([
            { "first_name": "Ada, \"the\"\r\nfirst", "email": "ada@example.com", "active": true },
            { "first_name": "Bola", "employment_status": "student", "years_of_employment": 3 },
        ]);
        for text in [
            "first_name,email,active,employment_states,years_of_employment\r\n\"Ada, \"\"the\"\"\r\nfirst\",ada@example.com,TRUE,,\r\nBola,,,student,3\r\n",
            "\u{feff}first_name,email,active,employment_status,years_of_employment\n\"Ada, \"\"the\"\"\r\nfirst\",ada@example.com,true\nBola,,,student,3",
            " First_Name ,EMAIL,active,Employment_Status,years_of_employment\n\"Ada, \"\"the\"\"\r\nfirst\",ada@example.com,true,,\n\nBola,,,student,3\n",
        ] {
            assert_eq!(serde_json::to_value(read(text).unwrap()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn cells_have_the_type_of_their_column() {
        for (column, cell, expected) in [
            ("user_id", "007", json!("007")),
            ("first_name", "true", json!("true")),
            ("phone", "'+2348012345678", json!("+2348012345678")),
            ("phone", "+2348012345678", json!("+2348012345678")),
            ("first_name", "'=1+1", json!("=1+1")),
            ("first_name", "''-x", json!("'-x")),
            ("first_name", "' =1", json!(" =1")),
            ("first_name", " '=1", json!(" '=1")),
            ("address", "'\r\n\t@x", json!("\r\n\t@x")),
            ("address", "' x", json!("' x")),
            ("first_name", "'tis", json!("'tis")),
            ("first_name", "O'Neil", json!("O'Neil")),
            ("active", "False", json!(false)),
            ("active", "yes", json!("yes")),
            ("years_of_employment", "3", json!(3)),
            ("years_of_employment", "three", json!("three")),
            ("metadata", "{\"A\":[1]}", json!({ "A": [1] })),
            ("metadata", "true", json!("true")),
            ("metadata", "{", json!("{")),
        ] {
            assert_eq!(parse_cell(column, cell), expected, "{column}: {cell}");
        }
    }

    /// Tests all strings of at most four of these characters.
    #[test]
    fn written_cells_are_not_formulas_and_are_read_back_unchanged() {
        let mut texts = vec![String::new()];
        let mut begun = 0;
        for _ in 0..4 {
            let longest = begun..texts.len();
            begun = texts.len();
            for at in longest {
                let longer = ['\'', ' ', '\t', '\r', '\n', '=', '-', 'x'];
                texts.extend(longer.map(|c| format!("{}{c}", texts[at])));
            }
        }
        assert_eq!(texts.len(), 1 + 8 + 64 + 512 + 4_096);
        for text in texts {
            let cell = escape_formula(&text);
            assert_eq!(parse_cell("address", &cell), json!(text), "{cell:?}");
            let first = text.trim_start_matches([' ', '\t', '\r', '\n']).chars().next();
            let is_guarded = cell.starts_with('\'');
            assert!(is_guarded || !matches!(first, Some('=' | '-')), "{cell:?}");
        }
    }

    #[test]
    fn files_other_than_csv_are_rejected_by_name_or_content() {
        const NO_CSV: &str = "invalid file type, only csv files are allowed";
        let fine = b"email\nada@example.com\n";
        for (name, bytes) in [
            (Some("users.xlsx"), &fine[..]),
            (Some("users"), fine),
            (Some("users.csv"), b"\x89PNG\r\n\x1a\n"),
            (Some("users.csv"), b"PK\x03\x04email"),
            (Some("users.csv"), b"email\n\0\n"),
            (Some("users.csv"), b"{\"users\": []}"),
            (Some("users.csv"), b"<html><body>email</body></html>"),
            (Some("users.csv"), b"\xff\xfeemail\n"),
            (Some("users.csv"), b""),
        ] {
            assert_eq!(refused(name, bytes), NO_CSV, "{name:?} {bytes:?}");
        }
        assert_eq!(parse_rows(Some("USERS.CSV"), fine, 3).unwrap().len(), 1);
        assert_eq!(parse_rows(None, fine, 3).unwrap().len(), 1);
        let many = "email\na\nb\nc\nd\n";
        assert_eq!(refused(None, many.as_bytes()), "the users field must be at most 3");
        assert_eq!(refused(None, b"email\na\nb,c\n"), "row 2 has more cells than the first line");
    }

    #[test]
    fn the_sample_file_is_valid() {
        let rows = parse_rows(Some("sample.csv"), SAMPLE.as_bytes(), 3).unwrap();
        assert_eq!((rows.len(), &rows[1]["phone"]), (2, &json!("+233241234567")));
        assert!(!rows[1].contains_key("user_id"));
    }
}
