//! Settings of the plugin host.

use std::{path::PathBuf, time::Duration};

use crate::{CodeCache, Compiler, Limits, TrustPolicy, TrustedKey};
use tollhouse_platform::{config::settings, crypto::seal::Sealer};

settings! {
    "Plugins" PluginSettings;
    /// Folder for compiled plugins; without it, and in commands without a master key, plugins are
    /// compiled at every start. It is created for this user alone and not used if others own it or
    /// can write to it; files that were not written with the same master key are recompiled
    plugin_cache: Option<PathBuf>, "TOLLHOUSE_PLUGIN_CACHE", "folder";
    /// Program that compiles plugins in child processes with limits of their own: a `tollhouse` of
    /// the same version. Default: the serving program
    plugin_compiler: Option<PathBuf>, "TOLLHOUSE_PLUGIN_COMPILER", "program";
    /// Memory limit for compiling one plugin
    plugin_compile_mib: u64 [128..] = 2_048, "TOLLHOUSE_PLUGIN_COMPILE_MIB", "MiB";
    /// Time limit for compiling one plugin
    plugin_compile_s: u64 [1..] = 60, "TOLLHOUSE_PLUGIN_COMPILE_S", "s";
    /// Accept plugins without a trusted signature, for development and for plugins built where they
    /// are installed. Hosts without this option do not load such plugins
    plugin_unsigned: bool, "TOLLHOUSE_PLUGIN_UNSIGNED", "bool";
    /// Trusted publishers with their keys, in place of those in the database: write access to the
    /// database is then not enough to run code on this host. The key is the line between `BEGIN`
    /// and `END` of its PEM file. Separate several by commas, or repeat the option
    plugin_publishers: Vec<TrustedKey>, "TOLLHOUSE_PLUGIN_PUBLISHERS", "NAME=KEY",
        value_delimiter = ',';
    /// Maximum number of calls in flight per plugin; further calls receive 503
    plugin_max_calls: u32 [1..] = 10_000, "TOLLHOUSE_PLUGIN_MAX_CALLS", "calls",
        alias = "plugin-calls";
    /// Maximum number of new calls per plugin that wait for an instance; further calls receive 503
    plugin_max_queued_calls: u32 = 1_000, "TOLLHOUSE_PLUGIN_MAX_QUEUED_CALLS", "calls",
        alias = "plugin-queue";
    /// Memory limit of all calls of one plugin together
    plugin_total_memory_mib: u32 [1..=65_536] = 1_024, "TOLLHOUSE_PLUGIN_TOTAL_MEMORY_MIB", "MiB",
        alias = "plugin-budget-mib";
    /// Maximum number of instances, of which one plugin may use half; further runs wait
    plugin_instances: u32 [1..] = 200, "TOLLHOUSE_PLUGIN_INSTANCES", "instances";
    /// Memory limit of one call
    plugin_memory_mib: u32 [1..=4096] = 64, "TOLLHOUSE_PLUGIN_MEMORY_MIB", "MiB";
    /// CPU time limit of one call, including the host's work on its behalf
    plugin_cpu_ms: u64 [10..] = 1_000, "TOLLHOUSE_PLUGIN_CPU_MS", "ms";
    /// Time limit of one call including waits, at most 30
    plugin_call_timeout_s: u64 [1..=30] = 30, "TOLLHOUSE_PLUGIN_CALL_TIMEOUT_S", "s",
        alias = "plugin-wall-clock-s";
    /// Retention of recorded calls of providers and SMS gateways, for `tollhouse plugin replay`; 0
    /// disables recording. Recordings are masked. Recording a call doubles its CPU time
    plugin_recording_retention_hours: u32 [..=8_760] = 0,
        "TOLLHOUSE_PLUGIN_RECORDING_RETENTION_HOURS", "h", alias = "plugin-recording-hours";
    /// Maximum number of requests per call
    plugin_requests: usize = 16, "TOLLHOUSE_PLUGIN_REQUESTS", "requests";
    /// Maximum size of one response to a plugin
    plugin_response_mib: u32 [1..=1024] = 8, "TOLLHOUSE_PLUGIN_RESPONSE_MIB", "MiB";
}

impl PluginSettings {
    /// Returns the limits of a host, with the cache of machine code.
    pub fn limits_with_cache(&self, sealer: &Sealer) -> Limits {
        let cache = |folder: &PathBuf| CodeCache::new(folder.clone(), sealer.clone());
        Limits { code_cache: self.plugin_cache.as_ref().map(cache), ..self.limits() }
    }

    /// Returns the limits of a command without a master key, which has no cache.
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

    pub fn trust(&self) -> TrustPolicy {
        TrustPolicy {
            accepts_unsigned: self.plugin_unsigned,
            pinned: self.plugin_publishers.clone(),
        }
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
