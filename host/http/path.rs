//! Reading path values.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// The values of a path. What no record can be named by (control characters, bytes that are no text) names nothing.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>> {
        let nothing = || Error::not_found("there is nothing at this path");
        let raw = RawPathParams::from_request_parts(parts, state).await.map_err(|_| nothing())?;
        if raw.iter().any(|(_, value)| value.chars().any(char::is_control)) {
            return Err(nothing());
        }
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Path(path.0)).map_err(|_| nothing())
    }
}
