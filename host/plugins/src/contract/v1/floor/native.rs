//! Native measurement: the work of a call without WebAssembly, a lower bound for any sandbox.
//!
//! The guest's host calls are logged once. Each run then repeats their requests, HMACs and
//! comparisons, and serializes and parses the same JSON. The plugin's own logic is not included, so
//! a native build of the plugin takes longer.

use std::{hint::black_box, sync::Arc};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Arguments, Typed, World, imported::http::Request, outgoing};

pub struct Native {
    world: Arc<World>,
    /// The body of a webhook, which is an argument of the call.
    given: Vec<u8>,
    asked: Vec<Asked>,
}

/// A host call that takes measurable time.
pub(super) enum Asked {
    /// A request. A JSON body is kept as a value, to be serialized in each run.
    Request(Request, Option<Value>),
    Hmac {
        algorithm: String,
        secret: String,
        data: Vec<u8>,
    },
    Match {
        secret: String,
        candidate: Vec<u8>,
    },
}

impl Asked {
    pub(super) fn request(request: &Request) -> Asked {
        let json = request.body.as_deref().and_then(|body| serde_json::from_slice(body).ok());
        let body = request.body.clone().filter(|_| json.is_none());
        Asked::Request(Request { body, ..request.clone() }, json)
    }
}

impl Native {
    pub(super) fn new(world: Arc<World>, call: &Typed, asked: Vec<Asked>) -> Native {
        let given = match &call.0 {
            Arguments::ParseNotification(_, body) => body.clone(),
            _ => Vec::new(),
        };
        Native { world, given, asked }
    }

    /// Does all of the work once.
    pub fn run(&self) {
        read(&self.given);
        for asked in &self.asked {
            self.answer(asked);
        }
    }

    fn answer(&self, asked: &Asked) {
        let World { secrets, script, .. } = &*self.world;
        match asked {
            Asked::Request(request, json) => {
                let mut request = request.clone();
                if let Some(json) = json {
                    request.body = Some(json.to_string().into_bytes());
                }
                if let Ok(answer) = script(&outgoing(request)) {
                    read(&answer.body);
                }
            }
            Asked::Hmac { algorithm, secret, data } => {
                black_box(secrets.hmac(algorithm, secret, data).ok());
            }
            Asked::Match { secret, candidate } => {
                black_box(secrets.matches(secret, candidate).ok());
            }
        }
    }
}

/// Parses JSON without keeping values. Ends at the first byte that is not JSON.
fn read(body: &[u8]) {
    black_box(serde_json::from_slice::<IgnoredAny>(body).ok());
}
