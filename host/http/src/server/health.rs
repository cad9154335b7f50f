//! Liveness and readiness of this host.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::extract::State;
use tokio::{sync::Mutex, time::timeout};

use super::Server;
use crate::response::MessageResponse;
use tollhouse_platform::error::{Error, Result};

/// Time for which a check is reused, because any client may request one without a key.
const MAX_CHECK_AGE: Duration = Duration::from_secs(1);

/// Timeout of a check: far above the normal time, and below the timeout of load balancers.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The last check of the database, shared by all requests.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<Option<DatabaseCheck>>>);

/// The time of a check, and whether the database was healthy.
type DatabaseCheck = (Duration, bool);

pub async fn live() -> MessageResponse {
    MessageResponse("alive")
}

pub async fn ready(State(server): State<Server>) -> Result<MessageResponse> {
    if server.stopping.load(Ordering::Relaxed) {
        return Err(Error::Unavailable("the host is shutting down"));
    }
    match is_database_healthy(&server).await? {
        true if !server.runs_jobs => Ok(MessageResponse("ready, without jobs")),
        true => Ok(MessageResponse("ready")),
        false => Err(Error::Unavailable("the database does not respond")),
    }
}

/// Returns whether the database works, from a check at most 1 s old.
async fn is_database_healthy(server: &Server) -> Result<bool> {
    let mut last = server.readiness.0.clone().lock_owned().await;
    if let Some((at, is_healthy)) = *last
        && server.clock.elapsed().saturating_sub(at) < MAX_CHECK_AGE
    {
        return Ok(is_healthy);
    }
    // Spawned, so that it completes: otherwise clients that disconnect could start many checks.
    let host = server.clone();
    let check = server.tasks.spawn(async move {
        let is_healthy = check_database(&host).await;
        *last = Some((host.clock.elapsed(), is_healthy));
        is_healthy
    });
    check.await.map_err(Error::internal)
}

/// Checks the database, for at most [`CHECK_TIMEOUT`].
async fn check_database(server: &Server) -> bool {
    let why = match timeout(CHECK_TIMEOUT, server.store.probe()).await {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it did not finish within {} ms", CHECK_TIMEOUT.as_millis()),
    };
    tracing::error!(error = why, "the database does not respond");
    false
}
