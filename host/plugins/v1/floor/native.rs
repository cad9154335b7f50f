//! What a call does beside running WebAssembly, done by native code: the least that the same work could take without a sandbox.
//!
//! What a guest asks of the host is noted once. After that the same requests are answered, the same bytes signed and compared, and
//! what is JSON is written and read. The plugin's own logic is not in it, so a native build of the plugin takes longer.

use std::{hint::black_box, sync::Arc};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Arguments, Typed, World, imported::http::Request, outgoing};

pub struct Native {
    world: Arc<World>,
    /// A notification's body, which nobody asks for.
    given: Vec<u8>,
    asked: Vec<Asked>,
}

/// What costs time to answer.
pub(super) enum Asked {
    /// With its body apart when that is JSON, to be written anew.
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

    /// All of it, once.
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

/// To its end, keeping nothing: a plugin keeps what it needs. What is no JSON is given up at once.
fn read(body: &[u8]) {
    black_box(serde_json::from_slice::<IgnoredAny>(body).ok());
}
