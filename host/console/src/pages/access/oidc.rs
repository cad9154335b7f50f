//! Signing in with the OpenID provider: the redirect there, and the page to which it returns.

use axum::{
    extract::{Query, State},
    http::{HeaderMap, HeaderValue, Method, header},
    response::{AppendHeaders, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_http::RequestOrigin;

use super::sign_in::{Next, show_failure};
use crate::{
    Console,
    cookie::{SESSION, SIGN_IN},
    format::plain,
    page::PageResult,
};

/// Longest path at which a person continues after the sign-in: a cookie keeps it.
const MAX_NEXT_BYTES: usize = 1_000;

/// Redirects to the provider. A link leads here: the policy of pages forbids forms that lead to
/// another site.
pub async fn begin(
    State(console): State<Console>,
    origin: RequestOrigin,
    Query(Next { next }): Query<Next>,
) -> PageResult {
    let body = json!({ "next": (next.len() <= MAX_NEXT_BYTES).then_some(&next) });
    let call = (Method::POST, "/sign-in/oidc/begin");
    match console.api.call(&origin, None, call, Some(&body)).await {
        Ok(begun) => {
            let cookie = SIGN_IN.set(&plain(&begun["pending"]), &console.options);
            Ok(redirect([cookie], &plain(&begun["url"])))
        }
        Err(failure) => show_failure(&console, next, failure.form_status(), failure.message),
    }
}

/// The query that the provider adds to the URL of the page.
#[derive(Deserialize)]
pub struct Returned {
    #[serde(default)]
    state: String,
    code: Option<String>,
    error: Option<String>,
}

/// Signs in the person whom the provider returned.
pub async fn callback(
    State(console): State<Console>,
    origin: RequestOrigin,
    headers: HeaderMap,
    Query(returned): Query<Returned>,
) -> PageResult {
    // Without the cookie, the interface refuses the sign-in.
    let pending = SIGN_IN.read(&headers, &console.options).unwrap_or_else(|| "none".to_owned());
    let body = json!({
        "pending": pending, "state": returned.state, "code": returned.code,
        "error": returned.error,
    });
    let ended = SIGN_IN.set("", &console.options);
    let call = (Method::POST, "/sign-in/oidc/finish");
    match console.api.call(&origin, None, call, Some(&body)).await {
        Ok(finished) => Ok(enter(&console, &finished, ended)),
        Err(failure) => {
            let page =
                show_failure(&console, String::new(), failure.form_status(), failure.message)?;
            Ok((AppendHeaders([(header::SET_COOKIE, ended)]), page).into_response())
        }
    }
}

fn enter(console: &Console, finished: &Value, ended: HeaderValue) -> Response {
    let session = SESSION.set(&plain(&finished["session_token"]), &console.options);
    let next = plain(&finished["next"]);
    redirect([session, ended], console.options.site.own_page(&next))
}

fn redirect<const N: usize>(cookies: [HeaderValue; N], to: &str) -> Response {
    let cookies = cookies.map(|cookie| (header::SET_COOKIE, cookie));
    (AppendHeaders(cookies), Redirect::to(to)).into_response()
}
