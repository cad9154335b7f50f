//! Limits of connections and requests.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::Method,
};
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::HeaderMap;

use tollhouse_platform::error::{Error, Result};

/// Limits of each listener, unless stated otherwise.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Maximum number of connections; further ones wait in the accept queue.
    pub connections: usize,
    /// Maximum number of connections per client address; further ones are closed.
    pub address_connections: usize,
    /// Maximum number of concurrent requests; further ones receive 503.
    pub requests: usize,
    /// Timeout of the TLS handshake.
    pub handshake_timeout: Duration,
    /// Timeout for the headers of a request, from their first byte.
    pub header_timeout: Duration,
    pub header_bytes: usize,
    pub header_count: usize,
    /// Timeout for a body.
    pub body_timeout: Duration,
    pub body_bytes: usize,
    /// Timeout for the handler, after the request has been read.
    pub request_timeout: Duration,
    /// Timeout for the client to receive its response.
    pub write_timeout: Duration,
    /// Idle time after which a connection is closed.
    pub idle_timeout: Duration,
    /// Maximum number of concurrent requests per HTTP/2 connection.
    pub http2_streams: u32,
    /// Streams that an HTTP/2 client may reset before they are accepted.
    pub http2_resets: usize,
    /// Delay between the shutdown signal and closing the listeners; readiness is 503 meanwhile.
    pub drain_delay: Duration,
    /// Timeout for requests in flight at shutdown.
    pub shutdown_timeout: Duration,
}

impl ServerLimits {
    /// Returns the longest time of a request: a connection with an older one is stuck.
    #[must_use]
    pub fn max_request_time(&self) -> Duration {
        self.body_timeout + self.request_timeout + self.write_timeout
    }
}

/// Body sizes of a route, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Limit without a permit for uploads.
    pub usual: usize,
    /// Limit with a permit for uploads.
    pub max: usize,
}

/// Reads the body within `time`. Once it exceeds the usual size, calls `let_in` for a permit.
pub async fn read_body<P>(
    request: Request,
    sizes: BodyLimits,
    time: Duration,
    let_in: impl Fn() -> Result<P>,
) -> Result<(Request, Option<P>)> {
    if request.body().is_end_stream() {
        return Ok((request, None));
    }
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(time, read_limited(body, sizes, let_in)).await;
    let (body, place) = read.map_err(|_| Error::RequestTimeout)??;
    Ok((Request::from_parts(parts, Body::from(body)), place))
}

async fn read_limited<P>(
    mut body: Body,
    sizes: BodyLimits,
    let_in: impl Fn() -> Result<P>,
) -> Result<(Bytes, Option<P>)> {
    let mut place = None;
    let mut check = |bytes: usize| {
        if bytes > sizes.max {
            return Err(Error::TooLarge);
        }
        if bytes > sizes.usual && place.is_none() {
            place = Some(let_in()?);
        }
        Ok(())
    };
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    check(announced)?;
    let mut bytes = BytesMut::new(); // does not trust the announced size
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::invalid("the body could not be read"))?;
        if let Ok(data) = frame.into_data() {
            check(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
    }
    Ok((bytes.freeze(), place))
}

/// Returns the body that [`read_body`] has read.
pub async fn buffered_body(request: Request) -> Result<(Request, Bytes)> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(Error::internal)?.to_bytes();
    Ok((Request::from_parts(parts, Body::from(body.clone())), body))
}

/// The error of a late handler. Reads can be retried; otherwise the outcome is unknown.
#[must_use]
pub fn timeout_error(method: &Method, time: Duration) -> Error {
    match method.is_safe() {
        true => Error::Unavailable("the request took too long"),
        false => Error::TimedOut(time),
    }
}

/// Returns 431 if there are too many headers, or if path and headers together are too long.
pub fn check_headers(limits: &ServerLimits, path: &str, headers: &HeaderMap) -> Result<()> {
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    let too_large = headers.len() > limits.header_count
        || bytes.sum::<usize>() + path.len() > limits.header_bytes;
    if too_large { Err(Error::HeadersTooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_late_reads_can_be_retried() {
        for (method, again) in [
            (Method::GET, true),
            (Method::HEAD, true),
            (Method::POST, false),
            (Method::PUT, false),
            (Method::PATCH, false),
            (Method::DELETE, false),
        ] {
            let unavailable =
                matches!(timeout_error(&method, Duration::ZERO), Error::Unavailable(_));
            assert_eq!(unavailable, again, "{method}");
        }
    }
}
