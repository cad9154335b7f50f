//! The measured figures. `text` writes them for a terminal, `page` for a browser, serde as JSON.

use std::time::Duration;

use serde::Serialize;

use super::{
    Effort, ROUNDS,
    cold::ColdStarts,
    load::{Latencies, latencies},
    machine::Machine,
    series::{Round, Series},
};

/// Spread of the rounds above which a comparison is doubtful.
const MAX_SPREAD_PERCENT: f64 = 10.0;

#[derive(Debug, Serialize)]
pub struct BenchReport {
    pub machine: Machine,
    /// Calls of each function, over all rounds.
    pub iterations: u32,
    pub rounds: u32,
    pub components: Vec<ComponentFigures>,
    pub functions: Vec<FunctionFigures>,
    /// Comparisons with the fastest component, for functions that several components have.
    pub comparisons: Vec<BenchComparison>,
    /// Reasons to doubt the figures.
    pub doubts: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct ComponentFigures {
    /// `name@version+digest`.
    pub plugin: String,
    pub size_kib: usize,
    /// Time from bytes to first response, with compilation.
    pub cold_compiled: Spread,
    /// Time from bytes to first response, with machine code on disk.
    pub cold_cached: Spread,
    /// Memory of an installed, idle component; `None` if the system does not report it.
    pub idle_kib: Option<usize>,
}

/// The range and median of a few measurements.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    pub least_ms: f64,
    pub median_ms: f64,
    pub most_ms: f64,
}

#[derive(Debug, Serialize)]
pub struct FunctionFigures {
    /// Index of the component.
    #[serde(skip)]
    pub of: usize,
    pub plugin: String,
    pub function: &'static str,
    /// `ok`, or a summary of the failure.
    pub answer: String,
    pub runs: u32,
    /// Through the host: a fresh instance per run.
    pub fresh: Latency,
    /// The same runs under wasmtime alone.
    pub floor: Latency,
    /// On a warm instance under wasmtime alone; `None` if the component fails on reuse.
    pub warm: Option<Latency>,
    /// The call's host functions in native code, without the plugin's logic.
    pub native: Latency,
    /// Ratio of the medians of fresh and floor, as the median of all rounds.
    pub ratio: f64,
    /// CPU time of this process per fresh call.
    pub cpu_us: f64,
    pub peak_memory_kib: usize,
    pub saturated: Saturated,
}

#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
    pub max_us: f64,
    /// Medians of the fastest and of the slowest round. Their distance is noise.
    pub least_p50_us: f64,
    pub most_p50_us: f64,
    /// Nines (1: 90th percentile, 2: 99th) and microseconds.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
}

/// Figures at the concurrency beyond which throughput does not grow.
#[derive(Debug, Serialize)]
pub struct Saturated {
    /// Concurrent calls.
    pub at_once: u32,
    pub per_second: f64,
    /// Throughput of the slowest and of the fastest round.
    pub least_per_second: f64,
    pub most_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
}

#[derive(Debug, Serialize)]
pub struct BenchComparison {
    pub function: &'static str,
    pub plugin: String,
    /// The fastest component.
    pub beside: String,
    /// Ratio of the medians of fresh calls.
    pub times: f64,
    /// Each round was slower than all rounds of the fastest component.
    pub beyond_noise: bool,
}

impl ComponentFigures {
    pub(super) fn new(plugin: &str, bytes: usize, cold: &ColdStarts) -> ComponentFigures {
        ComponentFigures {
            plugin: plugin.to_owned(),
            size_kib: bytes >> 10,
            cold_compiled: Spread::of(&cold.compiled),
            cold_cached: Spread::of(&cold.cached),
            idle_kib: cold.idle_bytes.map(|bytes| bytes >> 10),
        }
    }
}

impl Spread {
    fn of(took: &[Duration]) -> Spread {
        let ms = sorted(took.iter().map(|took| took.as_secs_f64() * 1e3));
        let at = |n: Option<&f64>| n.copied().unwrap_or_default();
        Spread { least_ms: at(ms.first()), median_ms: median(&ms), most_ms: at(ms.last()) }
    }
}

