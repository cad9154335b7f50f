//! What was measured, for people and for machines.

use std::fmt;

use serde::Serialize;

use super::{Effort, Round, machine::Machine};
use crate::plugins::Usage;

/// Rounds that differ by more make a comparison doubtful.
const MOST_SPREAD_PERCENT: f64 = 10.0;

/// Times are microseconds of one call.
#[derive(Debug, Serialize)]
pub struct Report {
    machine: Machine,
    iterations: u32,
    concurrency: u32,
    plugins: Vec<PluginReport>,
    functions: Vec<Row>,
    /// Why the figures should not be believed; empty when there is no reason.
    doubts: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct PluginReport {
    /// `name@version`.
    pub plugin: String,
    pub component_kib: usize,
    /// Checks, compilation and a first instance.
    pub admission_ms: u128,
}

#[derive(Debug, Serialize)]
pub struct Row {
    plugin: String,
    function: &'static str,
    /// `ok`, or what the plugin said to the example.
    answer: String,
    p50_us: f64,
    p99_us: f64,
    /// Processor time of this process.
    cpu_us: f64,
    /// The same component under wasmtime alone, with as many runs.
    floor_p50_us: f64,
    /// Of the two medians: the median over all rounds.
    ratio: f64,
    runs: u32,
    peak_memory_kib: usize,
    /// How far apart the medians of the rounds are.
    spread_percent: f64,
}

impl Row {
    pub(super) fn new(
        plugin: &str,
        function: &'static str,
        answer: &str,
        used: Usage,
        rounds: &[Round],
    ) -> Row {
        let p50s = sorted(rounds.iter().map(|round| us(&round.host, 0.5)));
        let ratios = rounds.iter().map(|round| us(&round.host, 0.5) / us(&round.floor, 0.5));
        let middle = |of: fn(&Round) -> f64| median(&sorted(rounds.iter().map(of)));
        let (least, most) = (p50s.first().copied(), p50s.last().copied());
        Row {
            plugin: plugin.to_owned(),
            function,
            answer: answer.to_owned(),
            p50_us: median(&p50s),
            p99_us: middle(|round| us(&round.host, 0.99)),
            cpu_us: middle(|round| {
                round.host_cpu.as_secs_f64() * 1e6 / round.host.len().max(1) as f64
            }),
            floor_p50_us: middle(|round| us(&round.floor, 0.5)),
            ratio: median(&sorted(ratios)),
            runs: used.runs,
            peak_memory_kib: used.peak_bytes >> 10,
            spread_percent: most
                .zip(least)
                .map_or(0.0, |(most, least)| (most - least) / median(&p50s) * 100.0),
        }
    }
}

fn us(latencies: &hdrhistogram::Histogram<u64>, quantile: f64) -> f64 {
    latencies.value_at_quantile(quantile) as f64 / 1e3
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values.
fn median(values: &[f64]) -> f64 {
    values.get(values.len() / 2).copied().unwrap_or_default()
}

impl Report {
    pub(super) fn new(
        machine: Machine,
        plugins: Vec<PluginReport>,
        functions: Vec<Row>,
        effort: Effort,
    ) -> Report {
        let mut doubts = Vec::new();
        if !machine.optimised {
            doubts.push(
                "this is a debug build: only a release build is as fast as production".to_owned(),
            );
        }
        if machine.load > machine.cores as f64 / 2.0 {
            doubts.push(format!(
                "other processes use this machine: its load was {:.1} on {} cores",
                machine.load, machine.cores
            ));
        }
        let noisy = functions.iter().filter(|row| row.spread_percent > MOST_SPREAD_PERCENT);
        doubts.extend(noisy.map(|row| {
            format!(
                "{} of {}: the rounds are {:.0} % apart; smaller differences mean nothing",
                row.function, row.plugin, row.spread_percent
            )
        }));
        let Effort { iterations, concurrency } = effort;
        Report { machine, iterations, concurrency, plugins, functions, doubts }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cores, cpu, kernel, load, tollhouse, wasmtime, .. } = &self.machine;
        writeln!(
            f,
            "{cores} cores of {cpu}, {kernel}, load {load:.1}; tollhouse {tollhouse}, wasmtime {wasmtime}"
        )?;
        let Report { iterations, concurrency, .. } = self;
        writeln!(f, "{iterations} calls of each function, {concurrency} at once\n")?;
        for PluginReport { plugin, component_kib, admission_ms } in &self.plugins {
            writeln!(f, "{plugin}: {component_kib} KiB, admitted in {admission_ms} ms")?;
        }
        let plugin = self.functions.iter().map(|row| row.plugin.len()).max().unwrap_or(0);
        let answer = self.functions.iter().map(|row| row.answer.len()).max().unwrap_or(0).max(6);
        writeln!(
            f,
            "\n{:plugin$}  {:22}  {:answer$}  {:>4}  {:>8}  {:>8}  {:>8}  {:>8}  {:>5}  {:>10}",
            "plugin",
            "function",
            "answer",
            "runs",
            "p50 us",
            "p99 us",
            "cpu us",
            "floor us",
            "ratio",
            "memory KiB"
        )?;
        for row in &self.functions {
            writeln!(
                f,
                "{:plugin$}  {:22}  {:answer$}  {:>4}  {:>8.1}  {:>8.1}  {:>8.1}  {:>8.1}  {:>5.2}  {:>10}",
                row.plugin,
                row.function,
                row.answer,
                row.runs,
                row.p50_us,
                row.p99_us,
                row.cpu_us,
                row.floor_p50_us,
                row.ratio,
                row.peak_memory_kib
            )?;
        }
        writeln!(f, "\nfloor: the same runs under wasmtime alone; ratio: p50 to that")?;
        for doubt in &self.doubts {
            writeln!(f, "doubtful: {doubt}")?;
        }
        Ok(())
    }
}
