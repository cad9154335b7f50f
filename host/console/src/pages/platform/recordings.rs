//! Recorded calls of a plugin, with personal data masked.

use askama::Template;
use axum::extract::Path;
use serde_json::{Value, json};

use crate::{
    api::ApiResult,
    format::{Cell, Column, Table, column, plain},
    page::{Frame, PageResult, render},
    pages::{
        Fact, ListPage, Parent, company_cell,
        lists::{Declared, List, ListQuery, Paging, is_export},
        views::SavedViews,
    },
    session::Session,
};

const FILTERS: Declared = &[("function", "Function", &[]), ("company", "Company id", &[])];
/// Number of recorded calls on the page of their plugin.
const LATEST: &str = "5";
const NONE: &str = "There are no such recorded calls. A host records calls if it runs with \
                    plugin_recording_retention_hours.";

fn columns<'c>(session: &'c Session, plugin: &'c str) -> Vec<Column<'c>> {
    let href = move |call: &Value| {
        session.href(&["plugins", plugin, "recordings", &plain(&call["id"])], &[])
    };
    vec![
        column("Time", |call| Cell::time(&call["began_at"])),
        column("Function", move |call| Cell::link(href(call), &call["function"])),
        column("Version", |call| Cell::text(&call["version"])),
        column("Outcome", |call| Cell::state(&call["outcome"])),
        column("Faithful", |call| Cell::text(&call["faithful"])),
        column("Company", |call| company_cell(session, &call["company_id"])),
    ]
}

/// Returns the latest recorded calls, and the page of all.
pub async fn latest(session: &Session, plugin: &str) -> ApiResult<(Table, String)> {
    let query = [("limit", LATEST)];
    let found = session.get(&["plugins", plugin, "recordings"], &query).await?;
    let table = Table::new("Recorded calls", &found["docs"], &columns(session, plugin), NONE);
    Ok((table, session.href(&["plugins", plugin, "recordings"], &[])))
}

pub async fn list(session: Session, Path(plugin): Path<String>, sent: ListQuery) -> PageResult {
    let list = List {
        title: "Recorded calls",
        source: &["plugins", &plugin, "recordings"],
        paging: Paging::Numbered,
        filters: FILTERS,
        columns: columns(&session, &plugin),
        empty: NONE,
    };
    if is_export(&sent) {
        return Ok(list.export(&session, &sent).await?);
    }
    let (filters, table, _) = list.fetch(&session, &sent).await?;
    let views = SavedViews::fetch(&session, list.source, &filters).await?;
    let href = session.href(&["plugins", &plugin], &[]);
    let frame = Frame::new(&session, "Plugins", format!("Recorded calls of {plugin}"));
    let parent = Some(Parent { href, label: plugin.clone() });
    render(&ListPage { frame, parent, form: None, filters, views, table })
}

/// A request of a recorded call, and its response.
struct Exchange {
    /// Method and URL; empty if the replay made no such request.
    request: String,
    request_text: String,
    /// Status, or the reason why there is no response.
    response: String,
    response_text: String,
}

#[derive(Template)]
#[template(path = "recording.html")]
struct RecordingPage {
    frame: Frame,
    parent: Option<Parent>,
    facts: Vec<Fact>,
    command: String,
    arguments: String,
    exchanges: Vec<Exchange>,
    reply: String,
}

pub async fn show(session: Session, Path((plugin, id)): Path<(String, String)>) -> PageResult {
    let found = session.get(&["plugins", &plugin, "recordings", &id], &[]).await?;
    let list = session.href(&["plugins", &plugin, "recordings"], &[]);
    let call = found["call"].as_object().and_then(|call| call.iter().next());
    let (function, arguments) = match (call, found["call"].as_str()) {
        (Some((name, arguments)), _) => (name.clone(), pretty(arguments)),
        (None, name) => (name.unwrap_or_default().to_owned(), String::new()),
    };
    let facts = vec![
        ("Id", Cell::Code(id.clone())),
        ("Version", Cell::text(&found["version"])),
        ("Digest", Cell::code(&found["digest"])),
        ("Outcome", Cell::state(&found["did"]["reply"]["outcome"])),
        ("Replay is faithful", Cell::text(&found["faithful"])),
        ("Settings", Cell::pairs(&found["settings"])),
        ("Secrets of the account", Cell::text(&found["secrets"])),
    ];
    render(&RecordingPage {
        frame: Frame::new(&session, "Plugins", format!("{plugin}: {}", function.replace('_', " "))),
        parent: Some(Parent { href: list, label: format!("Recorded calls of {plugin}") }),
        facts,
        command: format!("tollhouse plugin replay {plugin}.wasm {id}"),
        arguments,
        exchanges: exchanges(&found),
        reply: pretty(&found["did"]["reply"]),
    })
}

fn exchanges(recording: &Value) -> Vec<Exchange> {
    let of = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (requests, answers) =
        (of(&recording["did"]["requests"]), of(&recording["heard"]["answers"]));
    let exchange = |n: usize| {
        let (request, answer) = (requests.get(n), answers.get(n));
        let heard = answer.map_or(&Value::Null, |answer| &answer["Ok"]);
        Exchange {
            request: request.map_or_else(String::new, |request| {
                format!("{} {}", plain(&request["method"]), plain(&request["url"]))
            }),
            request_text: request.map_or_else(String::new, message),
            response: match answer.map(|answer| &answer["Err"]) {
                Some(Value::String(reason)) => format!("No response: {}", reason.replace('_', " ")),
                Some(_) => format!("Status {}", plain(&heard["status"])),
                None => "The call ended before the response".to_owned(),
            },
            response_text: message(heard),
        }
    };
    (0..requests.len().max(answers.len())).map(exchange).collect()
}

/// Formats headers and body.
fn message(message: &Value) -> String {
    let headers = message["headers"].as_array().into_iter().flatten();
    let mut text: String =
        headers.map(|pair| format!("{}: {}\n", plain(&pair[0]), plain(&pair[1]))).collect();
    let body = plain(&message["body"]);
    if !body.is_empty() {
        let json = serde_json::from_str(&body).map(|body: Value| pretty(&body));
        text.push('\n');
        text.push_str(&json.unwrap_or(body));
    }
    text.trim().to_owned()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| json!(value).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_shown_beside_their_responses() {
        let request = json!({
            "method": "POST", "url": "https://a.example/pay", "headers": [["accept", "a"]],
            "body": "{\"a\":1}", "answered": true,
        });
        let response = json!({ "status": 201, "headers": [["b", "c"]], "body": "plain" });
        let recording = json!({
            "did": { "requests": [request, request, request] },
            "heard": { "answers": [{ "Ok": response }, { "Err": "no_answer" }] },
        });
        let found = exchanges(&recording);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].request, "POST https://a.example/pay");
        assert_eq!(found[0].request_text, "accept: a\n\n{\n  \"a\": 1\n}");
        let shown: Vec<_> = found.iter().map(|e| (&*e.response, &*e.response_text)).collect();
        assert_eq!(
            shown,
            [
                ("Status 201", "b: c\n\nplain"),
                ("No response: no answer", ""),
                ("The call ended before the response", ""),
            ]
        );
    }
}
