//! The collection policy of a company: its versions, and a form for the next one.

use axum::extract::{Form as FormBody, Path};
use serde_json::{Map, Value, json};

use crate::{
    form::{Field, FieldsForm, Sent},
    format::{Cell, column, plain},
    page::PageResult,
    pages::lists::{List, ListQuery, Paging},
    session::Session,
};

pub async fn show(session: Session, Path(company): Path<String>, sent: ListQuery) -> PageResult {
    let columns = vec![
        column("Version", |one| Cell::text(&one["version"])),
        column("State", |one| match one["policy"]["active"].as_bool() {
            Some(true) => Cell::state(&json!("active")),
            _ => Cell::state(&json!("inactive")),
        }),
        column("Instruments", |one| Cell::text(&one["policy"]["instruments"])),
        column("Days", |one| Cell::text(&one["policy"]["days"])),
        column("Hours", |one| {
            let hours = &one["policy"]["hours"];
            Cell::Text(format!("{} to {}", plain(&hours["from"]), plain(&hours["to"])))
        }),
        column("Attempts", |one| Cell::text(&one["policy"]["max_attempts"])),
        column("Fees", |one| Cell::text(&one["policy"]["max_fees"])),
        column("Changed by", |one| Cell::text(&one["changed_by"])),
        column("Created", |one| Cell::time(&one["created_at"])),
    ];
    let list = List {
        title: "Collection policy",
        source: &["companies", &company, "collection-policy", "versions"],
        paging: Paging::Whole,
        filters: &[],
        columns,
        empty: "There is no policy: each installment is collected once, on its due date.",
    };
    let current = session.get(&["companies", &company, "collection-policy"], &[]).await?;
    let action = session.href(&["companies", &company, "collection-policy"], &[]);
    let texts = ("Change the policy", "Save as a new version");
    let form =
        FieldsForm::new(&session, "lending.write", texts, action, fields(&current["policy"]));
    list.show_with(&session, &company, &sent, form).await
}

/// The fields of a policy, with the values of the current one.
fn fields(policy: &Value) -> Vec<Field> {
    let text = |name, label, hint, value: String| Field::text(name, label, hint).with_value(value);
    let number = |name, label, value: &Value| Field::text(name, label, "").with_value(plain(value));
    let is_active = if policy["active"] == false { "no" } else { "yes" };
    let sends_due = if policy["events"]["due"] == true { "yes" } else { "no" };
    let offsets = policy["utc_offsets"].as_object().into_iter().flatten();
    let offsets: Vec<String> =
        offsets.map(|(code, offset)| format!("{code}={}", plain(offset))).collect();
    let events = &policy["events"];
    vec![
        Field::choice("active", "Active", &[("yes", "yes"), ("no", "no: collect on the due date")])
            .with_value(is_active.to_owned()),
        text("instruments", "Instruments in order", INSTRUMENTS, list(&policy["instruments"])),
        text("days", "Days after the due date", "For example 0, 1, 3, 7.", list(&policy["days"])),
        number("from", "Charge from hour", &policy["hours"]["from"]),
        number("to", "Charge until hour", &policy["hours"]["to"]),
        number("utc_offset", "Offset from UTC", &policy["utc_offset"]),
        text("utc_offsets", "Offsets of countries", "For example KE=+03:00.", offsets.join(", ")),
        number("max_attempts", "Maximum attempts", &policy["max_attempts"]),
        number("max_fees", "Maximum fees", &policy["max_fees"]),
        number("min_partial_debit", "Minimum partial debit", &policy["min_partial_debit"]),
        number("upcoming_days", "Upcoming event (days before due date)", &events["upcoming_days"]),
        Field::choice("due", "Event on the due date", &[("no", "no"), ("yes", "yes")])
            .with_value(sends_due.to_owned()),
        number("overdue_days", "Overdue event (days after due date)", &events["overdue_days"]),
    ]
}

const INSTRUMENTS: &str = "Any of default_card, other_cards and mandates.";

fn list(values: &Value) -> String {
    let values = values.as_array().into_iter().flatten();
    values.map(plain).collect::<Vec<_>>().join(", ")
}

pub async fn save(
    session: Session,
    Path(company): Path<String>,
    FormBody(sent): FormBody<Sent>,
) -> PageResult {
    session.check_form(sent.text("form_token"))?;
    session.put(&["companies", &company, "collection-policy"], &policy(&sent)).await?;
    session.redirect(&["companies", &company, "collection-policy"])
}

/// Returns the policy of a form. The interface checks the values, and names the wrong field.
fn policy(sent: &Sent) -> Value {
    let items = |name| sent.text(name).split([',', ' ']).filter(|item| !item.is_empty());
    let offsets = items("utc_offsets").map(|item| {
        let (code, offset) = item.split_once('=').unwrap_or((item, ""));
        (code.to_owned(), json!(offset))
    });
    json!({
        "active": sent.text("active") != "no",
        "instruments": items("instruments").collect::<Vec<_>>(),
        "days": items("days").map(number).collect::<Vec<_>>(),
        "hours": { "from": number(sent.text("from")), "to": number(sent.text("to")) },
        "utc_offset": sent.text("utc_offset"),
        "utc_offsets": offsets.collect::<Map<String, Value>>(),
        "max_attempts": number(sent.text("max_attempts")),
        "max_fees": number(sent.text("max_fees")),
        "min_partial_debit": number(sent.text("min_partial_debit")),
        "events": {
            "upcoming_days": number(sent.text("upcoming_days")),
            "due": sent.text("due") == "yes",
            "overdue_days": number(sent.text("overdue_days")),
        },
    })
}

/// Returns a number, `null` for an empty text, or else the text.
fn number(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => serde_json::from_str::<serde_json::Number>(text)
            .map_or_else(|_| json!(text), Value::Number),
    }
}
