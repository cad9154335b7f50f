//! Requests over kept-alive HTTP/1.1 connections, of which there are as many as requests in flight.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, StatusCode};
use hyper_util::{
    client::legacy::{Client as Pool, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

/// Why an operation, or a step of it, did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The response has a status other than 2xx.
    Status(StatusCode, String),
    /// The response is 2xx, but lacks the expected content.
    Unexpected(String),
    Connection(String),
    TimedOut,
    /// Not sent, because too many operations were in flight.
    Dropped,
    /// An effect that was not reported by an event.
    NoEvent,
}

impl Failure {
    /// Returns the name under which failures are counted.
    pub fn label(&self) -> String {
        match self {
            Failure::Status(status, _) => status.as_str().to_owned(),
            Failure::Unexpected(_) => "unexpected".to_owned(),
            Failure::Connection(_) => "connection".to_owned(),
            Failure::TimedOut => "timeout".to_owned(),
            Failure::Dropped => "dropped".to_owned(),
            Failure::NoEvent => "no event".to_owned(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Status(_, reason)
            | Failure::Unexpected(reason)
            | Failure::Connection(reason) => f.write_str(reason),
            Failure::TimedOut => f.write_str("no response in time"),
            Failure::Dropped => f.write_str("too many operations in flight"),
            Failure::NoEvent => f.write_str("no event arrived"),
        }
    }
}

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Client {
    pool: Pool<HttpConnector, Full<Bytes>>,
    timeout: Duration,
}

impl Client {
    pub fn new(timeout: Duration) -> Client {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let pool = Pool::builder(TokioExecutor::new()).build(connector);
        Client { pool, timeout }
    }

    /// Sends a request, and returns the body of its 2xx response. A body of `Null` is not sent.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        token: &str,
        body: &Value,
    ) -> Result<Bytes, Failure> {
        let mut request = Request::builder().method(method).uri(url);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut bytes = Bytes::new();
        if !body.is_null() {
            request = request.header("content-type", "application/json");
            bytes = body.to_string().into();
        }
        let request = request.body(Full::new(bytes)).map_err(connection)?;
        let exchange = async {
            let response = self.pool.request(request).await.map_err(connection)?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(connection)?.to_bytes();
            match status.is_success() {
                true => Ok(body),
                false => Err(Failure::Status(status, reason(&body))),
            }
        };
        tokio::time::timeout(self.timeout, exchange).await.unwrap_or(Err(Failure::TimedOut))
    }

    /// Like [`Client::send`], for the APIs of a host: returns `data` of the response.
    pub async fn call(
        &self,
        method: Method,
        url: &str,
        token: &str,
        body: &Value,
    ) -> Result<Value, Failure> {
        let bytes = self.send(method, url, token, body).await?;
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(mut body) if body["error"] == false => Ok(body["data"].take()),
            _ => Err(Failure::Unexpected(reason(&bytes))),
        }
    }
}

fn connection(error: impl std::error::Error) -> Failure {
    let cause = error.source().map(|cause| format!(": {cause}"));
    Failure::Connection(format!("{error}{}", cause.unwrap_or_default()))
}

/// Returns `message` of an error response, else the beginning of its body.
fn reason(body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = match json["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).into_owned(),
    };
    text.chars().take(200).collect()
}
