//! The authenticated principal of a request.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRef, FromRequestParts, MatchedPath},
    http::{Extensions, request::Parts},
};

use super::{
    AcceptedKeys, Company, KnownKey, authenticate, digest, find, find_holder, record_use, store,
};
use crate::{
    operations::{
        audit::{self, Actor, ActorParts},
        operators,
    },
    state::prelude::*,
};
use tollhouse_http::{
    CompanyCall, OperatorCall, Principals, RequestOrigin,
    openapi::{Describe, Operation},
};
use tollhouse_platform::store::{DynamicStatement, Record};

/// The routes whose handlers extract a [`FetchingCompany`], which checks the API key with the
/// record.
const CHECKED_WITH_THE_RECORD: [&str; 2] =
    ["/api/v1/payment/fetch/{id}", "/api/v1/payment/fetch/reference/{reference}"];

/// The company whose records a request accesses: that of the API key or, in a request of an
/// operator, that of the path.
#[derive(Clone)]
pub struct AuthenticatedCompany(pub Company);

impl<S: Send + Sync> FromRequestParts<S> for AuthenticatedCompany
where
    App: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<AuthenticatedCompany> {
        match parts.extensions.get::<AuthenticatedCompany>() {
            Some(company) => Ok(company.clone()),
            None => Ok(AuthenticatedCompany(company_of_path(parts, state).await?)),
        }
    }
}

/// Returns the company that the path of an operator's request names. The permission for it has been
/// checked. Its plan does not limit which records an operator sees.
async fn company_of_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Company>
where
    App: FromRef<S>,
{
    if parts.extensions.get::<Actor>().is_none() {
        return Err(Error::internal("the route is not marked Access::Company"));
    }
    let Path(parameters) =
        Path::<BTreeMap<String, String>>::from_request_parts(parts, state).await?;
    let id = parameters.get("company").ok_or_else(|| Error::internal("a path without company"))?;
    let mut company = find(&App::from_ref(state), id).await?;
    company.subscription.features = None;
    Ok(company)
}

impl Describe for AuthenticatedCompany {
    fn describe(operation: &mut Operation<'_>) {
        describe_company(operation);
    }
}

fn describe_company(operation: &mut Operation<'_>) {
    if operation.path.contains("{company}") {
        Path::<CompanyId>::describe(operation);
    }
}

/// The company of a request that fetches one record. The statement that finds the record checks the
/// API key too, which saves a query. A revoked key is rejected at once nevertheless.
#[derive(Clone)]
pub enum FetchingCompany {
    /// A company whose key this host has accepted before.
    Known {
        digest: String,
        company_id: CompanyId,
    },
    Authenticated(Box<Company>),
}

impl KnownKey {
    /// Returns 403 unless the key may make this call. The refusal is recorded in the company's audit
    /// log, at most once a minute.
    pub fn check(&self, app: &App, call: &CompanyCall, origin: &RequestOrigin) -> Result<()> {
        let checked = self.limits.check(call.scope, origin.address);
        if let Err(refusal) = &checked
            && app.rate_limits.key_uses.check(&format!("{}.refused", self.key_id)).is_ok()
        {
            let RequestOrigin { request_id, address } = origin.clone();
            let (name, credential) = ("API key".to_owned(), Some(self.key_id.clone()));
            let actor = ActorParts { name, credential, request_id, address, ..Default::default() };
            let detail = json!({ "operation": call.operation, "reason": refusal.to_string() });
            self.record_refusal(app, actor.into(), detail);
        }
        checked
    }

    fn record_refusal(&self, app: &App, actor: Actor, detail: Value) {
        let (app, company) = (app.clone(), self.company_id.clone());
        app.tasks.clone().spawn(async move {
            let (db, host) = (app.store.clone(), app);
            let record = async move |tx: &mut Tx| {
                audit::record(tx, &host, &actor, &company, "key.refuse", detail).await
            };
            if let Err(error) = db.write(record).await {
                tracing::warn!(%error, "the refusal of an API key could not be recorded");
            }
        });
    }
}

impl FetchingCompany {
    async fn of_key(
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
        app.rate_limits.keys.check(&known.key_id)?;
        record_use(app, &known.company_id, &known.key_id, None);
        known.check(app, call, origin)?;
        let company_id = known.company_id;
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

impl Principals for App {
    fn is_accepted(&self, key: &str) -> bool {
        self.slot::<AcceptedKeys>().contains(key)
    }

    async fn company(
        &self,
        key: &str,
        call: CompanyCall,
        extensions: &mut Extensions,
    ) -> Result<CompanyId> {
        let origin = RequestOrigin::of(extensions);
        let route = extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        if !CHECKED_WITH_THE_RECORD.contains(&route) {
            let company = authenticate(self, key, &call, &origin).await?;
            let id = company.id.clone();
            extensions.insert(AuthenticatedCompany(company));
            return Ok(id);
        }
        let (company_id, caller) = FetchingCompany::of_key(self, key, &call, &origin).await?;
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
