//! Authentication, before the body is read.

use axum::{
    extract::Request,
    http::{Extensions, header},
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

/// Returns the API key or operator token of a request.
pub fn bearer(request: &Request) -> Result<&str> {
    let headers = request.headers();
    let scheme_and_key = || headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ');
    match scheme_and_key() {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && !key.is_empty() => Ok(key),
        _ => Err(Error::Unauthorized("the Authorization header must be: Bearer <key>")),
    }
}
