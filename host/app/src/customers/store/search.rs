//! Search index of users: their searched fields, and digests of metadata values.

use serde_json::Number;

use super::User;
use crate::state::storage::*;
use tollhouse_platform::crypto::seal::fingerprint;

/// Numbers with a larger exponent are compared as written: they would have too many digits.
const MAX_EXPONENT: i64 = 400;

const ROWS_PER_STATEMENT: usize = 500;

pub async fn index(tx: &mut Tx, users: &[&User]) -> Result<()> {
    let row =
        |user: &&User| [user.company_id.to_string(), user.id.to_string(), searched_text(user)];
    let words: Vec<_> = users.iter().map(row).collect();
    insert_rows(tx, "INSERT INTO user_words (company_id, id, words) VALUES ", &words).await?;
    let mut digests = Vec::new();
    for user in users {
        let found = user.metadata.0.iter().filter_map(|(key, value)| metadata_digest(key, value));
        digests
            .extend(found.map(|found| [user.company_id.to_string(), found, user.id.to_string()]));
    }
    insert_rows(tx, "INSERT INTO user_metadata (company_id, digest, id) VALUES ", &digests).await
}

async fn insert_rows(tx: &mut Tx, into: &'static str, rows: &[[String; 3]]) -> Result<()> {
    for some in rows.chunks(ROWS_PER_STATEMENT) {
        let mut sql = DynamicStatement::from(into);
        for (n, [first, second, third]) in some.iter().enumerate() {
            sql = sql.append(if n == 0 { "(" } else { ", (" }).bind(first.as_str()).append(", ");
            sql = sql.bind(second.as_str()).append(", ").bind(third.as_str()).append(")");
        }
        tx.dynamic(&sql).execute().await?;
    }
    Ok(())
}

/// Replaces the index entries of a user.
pub async fn reindex(tx: &mut Tx, user: &User) -> Result<()> {
    for table in [
        "DELETE FROM user_words WHERE company_id = $1 AND id = $2",
        "DELETE FROM user_metadata WHERE company_id = $1 AND id = $2",
    ] {
        tx.sql(table).bind(&user.company_id).bind(&user.id).execute().await?;
    }
    index(tx, &[user]).await
}

/// Returns the searched fields in lower case, one per line: no search word spans two of them.
fn searched_text(user: &User) -> String {
    let optional = [&user.middle_name, &user.email, &user.phone];
    let fields = [&user.user_id, &user.first_name, &user.last_name];
    let fields = fields.into_iter().chain(optional.into_iter().flatten());
    let fields: Vec<&str> = fields.map(String::as_str).collect();
    fields.join("\n").to_lowercase()
}

/// Returns the digest of a metadata value; `None` if it cannot be searched.
fn metadata_digest(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(fingerprint(&[key, "text", text])),
        Value::Number(number) => Some(fingerprint(&[key, "number", &canonical_number(number)])),
        Value::Bool(flag) => Some(fingerprint(&[key, "boolean", &flag.to_string()])),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the digests of a text, and of the number or boolean that is written like it.
pub fn metadata_digests(key: &str, written: &str) -> Vec<String> {
    let value = serde_json::from_str(written).ok().filter(|value: &Value| !value.is_string());
    let other = value.and_then(|value| metadata_digest(key, &value));
    [fingerprint(&[key, "text", written])].into_iter().chain(other).collect()
}

/// Formats a number without exponent and redundant zeros: both engines store numbers by value.
fn canonical_number(number: &Number) -> String {
    let written = number.to_string();
    let (mantissa, exponent) = match written.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().unwrap_or(i64::MAX)),
        None => (&*written, 0),
    };
    if exponent.saturating_abs() > MAX_EXPONENT {
        return written;
    }
    let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let padding = usize::try_from(exponent.unsigned_abs()).unwrap_or(0);
    let zeros = "0".repeat(padding);
    // Position of the decimal point, from the left.
    let (digits, point) = match exponent < 0 {
        true => (format!("{zeros}{whole}{fraction}"), whole.len()),
        false => (format!("{whole}{fraction}{zeros}"), whole.len() + padding),
    };
    let (whole, fraction) = digits.split_at(point);
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    match (whole, fraction) {
        ("", "") => "0".to_owned(),
        ("", fraction) => format!("{sign}0.{fraction}"),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_numbers_have_the_same_text() {
        for (written, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.00", "0"),
            ("1", "1"),
            ("1.50", "1.5"),
            ("-1.50", "-1.5"),
            ("100", "100"),
            ("1e2", "100"),
            ("1.5E+2", "150"),
            ("1.234e2", "123.4"),
            ("1e-3", "0.001"),
            ("-12.5e-1", "-1.25"),
            ("120e-1", "12"),
            ("12345678901234567890.10", "12345678901234567890.1"),
            ("1e999", "1e+999"),
        ] {
            let number: Number = serde_json::from_str(written).unwrap();
            assert_eq!(canonical_number(&number), expected, "{written}");
        }
    }

    #[test]
    fn a_value_is_found_by_its_json_text() {
        for (value, written, found) in [
            (json!("gold"), "gold", true),
            (json!("gold"), "Gold", false),
            (json!("1"), "1", true),
            (json!("1"), "1.0", false),
            (json!(1), "1", true),
            (json!(1.50), "1.5", true),
            (json!(true), "true", true),
            (json!("true"), "true", true),
            (json!(true), "1", false),
            (json!("\"gold\""), "\"gold\"", true),
            (json!("gold"), "\"gold\"", false),
            (Value::Null, "null", false),
            (json!([1]), "[1]", false),
            (json!({}), "{}", false),
        ] {
            let by = metadata_digest("tier", &value);
            assert_eq!(
                by.is_some_and(|by| metadata_digests("tier", written).contains(&by)),
                found,
                "{value} {written}"
            );
        }
        assert_ne!(metadata_digests("tier", "gold"), metadata_digests("level", "gold"));
    }
}
