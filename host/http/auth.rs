//! Who calls: checked before anything of the body is read.

use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderMap, header, request::Parts},
};
use subtle::ConstantTimeEq;

use crate::{
    app::App,
    companies::{self, Company},
    error::{Error, Result},
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

/// Whether this host has accepted the request's API key before, and not refused it since.
pub fn is_accepted(app: &App, request: &Request) -> Result<bool> {
    Ok(app.accepted_keys.has(bearer(request.headers())?))
}

/// Tells the handler which company calls; answers its id.
pub async fn company(app: &App, request: &mut Request) -> Result<String> {
    let company = companies::authenticate(app, bearer(request.headers())?).await?;
    let id = company.id.clone();
    request.extensions_mut().insert(Caller(company));
    Ok(id)
}

/// Answers what stands for the operators in the place of a company's id.
pub fn operator(app: &App, request: &Request) -> Result<String> {
    let token = bearer(request.headers())?;
    let known = app.settings.operator_token.as_bytes();
    if !bool::from(known.ct_eq(token.as_bytes())) {
        return Err(Error::Unauthorized("the operator token is not valid"));
    }
    app.rates.operators.check(&())?;
    Ok(String::new())
}

fn bearer(headers: &HeaderMap) -> Result<&str> {
    let scheme_and_key = || headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ');
    match scheme_and_key() {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && !key.is_empty() => Ok(key),
        _ => Err(Error::Unauthorized("the Authorization header must be: Bearer <key>")),
    }
}
