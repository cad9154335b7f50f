//! What clients may take.

use std::{num::NonZeroU32, time::Duration};

use clap::{Args, builder::RangedI64ValueParser};

use crate::http::Limits;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub struct Requests {
    /// At once, of each listener; more wait to be accepted
    #[arg(long, env = "TOLLHOUSE_MAX_CONNECTIONS", value_name = "connections",
          default_value_t = 4_096, value_parser = positive())]
    pub max_connections: u32,
    /// Maximum number of connections of one client address (of IPv6: of one /64 network) per
    /// listener. Further ones are closed. A reverse proxy is one address. 0: no limit
    #[arg(
        long,
        env = "TOLLHOUSE_MAX_CONNECTIONS_PER_ADDRESS",
        value_name = "connections",
        default_value_t = 1_024
    )]
    pub max_connections_per_address: u32,
    /// At once, of each listener; more are answered 503
    #[arg(long, env = "TOLLHOUSE_MAX_REQUESTS", value_name = "requests",
          default_value_t = 1_024, value_parser = positive())]
    pub max_requests: u32,
    /// For a TLS handshake
    #[arg(long, env = "TOLLHOUSE_TLS_HANDSHAKE_TIMEOUT_S", value_name = "s",
          default_value_t = 10, value_parser = positive())]
    pub tls_handshake_timeout_s: u32,
    /// To send the headers of a request, from their first byte
    #[arg(long, env = "TOLLHOUSE_HEADER_TIMEOUT_S", value_name = "s",
          default_value_t = 15, value_parser = positive())]
    pub header_timeout_s: u32,
    /// Path and headers of a request together; more is 431
    #[arg(long, env = "TOLLHOUSE_MAX_HEADER_KIB", value_name = "KiB",
          default_value_t = 16, value_parser = positive())]
    pub max_header_kib: u32,
    /// Of a request; more are 431
    #[arg(long, env = "TOLLHOUSE_MAX_HEADERS", value_name = "headers",
          default_value_t = 64, value_parser = positive())]
    pub max_headers: u32,
    /// To send a body
    #[arg(long, env = "TOLLHOUSE_BODY_TIMEOUT_S", value_name = "s",
          default_value_t = 30, value_parser = positive())]
    pub body_timeout_s: u32,
    /// A body; more is 413. Components may have 32 MiB
    #[arg(long, env = "TOLLHOUSE_MAX_BODY_KIB", value_name = "KiB",
          default_value_t = 1_024, value_parser = positive())]
    pub max_body_kib: u32,
    /// For what a request asks for, once it has been read
    #[arg(long, env = "TOLLHOUSE_REQUEST_TIMEOUT_S", value_name = "s",
          default_value_t = 120, value_parser = positive())]
    pub request_timeout_s: u32,
    /// For a client to take its answer
    #[arg(long, env = "TOLLHOUSE_ANSWER_TIMEOUT_S", value_name = "s",
          default_value_t = 30, value_parser = positive())]
    pub answer_timeout_s: u32,
    /// A connection without a request is kept so long
    #[arg(long, env = "TOLLHOUSE_KEEP_ALIVE_S", value_name = "s",
          default_value_t = 75, value_parser = positive())]
    pub keep_alive_s: u32,
    /// At once, of one HTTP/2 connection
    #[arg(long, env = "TOLLHOUSE_HTTP2_STREAMS", value_name = "requests",
          default_value_t = 128, value_parser = positive())]
    pub http2_streams: u32,
    /// That an HTTP/2 client may take back before they were looked at; more end its connection
    #[arg(long, env = "TOLLHOUSE_HTTP2_RESETS", value_name = "requests",
          default_value_t = 20, value_parser = positive())]
    pub http2_resets: u32,
    /// Per second, of each API key and of the operator token, on each host; more are 429. 0: no limit
    #[arg(long, env = "TOLLHOUSE_RATE_PER_S", value_name = "requests", default_value_t = 100)]
    pub rate_per_s: u32,
    /// May come at once before that rate counts
    #[arg(long, env = "TOLLHOUSE_RATE_BURST", value_name = "requests", default_value = "500")]
    pub rate_burst: NonZeroU32,
    /// Between the order to stop and the end of accepting, while `/health/ready` says 503
    #[arg(long, env = "TOLLHOUSE_DRAIN_S", value_name = "s", default_value_t = 0)]
    pub drain_s: u32,
    /// After that, for requests and jobs under way to end
    #[arg(long, env = "TOLLHOUSE_SHUTDOWN_S", value_name = "s", default_value_t = 30)]
    pub shutdown_s: u32,
}

impl Requests {
    #[must_use]
    pub fn limits(&self) -> Limits {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let kib = |kib: u32| count(kib).saturating_mul(1 << 10);
        Limits {
            connections: count(self.max_connections),
            address_connections: match self.max_connections_per_address {
                0 => usize::MAX,
                most => count(most),
            },
            requests: count(self.max_requests),
            handshake: seconds(self.tls_handshake_timeout_s),
            headers: seconds(self.header_timeout_s),
            header_bytes: kib(self.max_header_kib),
            header_count: count(self.max_headers),
            body: seconds(self.body_timeout_s),
            body_bytes: kib(self.max_body_kib),
            request: seconds(self.request_timeout_s),
            answer: seconds(self.answer_timeout_s),
            keep_alive: seconds(self.keep_alive_s),
            http2_streams: self.http2_streams,
            http2_resets: count(self.http2_resets),
            drain: seconds(self.drain_s),
            shutdown: seconds(self.shutdown_s),
        }
    }
}

pub(super) fn positive() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}
