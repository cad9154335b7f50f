//! What bounds plugins.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use crate::{
    plugins::{CodeCache, Compiler, Limits, TrustPolicy, TrustedKey},
    seal::Sealer,
};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Plugins")]
pub struct Plugins {
    /// Keeps compiled plugins, so that a start is quick. It holds machine code that is trusted: it is made for this user alone,
    /// and not used when it belongs to another or others may write into it. Files that no host with the same master key has written are
    /// compiled again. Without it, plugins are compiled at every start, as they are by commands that have no master key
    #[arg(long, env = "TOLLHOUSE_PLUGIN_CACHE", value_name = "folder")]
    pub plugin_cache: Option<PathBuf>,
    /// The program that compiles plugins, each in a process of its own with bounds of its own: a `tollhouse` of the same version.
    /// Without it, the one that serves
    #[arg(long, env = "TOLLHOUSE_PLUGIN_COMPILER", value_name = "program")]
    pub plugin_compiler: Option<PathBuf>,
    /// Memory of compiling one plugin
    #[arg(long, env = "TOLLHOUSE_PLUGIN_COMPILE_MIB", value_name = "MiB", default_value_t = 2_048,
          value_parser = clap::value_parser!(u64).range(128..))]
    pub plugin_compile_mib: u64,
    /// Time of compiling one plugin
    #[arg(long, env = "TOLLHOUSE_PLUGIN_COMPILE_S", value_name = "s", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub plugin_compile_s: u64,
    /// Takes plugins that no trusted publisher has signed: for development, and for plugins that are built where they are installed.
    /// Hosts without it do not load such plugins, whoever installed them
    #[arg(long, env = "TOLLHOUSE_PLUGIN_UNSIGNED")]
    pub plugin_unsigned: bool,
    /// The publishers whose plugins are taken, with their keys, in place of those in the database: whoever can write there cannot make
    /// this host run code. The key is the line of its PEM file between `BEGIN` and `END`. Commas between, or repeated
    #[arg(
        long,
        env = "TOLLHOUSE_PLUGIN_PUBLISHERS",
        value_name = "NAME=KEY",
        value_delimiter = ','
    )]
    pub plugin_publishers: Vec<TrustedKey>,
    /// Of one plugin under way at once, waiting for upstreams and all; more are answered 503
    #[arg(long, env = "TOLLHOUSE_PLUGIN_CALLS", value_name = "calls", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub plugin_calls: u32,
    /// Of one plugin that wait for an instance before they begin; more are answered 503
    #[arg(long, env = "TOLLHOUSE_PLUGIN_QUEUE", value_name = "calls", default_value_t = 1_000)]
    pub plugin_queue: u32,
    /// Memory of all calls of one plugin together
    #[arg(long, env = "TOLLHOUSE_PLUGIN_BUDGET_MIB", value_name = "MiB", default_value_t = 1_024,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub plugin_budget_mib: u32,
    /// At once, of which one plugin has half; more calls wait
    #[arg(long, env = "TOLLHOUSE_PLUGIN_INSTANCES", value_name = "instances", default_value_t = 200,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub plugin_instances: u32,
    /// Memory of one call
    #[arg(long, env = "TOLLHOUSE_PLUGIN_MEMORY_MIB", value_name = "MiB", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub plugin_memory_mib: u32,
    /// Processor time of one call, with what the host does on its behalf
    #[arg(long, env = "TOLLHOUSE_PLUGIN_CPU_MS", value_name = "ms", default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(10..))]
    pub plugin_cpu_ms: u64,
    /// One call with everything that it waits for, at most 30
    #[arg(long, env = "TOLLHOUSE_PLUGIN_WALL_CLOCK_S", value_name = "s", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=30))]
    pub plugin_wall_clock_s: u64,
    /// For how long calls of providers and gateways are kept, with nobody recognisable in them, to see what another version would
    /// have done: `tollhouse plugin replay`. Each costs the plugin's processor time twice. 0: none is kept
    #[arg(long, env = "TOLLHOUSE_PLUGIN_RECORDING_HOURS", value_name = "h", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(..=8_760))]
    pub plugin_recording_hours: u32,
    /// Of one call
    #[arg(long, env = "TOLLHOUSE_PLUGIN_REQUESTS", value_name = "requests", default_value_t = 16)]
    pub plugin_requests: usize,
    /// One response to a plugin
    #[arg(long, env = "TOLLHOUSE_PLUGIN_RESPONSE_MIB", value_name = "MiB", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub plugin_response_mib: u32,
}

impl Plugins {
    /// Of a host, which has a master key for its cache of machine code.
    #[must_use]
    pub fn limits_of_host(&self, sealer: &Sealer) -> Limits {
        let cache = |folder: &PathBuf| CodeCache::new(folder.clone(), sealer.clone());
        Limits { code_cache: self.plugin_cache.as_ref().map(cache), ..self.limits() }
    }

    /// Of a command that has no master key: it keeps no machine code.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            instances: self.plugin_instances,
            memory_bytes: mib(self.plugin_memory_mib),
            cpu: Duration::from_millis(self.plugin_cpu_ms),
            wall_clock: Duration::from_secs(self.plugin_wall_clock_s),
            calls: self.plugin_calls as usize,
            queue: self.plugin_queue as usize,
            plugin_memory_bytes: mib(self.plugin_budget_mib),
            requests: self.plugin_requests,
            response_bytes: mib(self.plugin_response_mib),
            compiler: self.compiler(),
            trust: self.trust(),
            ..Limits::default()
        }
    }
}

impl Plugins {
    #[must_use]
    pub fn trust(&self) -> TrustPolicy {
        let (takes_unsigned, pinned) = (self.plugin_unsigned, self.plugin_publishers.clone());
        TrustPolicy { takes_unsigned, pinned }
    }

    /// Whoever has no program to name compiles by itself.
    fn compiler(&self) -> Compiler {
        let Some(program) = self.plugin_compiler.clone() else { return Compiler::Here };
        let memory_bytes = self.plugin_compile_mib.saturating_mul(1 << 20);
        let time = Duration::from_secs(self.plugin_compile_s);
        Compiler::Child { program, memory_bytes, time }
    }
}

fn mib(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(1 << 20)
}
