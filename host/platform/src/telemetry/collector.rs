//! Exports spans to an OpenTelemetry collector, in background batches. If the collector is down,
//! spans are lost; nothing else is affected.

use std::{
    error::Error,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use futures::future::BoxFuture;
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracerProvider},
};
use tokio::runtime::Handle;

use crate::crypto::tls;

/// Timeout for exporting a batch, and for the last export at shutdown.
pub const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates the tracer provider. Sampling depends on the trace id alone: the sampled flag of a
/// client's `traceparent` is ignored, and hosts that share a trace agree.
pub fn provider(
    endpoint: &str,
    sample_ratio: f64,
) -> Result<SdkTracerProvider, Box<dyn Error + Send + Sync>> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Collector::new()?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_timeout(EXPORT_TIMEOUT)
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

/// An HTTP client of its own, because egress would refuse a collector with a private address.
#[derive(Debug)]
struct Collector {
    client: reqwest::Client,
    /// The exporter runs on its own thread, outside the runtime that the client needs.
    runtime: Handle,
    is_down: AtomicBool,
}

impl Collector {
    fn new() -> Result<Collector, reqwest::Error> {
        let client = tls::http_client()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(EXPORT_TIMEOUT)
            .build()?;
        Ok(Collector { client, runtime: Handle::current(), is_down: AtomicBool::new(false) })
    }

    /// Logs when the collector becomes unavailable or available again, not every batch.
    fn log_availability(&self, sent: &Result<Response<Bytes>, HttpError>) {
        let failure = match sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it responded with {}", response.status())),
            Err(error) => Some(error.to_string()),
        };
        let was_down = self.is_down.swap(failure.is_some(), Relaxed);
        match failure {
            Some(reason) if !was_down => {
                tracing::warn!(reason, "trace collector does not accept spans; they are lost");
            }
            None if was_down => tracing::info!("trace collector accepts spans again"),
            _ => {}
        }
    }
}

impl HttpClient for Collector {
    fn send_bytes<'s, 't>(
        &'s self,
        request: Request<Bytes>,
    ) -> BoxFuture<'t, Result<Response<Bytes>, HttpError>>
    where
        's: 't,
        Self: 't,
    {
        Box::pin(async move {
            let client = self.client.clone();
            let exchange = async move {
                let sent = client.execute(request.try_into()?).await;
                let status = sent.map_err(reqwest::Error::without_url)?.status();
                // Only the status is used.
                Ok(Response::builder().status(status).body(Bytes::new())?)
            };
            let sent = self.runtime.spawn(exchange).await.unwrap_or_else(|gone| Err(gone.into()));
            self.log_availability(&sent);
            sent
        })
    }
}
