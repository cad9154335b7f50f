//! The `Idempotency-Key` header: stored responses are replayed.

use std::{convert::Infallible, panic::AssertUnwindSafe};

use axum::{
    body::Body,
    extract::{FromRequestParts, Request},
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    idempotency::{self, Claim, ClaimOutcome, Completion, RequestKey, StoredResponse},
    response::{self, ReplayUntil},
    server::Server,
    settings::limits::timeout_error,
};
use tollhouse_platform::{
    crypto::seal::fingerprint,
    error::{EffectCommitted, Error, Result},
    values::id::Owner,
};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const MAX_KEY_BYTES: usize = 255;

/// Returns the key of a request that may change something; 400 if it is malformed.
pub fn key(request: &Request) -> Result<Option<&str>> {
    if request.method().is_safe() {
        return Ok(None);
    }
    let mut values = request.headers().get_all(KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().unwrap_or_default();
    let visible = key.bytes().all(|b| b.is_ascii_graphic());
    if key.is_empty() || key.len() > MAX_KEY_BYTES || !visible || values.next().is_some() {
        let message = "the Idempotency-Key header must be 1 to 255 visible characters";
        return Err(Error::invalid(message));
    }
    Ok(Some(key))
}

/// Names for records that a request with a key creates and its client does not name. They are the
/// same in each run, so that a run finds what an interrupted one created.
#[derive(Clone, Default)]
pub struct IdempotentRequest(Option<String>);

impl IdempotentRequest {
    /// Returns a name such as `pay-…`; `None` for a request without a key.
    #[must_use]
    pub fn name(&self, prefix: &str) -> Option<String> {
        self.0.as_ref().map(|run| format!("{prefix}-{run}"))
    }
}

impl<S: Sync> FromRequestParts<S> for IdempotentRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IdempotentRequest, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

/// Runs the request unless it ran before under this key. It runs to completion even if the client
/// disconnects or times out, so that its response can be replayed. `held` is dropped at the end.
pub async fn run_once(
    server: &Server,
    (owner, operator): (Owner, String),
    key: String,
    request: Request,
    next: Next,
    held: impl Send + 'static,
) -> Result<Response> {
    let (method, time) = (request.method().clone(), server.limits.request_timeout);
    let running = server.clone();
    let run = server.tasks.spawn(async move {
        let response = claim_and_run(&running, (&owner, &operator), &key, request, next).await;
        drop(held);
        // Converted here, so that errors are logged even if the client has disconnected.
        response.unwrap_or_else(IntoResponse::into_response)
    });
    match timeout(time, run).await {
        Ok(done) => done.map_err(Error::internal),
        Err(_) => Err(timeout_error(&method, time)),
    }
}

async fn claim_and_run(
    server: &Server,
    (owner, operator): (&Owner, &str),
    key: &str,
    request: Request,
    next: Next,
) -> Result<Response> {
    // Measured before the lease begins, so that the run ends before the lease.
    let (longest, began) = (idempotency::max_run_time(server), Instant::now());
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(Error::internal)?.to_bytes();
    let mut request = Request::from_parts(parts, Body::from(body.clone()));
    let (method, path) = (request.method().as_str(), request.uri().path());
    let content = content_digest(request.uri().query(), request.headers(), &body);
    match idempotency::claim(server, RequestKey { owner, operator, method, path, key }, content)
        .await?
    {
        ClaimOutcome::Replay(stored) => replay(stored),
        ClaimOutcome::Run(claim) => {
            request.extensions_mut().insert(IdempotentRequest(Some(claim.run.clone())));
            let run = AssertUnwindSafe(next.run(request)).catch_unwind();
            match timeout_at(began + longest, run).await {
                Ok(response) => {
                    let response = response.unwrap_or_else(response::panic_response);
                    store_response(server, claim, response).await
                }
                // The lease is kept: work of this run may not have ended.
                Err(_) => Err(Error::TimedOut(longest)),
            }
        }
    }
}

/// Returns the digest of query string, content type and body.
fn content_digest(query: Option<&str>, headers: &HeaderMap, body: &[u8]) -> String {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    fingerprint(&[query.unwrap_or_default().as_bytes(), content_type.unwrap_or_default(), body])
}

/// Stores the response if an effect is committed, and frees the key if there is none. After a
/// server error the effect is uncertain. A failure here does not change the response.
async fn store_response(server: &Server, claim: Claim, response: Response) -> Result<Response> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(Error::internal)?.to_bytes();
    let end = if parts.status.is_server_error() {
        Completion::AllowRetry
    } else if parts.status.is_success() || parts.extensions.get::<EffectCommitted>().is_some() {
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = String::from_utf8_lossy(&body).into_owned();
        let until = parts.extensions.get().map(|ReplayUntil(at)| *at);
        Completion::StoreResponse(
            StoredResponse { status: parts.status.as_u16(), content_type, body },
            until,
        )
    } else {
        Completion::Release
    };
    if let Err(error) = idempotency::complete(server, claim, end).await {
        tracing::error!(error = %error.chain(), "idempotency key could not be completed; its lease will expire");
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn replay(stored: StoredResponse) -> Result<Response> {
    let mut response = Response::builder().status(stored.status).header(REPLAYED, "true");
    if let Some(content_type) = stored.content_type {
        response = response.header(header::CONTENT_TYPE, content_type);
    }
    response.body(stored.body.into()).map_err(Error::internal)
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
    fn content_is_query_string_content_type_and_body() {
        let typed =
            |value| HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]);
        let json = typed("application/json");
        let same = content_digest(None, &json, b"{}");
        assert_eq!(content_digest(Some(""), &json, b"{}"), same);
        for other in [
            content_digest(None, &json, b"{} "),
            content_digest(None, &typed("text/plain"), b"{}"),
            content_digest(Some("a=1"), &json, b"{}"),
            content_digest(Some("application/json{}"), &HeaderMap::new(), b""),
        ] {
            assert_ne!(other, same);
        }
    }
}
