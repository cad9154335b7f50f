//! What one connection and one request may take.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::Method,
};
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::HeaderMap;

use crate::error::{Error, Result};

/// Of each listener, unless it says otherwise.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; more wait to be accepted.
    pub connections: usize,
    /// Connections at once of one client address; more are closed.
    pub address_connections: usize,
    /// Requests at once; more are answered 503.
    pub requests: usize,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// To send the headers of a request, from their first byte.
    pub headers: Duration,
    pub header_bytes: usize,
    pub header_count: usize,
    /// To send a body.
    pub body: Duration,
    pub body_bytes: usize,
    /// For what a request asks for, once it has been read.
    pub request: Duration,
    /// To take an answer.
    pub answer: Duration,
    /// Without a request, before a connection is closed.
    pub keep_alive: Duration,
    /// Requests at once of one HTTP/2 connection.
    pub http2_streams: u32,
    /// Streams that an HTTP/2 client may take back before they were looked at.
    pub http2_resets: usize,
    /// Between the order to stop and the end of accepting, while readiness says 503.
    pub drain: Duration,
    /// For what is in flight when the host stops.
    pub shutdown: Duration,
}

impl Limits {
    /// The longest that a request can be open: a connection with an older one is stuck.
    #[must_use]
    pub fn longest_request(&self) -> Duration {
        self.body + self.request + self.answer
    }
}

/// How many bytes the bodies of a route have.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// What each request may send.
    pub usual: usize,
    /// What one may send that was let in.
    pub most: usize,
}

/// The request with its whole body, which came in time; and what `let_in` gave for it, which is asked as soon as it is known to be
/// larger than usual.
pub async fn receive<P>(
    request: Request,
    sizes: Sizes,
    time: Duration,
    let_in: impl Fn() -> Result<P>,
) -> Result<(Request, Option<P>)> {
    if request.body().is_end_stream() {
        return Ok((request, None));
    }
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(time, read(body, sizes, let_in)).await;
    let (body, place) = read.map_err(|_| Error::TooSlow)??;
    Ok((Request::from_parts(parts, Body::from(body)), place))
}

async fn read<P>(
    mut body: Body,
    sizes: Sizes,
    let_in: impl Fn() -> Result<P>,
) -> Result<(Bytes, Option<P>)> {
    let mut place = None;
    let mut check = |bytes: usize| {
        if bytes > sizes.most {
            return Err(Error::TooLarge);
        }
        if bytes > sizes.usual && place.is_none() {
            place = Some(let_in()?);
        }
        Ok(())
    };
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    check(announced)?;
    let mut bytes = BytesMut::new(); // what is announced may never come
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::invalid("the body could not be read"))?;
        if let Ok(data) = frame.into_data() {
            check(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
    }
    Ok((bytes.freeze(), place))
}

/// The body that [`receive`] has read.
pub async fn received(request: Request) -> Result<(Request, Bytes)> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(Error::internal)?.to_bytes();
    Ok((Request::from_parts(parts, Body::from(body.clone())), body))
}

/// When a handler has not answered within `time`. Reading may be repeated; of all else, something may stand.
#[must_use]
pub fn late(method: &Method, time: Duration) -> Error {
    match method.is_safe() {
        true => Error::Unavailable("the request took too long"),
        false => Error::Late(time),
    }
}

/// 431 when there are too many headers, or they and the path are too long.
pub fn check_headers(limits: &Limits, path: &str, headers: &HeaderMap) -> Result<()> {
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    let too_large = headers.len() > limits.header_count
        || bytes.sum::<usize>() + path.len() > limits.header_bytes;
    if too_large { Err(Error::HeadersTooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reads_is_to_be_sent_again_when_it_was_late() {
        for (method, again) in [
            (Method::GET, true),
            (Method::HEAD, true),
            (Method::POST, false),
            (Method::PUT, false),
            (Method::PATCH, false),
            (Method::DELETE, false),
        ] {
            let unavailable = matches!(late(&method, Duration::ZERO), Error::Unavailable(_));
            assert_eq!(unavailable, again, "{method}");
        }
    }
}
