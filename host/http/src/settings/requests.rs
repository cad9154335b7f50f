//! Settings of the limits of requests.

use std::{num::NonZeroU32, time::Duration};

use clap::{Args, builder::RangedI64ValueParser};

use crate::ServerLimits;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub struct RequestSettings {
    /// Maximum number of connections per listener; further ones wait in the accept queue
    #[arg(long, env = "TOLLHOUSE_MAX_CONNECTIONS", value_name = "connections",
          default_value_t = 4_096, value_parser = positive())]
    pub max_connections: u32,
    /// Maximum number of connections of one client address (IPv6: of one /64 network) per listener;
    /// further ones are closed. A reverse proxy is one address. 0: no limit
    #[arg(
        long,
        env = "TOLLHOUSE_MAX_CONNECTIONS_PER_ADDRESS",
        value_name = "connections",
        default_value_t = 1_024
    )]
    pub max_connections_per_address: u32,
    /// Maximum number of concurrent requests per listener; further ones receive 503
    #[arg(long, env = "TOLLHOUSE_MAX_REQUESTS", value_name = "requests",
          default_value_t = 1_024, value_parser = positive())]
    pub max_requests: u32,
    /// Timeout of a TLS handshake
    #[arg(long, env = "TOLLHOUSE_TLS_HANDSHAKE_TIMEOUT_S", value_name = "s",
          default_value_t = 10, value_parser = positive())]
    pub tls_handshake_timeout_s: u32,
    /// Timeout for the headers of a request, from their first byte
    #[arg(long, env = "TOLLHOUSE_HEADER_TIMEOUT_S", value_name = "s",
          default_value_t = 15, value_parser = positive())]
    pub header_timeout_s: u32,
    /// Maximum size of path and headers of a request together; beyond it the response is 431
    #[arg(long, env = "TOLLHOUSE_MAX_HEADER_KIB", value_name = "KiB",
          default_value_t = 16, value_parser = positive())]
    pub max_header_kib: u32,
    /// Maximum number of headers of a request; beyond it the response is 431
    #[arg(long, env = "TOLLHOUSE_MAX_HEADERS", value_name = "headers",
          default_value_t = 64, value_parser = positive())]
    pub max_headers: u32,
    /// Timeout for the body of a request
    #[arg(long, env = "TOLLHOUSE_BODY_TIMEOUT_S", value_name = "s",
          default_value_t = 30, value_parser = positive())]
    pub body_timeout_s: u32,
    /// Maximum size of a body; beyond it the response is 413. Plugin components may have 32 MiB
    #[arg(long, env = "TOLLHOUSE_MAX_BODY_KIB", value_name = "KiB",
          default_value_t = 1_024, value_parser = positive())]
    pub max_body_kib: u32,
    /// Timeout for processing a request, after it has been read
    #[arg(long, env = "TOLLHOUSE_REQUEST_TIMEOUT_S", value_name = "s",
          default_value_t = 120, value_parser = positive())]
    pub request_timeout_s: u32,
    /// Timeout for a client to receive its response
    #[arg(long, alias = "answer-timeout-s", env = "TOLLHOUSE_WRITE_TIMEOUT_S",
          value_name = "s",
          default_value_t = 30, value_parser = positive())]
    pub write_timeout_s: u32,
    /// Idle time after which a connection is closed
    #[arg(long, alias = "keep-alive-s", env = "TOLLHOUSE_IDLE_TIMEOUT_S",
          value_name = "s",
          default_value_t = 75, value_parser = positive())]
    pub idle_timeout_s: u32,
    /// Maximum number of concurrent requests per HTTP/2 connection
    #[arg(long, env = "TOLLHOUSE_HTTP2_STREAMS", value_name = "requests",
          default_value_t = 128, value_parser = positive())]
    pub http2_streams: u32,
    /// Maximum number of streams that an HTTP/2 client may reset before they are accepted; beyond
    /// it the connection is closed
    #[arg(long, env = "TOLLHOUSE_HTTP2_RESETS", value_name = "requests",
          default_value_t = 20, value_parser = positive())]
    pub http2_resets: u32,
    /// Maximum requests per second of each API key and of the operator token, per host; beyond it
    /// the response is 429. 0: no limit
    #[arg(long, env = "TOLLHOUSE_RATE_PER_S", value_name = "requests", default_value_t = 100)]
    pub rate_per_s: u32,
    /// Maximum burst of requests before `rate_per_s` applies
    #[arg(long, env = "TOLLHOUSE_RATE_BURST", value_name = "requests", default_value = "500")]
    pub rate_burst: NonZeroU32,
    /// Delay between the shutdown signal and closing the listeners; `/health/ready` returns 503
    /// meanwhile
    #[arg(long, env = "TOLLHOUSE_DRAIN_S", value_name = "s", default_value_t = 0)]
    pub drain_s: u32,
    /// Timeout for requests and jobs in flight, after `drain_s`
    #[arg(long, env = "TOLLHOUSE_SHUTDOWN_S", value_name = "s", default_value_t = 30)]
    pub shutdown_s: u32,
}

impl RequestSettings {
    #[must_use]
    pub fn limits(&self) -> ServerLimits {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let kib = |kib: u32| count(kib).saturating_mul(1 << 10);
        ServerLimits {
            connections: count(self.max_connections),
            address_connections: match self.max_connections_per_address {
                0 => usize::MAX,
                most => count(most),
            },
            requests: count(self.max_requests),
            handshake_timeout: seconds(self.tls_handshake_timeout_s),
            header_timeout: seconds(self.header_timeout_s),
            header_bytes: kib(self.max_header_kib),
            header_count: count(self.max_headers),
            body_timeout: seconds(self.body_timeout_s),
            body_bytes: kib(self.max_body_kib),
            request_timeout: seconds(self.request_timeout_s),
            write_timeout: seconds(self.write_timeout_s),
            idle_timeout: seconds(self.idle_timeout_s),
            http2_streams: self.http2_streams,
            http2_resets: count(self.http2_resets),
            drain_delay: seconds(self.drain_s),
            shutdown_timeout: seconds(self.shutdown_s),
        }
    }
}

pub fn positive() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}
