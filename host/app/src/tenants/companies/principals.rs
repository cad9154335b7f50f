//! The authenticated principal of a request.

use axum::{
    extract::FromRequestParts,
    http::{Extensions, request::Parts},
};

use super::{AcceptedKeys, Company, authenticate, digest};
use crate::{operations::operators, state::prelude::*};
use tollhouse_http::{
    OperatorCall, Principals,
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

    async fn operator(
        &self,
        token: &str,
        call: OperatorCall,
        extensions: &mut Extensions,
    ) -> Result<String> {
        let actor = operators::authenticate(self, token, extensions).await;
        if matches!(actor, Ok(_) | Err(Error::Unauthorized(_))) {
            self.slot::<AcceptedKeys>().record(&digest(token), actor.is_ok());
        }
        let actor = actor?;
        operators::authorize(self, &actor, call).await?;
        let id = actor.id.clone();
        extensions.insert(actor);
        Ok(id)
    }
}
