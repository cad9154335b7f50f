//! The master key: how many values each key seals, and its rotation.

use askama::Template;
use axum::extract::Form as FormBody;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    api::ApiResult,
    format::{Cell, Table, column, plain, right},
    page::{Frame, PageResult, render},
    pages::Fact,
    session::Session,
};

/// Number of steps per form, each of 100 rows: a request ends in time even on a slow database.
const STEPS: usize = 50;

#[derive(Template)]
#[template(path = "master_key.html")]
struct MasterKeyPage {
    frame: Frame,
    facts: Vec<Fact>,
    table: Table,
    may_rotate: bool,
    progress: Option<Progress>,
}

/// The progress that the steps of a form have made.
#[derive(Default)]
struct Progress {
    resealed: u64,
    unreadable: u64,
    /// Where the next form continues; empty at the end.
    cursor: String,
}

pub async fn show(session: Session) -> PageResult {
    show_with(&session, None).await
}

async fn show_with(session: &Session, progress: Option<Progress>) -> PageResult {
    let found = session.get(&["master-key"], &[]).await?;
    let current = &found["key"];
    let rows = found["sealed"].as_array().into_iter().flatten();
    let former = rows.filter(|row| row["key"] != *current);
    let former: u64 = former.filter_map(|row| row["rows"].as_u64()).sum();
    let facts = vec![
        ("Key that seals new values", Cell::code(current)),
        ("Former keys of this host", Cell::code(&found["former"])),
        ("Values under former keys", Cell::Text(former.to_string())),
    ];
    let columns = [
        column("Values", |row| Cell::code(&row["column"])),
        column("Key", |row| Cell::code(&row["key"])),
        column("State", |row| {
            let is_current = row["key"] == *current;
            Cell::state(&json!(if is_current { "active" } else { "former" }))
        }),
        right("Count", |row| Cell::text(&row["rows"])),
    ];
    let table =
        Table::new("Sealed values", &found["sealed"], &columns, "There are no sealed values yet.");
    let frame = Frame::new(session, "Master key", "Master key");
    let may_rotate = session.me.may("master_key.rotate");
    render(&MasterKeyPage { frame, facts, table, may_rotate, progress })
}

#[derive(Deserialize)]
pub struct Rotation {
    form_token: String,
    /// The cursor from the previous form; empty to begin.
    #[serde(default)]
    cursor: String,
}

/// Reseals the next values, and shows the progress of the rotation.
pub async fn rotate(session: Session, FormBody(sent): FormBody<Rotation>) -> PageResult {
    session.check_form(&sent.form_token)?;
    let mut progress = Progress { cursor: sent.cursor, ..Progress::default() };
    for _ in 0..STEPS {
        let step = next_step(&session, &progress.cursor).await?;
        let number = |field: &str| step[field].as_u64().unwrap_or_default();
        progress.resealed += number("resealed");
        progress.unreadable += number("unreadable");
        progress.cursor = plain(&step["cursor"]);
        if progress.cursor.is_empty() {
            break;
        }
    }
    show_with(&session, Some(progress)).await
}

async fn next_step(session: &Session, cursor: &str) -> ApiResult<Value> {
    let body = match cursor {
        "" => json!({}),
        cursor => json!({ "cursor": cursor }),
    };
    session.post(&["master-key", "rotate"], &body).await
}
