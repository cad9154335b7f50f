//! Authentication, before the body is read.

use axum::{
    extract::Request,
    http::{Extensions, HeaderMap, header},
};

use tollhouse_platform::{
    error::{Error, Result},
    values::id::CompanyId,
};

/// Authenticates the principals of routes that need a key.
pub trait Principals: Clone + Send + Sync + 'static {
    /// Returns whether this host accepted the API key before, and has not refused it since.
    fn is_accepted(&self, key: &str) -> bool;

    /// Authenticates a company, adds what handlers extract to `extensions`, and returns its id.
    fn company(
        &self,
        key: &str,
        extensions: &mut Extensions,
    ) -> impl Future<Output = Result<CompanyId>> + Send;

    /// Authenticates the operators by the operator token.
    fn operator(&self, token: &str) -> Result<()>;
}

/// Returns whether this host accepted the request's API key before, and has not refused it since.
pub fn is_accepted(principals: &impl Principals, request: &Request) -> Result<bool> {
    Ok(principals.is_accepted(bearer(request.headers())?))
}

/// Authenticates the company of a request, and returns its id.
pub async fn company(principals: &impl Principals, request: &mut Request) -> Result<CompanyId> {
    let key = bearer(request.headers())?.to_owned();
    principals.company(&key, request.extensions_mut()).await
}

/// Authenticates the operators.
pub fn operator(principals: &impl Principals, request: &Request) -> Result<()> {
    principals.operator(bearer(request.headers())?)
}

fn bearer(headers: &HeaderMap) -> Result<&str> {
    let scheme_and_key = || headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ');
    match scheme_and_key() {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && !key.is_empty() => Ok(key),
        _ => Err(Error::Unauthorized("the Authorization header must be: Bearer <key>")),
    }
}
