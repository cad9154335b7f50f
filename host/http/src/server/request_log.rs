//! The log of completed requests with an API key, for the application. It never contains a path, a
//! query string, a body or the message of an error.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{extract::Request, http::StatusCode};

use super::{Server, auth::RequestOrigin};
use tollhouse_platform::{
    background::log_buffer::LogEntry, clock::Timestamp, error::ErrorSummary, values::id::CompanyId,
};

/// A request that an API key authenticated, after its end.
#[derive(Clone, Debug)]
pub struct CompletedRequest {
    pub company_id: CompanyId,
    pub key_id: String,
    pub origin: RequestOrigin,
    pub began_at: Timestamp,
    pub method: &'static str,
    /// Pattern of the path.
    pub route: Arc<str>,
    /// Status of the response; 499 if the client closed the connection before it.
    pub status: u16,
    pub duration: Duration,
    /// Summary of an error response. Its field is one that the route documents.
    pub error: Option<ErrorSummary>,
}

impl LogEntry for CompletedRequest {
    fn company(&self) -> &CompanyId {
        &self.company_id
    }
}

/// Receives completed requests. It must neither wait nor fail.
pub type RequestRecorder = Arc<dyn Fn(CompletedRequest) + Send + Sync>;

/// The API key of a request, which is known once the request is authenticated.
#[derive(Clone, Debug, Default)]
pub struct CallingKey(Arc<OnceLock<(CompanyId, String)>>);

impl CallingKey {
    pub fn set(&self, company_id: &CompanyId, key_id: &str) {
        self.0.get_or_init(|| (company_id.clone(), key_id.to_owned()));
    }
}

/// A request in flight that is recorded if it is authenticated.
pub struct LoggedRequest {
    recorder: RequestRecorder,
    key: CallingKey,
    origin: RequestOrigin,
    began_at: Timestamp,
}

/// The end of a request.
pub struct RequestEnd {
    pub method: &'static str,
    pub route: Arc<str>,
    pub status: u16,
    pub duration: Duration,
    pub error: Option<ErrorSummary>,
}

impl LoggedRequest {
    /// Adds a [`CallingKey`] to a request. `None` if this host does not log requests.
    pub fn begin(server: &Server, request: &mut Request) -> Option<LoggedRequest> {
        let (recorder, key) = (server.request_recorder.clone()?, CallingKey::default());
        request.extensions_mut().insert(key.clone());
        let origin = RequestOrigin::of(request.extensions());
        Some(LoggedRequest { recorder, key, origin, began_at: server.clock.now() })
    }

    /// Passes the request on, unless its key is unknown or was rejected after all.
    pub fn complete(&mut self, end: RequestEnd) {
        let RequestEnd { method, route, status, duration, error } = end;
        let Some((company_id, key_id)) = self.key.0.get().cloned() else { return };
        if status == StatusCode::UNAUTHORIZED.as_u16() {
            return;
        }
        let (origin, began_at) = (std::mem::take(&mut self.origin), self.began_at);
        let completed = CompletedRequest {
            company_id,
            key_id,
            origin,
            began_at,
            method,
            route,
            status,
            duration,
            error,
        };
        (self.recorder)(completed);
    }
}
