//! What every request passes on the way to its handler: who calls, whether it is too much, its body, its idempotency key.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::timeout;

use super::{
    Access, auth, idempotency,
    limits::{Sizes, late, receive},
    room::{Place, Rooms},
};
use crate::{app::App, error::Result};

/// Of one route.
#[derive(Clone)]
pub struct Gate {
    pub app: App,
    pub access: Access,
    pub sizes: Sizes,
    pub rooms: Rooms,
}

pub async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    gate.answer(request, next).await.unwrap_or_else(IntoResponse::into_response)
}

impl Gate {
    async fn answer(&self, mut request: Request, next: Next) -> Result<Response> {
        let limits = &self.app.settings.http;
        let (scope, place) = match self.access {
            Access::Company => {
                let (company_id, place) = self.enter_with_key(&mut request).await?;
                (Some(company_id), place)
            }
            Access::Operator => {
                let scope = auth::operator(&self.app, &request)?;
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
            return idempotency::once(&self.app, scope, key, request, next, places).await;
        }
        let method = request.method().clone();
        let answer = timeout(limits.request, next.run(request)).await;
        answer.map_err(|_| late(&method, limits.request))
    }

    /// The company that an API key stands for, and its place. Only a key that this host has
    /// accepted before takes a place of callers while it is looked up.
    async fn enter_with_key(&self, request: &mut Request) -> Result<(String, Place)> {
        let is_accepted = auth::is_accepted(&self.app, request)?;
        let room = if is_accepted { &self.rooms.callers } else { &self.rooms.lookups };
        let mut place = room.enter()?;
        let company_id = auth::company(&self.app, request).await?;
        if !is_accepted {
            place = self.rooms.callers.enter()?;
        }
        self.rooms.callers.give(&mut place, &company_id)?;
        Ok((company_id, place))
    }
}
