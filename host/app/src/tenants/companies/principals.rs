//! The authenticated company of a request.

use axum::{
    extract::FromRequestParts,
    http::{Extensions, request::Parts},
};
use subtle::ConstantTimeEq;

use super::{AcceptedKeys, Company, authenticate};
use crate::state::prelude::*;
use tollhouse_http::{
    Principals,
    openapi::{Describe, Operation},
};

/// The authenticated company of a request, which can access only records of this company.
#[derive(Clone)]
pub struct AuthenticatedCompany(pub Company);

impl<S: Sync> FromRequestParts<S> for AuthenticatedCompany {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<AuthenticatedCompany, Error> {
        let caller = parts.extensions.get::<AuthenticatedCompany>().cloned();
        caller.ok_or_else(|| Error::internal("the route is not marked Access::Company"))
    }
}

impl Describe for AuthenticatedCompany {
    fn describe(_: &mut Operation<'_>) {}
}

impl Principals for App {
    fn is_accepted(&self, key: &str) -> bool {
        self.slot::<AcceptedKeys>().contains(key)
    }

    async fn company(&self, key: &str, extensions: &mut Extensions) -> Result<CompanyId> {
        let company = authenticate(self, key).await?;
        let id = company.id.clone();
        extensions.insert(AuthenticatedCompany(company));
        Ok(id)
    }

    fn operator(&self, token: &str) -> Result<()> {
        let known = self.settings.operator_token.as_bytes();
        if !bool::from(known.ct_eq(token.as_bytes())) {
            return Err(Error::Unauthorized("the operator token is not valid"));
        }
        Ok(self.rate_limits.operators.check(&())?)
    }
}