impl FunctionFigures {
    pub(super) fn new(plugin: &str, function: &'static str, series: &Series) -> FunctionFigures {
        let rounds = &series.rounds;
        let ratios = rounds
            .iter()
            .map(|round| microseconds(&round.fresh, 0.5) / microseconds(&round.baseline, 0.5));
        let cpu = sorted(rounds.iter().map(|round| round.cpu.as_secs_f64() * 1e6));
        let warm: Option<Vec<_>> = rounds.iter().map(|round| round.warm.as_ref()).collect();
        FunctionFigures {
            of: series.component_index,
            plugin: plugin.to_owned(),
            function,
            answer: series.status.clone(),
            runs: series.usage.runs,
            fresh: Latency::of(rounds.iter().map(|round| &round.fresh)),
            floor: Latency::of(rounds.iter().map(|round| &round.baseline)),
            warm: warm.map(|warm| Latency::of(warm.into_iter())),
            native: Latency::of(rounds.iter().map(|round| &round.native)),
            ratio: median(&sorted(ratios)),
            cpu_us: median(&cpu),
            peak_memory_kib: series.usage.peak_bytes >> 10,
            saturated: Saturated::of(series.concurrency, rounds),
        }
    }
}

impl Latency {
    fn of<'r>(rounds: impl Iterator<Item = &'r Latencies>) -> Latency {
        let (mut all, mut medians) = (latencies(), Vec::new());
        for round in rounds {
            medians.push(microseconds(round, 0.5));
            all += round;
        }
        let medians = sorted(medians.into_iter());
        Latency {
            p50_us: microseconds(&all, 0.5),
            p90_us: microseconds(&all, 0.9),
            p99_us: microseconds(&all, 0.99),
            p99_9_us: microseconds(&all, 0.999),
            max_us: all.max() as f64 / 1e3,
            least_p50_us: medians.first().copied().unwrap_or_default(),
            most_p50_us: medians.last().copied().unwrap_or_default(),
            curve: curve(&all),
        }
    }

    /// Returns whether each round was slower than all rounds of `other`.
    fn is_slower_than(&self, other: &Latency) -> bool {
        self.least_p50_us > other.most_p50_us
    }

    /// Returns the spread of the rounds' medians.
    pub fn noise_percent(&self) -> f64 {
        (self.most_p50_us - self.least_p50_us) / self.p50_us.max(f64::MIN_POSITIVE) * 100.0
    }
}

/// Returns the curve up to the percentile of a single call.
fn curve(all: &Latencies) -> Vec<(f64, f64)> {
    const STEPS_OF_A_NINE: u32 = 20;
    let most = (all.len().max(2) as f64).log10();
    let step = |n: u32| f64::from(n) / f64::from(STEPS_OF_A_NINE);
    let inner = (0..).map(step).take_while(|nines| *nines < most);
    let at = |nines: f64| (nines, microseconds(all, 1.0 - 10_f64.powf(-nines)));
    inner.map(at).chain([(most, microseconds(all, 1.0))]).collect()
}

impl Saturated {
    fn of(at_once: u32, rounds: &[Round]) -> Saturated {
        let rates = sorted(rounds.iter().map(|round| round.saturated.per_second()));
        let mut all = latencies();
        for round in rounds {
            all += &round.saturated.latencies;
        }
        Saturated {
            at_once,
            per_second: median(&rates),
            least_per_second: rates.first().copied().unwrap_or_default(),
            most_per_second: rates.last().copied().unwrap_or_default(),
            p50_us: microseconds(&all, 0.5),
            p99_us: microseconds(&all, 0.99),
        }
    }
}

