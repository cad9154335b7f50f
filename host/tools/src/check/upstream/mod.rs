//! The scripted upstream: returns examples or injected failures, and records the requests.

pub mod failure;
pub mod failure_cases;

use std::{ops::Range, sync::MutexGuard};

use bytes::Bytes;

use self::failure::UpstreamFailure;
use crate::prelude::*;
use tollhouse_plugins::Examples;

/// A failure to inject into one call.
#[derive(Clone, Debug)]
pub struct FailurePlan {
    pub failure: &'static UpstreamFailure,
    /// The affected requests of the call, counted from 0.
    pub requests: Range<usize>,
}

/// A request as it would be sent, secrets included.
#[derive(Clone, Debug)]
pub struct ObservedRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub response: Result<EgressResponse, EgressError>,
    /// The manifest's response to it.
    pub example: Option<EgressResponse>,
}

impl ObservedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Returns the manifest's response to a request.
type Matcher = Box<dyn Fn(&EgressRequest) -> Option<EgressResponse> + Send + Sync>;

pub struct ScriptedUpstream {
    matcher: Mutex<Matcher>,
    /// The plan and the requests of the latest call.
    call: Mutex<(Option<FailurePlan>, Vec<ObservedRequest>)>,
}

impl ScriptedUpstream {
    pub fn new(examples: &Examples) -> ScriptedUpstream {
        let matcher = Mutex::new(Box::new(examples.matcher()) as Matcher);
        ScriptedUpstream { matcher, call: Mutex::default() }
    }

    /// Sets the responses of all further calls.
    pub fn use_examples(&self, examples: &Examples) {
        *self.matcher() = Box::new(examples.matcher());
    }

    fn matcher(&self) -> MutexGuard<'_, Matcher> {
        self.matcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self) -> MutexGuard<'_, (Option<FailurePlan>, Vec<ObservedRequest>)> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the plan of the next call. Without one, the responses are the examples.
    pub fn plan(&self, plan: Option<FailurePlan>) {
        *self.call() = (plan, Vec::new());
    }

    /// Returns the requests of the latest call.
    pub fn take_requests(&self) -> Vec<ObservedRequest> {
        std::mem::take(&mut self.call().1)
    }

    pub fn respond(&self, request: &EgressRequest) -> Result<EgressResponse, EgressError> {
        let example = (self.matcher())(request);
        let (plan, seen) = &mut *self.call();
        let response = match plan {
            Some(plan) if plan.requests.contains(&seen.len()) => {
                plan.failure.respond(request, example.as_ref())
            }
            _ => {
                let out_of_order =
                    EgressResponse { status: 503, headers: Vec::new(), body: Bytes::new() };
                Ok(example.clone().unwrap_or(out_of_order))
            }
        };
        seen.push(ObservedRequest {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: request.body.clone().unwrap_or_default(),
            response: response.clone(),
            example,
        });
        response
    }
}
