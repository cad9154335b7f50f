//! Native measurement: the work of a call without WebAssembly, a lower bound for any sandbox.
//!
//! The guest's host calls are logged once. Each run then repeats their requests, HMACs and
//! comparisons, and serializes and parses the same JSON. The plugin's own logic is not included, so
//! a native build of the plugin takes longer.

use std::{hint::black_box, sync::Arc};

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{GuestEnvironment, egress_request, imported::http::Request};
use crate::Call;

pub struct NativeWorkload {
    world: Arc<GuestEnvironment>,
    /// The body of a webhook, which is an argument of the call.
    webhook_body: Bytes,
    host_calls: Vec<HostCall>,
}

/// A host call that takes measurable time.
pub(super) enum HostCall {
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

impl HostCall {
    pub(super) fn request(request: &Request) -> HostCall {
        let json = request.body.as_deref().and_then(|body| serde_json::from_slice(body).ok());
        let body = request.body.clone().filter(|_| json.is_none());
        HostCall::Request(Request { body, ..request.clone() }, json)
    }
}

impl NativeWorkload {
    pub(super) fn new(
        world: Arc<GuestEnvironment>,
        call: &Call,
        host_calls: Vec<HostCall>,
    ) -> NativeWorkload {
        let webhook_body = match call {
            Call::ParseNotification(webhook)
            | Call::ReceiveForSession(_, webhook)
            | Call::ReceiveForRefund(_, webhook) => webhook.body.clone(),
            _ => Bytes::new(),
        };
        NativeWorkload { world, webhook_body, host_calls }
    }

    /// Does all of the work once.
    pub fn run(&self) {
        parse_json(&self.webhook_body);
        for host_call in &self.host_calls {
            self.perform(host_call);
        }
    }

    fn perform(&self, host_call: &HostCall) {
        let GuestEnvironment { secrets, script, .. } = &*self.world;
        match host_call {
            HostCall::Request(request, json) => {
                let mut request = request.clone();
                if let Some(json) = json {
                    request.body = Some(json.to_string().into_bytes());
                }
                if let Ok(response) = script(&egress_request(request)) {
                    parse_json(&response.body);
                }
            }
            HostCall::Hmac { algorithm, secret, data } => {
                black_box(secrets.hmac(algorithm, secret, data).ok());
            }
            HostCall::Match { secret, candidate } => {
                black_box(secrets.matches(secret, candidate).ok());
            }
        }
    }
}

/// Parses JSON without keeping values. Ends at the first byte that is not JSON.
fn parse_json(body: &[u8]) {
    black_box(serde_json::from_slice::<IgnoredAny>(body).ok());
}
