//! A recorded call, made once more: by the version that it is of, or by another.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};
use url::Url;

use super::recording::Recording;
use crate::{
    egress::{Answer, EgressError, Outgoing},
    plugins::{
        Answered, CallError, Callable, Credentials, EXAMPLE_SECRET, End, Recorded, Refusal, Reply,
        Silence, Vouched, outcome,
    },
};

/// What a call did, as far as anybody outside can see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    pub requests: Vec<Request>,
    /// What it asked the vault, which says nothing of whether the data were right.
    pub vault: Vec<Vouched>,
    /// What it gave, or the fault.
    pub reply: Value,
}

/// A request that would have left, with example values in the place of secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// `false`: the recording does not know what it would have been answered.
    pub answered: bool,
}

impl Did {
    /// How it ended: as metrics name it, and what it said, in a word.
    #[must_use]
    pub fn end(&self) -> (&str, &str) {
        let text = |name: &str| self.reply[name].as_str().unwrap_or_default();
        (text("outcome"), text("end"))
    }
}

/// Whose turn it is to be answered.
#[derive(Clone, Copy)]
enum Turn {
    /// One after the other, as they came.
    InOrder,
    /// The next answer to the same method and path.
    ByAddress,
}

/// The call once more by the version that it is of, with what was masked.
pub async fn as_it_was(plugin: &Callable, recording: &Recording) -> Did {
    make(plugin, recording, Turn::InOrder).await
}

/// The call as another version makes it.
pub async fn by(plugin: &Callable, recording: &Recording) -> Did {
    make(plugin, recording, Turn::ByAddress).await
}

async fn make(plugin: &Callable, recording: &Recording, turn: Turn) -> Did {
    let upstream = Arc::new(Mutex::new(Upstream::new(recording, turn)));
    let (asked, told) = (upstream.clone(), upstream.clone());
    let script = move |request: &Outgoing| lock(&asked).answer(request);
    let recorder = Arc::new(move |recorded: Recorded| lock(&told).vault = recorded.heard.vouched);
    let known = recording.heard.clone();
    let plugin = plugin.once_more(recording.began(), known, script, recorder);
    let credentials = credentials(&plugin, recording);
    // Nobody must look at what it says into the log, and no trace is of it.
    let asked = plugin.ask(&credentials, &recording.call);
    let reply = asked.with_subscriber(NoSubscriber::new()).await;
    let mut upstream = lock(&upstream);
    let requests = std::mem::take(&mut upstream.requests);
    Did { requests, vault: std::mem::take(&mut upstream.vault), reply: as_json(&reply) }
}

fn lock(upstream: &Mutex<Upstream>) -> std::sync::MutexGuard<'_, Upstream> {
    upstream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The recorded settings, and an example of each secret that the account has, or that this version cannot do without.
fn credentials(plugin: &Callable, recording: &Recording) -> Credentials {
    let manifest = plugin.manifest();
    let has =
        |name: &&String| recording.secrets.contains(name) || !manifest.optional.contains(name);
    let secrets = manifest.secrets.names().filter(has);
    // One for each, so that it is seen where another one is used.
    let secrets = secrets.map(|name| (name.clone(), format!("{EXAMPLE_SECRET}-{name}")));
    let values = recording.settings.clone().into_iter().chain(secrets).collect();
    Credentials { id: "recording".to_owned(), values }
}

/// Says what the recording heard.
struct Upstream {
    left: Vec<Said>,
    turn: Turn,
    requests: Vec<Request>,
    vault: Vec<Vouched>,
}

/// What the recorded call was answered.
struct Said {
    /// Method and URL of the request; `None`: not known yet.
    to: Option<(String, String)>,
    answer: Result<Answered, Silence>,
    /// `false`: the call had ended before an answer was there.
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

    fn answer(&mut self, request: &Outgoing) -> Result<Answer, EgressError> {
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
                Ok(Answer { status, headers, body: body.into() })
            }
            Err(silence) => Err(silence.of_origin("the upstream")),
        }
    }

    fn next(&mut self, request: &Outgoing) -> Said {
        let wanted = Some((request.method.clone(), path(&request.url)));
        let next = match self.turn {
            Turn::InOrder => (!self.left.is_empty()).then_some(0),
            Turn::ByAddress => self.left.iter().position(|said| said.to == wanted),
        };
        // In order, it is the last request of a call that ended before the answer; else one that the call never made.
        let silence = match self.turn {
            Turn::InOrder => Silence::NoAnswer,
            Turn::ByAddress => Silence::NoConnection,
        };
        next.map_or(Said { to: wanted, answer: Err(silence), answered: false }, |at| {
            self.left.remove(at)
        })
    }
}

/// Without its query.
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
        // Not on record: what registers say is about somebody.
        Ok(Reply::Entry(_) | Reply::Compared(..) | Reply::Read(..)) => json!({}),
    };
    told["outcome"] = json!(outcome(reply).name());
    told["end"] = json!(reply.as_ref().map_or("", End::end));
    told
}
