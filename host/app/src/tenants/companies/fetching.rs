//! Authentication in the statement that finds a record, which saves a query.

use axum::{
    extract::{FromRef, FromRequestParts},
    http::request::Parts,
};

use super::{
    AcceptedKeys, Company, authenticate, digest, find_holder,
    principals::{company_of_path, describe_company},
    record_use, store,
};
use crate::state::prelude::*;
use tollhouse_http::{
    CompanyCall, RequestOrigin,
    openapi::{Describe, Operation},
};
use tollhouse_platform::store::{DynamicStatement, Record};

/// The routes whose handlers extract a [`FetchingCompany`].
pub const CHECKED_WITH_THE_RECORD: [&str; 2] =
    ["/api/v1/payment/fetch/{id}", "/api/v1/payment/fetch/reference/{reference}"];

/// The company of a request that fetches one record. The statement that finds the record checks the
/// API key too, which saves a query. A revoked key is still rejected immediately.
#[derive(Clone)]
pub enum FetchingCompany {
    /// A company whose key this host has accepted before.
    Known {
        digest: String,
        company_id: CompanyId,
    },
    Authenticated(Box<Company>),
}

impl FetchingCompany {
    pub async fn of_key(
        app: &App,
        key: &str,
        call: &CompanyCall,
        origin: &RequestOrigin,
    ) -> Result<(CompanyId, FetchingCompany)> {
        let digest = digest(key);
        let Some(known) = app.slot::<AcceptedKeys>().find(&digest) else {
            let company = authenticate(app, key, call, origin).await?;
            return Ok((company.id.clone(), FetchingCompany::Authenticated(Box::new(company))));
        };
        call.set_key(&known.company_id, &known.key_id);
        app.rate_limits.keys.check(&known.key_id)?;
        record_use(app, &known.company_id, &known.key_id, None);
        known.check(app, call, origin)?;
        let company_id = known.company_id;
        Ok((company_id.clone(), FetchingCompany::Known { digest, company_id }))
    }

    /// Returns the record that `statement` selects as `t`. 401 and 403 as in authentication; 403
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
                let company = find_holder(app, &digest).await?.company;
                company.check_active(now)?;
                company
            }
        };
        company.check_feature(feature)?;
        let statement = statement(&company.id);
        Ok(app.store.select(async |tx| tx.dynamic(&statement).optional().await).await?)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for FetchingCompany
where
    App: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<FetchingCompany> {
        match parts.extensions.remove::<FetchingCompany>() {
            Some(company) => Ok(company),
            None => {
                Ok(FetchingCompany::Authenticated(Box::new(company_of_path(parts, state).await?)))
            }
        }
    }
}

impl Describe for FetchingCompany {
    fn describe(operation: &mut Operation<'_>) {
        describe_company(operation);
    }
}
