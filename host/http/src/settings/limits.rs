//! Limits of bodies and handlers.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::Method,
};
use bytes::BytesMut;
use http_body_util::BodyExt;

use tollhouse_platform::error::{Error, Result};

/// Body sizes of a route, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Limit without a permit for uploads.
    pub usual: usize,
    /// Limit with a permit for uploads.
    pub max: usize,
}

/// Reads the body. Once it exceeds the usual size, calls `acquire` for a permit.
pub async fn read_body<P>(
    request: Request,
    sizes: BodyLimits,
    acquire: impl Fn() -> Result<P>,
) -> Result<(Request, Option<P>)> {
    let (parts, mut body) = request.into_parts();
    let mut permit = None;
    let mut check = |bytes: usize| {
        if bytes > sizes.max {
            return Err(Error::TooLarge);
        }
        if bytes > sizes.usual && permit.is_none() {
            permit = Some(acquire()?);
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
    Ok((Request::from_parts(parts, Body::from(bytes.freeze())), permit))
}

/// The error of a late handler. Reads can be retried; otherwise the outcome is unknown.
#[must_use]
pub fn timeout_error(method: &Method, time: Duration) -> Error {
    match method.is_safe() {
        true => Error::Unavailable("the request took too long"),
        false => Error::TimedOut(time),
    }
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
