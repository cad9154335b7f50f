//! Every setting of a host: by flag or environment. Secrets come from the environment or from files, never from flags.

use std::{
    fs,
    net::SocketAddr,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;

use crate::{
    egress::EgressPolicy,
    http::{Endpoint, Limits as HttpLimits, TlsFiles},
    plugins::Limits,
};

#[derive(Args, Clone, Debug)]
pub struct Config {
    /// `sqlite://FILE` or `postgres://…`
    #[arg(long, env = "TOLLHOUSE_DATABASE", default_value = "sqlite://tollhouse.db")]
    pub database: String,
    /// Connections to the database: all of them on PostgreSQL, readers on SQLite
    #[arg(long, env = "TOLLHOUSE_DATABASE_CONNECTIONS", default_value_t = 16)]
    pub database_connections: u32,
    /// Where companies and providers reach the API
    #[arg(long, env = "TOLLHOUSE_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where operators reach the internal interface
    #[arg(long, env = "TOLLHOUSE_INTERNAL_LISTEN", default_value = "127.0.0.1:8081")]
    pub internal_listen: SocketAddr,
    /// Certificate of the API, PEM, with its chain; read again when it changes
    #[arg(long, env = "TOLLHOUSE_TLS_CERTIFICATE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// Key of that certificate, PEM
    #[arg(long, env = "TOLLHOUSE_TLS_KEY", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Serve the API without TLS though its address is not loopback: a proxy in front of it does TLS
    #[arg(long, env = "TOLLHOUSE_PLAIN_HTTP")]
    pub plain_http: bool,
    /// Certificate of the internal interface, PEM, with its chain; read again when it changes
    #[arg(long, env = "TOLLHOUSE_INTERNAL_TLS_CERTIFICATE", requires = "internal_tls_key")]
    pub internal_tls_certificate: Option<PathBuf>,
    /// Key of that certificate, PEM
    #[arg(long, env = "TOLLHOUSE_INTERNAL_TLS_KEY", requires = "internal_tls_certificate")]
    pub internal_tls_key: Option<PathBuf>,
    /// Serve the internal interface without TLS though its address is not loopback
    #[arg(long, env = "TOLLHOUSE_INTERNAL_PLAIN_HTTP")]
    pub internal_plain_http: bool,
    /// Connections at once, of each listener; more wait to be accepted
    #[arg(long, env = "TOLLHOUSE_MAX_CONNECTIONS", default_value_t = 4_096,
          value_parser = at_least_one())]
    pub max_connections: u32,
    /// Requests at once, of each listener; more are answered 503
    #[arg(long, env = "TOLLHOUSE_MAX_REQUESTS", default_value_t = 1_024,
          value_parser = at_least_one())]
    pub max_requests: u32,
    /// Seconds for a TLS handshake
    #[arg(long, env = "TOLLHOUSE_TLS_HANDSHAKE_TIMEOUT_S", default_value_t = 10,
          value_parser = at_least_one())]
    pub tls_handshake_timeout_s: u32,
    /// Seconds to send the headers of a request, from their first byte
    #[arg(long, env = "TOLLHOUSE_HEADER_TIMEOUT_S", default_value_t = 15,
          value_parser = at_least_one())]
    pub header_timeout_s: u32,
    /// KiB of the path and the headers of a request together
    #[arg(long, env = "TOLLHOUSE_MAX_HEADER_KIB", default_value_t = 16,
          value_parser = at_least_one())]
    pub max_header_kib: u32,
    /// Headers of a request
    #[arg(long, env = "TOLLHOUSE_MAX_HEADERS", default_value_t = 64,
          value_parser = at_least_one())]
    pub max_headers: u32,
    /// Seconds to send a body
    #[arg(long, env = "TOLLHOUSE_BODY_TIMEOUT_S", default_value_t = 30,
          value_parser = at_least_one())]
    pub body_timeout_s: u32,
    /// KiB of a body; components have their own limit, 32 MiB
    #[arg(long, env = "TOLLHOUSE_MAX_BODY_KIB", default_value_t = 1_024,
          value_parser = at_least_one())]
    pub max_body_kib: u32,
    /// Seconds for what a request asks for, once it has been read
    #[arg(long, env = "TOLLHOUSE_REQUEST_TIMEOUT_S", default_value_t = 120,
          value_parser = at_least_one())]
    pub request_timeout_s: u32,
    /// Seconds for a client to take its answer
    #[arg(long, env = "TOLLHOUSE_ANSWER_TIMEOUT_S", default_value_t = 30,
          value_parser = at_least_one())]
    pub answer_timeout_s: u32,
    /// Seconds that a connection without a request is kept
    #[arg(long, env = "TOLLHOUSE_KEEP_ALIVE_S", default_value_t = 75,
          value_parser = at_least_one())]
    pub keep_alive_s: u32,
    /// Requests at once of one HTTP/2 connection
    #[arg(long, env = "TOLLHOUSE_HTTP2_STREAMS", default_value_t = 128,
          value_parser = at_least_one())]
    pub http2_streams: u32,
    /// Requests that an HTTP/2 client may take back before they were looked at; more end its connection
    #[arg(long, env = "TOLLHOUSE_HTTP2_RESETS", default_value_t = 20,
          value_parser = at_least_one())]
    pub http2_resets: u32,
    /// Seconds between the order to stop and the end of accepting, while /health/ready says 503
    #[arg(long, env = "TOLLHOUSE_DRAIN_S", default_value_t = 0)]
    pub drain_s: u32,
    /// Seconds for requests and jobs under way to end when the host stops
    #[arg(long, env = "TOLLHOUSE_SHUTDOWN_S", default_value_t = 30)]
    pub shutdown_s: u32,
    /// Requests per second of one API key, and of the operator token, on this host; 0: no limit
    #[arg(long, env = "TOLLHOUSE_RATE_PER_S", default_value_t = 100)]
    pub rate_per_s: u32,
    /// Requests that may come at once before that rate counts
    #[arg(long, env = "TOLLHOUSE_RATE_BURST", default_value_t = NonZeroU32::new(500).expect("500 is not 0"))]
    pub rate_burst: NonZeroU32,
    /// The URL by which providers reach the API, for notifications [default: http(s)://LISTEN]
    #[arg(long, env = "TOLLHOUSE_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// File with the operator's token; or give the token in TOLLHOUSE_OPERATOR_TOKEN
    #[arg(long, env = "TOLLHOUSE_OPERATOR_TOKEN_FILE")]
    pub operator_token_file: Option<PathBuf>,
    /// File with the master key, 32 bytes in hexadecimal; or give the key in TOLLHOUSE_MASTER_KEY
    #[arg(long, env = "TOLLHOUSE_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,
    /// What events call this service
    #[arg(long, env = "TOLLHOUSE_SERVICE", default_value = "tollhouse")]
    pub service: String,
    /// The provider of companies that have chosen none
    #[arg(long, env = "TOLLHOUSE_DEFAULT_PROVIDER", default_value = "provider_a")]
    pub default_provider: String,
    /// Folder for compiled plugins, of this user alone; none: compile at every start
    #[arg(long, env = "TOLLHOUSE_PLUGIN_CACHE")]
    pub plugin_cache: Option<PathBuf>,
    /// Plugin instances at once
    #[arg(long, env = "TOLLHOUSE_PLUGIN_INSTANCES", default_value_t = 200)]
    pub plugin_instances: u32,
    /// MiB of memory of one plugin call
    #[arg(long, env = "TOLLHOUSE_PLUGIN_MEMORY_MIB", default_value_t = 64)]
    pub plugin_memory_mib: usize,
    /// Milliseconds of processor time of one plugin call
    #[arg(long, env = "TOLLHOUSE_PLUGIN_CPU_MS", default_value_t = 1_000)]
    pub plugin_cpu_ms: u64,
    /// Seconds that one plugin call may take with everything it waits for, at most 30
    #[arg(long, env = "TOLLHOUSE_PLUGIN_WALL_CLOCK_S", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=30))]
    pub plugin_wall_clock_s: u64,
    /// Requests of one plugin call
    #[arg(long, env = "TOLLHOUSE_PLUGIN_REQUESTS", default_value_t = 16)]
    pub plugin_requests: usize,
    /// MiB of one response to a plugin
    #[arg(long, env = "TOLLHOUSE_PLUGIN_RESPONSE_MIB", default_value_t = 8)]
    pub plugin_response_mib: usize,
    /// Host name that may be reached though its address is private; may be repeated
    #[arg(long, env = "TOLLHOUSE_ALLOW_PRIVATE", value_delimiter = ',')]
    pub allow_private: Vec<String>,
    /// Development: loopback over http is allowed, and the clock can be moved
    #[arg(long, env = "TOLLHOUSE_DEVELOPMENT")]
    pub development: bool,
}

