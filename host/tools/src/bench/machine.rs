//! The machine of a measurement.

use std::{fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Machine {
    pub cores: usize,
    pub cpu: String,
    pub kernel: String,
    /// Load average of the last minute before the measurement.
    pub load: f64,
    pub tollhouse: &'static str,
    pub wasmtime: &'static str,
    pub optimised: bool,
}

impl Machine {
    pub fn current() -> Machine {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let (cpus, load) = (read("/proc/cpuinfo"), read("/proc/loadavg"));
        let release = read("/proc/sys/kernel/osrelease");
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let load = load.split(' ').next().and_then(|load| load.parse().ok());
        Machine {
            cores: cores(),
            cpu: model.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned(),
            kernel: format!("{} {}", std::env::consts::OS, release.trim()),
            load: load.unwrap_or_default(),
            tollhouse: env!("CARGO_PKG_VERSION"),
            wasmtime: locked_version("wasmtime"),
            optimised: !cfg!(debug_assertions),
        }
    }
}

/// Returns the locked version of a crate, because not every crate exports its own.
fn locked_version(name: &str) -> &'static str {
    const LOCK: &str = include_str!("../../../../Cargo.lock");
    let package = LOCK.split("[[package]]").find_map(|package| {
        package.trim_start().strip_prefix(&format!("name = \"{name}\"\nversion = \""))
    });
    package.and_then(|rest| rest.split('"').next()).unwrap_or("unknown")
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the CPU time of this process.
pub fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_has_a_version() {
        let version = semver::Version::parse(locked_version("wasmtime")).unwrap();
        assert!(version.major >= 48, "{version}");
        assert_eq!(locked_version("no such crate"), "unknown");
    }
}
