//! Replays of recorded calls, by the recorded version or by another one.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};
use url::Url;

use crate::recording::Recording;
use crate::{
    Answered, CallError, Callable, Credentials, EXAMPLE_SECRET, End, Recorded, Refusal, Reply,
    Silence, Vouched, outcome,
};
use tollhouse_platform::outbound::egress::{EgressError, EgressRequest, EgressResponse};

/// The externally visible effects of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    pub requests: Vec<Request>,
    /// Vault operations. Replays return the recorded results, even for other data.
    pub vault: Vec<Vouched>,
    /// The result or the fault.
    pub reply: Value,
}

/// A request of the call, with example values in place of secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// `false`: the recording has no response to it.
    pub answered: bool,
}

impl Did {
    /// Returns the outcome as named by metrics, and the one-word summary of the result.
    #[must_use]
    pub fn end(&self) -> (&str, &str) {
        let text = |name: &str| self.reply[name].as_str().unwrap_or_default();
        (text("outcome"), text("end"))
    }
}

/// The choice of the response to a request.
#[derive(Clone, Copy)]
enum Turn {
    /// The next one in recorded order.
    InOrder,
    /// The next one for the same method and path.
    ByAddress,
}

/// Replays the masked call with the recorded version.
pub async fn as_it_was(plugin: &Callable, recording: &Recording) -> Did {
    make(plugin, recording, Turn::InOrder).await
}

/// Replays the call with another version.
pub async fn by(plugin: &Callable, recording: &Recording) -> Did {
    make(plugin, recording, Turn::ByAddress).await
}

async fn make(plugin: &Callable, recording: &Recording, turn: Turn) -> Did {
    let upstream = Arc::new(Mutex::new(Upstream::new(recording, turn)));
    let (asked, told) = (upstream.clone(), upstream.clone());
    let script = move |request: &EgressRequest| lock(&asked).answer(request);
    let recorder = Arc::new(move |recorded: Recorded| lock(&told).vault = recorded.heard.vouched);
    let known = recording.heard.clone();
    let plugin = plugin.once_more(recording.began(), known, script, recorder);
    let credentials = credentials(&plugin, recording);
    // Replays raise no alarms and leave no traces.
    let asked = plugin.ask(&credentials, &recording.call);
    let reply = asked.with_subscriber(NoSubscriber::new()).await;
    let mut upstream = lock(&upstream);
    let requests = std::mem::take(&mut upstream.requests);
    Did { requests, vault: std::mem::take(&mut upstream.vault), reply: as_json(&reply) }
}

fn lock(upstream: &Mutex<Upstream>) -> std::sync::MutexGuard<'_, Upstream> {
    upstream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the recorded settings, and example values of the account's and required secrets.
fn credentials(plugin: &Callable, recording: &Recording) -> Credentials {
    let manifest = plugin.manifest();
    let has =
        |name: &&String| recording.secrets.contains(name) || !manifest.optional.contains(name);
    let secrets = manifest.secrets.names().filter(has);
    // Each secret has its own value, so that the use of another one is a difference.
    let secrets = secrets.map(|name| (name.clone(), format!("{EXAMPLE_SECRET}-{name}")));
    let values = recording.settings.clone().into_iter().chain(secrets).collect();
    Credentials { id: "recording".to_owned(), values }
}

/// Replays the recorded responses.
struct Upstream {
    left: Vec<Said>,
    turn: Turn,
    requests: Vec<Request>,
    vault: Vec<Vouched>,
}

/// A recorded response.
struct Said {
    /// Method and URL of the request; `None` in the first replay.
    to: Option<(String, String)>,
    answer: Result<Answered, Silence>,
    /// `false`: the call ended before the response.
    answered: bool,
}

impl Upstream {
    fn new(recording: &Recording, turn: Turn) -> Upstream {
        let (requests, answers) = (&recording.did.requests, &recording.heard.answers);
        let left = (0..requests.len().max(answers.len())).map(|n| Said {
            to: requests.get(n).map(|to| (to.method.clone(), path(&to.url))),
            answer: answers.get(n).cloned().unwrap_or(Err(Silence::NoAnswer)),
            answered: n < answers.len(),
        });
        Upstream { left: left.collect(), turn, requests: Vec::new(), vault: Vec::new() }
    }

    fn answer(&mut self, request: &EgressRequest) -> Result<EgressResponse, EgressError> {
        let Said { answer, answered, .. } = self.next(request);
        let body = request.body.as_deref().unwrap_or_default();
        self.requests.push(Request {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: String::from_utf8_lossy(body).into_owned(),
            answered,
        });
        match answer {
            Ok(Answered { status, headers, body }) => {
                Ok(EgressResponse { status, headers, body: body.into() })
            }
            Err(silence) => Err(silence.of_origin("the upstream")),
        }
    }

    fn next(&mut self, request: &EgressRequest) -> Said {
        let wanted = Some((request.method.clone(), path(&request.url)));
        let next = match self.turn {
            Turn::InOrder => (!self.left.is_empty()).then_some(0),
            Turn::ByAddress => self.left.iter().position(|said| said.to == wanted),
        };
        // In order: the call ended before a response. By address: it never made this request.
        let silence = match self.turn {
            Turn::InOrder => Silence::NoAnswer,
            Turn::ByAddress => Silence::NoConnection,
        };
        next.map_or(Said { to: wanted, answer: Err(silence), answered: false }, |at| {
            self.left.remove(at)
        })
    }
}

/// Removes the query.
fn path(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return url.to_owned() };
    url.set_query(None);
    url.into()
}

fn as_json(reply: &Result<Reply, CallError>) -> Value {
    let mut told = match reply {
        Err(CallError { fault, .. }) => json!({ "fault": fault }),
        Ok(Reply::Session(session)) => json!({ "session": session }),
        Ok(Reply::Payment(payment)) => json!({ "payment": payment }),
        Ok(Reply::Deauthorized(done)) => json!({ "deauthorized": done }),
        Ok(Reply::Refund(refund)) => json!({ "refund": refund }),
        Ok(Reply::Notifications(told)) => json!({ "notifications": told }),
        Ok(Reply::Refused(Refusal::Unauthentic)) => json!({ "refused": "unauthentic" }),
        Ok(Reply::Refused(Refusal::Malformed(why))) => {
            json!({ "refused": "malformed", "why": why })
        }
        Ok(Reply::Accepted(id)) => json!({ "accepted": id }),
        // Never recorded: results of registers are personal data.
        Ok(Reply::Entry(_) | Reply::Compared(..) | Reply::Read(..)) => json!({}),
    };
    told["outcome"] = json!(outcome(reply).name());
    told["end"] = json!(reply.as_ref().map_or("", End::end));
    told
}
