//! The pipeline before each handler: authentication, concurrency limits, body, idempotency key.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::timeout;

use super::{
    Server,
    auth::{self, Principals},
    room::{Place, Rooms},
};
use crate::{
    Access,
    idempotency::header as idempotency,
    settings::limits::{Sizes, late, receive},
};
use tollhouse_platform::error::Result;

/// The pipeline of one route.
#[derive(Clone)]
pub struct Gate<P> {
    pub server: Server,
    pub principals: P,
    pub access: Access,
    pub sizes: Sizes,
    pub rooms: Rooms,
}

pub async fn pass<P: Principals>(
    State(gate): State<Gate<P>>,
    request: Request,
    next: Next,
) -> Response {
    gate.answer(request, next).await.unwrap_or_else(IntoResponse::into_response)
}

impl<P: Principals> Gate<P> {
    async fn answer(&self, mut request: Request, next: Next) -> Result<Response> {
        let limits = &self.server.limits;
        let (scope, place) = match self.access {
            Access::Company => {
                let (company_id, place) = self.enter_with_key(&mut request).await?;
                (Some(company_id), place)
            }
            Access::Operator => {
                let scope = auth::operator(&self.principals, &request)?;
                (Some(scope), self.rooms.callers.enter()?)
            }
            Access::Open | Access::Always => (None, self.rooms.strangers.enter()?),
        };
        let upload = || self.rooms.uploads.enter_as(scope.as_deref());
        let (request, upload) = receive(request, self.sizes, limits.body, upload).await?;
        let places = (place, upload);
        if let Some(scope) = scope
            && let Some(key) = idempotency::key(&request)?.map(str::to_owned)
        {
            return idempotency::once(&self.server, scope, key, request, next, places).await;
        }
        let method = request.method().clone();
        let answer = timeout(limits.request, next.run(request)).await;
        answer.map_err(|_| late(&method, limits.request))
    }

    /// Authenticates the company of an API key and acquires its permit. Only a key that this host
    /// has accepted before uses a permit of `callers` during the lookup.
    async fn enter_with_key(&self, request: &mut Request) -> Result<(String, Place)> {
        let is_accepted = auth::is_accepted(&self.principals, request)?;
        let room = if is_accepted { &self.rooms.callers } else { &self.rooms.lookups };
        let mut place = room.enter()?;
        let company_id = auth::company(&self.principals, request).await?;
        if !is_accepted {
            place = self.rooms.callers.enter()?;
        }
        self.rooms.callers.give(&mut place, &company_id)?;
        Ok((company_id, place))
    }
}
