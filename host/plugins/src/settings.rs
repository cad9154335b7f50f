//! Settings of the plugin host.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use crate::{CodeCache, Compiler, Limits, TrustPolicy, TrustedKey};
use tollhouse_platform::crypto::seal::Sealer;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Plugins")]
pub struct PluginSettings {
    /// Folder for compiled plugins; without it, and in commands without a master key, plugins are
    /// compiled at every start. It is created for this user alone and not used if others own it or
    /// can write to it; files that were not written with the same master key are recompiled
    #[arg(long, env = "TOLLHOUSE_PLUGIN_CACHE", value_name = "folder")]
    pub plugin_cache: Option<PathBuf>,
    /// Program that compiles plugins in child processes with limits of their own: a `tollhouse` of
    /// the same version. Default: the serving program
    #[arg(long, env = "TOLLHOUSE_PLUGIN_COMPILER", value_name = "program")]
    pub plugin_compiler: Option<PathBuf>,
    /// Memory limit for compiling one plugin
    #[arg(long, env = "TOLLHOUSE_PLUGIN_COMPILE_MIB", value_name = "MiB", default_value_t = 2_048,
          value_parser = clap::value_parser!(u64).range(128..))]
    pub plugin_compile_mib: u64,
    /// Time limit for compiling one plugin
    #[arg(long, env = "TOLLHOUSE_PLUGIN_COMPILE_S", value_name = "s", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub plugin_compile_s: u64,
    /// Accept plugins without a trusted signature, for development and for plugins built where they
    /// are installed. Hosts without this option do not load such plugins
    #[arg(long, env = "TOLLHOUSE_PLUGIN_UNSIGNED")]
    pub plugin_unsigned: bool,
    /// Trusted publishers with their keys, in place of those in the database: write access to the
    /// database is then not enough to run code on this host. The key is the line between `BEGIN`
    /// and `END` of its PEM file. Separate several by commas, or repeat the option
    #[arg(
        long,
        env = "TOLLHOUSE_PLUGIN_PUBLISHERS",
        value_name = "NAME=KEY",
        value_delimiter = ','
    )]
    pub plugin_publishers: Vec<TrustedKey>,
    /// Maximum number of calls in flight per plugin; further calls receive 503
    #[arg(long, alias = "plugin-calls", env = "TOLLHOUSE_PLUGIN_MAX_CALLS",
          value_name = "calls", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub plugin_max_calls: u32,
    /// Maximum number of new calls per plugin that wait for an instance; further calls receive 503
    #[arg(
        long,
        alias = "plugin-queue",
        env = "TOLLHOUSE_PLUGIN_MAX_QUEUED_CALLS",
        value_name = "calls",
        default_value_t = 1_000
    )]
    pub plugin_max_queued_calls: u32,
    /// Memory limit of all calls of one plugin together
    #[arg(long, alias = "plugin-budget-mib", env = "TOLLHOUSE_PLUGIN_TOTAL_MEMORY_MIB",
          value_name = "MiB", default_value_t = 1_024,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub plugin_total_memory_mib: u32,
    /// Maximum number of instances, of which one plugin may use half; further runs wait
    #[arg(long, env = "TOLLHOUSE_PLUGIN_INSTANCES", value_name = "instances", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub plugin_instances: u32,
    /// Memory limit of one call
    #[arg(long, env = "TOLLHOUSE_PLUGIN_MEMORY_MIB", value_name = "MiB", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub plugin_memory_mib: u32,
    /// CPU time limit of one call, including the host's work on its behalf
    #[arg(long, env = "TOLLHOUSE_PLUGIN_CPU_MS", value_name = "ms", default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(10..))]
    pub plugin_cpu_ms: u64,
    /// Time limit of one call including waits, at most 30
    #[arg(long, alias = "plugin-wall-clock-s", env = "TOLLHOUSE_PLUGIN_CALL_TIMEOUT_S",
          value_name = "s", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=30))]
    pub plugin_call_timeout_s: u64,
    /// Retention of recorded calls of providers and SMS gateways, for `tollhouse plugin replay`; 0
    /// disables recording. Recordings are masked. Recording a call doubles its CPU time
    #[arg(long, alias = "plugin-recording-hours", env = "TOLLHOUSE_PLUGIN_RECORDING_RETENTION_HOURS",
          value_name = "h", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(..=8_760))]
    pub plugin_recording_retention_hours: u32,
    /// Maximum number of requests per call
    #[arg(long, env = "TOLLHOUSE_PLUGIN_REQUESTS", value_name = "requests", default_value_t = 16)]
    pub plugin_requests: usize,
    /// Maximum size of one response to a plugin
    #[arg(long, env = "TOLLHOUSE_PLUGIN_RESPONSE_MIB", value_name = "MiB", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub plugin_response_mib: u32,
}

impl PluginSettings {
    /// Returns the limits of a host, with the cache of machine code.
    #[must_use]
    pub fn limits_with_cache(&self, sealer: &Sealer) -> Limits {
        let cache = |folder: &PathBuf| CodeCache::new(folder.clone(), sealer.clone());
        Limits { code_cache: self.plugin_cache.as_ref().map(cache), ..self.limits() }
    }

    /// Returns the limits of a command without a master key, which has no cache.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            instances: self.plugin_instances,
            memory_bytes: mib(self.plugin_memory_mib),
            cpu: Duration::from_millis(self.plugin_cpu_ms),
            wall_clock: Duration::from_secs(self.plugin_call_timeout_s),
            calls: self.plugin_max_calls as usize,
            queue: self.plugin_max_queued_calls as usize,
            plugin_memory_bytes: mib(self.plugin_total_memory_mib),
            requests: self.plugin_requests,
            response_bytes: mib(self.plugin_response_mib),
            compiler: self.compiler(),
            trust: self.trust(),
            ..Limits::default()
        }
    }
}

impl PluginSettings {
    #[must_use]
    pub fn trust(&self) -> TrustPolicy {
        let (takes_unsigned, pinned) = (self.plugin_unsigned, self.plugin_publishers.clone());
        TrustPolicy { accepts_unsigned: takes_unsigned, pinned }
    }

    /// Compiles in this process if no program is set.
    fn compiler(&self) -> Compiler {
        let Some(program) = self.plugin_compiler.clone() else { return Compiler::InProcess };
        let memory_bytes = self.plugin_compile_mib.saturating_mul(1 << 20);
        let time = Duration::from_secs(self.plugin_compile_s);
        Compiler::Child { program, memory_bytes, time }
    }
}

fn mib(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(1 << 20)
}
