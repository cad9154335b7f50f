//! The pipeline before each handler: authentication, concurrency limits, body, idempotency key.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::{
    RequestExt,
    extract::{MatchedPath, RawPathParams, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::timeout;

use super::{
    Server,
    auth::{CompanyCall, OperatorCall, Principals, bearer},
    concurrency::{ConcurrencyLimiters, Permit},
};
use crate::{
    Access, Permission,
    idempotency::header as idempotency,
    settings::limits::{BodyLimits, read_body, timeout_error},
};
use tollhouse_platform::{
    error::{Error, ErrorSummary, Result},
    limits::owner::on_behalf_of,
    values::id::{CompanyId, Owner},
};

/// The pipeline of one route.
#[derive(Clone)]
pub struct RequestPipeline<P> {
    pub server: Server,
    pub principals: P,
    pub access: Access,
    pub sizes: BodyLimits,
    pub limiters: ConcurrencyLimiters,
    /// The names of the fields that the route documents.
    pub field_names: Arc<BTreeSet<String>>,
}

pub async fn handle<P: Principals>(
    State(gate): State<RequestPipeline<P>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = gate.run(request, next).await.unwrap_or_else(IntoResponse::into_response);
    // Any other name was made up by the client, and can be an e-mail address.
    if let Some(error) = response.extensions_mut().get_mut::<ErrorSummary>() {
        error.field.take_if(|field| !gate.field_names.contains(field));
    }
    response
}

/// Returns the method and the route of a request.
fn operation(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    format!("{} {route}", request.method())
}

impl<P: Principals> RequestPipeline<P> {
    /// Processes a request. The response of a read is counted until it is sent; that of a change is
    /// not refused, because the effect has happened.
    async fn run(&self, request: Request, next: Next) -> Result<Response> {
        let is_read = request.method().is_safe();
        let (owner, response) = self.process(request, next).await?;
        match is_read {
            true => self.limiters.responses.count(owner, response).await,
            false => Ok(response),
        }
    }

    async fn process(&self, mut request: Request, next: Next) -> Result<(Option<Owner>, Response)> {
        let limits = &self.server.limits;
        let (caller, permit) = match self.access {
            Access::Company(scope) => {
                let (company_id, permit) = self.authenticate_company(&mut request, scope).await?;
                (Some((Owner::from(company_id), String::new())), permit)
            }
            Access::Operator(permission) => {
                let (operator, permit) =
                    self.authenticate_operator(&mut request, permission).await?;
                (Some((Owner::Service, operator)), permit)
            }
            Access::Unauthenticated | Access::Unthrottled => {
                (None, self.limiters.unauthenticated.try_acquire()?)
            }
        };
        let owner = caller.as_ref().map(|(owner, _)| owner);
        let upload = || self.limiters.uploads.try_acquire_for(owner);
        let read = timeout(limits.body_timeout, read_body(request, self.sizes, upload)).await;
        let (request, upload) = read.map_err(|_| Error::RequestTimeout)??;
        let Some(caller) = caller else { return Ok((None, self.handle(request, next).await?)) };
        let permits = (permit, upload);
        let owner = caller.0.clone();
        let run = on_behalf_of(owner.clone(), async {
            match idempotency::key(&request)?.map(str::to_owned) {
                Some(key) => {
                    idempotency::run_once(&self.server, caller, key, request, next, permits).await
                }
                None => self.handle(request, next).await,
            }
        });
        Ok((Some(owner), run.await?))
    }

    async fn handle(&self, request: Request, next: Next) -> Result<Response> {
        let (method, limit) = (request.method().clone(), self.server.limits.request_timeout);
        timeout(limit, next.run(request)).await.map_err(|_| timeout_error(&method, limit))
    }

    /// Authenticates the operator of a token for this route. Returns its id, and its permit.
    async fn authenticate_operator(
        &self,
        request: &mut Request,
        permission: Permission,
    ) -> Result<(String, Permit)> {
        let token = bearer(request)?.to_owned();
        let operation = operation(request);
        let parameters = request.extract_parts::<RawPathParams>().await;
        let parameters = parameters.map_err(|_| Error::not_found("path not found"))?;
        if parameters.iter().any(|(_, value)| value.contains(char::is_control)) {
            return Err(Error::not_found("path not found"));
        }
        let mut record: BTreeMap<String, String> =
            parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let company = record.remove("company").map(CompanyId::from);
        let call = OperatorCall { permission, operation, company, record };
        let operator = self.principals.operator(&token, call, request.extensions_mut());
        self.with_permit(&token, operator).await
    }

    /// Runs the lookup of a key or token, and acquires the permit of its request. Only a key that
    /// this host has accepted before uses an `authenticated` permit during the lookup.
    async fn with_permit<T>(
        &self,
        key: &str,
        lookup: impl Future<Output = Result<T>>,
    ) -> Result<(T, Permit)> {
        let is_accepted = self.principals.is_accepted(key);
        let limiter =
            if is_accepted { &self.limiters.authenticated } else { &self.limiters.lookups };
        let mut permit = limiter.try_acquire()?;
        let found = lookup.await?;
        if !is_accepted {
            permit = self.limiters.authenticated.try_acquire()?;
        }
        Ok((found, permit))
    }

    /// Authenticates the company of an API key and acquires its permit.
    async fn authenticate_company(
        &self,
        request: &mut Request,
        scope: Permission,
    ) -> Result<(CompanyId, Permit)> {
        let key = bearer(request)?.to_owned();
        let logged = request.extensions().get().cloned();
        let call = CompanyCall { scope, operation: operation(request), key: logged };
        let company = self.principals.company(&key, call, request.extensions_mut());
        let (company_id, mut permit) = self.with_permit(&key, company).await?;
        let owner = Owner::from(company_id.clone());
        self.limiters.authenticated.assign(&mut permit, &owner)?;
        Ok((company_id, permit))
    }
}
