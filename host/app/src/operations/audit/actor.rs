//! The operator behind a request.

use std::{collections::BTreeSet, net::IpAddr, ops::Deref, sync::Arc};

use axum::{extract::FromRequestParts, http::request::Parts};

use crate::state::prelude::*;
use tollhouse_http::{
    Permission,
    openapi::{Describe, Operation},
};

/// The operator behind a request, as the audit log names it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Actor(Arc<ActorParts>);

#[derive(Debug, Default)]
pub struct ActorParts {
    /// Id of the operator; empty for the configured operator token.
    pub id: String,
    pub name: String,
    /// Id of the token that authenticated the request.
    pub credential: Option<String>,
    pub address: Option<IpAddr>,
    pub request_id: String,
    pub permissions: BTreeSet<Permission>,
    /// The companies to which the operator is limited; `None`: no limit.
    pub companies: Option<Vec<CompanyId>>,
    /// The company to whose team the person belongs; `None`: an operator of the service.
    pub member_of: Option<CompanyId>,
}

impl ActorParts {
    /// Returns the owner of the audit log that records the person's sign-ins and views.
    pub fn log(&self) -> Owner {
        self.member_of.as_ref().map_or(Owner::Service, Owner::from)
    }
}

impl Deref for Actor {
    type Target = ActorParts;

    fn deref(&self) -> &ActorParts {
        &self.0
    }
}

impl From<ActorParts> for Actor {
    fn from(parts: ActorParts) -> Actor {
        Actor(Arc::new(parts))
    }
}

impl<S: Sync> FromRequestParts<S> for Actor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Actor, Error> {
        let actor = parts.extensions.get::<Actor>().cloned();
        actor.ok_or_else(|| Error::internal("the route is not marked Access::Operator"))
    }
}

impl Describe for Actor {
    fn describe(_: &mut Operation<'_>) {}
}
