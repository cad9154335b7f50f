//! `tollhouse listen`: forwards a company's events to a URL on this machine.

use std::{collections::HashSet, time::Instant};

use reqwest::{Client, redirect::Policy};
use tollhouse_app::{tenants::companies::new_event_secret, webhooks::outgoing::signatures};
use url::Url;

use super::access::{ApiAccess, http_url};
use crate::{prelude::*, terminal::output::without_control_characters};

/// Time between two requests for events.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time between two requests while the host fails.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Time limit of a request for events.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Events per request.
const LIMIT: usize = 100;
/// The time limit of a webhook.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Args)]
#[command(after_help = "\
Each event of the company from now on is sent once to the URL, with the headers and the signature of
a webhook. The secret that signs is new in each run. Nothing changes on the host: webhooks are
delivered as usual.

Example:
  TOLLHOUSE_API_KEY=sk_test_… tollhouse listen --forward http://127.0.0.1:3000/events")]
pub struct Listen {
    /// URL that receives the events
    #[arg(long, value_name = "URL")]
    forward: String,
    /// Comma-separated types of events, for example payment.success. Default: all
    #[arg(long, value_name = "TYPES")]
    types: Option<String>,
    #[command(flatten)]
    access: ApiAccess,
}

impl Listen {
    /// Runs until Ctrl-C, or until the host refuses a request.
    pub async fn run(self, json: bool) -> Result {
        let to = http_url(&self.forward, "--forward")?;
        let secret = new_event_secret(&Random::system());
        let mut events = Events::new(self.access.client()?, self.types);
        events.skip_present().await?;
        let mut forwarder = Forwarder::new(to, secret, json)?;
        forwarder.print_start();
        tokio::select! {
            failure = forward_all(&mut events, &mut forwarder) => Err(failure),
            _ = tokio::signal::ctrl_c() => {
                let count = forwarder.count;
                Ok(Report::new(json!({ "forwarded": count }), format!("forwarded events: {count}")))
            }
        }
    }
}

/// Returns the failure with which the host refuses a request. All other failures are retried.
async fn forward_all(events: &mut Events, forwarder: &mut Forwarder) -> Failure {
    let mut backoff = POLL_INTERVAL;
    loop {
        match events.read().await {
            Ok(new) => {
                if backoff > POLL_INTERVAL {
                    eprintln!("the host responds again");
                }
                backoff = POLL_INTERVAL;
                for event in &new {
                    forwarder.forward(event).await;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Err(failure) if failure.is_temporary() => {
                eprintln!("{}; retrying", without_control_characters(&failure.message));
                let wait = failure.retry_after.unwrap_or_default().max(backoff);
                backoff = (backoff * 2).min(MAX_BACKOFF);
                tokio::time::sleep(wait).await;
            }
            Err(failure) => return failure,
        }
    }
}

#[derive(Serialize)]
struct Range<'r> {
    after: &'r str,
    types: Option<&'r str>,
    limit: usize,
}

/// The events of a company from a cursor on.
struct Events {
    host: HostClient,
    types: Option<String>,
    after: String,
    /// Ids after the cursor that were read before: the host returns them again.
    seen: HashSet<String>,
    /// Events that were read before a request failed.
    unread: Vec<Value>,
}

impl Events {
    fn new(host: HostClient, types: Option<String>) -> Events {
        Events { host, types, after: String::new(), seen: HashSet::new(), unread: Vec::new() }
    }

    /// Skips all existing events.
    async fn skip_present(&mut self) -> Result<()> {
        self.read().await.map(drop)
    }

    /// Returns the events that were not returned before.
    async fn read(&mut self) -> Result<Vec<Value>> {
        loop {
            let query = Range { after: &self.after, types: self.types.as_deref(), limit: LIMIT };
            let part = self.host.get(&["event", "list"], &query);
            let part = tokio::time::timeout(READ_TIMEOUT, part).await;
            let mut part =
                part.unwrap_or_else(|_| Err(Failure::unreachable("the host did not respond")))?;
            let next = text(&part["next"]);
            let events = match part["events"].take() {
                Value::Array(events) => events,
                _ => Vec::new(),
            };
            let is_last = events.len() < LIMIT;
            self.after = next;
            for event in events {
                if self.seen.insert(text(&event["id"])) {
                    self.unread.push(event);
                }
            }
            if is_last {
                let after = format!("evt_{}", self.after);
                self.seen.retain(|id| *id > after);
                return Ok(std::mem::take(&mut self.unread));
            }
        }
    }
}

struct Forwarder {
    client: Client,
    to: Url,
    secret: String,
    json: bool,
    count: usize,
}

impl Forwarder {
    fn new(to: Url, secret: String, json: bool) -> Result<Forwarder> {
        let client =
            Client::builder().redirect(Policy::none()).no_proxy().timeout(FORWARD_TIMEOUT).build();
        let client = client.map_err(|error| Failure::usage(chain(&error)))?;
        Ok(Forwarder { client, to, secret, json, count: 0 })
    }

    fn print_start(&self) {
        let Forwarder { to, secret, .. } = self;
        self.print(
            &json!({ "forward": to.as_str(), "secret": secret }),
            &format!("Forwarding events to {to}. They are signed with the secret {secret}\n"),
        );
    }

    /// Sends an event once, signed as a webhook, and prints the result.
    async fn forward(&mut self, event: &Value) {
        let (id, kind) = (text(&event["id"]), text(&event["event"]));
        let body = event["body"].to_string();
        let now = Clock::system().now();
        let seconds = now.unix_seconds();
        let signature = signatures(std::slice::from_ref(&self.secret), &id, seconds, &body);
        let request = self
            .client
            .post(self.to.clone())
            .header("content-type", "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signature)
            .body(body);
        let began = Instant::now();
        let sent = request.send().await;
        let duration_ms = began.elapsed().as_millis();
        let status = sent.as_ref().ok().map(|response| response.status().as_u16());
        let error = sent.err().map(|error| chain(&error.without_url()));
        self.count += 1;
        let outcome = match (status, &error) {
            (Some(status), _) => status.to_string(),
            (None, error) => error.clone().unwrap_or_default(),
        };
        self.print(
            &json!({
                "at": now, "type": kind, "id": id, "status": status, "error": error,
                "duration_ms": u64::try_from(duration_ms).unwrap_or(u64::MAX),
            }),
            &format!("{now}  {kind}  {id}  {outcome}  {duration_ms} ms"),
        );
    }

    /// Prints a line, as JSON or as text.
    fn print(&self, json: &Value, line: &str) {
        let line = match self.json {
            true => json.to_string(),
            false => line.lines().map(without_control_characters).collect::<Vec<_>>().join("\n"),
        };
        // The reader may have closed the pipe.
        drop(writeln!(std::io::stdout().lock(), "{line}"));
    }
}
