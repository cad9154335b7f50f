//! What every request passes on the way to its handler: who calls, whether it is too much, its body, its idempotency key.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::sync::Semaphore;

use super::{
    Access, auth, idempotency,
    limits::{in_time, receive},
};
use crate::{
    app::App,
    error::{Error, Result},
};

/// Of one route.
#[derive(Clone)]
pub struct Gate {
    pub app: App,
    pub access: Access,
    /// Bytes of a body.
    pub most_body: usize,
    /// How many requests more the listener takes on.
    pub room: Arc<Semaphore>,
}

pub async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    gate.answer(request, next).await.unwrap_or_else(IntoResponse::into_response)
}

impl Gate {
    async fn answer(&self, mut request: Request, next: Next) -> Result<Response> {
        let full = |_| Error::Unavailable("the host has too much to do");
        let room = self.room.clone().try_acquire_owned().map_err(full)?;
        let limits = &self.app.settings.http;
        let scope = match self.access {
            Access::Company => Some(auth::company(&self.app, &mut request).await?),
            Access::Operator => Some(auth::operator(&self.app, &request)?),
            Access::Open => None,
        };
        let request = receive(request, self.most_body, limits.body).await?;
        if let Some(scope) = scope
            && let Some(key) = idempotency::key(&request)?.map(str::to_owned)
        {
            return idempotency::once(&self.app, scope, key, request, next, room).await;
        }
        Ok(in_time(limits.request, next.run(request)).await)
    }
}
