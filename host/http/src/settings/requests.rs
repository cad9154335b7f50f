//! Settings of the limits of connections and requests.

use std::{num::NonZeroU32, time::Duration};

use clap::{
    Args,
    builder::{RangedI64ValueParser, TypedValueParser},
};

/// Limits of each listener, unless stated otherwise.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub struct ServerLimits {
    /// Maximum number of connections per listener; further ones wait in the accept queue
    #[arg(id = "max_connections", long = "max-connections", env = "TOLLHOUSE_MAX_CONNECTIONS",
          value_name = "connections", default_value = "4096", value_parser = count())]
    pub connections: usize,
    /// Maximum number of connections of one client address (IPv6: of one /64 network) per listener;
    /// further ones are closed. A reverse proxy is one address. 0: no limit
    #[arg(id = "max_connections_per_address", long = "max-connections-per-address",
          env = "TOLLHOUSE_MAX_CONNECTIONS_PER_ADDRESS",
          value_name = "connections", default_value = "1024", value_parser = count_or_unlimited())]
    pub address_connections: usize,
    /// Maximum number of concurrent requests per listener; further ones receive 503
    #[arg(id = "max_requests", long = "max-requests", env = "TOLLHOUSE_MAX_REQUESTS",
          value_name = "requests", default_value = "1024", value_parser = count())]
    pub requests: usize,
    /// Timeout of a TLS handshake
    #[arg(id = "tls_handshake_timeout_s", long = "tls-handshake-timeout-s",
          env = "TOLLHOUSE_TLS_HANDSHAKE_TIMEOUT_S",
          value_name = "s", default_value = "10", value_parser = seconds(1))]
    pub handshake_timeout: Duration,
    /// Timeout for the headers of a request, from their first byte
    #[arg(id = "header_timeout_s", long = "header-timeout-s", env = "TOLLHOUSE_HEADER_TIMEOUT_S",
          value_name = "s", default_value = "15", value_parser = seconds(1))]
    pub header_timeout: Duration,
    /// Maximum size of path and headers of a request together; beyond it the response is 431
    #[arg(id = "max_header_kib", long = "max-header-kib", env = "TOLLHOUSE_MAX_HEADER_KIB",
          value_name = "KiB", default_value = "16", value_parser = kib())]
    pub header_bytes: usize,
    /// Maximum number of headers of a request; beyond it the response is 431
    #[arg(id = "max_headers", long = "max-headers", env = "TOLLHOUSE_MAX_HEADERS",
          value_name = "headers", default_value = "64", value_parser = count())]
    pub header_count: usize,
    /// Timeout for the body of a request
    #[arg(id = "body_timeout_s", long = "body-timeout-s", env = "TOLLHOUSE_BODY_TIMEOUT_S",
          value_name = "s", default_value = "30", value_parser = seconds(1))]
    pub body_timeout: Duration,
    /// Maximum size of a body; beyond it the response is 413. Plugin components may have 32 MiB
    #[arg(id = "max_body_kib", long = "max-body-kib", env = "TOLLHOUSE_MAX_BODY_KIB",
          value_name = "KiB", default_value = "1024", value_parser = kib())]
    pub body_bytes: usize,
    /// Timeout for processing a request, after it has been read
    #[arg(id = "request_timeout_s", long = "request-timeout-s", env = "TOLLHOUSE_REQUEST_TIMEOUT_S",
          value_name = "s", default_value = "120", value_parser = seconds(1))]
    pub request_timeout: Duration,
    /// Timeout for a client to receive its response
    #[arg(id = "write_timeout_s", long = "write-timeout-s", env = "TOLLHOUSE_WRITE_TIMEOUT_S",
          alias = "answer-timeout-s", value_name = "s",
          default_value = "30", value_parser = seconds(1))]
    pub write_timeout: Duration,
    /// Idle time after which a connection is closed
    #[arg(id = "idle_timeout_s", long = "idle-timeout-s", env = "TOLLHOUSE_IDLE_TIMEOUT_S",
          alias = "keep-alive-s", value_name = "s",
          default_value = "75", value_parser = seconds(1))]
    pub idle_timeout: Duration,
    /// Maximum number of concurrent requests per HTTP/2 connection
    #[arg(long, env = "TOLLHOUSE_HTTP2_STREAMS", value_name = "requests",
          default_value_t = 128, value_parser = positive())]
    pub http2_streams: u32,
    /// Maximum number of streams that an HTTP/2 client may reset before the host accepts them;
    /// beyond it, the host closes the connection
    #[arg(long, env = "TOLLHOUSE_HTTP2_RESETS",
          value_name = "requests", default_value = "20", value_parser = count())]
    pub http2_resets: usize,
    /// Maximum requests per second of each API key and of the operator token, per host; beyond it
    /// the response is 429. 0: no limit
    #[arg(long, env = "TOLLHOUSE_RATE_PER_S", value_name = "requests", default_value_t = 100)]
    pub rate_per_s: u32,
    /// Maximum burst of requests before `rate_per_s` applies
    #[arg(long, env = "TOLLHOUSE_RATE_BURST", value_name = "requests", default_value = "500")]
    pub rate_burst: NonZeroU32,
    /// Delay between the shutdown signal and closing the listeners; `/health/ready` returns 503
    /// meanwhile
    #[arg(id = "drain_s", long = "drain-s", env = "TOLLHOUSE_DRAIN_S",
          value_name = "s", default_value = "0", value_parser = seconds(0))]
    pub drain_delay: Duration,
    /// Timeout for requests and jobs in flight, after `drain_s`
    #[arg(id = "shutdown_s", long = "shutdown-s", env = "TOLLHOUSE_SHUTDOWN_S",
          value_name = "s", default_value = "30", value_parser = seconds(0))]
    pub shutdown_timeout: Duration,
}

impl ServerLimits {
    /// Returns the longest time of a request: a connection with an older one is stuck.
    #[must_use]
    pub fn max_request_time(&self) -> Duration {
        self.body_timeout + self.request_timeout + self.write_timeout
    }
}

pub fn positive() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn count() -> impl TypedValueParser<Value = usize> {
    positive().map(to_usize)
}

/// 0 means no limit.
fn count_or_unlimited() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).map(|count| if count == 0 { usize::MAX } else { to_usize(count) })
}

fn kib() -> impl TypedValueParser<Value = usize> {
    positive().map(|kib| to_usize(kib).saturating_mul(1 << 10))
}

fn seconds(least: i64) -> impl TypedValueParser<Value = Duration> {
    clap::value_parser!(u32).range(least..).map(|seconds| Duration::from_secs(seconds.into()))
}
