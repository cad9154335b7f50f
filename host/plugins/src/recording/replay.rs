//! Replays of recorded calls, by the recorded version or by another one.

use serde_json::{Value, json};
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};
use url::Url;

use crate::prelude::*;
use crate::recording::Recording;
use crate::{
    CompletedCall, EXAMPLE_SECRET, NotificationRefusal, PluginReply, RecordedResponse,
    TransportError, VaultResult, outcome,
};

/// The externally visible effects of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEffects {
    pub requests: Vec<RecordedRequest>,
    /// Vault operations. Replays return the recorded results, even for other data.
    pub vault: Vec<VaultResult>,
    /// The result or the fault.
    pub reply: Value,
}

/// A request of the call, with example values in place of secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// `false`: the recording has no response to it.
    pub answered: bool,
}

impl CallEffects {
    /// Returns the outcome as named by metrics, and the one-word summary of the result.
    pub fn outcome_and_summary(&self) -> (&str, &str) {
        let text = |name: &str| self.reply[name].as_str().unwrap_or_default();
        (text("outcome"), text("end"))
    }
}

/// The choice of the response to a request.
#[derive(Clone, Copy)]
pub enum ResponseOrder {
    /// The next one in recorded order, for the recorded version.
    InOrder,
    /// The next one for the same method and path, for another version.
    ByAddress,
}

/// Replays the masked call.
pub async fn replay(
    plugin: &PluginHandle,
    recording: &Recording,
    order: ResponseOrder,
) -> CallEffects {
    let upstream = Arc::new(Mutex::new(ReplayUpstream::new(recording, order)));
    let (responder, observer) = (upstream.clone(), upstream.clone());
    let script = Arc::new(move |request: &EgressRequest| lock(&responder).respond(request));
    let recorder = Arc::new(move |recorded: CompletedCall| {
        lock(&observer).vault = recorded.transcript.vouched;
    });
    let known = recording.heard.clone();
    let plugin = plugin.for_replay(recording.began(), known, script, recorder);
    let credentials = credentials(&plugin, recording);
    // Replays raise no alarms and leave no traces.
    let call = plugin.execute(&credentials, &recording.call);
    let reply = call.with_subscriber(NoSubscriber::new()).await;
    let mut upstream = lock(&upstream);
    let requests = std::mem::take(&mut upstream.requests);
    CallEffects { requests, vault: std::mem::take(&mut upstream.vault), reply: reply_json(&reply) }
}

fn lock(upstream: &Mutex<ReplayUpstream>) -> std::sync::MutexGuard<'_, ReplayUpstream> {
    upstream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the recorded settings, and example values of the account's and required secrets.
fn credentials(plugin: &PluginHandle, recording: &Recording) -> Credentials {
    let manifest = plugin.manifest();
    let has =
        |name: &&String| recording.secrets.contains(name) || !manifest.optional.contains(name);
    let secrets = manifest.secrets.names().filter(has);
    // Each secret has its own value, so that the use of another one is a difference.
    let secrets = secrets.map(|name| (name.clone(), format!("{EXAMPLE_SECRET}-{name}")));
    let values = recording.settings.clone().into_iter().chain(secrets).collect();
    Credentials { id: "recording".to_owned(), values }
}

/// An upstream that replays the recorded responses.
struct ReplayUpstream {
    remaining: Vec<RecordedExchange>,
    order: ResponseOrder,
    requests: Vec<RecordedRequest>,
    vault: Vec<VaultResult>,
}

/// A recorded response.
struct RecordedExchange {
    /// Method and URL of the request; `None` in the first replay.
    to: Option<(String, String)>,
    response: Result<RecordedResponse, TransportError>,
    /// `false`: the call ended before the response.
    has_response: bool,
}

impl ReplayUpstream {
    fn new(recording: &Recording, order: ResponseOrder) -> ReplayUpstream {
        let (requests, responses) = (&recording.did.requests, &recording.heard.answers);
        let left = (0..requests.len().max(responses.len())).map(|n| RecordedExchange {
            to: requests.get(n).map(|to| (to.method.clone(), path(&to.url))),
            response: responses.get(n).cloned().unwrap_or(Err(TransportError::NoAnswer)),
            has_response: n < responses.len(),
        });
        ReplayUpstream { remaining: left.collect(), order, requests: Vec::new(), vault: Vec::new() }
    }

    fn respond(&mut self, request: &EgressRequest) -> Result<EgressResponse, EgressError> {
        let RecordedExchange { response, has_response, .. } = self.next(request);
        let body = request.body.as_deref().unwrap_or_default();
        self.requests.push(RecordedRequest {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: String::from_utf8_lossy(body).into_owned(),
            answered: has_response,
        });
        match response {
            Ok(RecordedResponse { status, headers, body }) => {
                Ok(EgressResponse { status, headers, body: body.into() })
            }
            Err(error) => Err(error.to_egress("the upstream")),
        }
    }

    fn next(&mut self, request: &EgressRequest) -> RecordedExchange {
        let to = Some((request.method.clone(), path(&request.url)));
        // In order: the call ended before a response. By address: it never made this request.
        let (next, error) = match self.order {
            ResponseOrder::InOrder => {
                ((!self.remaining.is_empty()).then_some(0), TransportError::NoAnswer)
            }
            ResponseOrder::ByAddress => {
                let next = self.remaining.iter().position(|exchange| exchange.to == to);
                (next, TransportError::NoConnection)
            }
        };
        match next {
            Some(at) => self.remaining.remove(at),
            None => RecordedExchange { to, response: Err(error), has_response: false },
        }
    }
}

/// Removes the query.
fn path(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return url.to_owned() };
    url.set_query(None);
    url.into()
}

fn reply_json(reply: &Result<PluginReply, CallError>) -> Value {
    let mut value = match reply {
        Err(CallError { fault, .. }) => json!({ "fault": fault }),
        Ok(PluginReply::Session(session)) => json!({ "session": session }),
        Ok(PluginReply::Payment(payment)) => json!({ "payment": payment }),
        Ok(PluginReply::Deauthorized(done)) => json!({ "deauthorized": done }),
        Ok(PluginReply::Refund(refund)) => json!({ "refund": refund }),
        Ok(PluginReply::Parsed(Ok(notifications))) => json!({ "notifications": notifications }),
        Ok(PluginReply::Parsed(Err(NotificationRefusal::Unauthentic))) => {
            json!({ "refused": "unauthentic" })
        }
        Ok(PluginReply::Parsed(Err(NotificationRefusal::Malformed(why)))) => {
            json!({ "refused": "malformed", "why": why })
        }
        Ok(PluginReply::Received(data)) => json!({ "received": data }),
        Ok(PluginReply::Accepted(id)) => json!({ "accepted": id }),
        // Never recorded, because they are personal data.
        Ok(
            PluginReply::Entry(_)
            | PluginReply::Compared(_)
            | PluginReply::Read(_)
            | PluginReply::Account(_)
            | PluginReply::Closed(_)
            | PluginReply::Transfer(_)
            | PluginReply::Banks(_)
            | PluginReply::Disputes(_)
            | PluginReply::Dispute(_)
            | PluginReply::Transactions(_)
            | PluginReply::Settlements(_)
            | PluginReply::Declined(_)
            | PluginReply::MandateSession(_)
            | PluginReply::Mandate(_)
            | PluginReply::Cancelled(_)
            | PluginReply::Holder(_),
        ) => json!({}),
    };
    value["outcome"] = json!(outcome(reply));
    value["end"] = json!(reply.as_ref().map_or("", PluginReply::summary));
    value
}