/// A setting that is missing or cannot be used; the text says which and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl Config {
    pub fn operator_token(&self) -> Result<String, ConfigError> {
        operator_token(self.operator_token_file.as_deref())
    }

    pub fn master_key(&self) -> Result<String, ConfigError> {
        secret(self.master_key_file.as_deref(), "TOLLHOUSE_MASTER_KEY", "--master-key-file")
    }

    #[must_use]
    pub fn public_url(&self) -> String {
        let scheme = if self.tls_certificate.is_some() { "https" } else { "http" };
        self.public_url.clone().unwrap_or_else(|| format!("{scheme}://{}", self.listen))
    }

    /// Where the API listens.
    #[must_use]
    pub fn public_endpoint(&self) -> Endpoint {
        Endpoint {
            address: self.listen,
            tls: tls_files(self.tls_certificate.as_ref(), self.tls_key.as_ref()),
            plain_http: self.plain_http,
            flags: "",
        }
    }

    /// Where the internal interface listens.
    #[must_use]
    pub fn internal_endpoint(&self) -> Endpoint {
        Endpoint {
            address: self.internal_listen,
            tls: tls_files(self.internal_tls_certificate.as_ref(), self.internal_tls_key.as_ref()),
            plain_http: self.internal_plain_http,
            flags: "internal-",
        }
    }

    #[must_use]
    pub fn http(&self) -> HttpLimits {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        HttpLimits {
            connections: count(self.max_connections),
            requests: count(self.max_requests),
            handshake: seconds(self.tls_handshake_timeout_s),
            headers: seconds(self.header_timeout_s),
            header_bytes: count(self.max_header_kib) << 10,
            header_count: count(self.max_headers),
            body: seconds(self.body_timeout_s),
            body_bytes: count(self.max_body_kib) << 10,
            request: seconds(self.request_timeout_s),
            answer: seconds(self.answer_timeout_s),
            keep_alive: seconds(self.keep_alive_s),
            http2_streams: self.http2_streams,
            http2_resets: count(self.http2_resets),
            drain: seconds(self.drain_s),
            shutdown: seconds(self.shutdown_s),
        }
    }

    #[must_use]
    pub fn egress(&self) -> EgressPolicy {
        EgressPolicy { allow_loopback: self.development, allow_private: self.allow_private.clone() }
    }

    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            instances: self.plugin_instances.max(1),
            memory_bytes: self.plugin_memory_mib << 20,
            cpu: Duration::from_millis(self.plugin_cpu_ms),
            wall_clock: Duration::from_secs(self.plugin_wall_clock_s),
            requests: self.plugin_requests,
            response_bytes: self.plugin_response_mib << 20,
            compile_cache: self.plugin_cache.clone(),
            ..Limits::default()
        }
    }
}

fn at_least_one() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

fn tls_files(certificate: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<TlsFiles> {
    let (certificate, key) = (certificate?.clone(), key?.clone());
    Some(TlsFiles { certificate, key })
}

/// From the file, else from TOLLHOUSE_OPERATOR_TOKEN.
pub fn operator_token(file: Option<&Path>) -> Result<String, ConfigError> {
    secret(file, "TOLLHOUSE_OPERATOR_TOKEN", "--operator-token-file")
}

fn secret(file: Option<&Path>, variable: &str, flag: &str) -> Result<String, ConfigError> {
    let text = match file {
        Some(file) => fs::read_to_string(file)
            .map_err(|error| ConfigError(format!("{flag} {}: {error}", file.display())))?,
        None => std::env::var(variable).unwrap_or_default(),
    };
    match text.trim() {
        "" => Err(ConfigError(format!("set {variable}, or {flag} to a file that holds it"))),
        text => Ok(text.to_owned()),
    }
}
