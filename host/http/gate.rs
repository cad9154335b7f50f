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
    room::Room,
};
use crate::{app::App, error::Result};

/// Of one route.
#[derive(Clone)]
pub struct Gate {
    pub app: App,
    pub access: Access,
    pub sizes: Sizes,
    /// That the listener has for requests like these.
    pub room: Room,
    /// That it has for those of them whose bodies are larger than usual.
    pub uploads: Room,
}

pub async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    gate.answer(request, next).await.unwrap_or_else(IntoResponse::into_response)
}

impl Gate {
    async fn answer(&self, mut request: Request, next: Next) -> Result<Response> {
        let mut place = self.room.enter()?;
        let limits = &self.app.settings.http;
        let scope = match self.access {
            Access::Company => {
                let company_id = auth::company(&self.app, &mut request).await?;
                self.room.give(&mut place, &company_id)?;
                Some(company_id)
            }
            Access::Operator => Some(auth::operator(&self.app, &request)?),
            Access::Open | Access::Always => None,
        };
        let upload = || self.uploads.enter_as(scope.as_deref());
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
}
