//! Sends spans to an OpenTelemetry collector, in batches and in the background: one that is down costs spans, and nothing else.

use std::{
    error::Error,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracerProvider},
};
use tokio::runtime::Handle;

use crate::tls;

/// How long a batch may take to arrive, and how long a stop waits for the last.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Which traces are kept is decided by their ids alone, so that callers who send a `traceparent` decide nothing, and hosts that
/// share a trace agree.
pub fn provider(
    endpoint: &str,
    sample_ratio: f64,
) -> Result<SdkTracerProvider, Box<dyn Error + Send + Sync>> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Collector::new()?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_timeout(PATIENCE)
        .build()?;
    let resource = Resource::builder()
        .with_service_name("tollhouse")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::TraceIdRatioBased(sample_ratio))
        .with_resource(resource.build())
        .build())
}

/// A client of its own: a collector may well have a private address, which egress would refuse.
#[derive(Debug)]
struct Collector {
    client: reqwest::Client,
    /// The exporter has a thread of its own, outside of the runtime that the client needs.
    runtime: Handle,
    is_down: AtomicBool,
}

impl Collector {
    fn new() -> Result<Collector, reqwest::Error> {
        tls::install_provider();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(PATIENCE)
            .build()?;
        Ok(Collector { client, runtime: Handle::current(), is_down: AtomicBool::new(false) })
    }

    /// Logged when it goes and when it comes back, not with every batch between.
    fn note(&self, sent: &Result<Response<Bytes>, HttpError>) {
        let trouble = match sent {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answers {}", answer.status())),
            Err(error) => Some(error.to_string()),
        };
        let was_down = self.is_down.swap(trouble.is_some(), Relaxed);
        match trouble {
            Some(reason) if !was_down => {
                tracing::warn!(reason, "the trace collector does not take spans; they are lost");
            }
            None if was_down => tracing::info!("the trace collector takes spans again"),
            _ => {}
        }
    }
}

/// Written out as the trait's attribute would, which is all that a crate for it would do here.
type Sending<'t> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 't>>;

impl HttpClient for Collector {
    fn send_bytes<'s, 't>(&'s self, request: Request<Bytes>) -> Sending<'t>
    where
        's: 't,
        Self: 't,
    {
        Box::pin(async move {
            let exchange = exchange(self.client.clone(), request);
            let sent = self.runtime.spawn(exchange).await.unwrap_or_else(|gone| Err(gone.into()));
            self.note(&sent);
            sent
        })
    }
}

async fn exchange(
    client: reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let answer = client.execute(request.try_into()?).await.map_err(reqwest::Error::without_url)?;
    let status = answer.status();
    // What it says is of no use; a success says nothing.
    Ok(Response::builder().status(status).body(Bytes::new())?)
}
