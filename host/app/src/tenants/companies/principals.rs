//! The authenticated principal of a request.

use axum::{
    extract::{FromRequestParts, MatchedPath},
    http::{Extensions, request::Parts},
};

use super::{
    AcceptedKeys, Company, KnownKey, authenticate, digest, find_holder, record_use, store,
};
use crate::{operations::operators, state::prelude::*};
use tollhouse_http::{
    OperatorCall, Principals,
    openapi::{Describe, Operation},
};
use tollhouse_platform::store::{DynamicStatement, Record};

/// The routes whose handlers extract a [`FetchingCompany`], which checks the API key with the
/// record.
const CHECKED_WITH_THE_RECORD: [&str; 2] =
    ["/api/v1/payment/fetch/{id}", "/api/v1/payment/fetch/reference/{reference}"];

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

/// The company of a request that fetches one record. The statement that finds the record checks the
/// API key too, which saves a query. A revoked key is rejected at once nevertheless.
#[derive(Clone)]
pub enum FetchingCompany {
    /// A company whose key this host has accepted before.
    Known { digest: String, company_id: CompanyId },
    Authenticated(Box<Company>),
}

impl FetchingCompany {
    async fn of_key(app: &App, key: &str) -> Result<(CompanyId, FetchingCompany)> {
        let digest = digest(key);
        let Some(known) = app.slot::<AcceptedKeys>().find(&digest) else {
            let company = authenticate(app, key).await?;
            return Ok((company.id.clone(), FetchingCompany::Authenticated(Box::new(company))));
        };
        let KnownKey { company_id, key_id } = known;
        app.rate_limits.keys.check(&key_id)?;
        record_use(app, &company_id, &key_id, None);
        Ok((company_id.clone(), FetchingCompany::Known { digest, company_id }))
    }

    /// Returns the record that `statement` selects as `t`. 401 and 403 as by authentication; 403
    /// unless the company's plan includes `feature`.
    pub async fn find<T: Record>(
        self,
        app: &App,
        feature: &str,
        statement: impl Fn(&CompanyId) -> DynamicStatement,
    ) -> Result<Option<T>> {
        let company = match self {
            FetchingCompany::Authenticated(company) => *company,
            FetchingCompany::Known { digest, company_id } => {
                let (statement, now) = (statement(&company_id), app.clock.now());
                let statement = store::readable_with_key(statement, &digest, feature, now);
                let find = async |tx: &mut Tx| tx.dynamic(&statement).optional().await;
                if let Some(found) = app.store.select(find).await? {
                    return Ok(Some(found));
                }
                find_holder(app, &digest).await?.company
            }
        };
        company.check_active(app.clock.now())?;
        company.check_feature(feature)?;
        let statement = statement(&company.id);
        Ok(app.store.select(async |tx| tx.dynamic(&statement).optional().await).await?)
    }
}

impl<S: Sync> FromRequestParts<S> for FetchingCompany {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<FetchingCompany, Error> {
        let caller = parts.extensions.remove::<FetchingCompany>();
        caller.ok_or_else(|| Error::internal("the route is not in CHECKED_WITH_THE_RECORD"))
    }
}

impl Describe for FetchingCompany {
    fn describe(_: &mut Operation<'_>) {}
}

impl Principals for App {
    fn is_accepted(&self, key: &str) -> bool {
        self.slot::<AcceptedKeys>().contains(key)
    }

    async fn company(&self, key: &str, extensions: &mut Extensions) -> Result<CompanyId> {
        let route = extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        if !CHECKED_WITH_THE_RECORD.contains(&route) {
            let company = authenticate(self, key).await?;
            let id = company.id.clone();
            extensions.insert(AuthenticatedCompany(company));
            return Ok(id);
        }
        let (company_id, caller) = FetchingCompany::of_key(self, key).await?;
        extensions.insert(caller);
        Ok(company_id)
    }

    async fn operator(
        &self,
        token: &str,
        call: OperatorCall,
        extensions: &mut Extensions,
    ) -> Result<String> {
        let actor = operators::authenticate(self, token, extensions).await;
        match &actor {
            Ok(_) => self.slot::<AcceptedKeys>().accept(&digest(token), None),
            Err(Error::Unauthorized(_)) => self.slot::<AcceptedKeys>().reject(&digest(token)),
            Err(_) => {}
        }
        let actor = actor?;
        operators::authorize(self, &actor, call).await?;
        let id = actor.id.clone();
        extensions.insert(actor);
        Ok(id)
    }
}
