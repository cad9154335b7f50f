//! The webhook endpoints of the companies, on loopback: match events with the operations that
//! expect them.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use crate::{
    Result,
    client::Failure,
    recorder::{Recorder, Step},
};

const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Behaviour of a company's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Healthy,
    /// Never responds.
    Hanging,
    /// Responds with 500.
    Failing,
}

impl Endpoint {
    fn path(self) -> &'static str {
        match self {
            Endpoint::Healthy => "/healthy",
            Endpoint::Hanging => "/hanging",
            Endpoint::Failing => "/failing",
        }
    }
}

/// An effect that an event will report.
pub struct Expected {
    pub step: Step,
    pub since: Instant,
    pub recorder: Arc<Recorder>,
}

/// Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct Receiver(Arc<Inner>);

struct Inner {
    url: String,
    /// By the reference of the payment or recollection.
    expected: Mutex<HashMap<String, Expected>>,
    /// Signalled whenever an expected event arrives.
    matched: Notify,
    delivered: AtomicU64,
}

impl Receiver {
    pub async fn start() -> Result<Receiver> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let receiver = Receiver(Arc::new(Inner {
            url,
            expected: Mutex::default(),
            matched: Notify::new(),
            delivered: AtomicU64::new(0),
        }));
        tokio::spawn(accept(listener, receiver.clone()));
        Ok(receiver)
    }

    pub fn url(&self, endpoint: Endpoint) -> String {
        format!("{}{}", self.0.url, endpoint.path())
    }

    /// Registers an effect, before the request that causes it: its event may overtake the response.
    pub fn expect(&self, reference: &str, expected: Expected) {
        self.expected().insert(reference.to_owned(), expected);
    }

    /// Forgets an effect whose cause failed.
    pub fn forget(&self, reference: &str) {
        self.expected().remove(reference);
    }

    /// Returns the number of events that were accepted.
    pub fn delivered(&self) -> u64 {
        self.0.delivered.load(Relaxed)
    }

    /// Waits for all expected events, but no longer than `patience`. Missing ones are recorded as
    /// failures.
    pub async fn drain(&self, patience: Duration) {
        let drained = async {
            loop {
                let matched = self.0.matched.notified();
                if self.expected().is_empty() {
                    return;
                }
                matched.await;
            }
        };
        if tokio::time::timeout(patience, drained).await.is_err() {
            let missing = std::mem::take(&mut *self.expected());
            for Expected { step, since, recorder } in missing.into_values() {
                recorder.record(step, since, &Err::<(), _>(Failure::NoEvent));
            }
        }
    }

    fn expected(&self) -> MutexGuard<'_, HashMap<String, Expected>> {
        self.0.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, body: &[u8]) {
        self.0.delivered.fetch_add(1, Relaxed);
        let event: Value = serde_json::from_slice(body).unwrap_or_default();
        let reference = event["data"]["reference"].as_str().unwrap_or_default();
        // Absent if the event was delivered before, or if no operation expects it.
        let Some(expected) = self.expected().remove(reference) else { return };
        let kind = event["event"].as_str().unwrap_or_default();
        let result = match kind.ends_with(".success") {
            true => Ok(()),
            false => Err(Failure::Unexpected(format!("event {kind}"))),
        };
        expected.recorder.record(expected.step, expected.since, &result);
        self.0.matched.notify_waiters();
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        if path == Endpoint::Hanging.path() {
            // Until the host closes the connection.
            std::future::pending::<()>().await;
        }
        let body = request.into_body().collect().await;
        let status = match body {
            Ok(body) if path == Endpoint::Healthy.path() => {
                self.receive(&body.to_bytes());
                StatusCode::OK
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        response
    }
}

async fn accept(listener: TcpListener, receiver: Receiver) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, receiver.clone()));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn serve(stream: TcpStream, receiver: Receiver) {
    // Disables Nagle's algorithm; if that fails, the socket still works.
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request| {
        let receiver = receiver.clone();
        async move { Ok::<_, Infallible>(receiver.respond(request).await) }
    });
    // If the connection breaks, the host retries the delivery.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

#[cfg(test)]
mod tests {
    use hyper::Method;
    use serde_json::json;

    use super::*;
    use crate::client::Client;

    fn expected(recorder: &Arc<Recorder>, step: Step) -> Expected {
        Expected { step, since: Instant::now(), recorder: recorder.clone() }
    }

    #[tokio::test]
    async fn events_are_matched_by_reference_and_missing_ones_are_failures() {
        let receiver = Receiver::start().await.unwrap();
        let recorder = Arc::new(Recorder::new(Instant::now()));
        for reference in ["paid", "failed", "missing"] {
            receiver.expect(reference, expected(&recorder, Step::Settled));
        }
        receiver.expect("forgotten", expected(&recorder, Step::Recorded));
        receiver.forget("forgotten");
        let client = Client::new(Duration::from_secs(30));
        let url = receiver.url(Endpoint::Healthy);
        for (kind, reference) in [
            ("payment.success", "paid"),
            ("payment.success", "paid"),
            ("payment.failed", "failed"),
            ("payment.success", "unknown"),
        ] {
            let event = json!({ "event": kind, "data": { "reference": reference } });
            client.send(Method::POST, &url, "", &event).await.unwrap();
        }
        receiver.drain(Duration::ZERO).await;
        assert_eq!(receiver.delivered(), 4);
        let steps = recorder.steps();
        let [(Step::Settled, record)] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(record.correct, 1);
        let labels: Vec<&str> = record.failures.keys().map(String::as_str).collect();
        assert_eq!(labels, ["no event", "unexpected"]);
        receiver.drain(Duration::from_secs(30)).await;
    }

    #[tokio::test]
    async fn endpoints_fail_or_hang_by_their_path() {
        let receiver = Receiver::start().await.unwrap();
        let send = async |endpoint, patience| {
            let (client, url) = (Client::new(patience), receiver.url(endpoint));
            client.send(Method::POST, &url, "", &json!({})).await.map(drop)
        };
        let failed = send(Endpoint::Failing, Duration::from_secs(30)).await.unwrap_err();
        assert_eq!(failed.label(), "500");
        let hung = send(Endpoint::Hanging, Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(hung.label(), "timeout");
        assert_eq!(receiver.delivered(), 0);
    }
}
