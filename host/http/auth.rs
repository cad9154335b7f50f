//! Who calls: checked before anything of the body is read.

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use subtle::ConstantTimeEq;

use crate::{
    app::App,
    companies::{self, Company},
    error::Error,
};

/// The company that a request acts for: all that it may see is this company's.
#[derive(Clone)]
pub struct Caller(pub Company);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Error> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| Error::internal("the route is not marked Access::Company"))
    }
}

pub async fn company(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let Some(key) = bearer(request.headers()) else { return missing().into_response() };
    match companies::authenticate(&app, key).await {
        Ok(company) => {
            request.extensions_mut().insert(Caller(company));
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

pub async fn operator(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(token) = bearer(request.headers()) else { return missing().into_response() };
    let known = app.settings.operator_token.as_bytes();
    if !bool::from(known.ct_eq(token.as_bytes())) {
        return Error::Unauthorized("the operator token is not valid").into_response();
    }
    next.run(request).await
}

fn missing() -> Error {
    Error::Unauthorized("the Authorization header must be: Bearer <key>")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !key.is_empty()).then_some(key)
}
