//! The header `Idempotency-Key`: what was answered under it is answered again.

use std::{convert::Infallible, panic::AssertUnwindSafe};

use axum::{
    body::Body,
    extract::{FromRequestParts, Request},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    answer::{self, KeptUntil, Standing},
    limits::{late, received},
};
use crate::{
    app::App,
    error::{Error, Result},
    idempotency::{self, Answer, Claim, Claimed, End, Name},
    seal::fingerprint,
};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const MOST_BYTES: usize = 255;

/// The key of a request that changes something; 400 when it is malformed.
pub fn key(request: &Request) -> Result<Option<&str>> {
    if request.method().is_safe() {
        return Ok(None);
    }
    let mut values = request.headers().get_all(KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().unwrap_or_default();
    let visible = key.bytes().all(|b| b.is_ascii_graphic());
    if key.is_empty() || key.len() > MOST_BYTES || !visible || values.next().is_some() {
        let message = "the Idempotency-Key header must be 1 to 255 visible characters";
        return Err(Error::invalid(message));
    }
    Ok(Some(key))
}

/// What names, for a request that is sent under a key, the things that its caller gave no name: the same each time it runs, so
/// that a run finds what an earlier one made without being able to say so.
pub struct Run(Option<idempotency::RunId>);

impl Run {
    /// `pay-…`; none for a request without a key.
    #[must_use]
    pub fn name(&self, prefix: &str) -> Option<String> {
        self.0.as_ref().map(|run| format!("{prefix}-{}", run.0))
    }
}

impl<S: Sync> FromRequestParts<S> for Run {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Run, Infallible> {
        Ok(Run(parts.extensions.get().cloned()))
    }
}

/// Runs the request unless it ran before under this key. It runs to its end even if the caller hangs up or is told that it takes
/// too long: otherwise its answer would be lost to the one who asks again. What is `held` is dropped then.
pub async fn once(
    app: &App,
    company_id: String,
    key: String,
    request: Request,
    next: Next,
    held: impl Send + 'static,
) -> Result<Response> {
    let (method, time) = (request.method().clone(), app.settings.http.request);
    let running = app.clone();
    let run = app.tasks.spawn(async move {
        let answer = claim_and_run(&running, &company_id, &key, request, next).await;
        drop(held);
        // Here, so that what went wrong is logged even if nobody waits any more.
        answer.unwrap_or_else(IntoResponse::into_response)
    });
    match timeout(time, run).await {
        Ok(done) => done.map_err(Error::internal),
        Err(_) => Err(late(&method, time)),
    }
}

async fn claim_and_run(
    app: &App,
    company_id: &str,
    key: &str,
    request: Request,
    next: Next,
) -> Result<Response> {
    // A lease counts from when it was taken, which is later.
    let (longest, began) = (idempotency::longest_run(app), Instant::now());
    let (mut request, body) = received(request).await?;
    let (method, path) = (request.method().as_str(), request.uri().path());
    let content = content(request.uri().query(), request.headers(), &body);
    match idempotency::claim(app, Name { company_id, method, path, key }, content).await? {
        Claimed::Replay(answer) => replay(answer),
        Claimed::Run(claim) => {
            request.extensions_mut().insert(claim.run.clone());
            let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
            match timeout_at(began + longest, answer).await {
                Ok(answer) => settle(app, claim, answer.unwrap_or_else(answer::panicked)).await,
                // Its lease goes on: what it began may not have ended.
                Err(_) => Err(Error::Late(longest)),
            }
        }
    }
}

/// The digest of what the request says beside its name.
fn content(query: Option<&str>, headers: &HeaderMap, body: &[u8]) -> String {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    fingerprint(&[query.unwrap_or_default().as_bytes(), content_type.unwrap_or_default(), body])
}

/// Keeps what committed an effect, and frees the key of what had none. Of what failed on our side, something may stand. The effect
/// stands whether or not this succeeds.
async fn settle(app: &App, claim: Claim, response: Response) -> Result<Response> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(Error::internal)?.to_bytes();
    let end = if parts.status.is_server_error() {
        End::GiveBack
    } else if parts.status.is_success() || parts.extensions.get::<Standing>().is_some() {
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = String::from_utf8_lossy(&body).into_owned();
        let until = parts.extensions.get().map(|KeptUntil(at)| *at);
        End::Keep(Answer { status: parts.status.as_u16(), content_type, body }, until)
    } else {
        End::Free
    };
    let settled = idempotency::end(app, claim, end).await;
    if let Err(error) = settled {
        tracing::error!(error = %error.chain(), "an idempotency key was not settled; its lease will end");
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn replay(answer: Answer) -> Result<Response> {
    let status = StatusCode::from_u16(answer.status).map_err(Error::internal)?;
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    if let Some(content_type) = answer.content_type {
        let value = HeaderValue::from_str(&content_type).map_err(Error::internal)?;
        headers.insert(header::CONTENT_TYPE, value);
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_1_to_255_visible_characters_once() {
        let longest = "x".repeat(255);
        let long = "x".repeat(256);
        for (method, keys, expected) in [
            ("POST", &[][..], Ok(None)),
            ("POST", &["a"], Ok(Some("a"))),
            ("PATCH", &["\"8e03978e-40d5\""], Ok(Some("\"8e03978e-40d5\""))),
            ("DELETE", &[&longest], Ok(Some(&*longest))),
            ("PUT", &[&long], Err(())),
            ("POST", &[""], Err(())),
            ("POST", &["two words"], Err(())),
            ("POST", &["größe"], Err(())),
            ("POST", &["a", "a"], Err(())),
            ("GET", &[""], Ok(None)),
            ("HEAD", &["a"], Ok(None)),
        ] {
            let mut request = Request::builder().method(method);
            for key in keys {
                request = request.header(KEY, HeaderValue::from_bytes(key.as_bytes()).unwrap());
            }
            let request = request.body(Body::empty()).unwrap();
            assert_eq!(super::key(&request).map_err(|_| ()), expected, "{method} {keys:?}");
        }
    }

    #[test]
    fn what_was_sent_is_query_type_and_body() {
        let typed =
            |value| HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]);
        let json = typed("application/json");
        let same = content(None, &json, b"{}");
        assert_eq!(content(Some(""), &json, b"{}"), same);
        for other in [
            content(None, &json, b"{} "),
            content(None, &typed("text/plain"), b"{}"),
            content(Some("a=1"), &json, b"{}"),
            content(Some("application/json{}"), &HeaderMap::new(), b""),
        ] {
            assert_ne!(other, same);
        }
    }
}