fn microseconds(latencies: &Latencies, quantile: f64) -> f64 {
    latencies.value_at_quantile(quantile) as f64 / 1e3
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Expects sorted values.
fn median(values: &[f64]) -> f64 {
    values.get(values.len() / 2).copied().unwrap_or_default()
}

impl BenchReport {
    pub(super) fn new(
        machine: Machine,
        components: Vec<ComponentFigures>,
        functions: Vec<FunctionFigures>,
        effort: Effort,
    ) -> BenchReport {
        let iterations = effort.iterations;
        let (doubts, comparisons) = (find_doubts(&machine, &functions), comparisons(&functions));
        BenchReport {
            machine,
            iterations,
            rounds: ROUNDS,
            components,
            functions,
            comparisons,
            doubts,
        }
    }

    /// Returns the rows of each function, in order of first appearance.
    pub(super) fn by_function(&self) -> Vec<(&'static str, Vec<&FunctionFigures>)> {
        by_function(&self.functions)
    }
}

fn by_function(rows: &[FunctionFigures]) -> Vec<(&'static str, Vec<&FunctionFigures>)> {
    let mut functions: Vec<(&'static str, Vec<&FunctionFigures>)> = Vec::new();
    for row in rows {
        match functions.iter_mut().find(|(function, _)| *function == row.function) {
            Some((_, rows)) => rows.push(row),
            None => functions.push((row.function, vec![row])),
        }
    }
    functions
}

fn comparisons(rows: &[FunctionFigures]) -> Vec<BenchComparison> {
    let mut comparisons = Vec::new();
    for (function, mut rows) in by_function(rows) {
        rows.sort_by(|a, b| a.fresh.p50_us.total_cmp(&b.fresh.p50_us));
        let Some((quickest, others)) = rows.split_first() else { continue };
        comparisons.extend(others.iter().map(|row| BenchComparison {
            function,
            plugin: row.plugin.clone(),
            beside: quickest.plugin.clone(),
            times: row.fresh.p50_us / quickest.fresh.p50_us,
            beyond_noise: row.fresh.is_slower_than(&quickest.fresh),
        }));
    }
    comparisons
}

fn find_doubts(machine: &Machine, rows: &[FunctionFigures]) -> Vec<String> {
    let mut doubts = Vec::new();
    if !machine.optimised {
        let what = "this is a debug build, which is slower than production";
        doubts.push(what.to_owned());
    }
    if machine.load > machine.cores as f64 / 2.0 {
        doubts.push(format!(
            "other processes use this machine: its load was {:.1} on {} cores",
            machine.load, machine.cores
        ));
    }
    let noises = rows.iter().map(|row| row.fresh.noise_percent());
    let noisy = noises.clone().filter(|noise| *noise > MAX_SPREAD_PERCENT).count();
    if noisy > 0 {
        doubts.push(format!(
            "the rounds of {noisy} of {} measurements are more than {MAX_SPREAD_PERCENT} % apart, up to {:.0} %",
            rows.len(),
            noises.fold(0.0, f64::max)
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the latency of rounds with calls of this many microseconds.
    fn latency(rounds: &[u64]) -> Latency {
        let rounds: Vec<Latencies> = rounds
            .iter()
            .map(|us| {
                let mut round = latencies();
                round.record_n(us * 1_000, 1_000).unwrap();
                round
            })
            .collect();
        Latency::of(rounds.iter())
    }

    #[test]
    fn overlapping_rounds_are_not_a_difference() {
        let quick = latency(&[10, 11, 12]);
        for (slow, differs) in [([12, 13, 14], false), ([13, 14, 15], true), ([9, 20, 20], false)] {
            assert_eq!(latency(&slow).is_slower_than(&quick), differs, "{slow:?}");
        }
        assert!((quick.noise_percent() - 2.0 / 11.0 * 100.0).abs() < 1.0, "{quick:?}");
    }

    #[test]
    fn a_curve_ends_at_the_slowest_call() {
        let latency = latency(&[10, 11, 500]);
        let (nines, us) = *latency.curve.last().unwrap();
        assert!((nines - 3_000_f64.log10()).abs() < 1e-9 && us == latency.max_us, "{latency:?}");
        assert!(latency.curve.iter().is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    }
}
