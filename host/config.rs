//! Every setting of a host: by flag or environment. Secrets come from the environment or from files, never from flags.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;

use crate::{egress::EgressPolicy, plugins::Limits, store};

#[derive(Args, Clone, Debug)]
pub struct Config {
    /// `sqlite://FILE` or `postgres://…`
    #[arg(long, env = "TOLLHOUSE_DATABASE", default_value = "sqlite://tollhouse.db")]
    pub database: String,
    /// Connections to the database: all of them on PostgreSQL, readers on SQLite
    #[arg(long, env = "TOLLHOUSE_DATABASE_CONNECTIONS", default_value_t = 16)]
    pub database_connections: u32,
    /// Milliseconds to wait for a connection, or for the writer of SQLite, before the answer is 503
    #[arg(long, env = "TOLLHOUSE_DATABASE_WAIT_MS", default_value_t = 5_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub database_wait_ms: u64,
    /// Milliseconds that one transaction may take before it is rolled back and the answer is 503
    #[arg(long, env = "TOLLHOUSE_DATABASE_DEADLINE_MS", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub database_deadline_ms: u64,
    /// Where companies and providers reach the API
    #[arg(long, env = "TOLLHOUSE_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where operators reach the internal interface
    #[arg(long, env = "TOLLHOUSE_INTERNAL_LISTEN", default_value = "127.0.0.1:8081")]
    pub internal_listen: SocketAddr,
    /// The URL by which providers reach the API, for notifications [default: http://LISTEN]
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
        self.public_url.clone().unwrap_or_else(|| format!("http://{}", self.listen))
    }

    #[must_use]
    pub fn egress(&self) -> EgressPolicy {
        EgressPolicy { allow_loopback: self.development, allow_private: self.allow_private.clone() }
    }

    #[must_use]
    pub fn database_limits(&self) -> store::Limits {
        store::Limits {
            connections: self.database_connections,
            wait: Duration::from_millis(self.database_wait_ms),
            deadline: Duration::from_millis(self.database_deadline_ms),
        }
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
