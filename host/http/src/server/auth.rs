//! Authentication, before the body is read.

use std::{collections::BTreeMap, convert::Infallible, net::IpAddr};

use axum::{
    extract::{FromRequestParts, Request},
    http::{Extensions, header, request::Parts},
};

use super::request_log::CallingKey;
use crate::{
    Permission,
    openapi::{Describe, Operation},
};
use tollhouse_platform::{
    error::{Error, Result},
    values::id::CompanyId,
};

/// The id of a request, from the client or generated.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// The address of a request's connection: that of the client, or of the last proxy.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub IpAddr);

/// The id and the address of a request, for the audit log.
#[derive(Clone, Debug, Default)]
pub struct RequestOrigin {
    pub request_id: String,
    pub address: Option<IpAddr>,
}

impl RequestOrigin {
    #[must_use]
    pub fn of(request: &Extensions) -> RequestOrigin {
        let id = request.get::<RequestId>().map(|RequestId(id)| id.clone());
        let address = request.get::<ClientAddress>().map(|ClientAddress(address)| *address);
        RequestOrigin { request_id: id.unwrap_or_default(), address }
    }
}

impl<S: Sync> FromRequestParts<S> for RequestOrigin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<RequestOrigin, Infallible> {
        Ok(RequestOrigin::of(&parts.extensions))
    }
}

impl Describe for RequestOrigin {
    fn describe(_: &mut Operation<'_>) {}
}

/// A call of a route for companies.
#[derive(Clone, Debug)]
pub struct CompanyCall {
    pub scope: Permission,
    /// The method and the route, for example `GET /api/v1/payment/list`.
    pub operation: String,
    /// Receives the id of the key for the log of API requests, if there is one.
    pub key: Option<CallingKey>,
}

impl CompanyCall {
    /// Notes the key that authenticated the call.
    pub fn set_key(&self, company_id: &CompanyId, key_id: &str) {
        if let Some(key) = &self.key {
            key.set(company_id, key_id);
        }
    }
}

/// A call of a route for operators.
#[derive(Clone, Debug)]
pub struct OperatorCall {
    pub permission: Permission,
    /// The method and the route, for example `GET /internal/v1/companies/{company}`.
    pub operation: String,
    /// The company that the path names.
    pub company: Option<CompanyId>,
    /// The other parameters of the path, by name.
    pub record: BTreeMap<String, String>,
}

/// Authenticates the principals of routes that need a key.
pub trait Principals: Clone + Send + Sync + 'static {
    /// Returns whether this host accepted the key or token before, and has not refused it since.
    fn is_accepted(&self, key: &str) -> bool;

    /// Authenticates a company, checks that its key may make this call, adds what handlers extract
    /// to `extensions`, and returns the company's id.
    fn company(
        &self,
        key: &str,
        call: CompanyCall,
        extensions: &mut Extensions,
    ) -> impl Future<Output = Result<CompanyId>> + Send;

    /// Authenticates an operator by a token, checks that it may make this call, adds what handlers
    /// extract to `extensions`, and returns the operator's id.
    fn operator(
        &self,
        token: &str,
        call: OperatorCall,
        extensions: &mut Extensions,
    ) -> impl Future<Output = Result<String>> + Send;
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
