//! The scripted upstream: returns examples or injected failures, and records the requests.

pub mod trouble;
pub mod troubles;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use self::trouble::Trouble;
use tollhouse_platform::outbound::egress::{EgressError, EgressRequest, EgressResponse, Script};
use tollhouse_plugins::Examples;

/// The responses to the requests of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    trouble: Option<(Trouble, usize, Lasting)>,
}

/// The requests that a failure affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    Once,
    FromThenOn,
}

impl Plan {
    /// Returns the examples only.
    pub fn examples() -> Plan {
        Plan::default()
    }

    /// Injects a failure of the request with this number, counted from 0.
    pub fn trouble(trouble: Trouble, at: usize, lasting: Lasting) -> Plan {
        Plan { trouble: Some((trouble, at, lasting)) }
    }

    fn at(self, request: usize) -> Option<Trouble> {
        let (trouble, at, lasting) = self.trouble?;
        let concerned = request == at || request > at && lasting == Lasting::FromThenOn;
        concerned.then_some(trouble)
    }
}

/// A request as it would be sent, secrets included.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub answer: Result<EgressResponse, EgressError>,
    /// The manifest's response to it.
    pub example: Option<EgressResponse>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// A scripted upstream, shared by clones.
#[derive(Clone)]
pub struct Upstream(Arc<Inner>);

type Fitting = dyn Fn(&EgressRequest) -> Option<EgressResponse> + Send + Sync;

struct Inner {
    fitting: Box<Fitting>,
    call: Mutex<(Plan, Vec<Seen>)>,
}

impl Upstream {
    pub fn new(examples: &Examples) -> Upstream {
        let fitting = Box::new(examples.fitting());
        Upstream(Arc::new(Inner { fitting, call: Mutex::default() }))
    }

    pub fn script(&self) -> Arc<Script> {
        let upstream = self.clone();
        Arc::new(move |request| upstream.answer(request))
    }

    /// Sets the plan of the next call.
    pub fn plan(&self, plan: Plan) {
        *self.0.call.lock().unwrap_or_else(PoisonError::into_inner) = (plan, Vec::new());
    }

    /// Returns the requests of the latest call.
    pub fn seen(&self) -> Vec<Seen> {
        let mut call = self.0.call.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut call.1)
    }

    fn answer(&self, request: &EgressRequest) -> Result<EgressResponse, EgressError> {
        let example = (self.0.fitting)(request);
        let mut call = self.0.call.lock().unwrap_or_else(PoisonError::into_inner);
        let (plan, seen) = &mut *call;
        let usual = || {
            let out_of_order =
                EgressResponse { status: 503, headers: Vec::new(), body: Bytes::new() };
            Ok(example.clone().unwrap_or(out_of_order))
        };
        let trouble = plan.at(seen.len());
        let answer =
            trouble.map_or_else(usual, |trouble| trouble.answer(request, example.as_ref()));
        seen.push(Seen {
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
