//! Formats of the values in tables and records.

use serde_json::Value;
use tollhouse_platform::values::money::Minor;

/// Formats a value of `record` in the format with this name.
pub fn format_value(value: &Value, format: &str, record: &Value) -> String {
    match format {
        "json" => value.to_string(),
        "ms" => format!("{} ms", text(value)),
        "money" => money(value, &record["currency"]),
        "deliveries" => deliveries(value),
        "or_all" if value.is_null() || value == &Value::Array(Vec::new()) => "all".to_owned(),
        "or_all" | "number" | "text" => text(value),
        "secrets" => secrets(value),
        "settings" => settings(value),
        "state" => version_state(record),
        "subscription" => subscription(value),
        _ => unreachable!("{format} is not a format"),
    }
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
    let minor = amount.as_number().and_then(|number| Minor::from_major(number).ok());
    let decimal = minor.map(|Minor(minor)| {
        let sign = if minor < 0 { "-" } else { "" };
        format!("{sign}{}.{:02}", minor.unsigned_abs() / 100, minor.unsigned_abs() % 100)
    });
    format!("{} {}", decimal.unwrap_or_else(|| text(amount)), text(currency))
}

fn list(parts: impl Iterator<Item = String>) -> String {
    text(&parts.collect::<Vec<_>>().join(", ").into())
}

fn deliveries(deliveries: &Value) -> String {
    let each = deliveries.as_array().into_iter().flatten();
    list(each.map(|one| format!("{} ({})", text(&one["state"]), one["attempts"])))
}

/// Lists the names of a plugin's secrets. Their permitted hosts are part of the grant.
fn secrets(secrets: &Value) -> String {
    match secrets.as_object() {
        Some(bound) => text(&bound.keys().cloned().collect()),
        None => text(secrets),
    }
}

/// Lists the names of a plugin's settings, with defaults.
fn settings(settings: &Value) -> String {
    let each = settings.as_object().into_iter().flatten();
    list(each.map(|(name, setting)| match &setting["default"] {
        Value::Null => name.clone(),
        default => format!("{name} [{}]", text(default)),
    }))
}

/// Formats the state of a plugin's version, with the share and the companies of a canary.
fn version_state(version: &Value) -> String {
    if !version["quarantined_at"].is_null() {
        return format!("{} (quarantined)", text(&version["state"]));
    }
    let companies = version["companies"].as_array().map_or(0, Vec::len);
    match version["state"].as_str() {
        Some("canary") if companies > 0 => {
            format!("canary ({} %, companies: {companies})", version["percent"])
        }
        Some("canary") => format!("canary ({} %)", version["percent"]),
        _ => text(&version["state"]),
    }
}

fn subscription(subscription: &Value) -> String {
    match (&subscription["active"], &subscription["expires_at"]) {
        (Value::Bool(true), Value::Null) => "active".to_owned(),
        (Value::Bool(true), until) => format!("until {}", text(until)),
        _ => "ended".to_owned(),
    }
}
