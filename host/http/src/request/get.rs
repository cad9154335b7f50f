//! GET routes with an effect.

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, Method, header, request::Parts},
    response::{IntoResponse, Response},
};

use tollhouse_platform::error::Error;

/// Accepts GET only: HEAD, which axum also routes to GET handlers, must have no effect.
pub struct GetOnly;

impl<S: Sync> FromRequestParts<S> for GetOnly {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<GetOnly, Response> {
        if parts.method == Method::GET {
            return Ok(GetOnly);
        }
        let mut response = Error::MethodNotAllowed.into_response();
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
        Err(response)
    }
}
