//! The authenticated principal of a request.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRef, FromRequestParts, MatchedPath},
    http::{Extensions, request::Parts},
};

use super::{
    AcceptedKeys, Company, KnownKey, authenticate, digest,
    fetching::{CHECKED_WITH_THE_RECORD, FetchingCompany},
    find,
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
pub async fn company_of_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Company>
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

pub fn describe_company(operation: &mut Operation<'_>) {
    if operation.path.contains("{company}") {
        Path::<CompanyId>::describe(operation);
    }
}

impl KnownKey {
    /// Returns 403 unless the key may make this call. The refusal is recorded in the company's
    /// audit log, at most once a minute.
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
