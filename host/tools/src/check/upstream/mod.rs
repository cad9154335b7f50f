//! The scripted upstream: returns examples or injected failures, and records the requests.

pub mod failure;
pub mod failure_cases;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use self::failure::UpstreamFailure;
use tollhouse_platform::outbound::egress::{EgressError, EgressRequest, EgressResponse, Script};
use tollhouse_plugins::Examples;

/// The responses to the requests of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponsePlan {
    failure: Option<(UpstreamFailure, usize, FailureDuration)>,
}

/// The requests that a failure affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureDuration {
    Once,
    Permanent,
}

impl ResponsePlan {
    /// Returns the examples only.
    pub fn examples() -> ResponsePlan {
        ResponsePlan::default()
    }

    /// Injects a failure of the request with this number, counted from 0.
    pub fn with_failure(
        trouble: UpstreamFailure,
        at: usize,
        lasting: FailureDuration,
    ) -> ResponsePlan {
        ResponsePlan { failure: Some((trouble, at, lasting)) }
    }

    fn failure_at(self, request: usize) -> Option<UpstreamFailure> {
        let (trouble, at, lasting) = self.failure?;
        let concerned = request == at || request > at && lasting == FailureDuration::Permanent;
        concerned.then_some(trouble)
    }
}

/// A request as it would be sent, secrets included.
#[derive(Clone, Debug)]
pub struct ObservedRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub answer: Result<EgressResponse, EgressError>,
    /// The manifest's response to it.
    pub example: Option<EgressResponse>,
}

impl ObservedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// A scripted upstream, shared by clones.
#[derive(Clone)]
pub struct ScriptedUpstream(Arc<Inner>);

type ExampleMatcher = dyn Fn(&EgressRequest) -> Option<EgressResponse> + Send + Sync;

struct Inner {
    matcher: Box<ExampleMatcher>,
    call: Mutex<(ResponsePlan, Vec<ObservedRequest>)>,
}

impl ScriptedUpstream {
    pub fn new(examples: &Examples) -> ScriptedUpstream {
        let fitting = Box::new(examples.matcher());
        ScriptedUpstream(Arc::new(Inner { matcher: fitting, call: Mutex::default() }))
    }

    pub fn script(&self) -> Arc<Script> {
        let upstream = self.clone();
        Arc::new(move |request| upstream.respond(request))
    }

    /// Sets the plan of the next call.
    pub fn plan(&self, plan: ResponsePlan) {
        *self.0.call.lock().unwrap_or_else(PoisonError::into_inner) = (plan, Vec::new());
    }

    /// Returns the requests of the latest call.
    pub fn take_requests(&self) -> Vec<ObservedRequest> {
        let mut call = self.0.call.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut call.1)
    }

    fn respond(&self, request: &EgressRequest) -> Result<EgressResponse, EgressError> {
        let example = (self.0.matcher)(request);
        let mut call = self.0.call.lock().unwrap_or_else(PoisonError::into_inner);
        let (plan, seen) = &mut *call;
        let usual = || {
            let out_of_order =
                EgressResponse { status: 503, headers: Vec::new(), body: Bytes::new() };
            Ok(example.clone().unwrap_or(out_of_order))
        };
        let trouble = plan.failure_at(seen.len());
        let answer =
            trouble.map_or_else(usual, |trouble| trouble.respond(request, example.as_ref()));
        seen.push(ObservedRequest {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: request.body.clone().unwrap_or_default(),
            answer: answer.clone(),
            example,
        });
        answer
    }
}
