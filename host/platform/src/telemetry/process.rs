//! Process metrics under Prometheus' standard names. Those read from `/proc` exist on Linux only.

use std::{fmt, fs, str::FromStr};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::{Registry, Unit},
};

use crate::clock::Timestamp;

/// Unit of CPU times in `/proc` (`USER_HZ`): the same on every supported architecture.
const TICKS_PER_SECOND: f64 = 100.0;

pub fn register(registry: &mut Registry, started: Timestamp) {
    let version = ("version", env!("CARGO_PKG_VERSION"));
    let build = Info::new(vec![version, ("arch", std::env::consts::ARCH)]);
    registry.register("tollhouse_build", "Build version and architecture", build);
    registry.register_collector(Box::new(Process { started }));
}

#[derive(Debug)]
struct Process {
    started: Timestamp,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let started = self.started.0 as f64 / 1_000.0;
        let resident = resident_bytes().map(|bytes| bytes as f64);
        let threads = labelled_number("status", "Threads:");
        let max_files = labelled_number("limits", "Max open files");
        for (name, help, unit, value) in [
            ("process_start_time", "Start time (Unix time).", Some(Unit::Seconds), Some(started)),
            ("process_resident_memory", "Resident memory size.", Some(Unit::Bytes), resident),
            ("process_threads", "Number of threads.", None, threads),
            ("process_open_fds", "Number of open file descriptors.", None, open_files()),
            ("process_max_fds", "Maximum number of open file descriptors.", None, max_files),
        ] {
            let Some(value) = value else { continue };
            let gauge = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
            ConstGauge::new(value).encode(gauge)?;
        }
        let Some(seconds) = cpu_seconds() else { return Ok(()) };
        let (name, help) = ("process_cpu", "User and system CPU time.");
        let unit = Some(&Unit::Seconds);
        let cpu = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
        ConstCounter::new(seconds).encode(cpu)
    }
}

/// Returns the resident memory of this process; `None` if the system does not report it.
pub fn resident_bytes() -> Option<usize> {
    labelled_number("status", "VmRSS:").map(|kib: usize| kib << 10)
}

/// Returns the first number behind a label in a file of `/proc/self`.
fn labelled_number<T: FromStr>(file: &str, label: &str) -> Option<T> {
    let text = fs::read_to_string(format!("/proc/self/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_whitespace().next()?.parse().ok()
}

fn open_files() -> Option<f64> {
    // Listing the directory opens one more descriptor.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as f64)
}

fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program name is in parentheses and may contain anything; `utime` and `stime` are the 12th
    // and 13th fields after it.
    let (_, after) = stat.rsplit_once(')')?;
    let ticks = after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().ok());
    Some(ticks.sum::<Option<f64>>()? / TICKS_PER_SECOND)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn process_metrics_are_read_from_proc() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
        assert!(labelled_number("status", "Threads:").is_some_and(|threads: f64| threads >= 1.0));
        assert!(open_files().is_some_and(|open| open >= 3.0));
        assert!(labelled_number("limits", "Max open files").is_some_and(|most: f64| most >= 3.0));
        assert!(cpu_seconds().is_some_and(|seconds| (0.0..1e6).contains(&seconds)));
    }
}
