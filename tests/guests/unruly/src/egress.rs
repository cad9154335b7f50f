//! Asking for what it may not have, too often, and with secrets where others can see them.

use serde_json::json;
use tollhouse_plugin::http::{Request, Response};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{settings, vault};

use crate::{Done, SECRET};

/// `raw` is `{"status", "body"}`.
pub(crate) fn fetch(url: &str) -> Result<Done, Fault> {
    let answer = Request::get(url).send()?;
    Done::raw(json!({"status": answer.status, "body": answer.text()}).to_string())
}

/// The same request again and again; `raw` is how often.
pub(crate) fn many(times: u64) -> Result<Done, Fault> {
    for _ in 0..times {
        get("/ping")?;
    }
    Done::raw(times.to_string())
}

/// A request with so many headers; `raw` is how many.
pub(crate) fn headers(count: u64) -> Result<Done, Fault> {
    let url = settings::url("base_url", "/ping")?;
    let value = "v".repeat(100);
    let with = |request: Request, n| request.header(&format!("x-{n}"), value.as_str());
    (0..count).fold(Request::get(url), with).send()?;
    Done::raw(count.to_string())
}

/// A caller's words in a request's body, verbatim, after a placeholder was made for this call: words that look like
/// one must stay words. `raw` is the answer.
pub(crate) fn say(words: &str) -> Result<Done, Fault> {
    vault::secret(SECRET)?;
    let answer = Request::post(settings::url("base_url", "/echo")?).body(words).send()?;
    Done::raw(answer.text())
}

/// JSON from pieces of text, as nobody should write it.
pub(crate) fn concatenate(words: &str) -> Result<Done, Fault> {
    let url = settings::url("base_url", "/orders")?;
    let body = format!("{{\"narration\":\"{words}\"}}");
    let answer = Request::post(url).header("content-type", "application/json").body(body).send()?;
    Done::raw(answer.text())
}

/// Waits for an upstream that takes its time.
pub(crate) fn wait() -> Result<Done, Fault> {
    Done::raw(get("/slow")?.text())
}

/// Sends the secret to where it comes back from; the placeholder is the session's URL, `raw` the answer.
pub(crate) fn echo_secret() -> Result<Done, Fault> {
    let placeholder = vault::secret(SECRET)?;
    let answer = Request::post(settings::url("base_url", "/echo")?)
        .bearer(&placeholder)
        .header("x-secret", placeholder.as_str())
        .body(format!("secret={placeholder}"))
        .send()?;
    Ok(Done { url: placeholder, raw: answer.text() })
}

fn get(path: &str) -> Result<Response, Fault> {
    Request::get(settings::url("base_url", path)?).send()
}
