//! The measured figures. `text` writes them for a terminal, `page` for a browser, serde as JSON.

use super::{
    load::{Batch, Latencies, latencies},
    machine::Machine,
};
use crate::prelude::*;

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

/// A measured value, shown with three significant digits.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figure(pub f64);

impl From<&Figure> for f64 {
    fn from(figure: &Figure) -> f64 {
        figure.0
    }
}

/// The range and median of a few measurements.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    pub least_ms: Figure,
    pub median_ms: Figure,
    pub most_ms: Figure,
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
    pub baseline: Latency,
    /// On a warm instance under wasmtime alone; `None` if the component fails on reuse.
    pub warm: Option<Latency>,
    /// The call's host functions in native code, without the plugin's logic.
    pub native: Latency,
    /// Ratio of the medians of fresh and baseline, as the median of all rounds.
    pub ratio: f64,
    /// CPU time of this process per fresh call.
    pub cpu_us: Figure,
    pub peak_memory_kib: usize,
    pub saturated: Saturated,
}

#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    pub p50_us: Figure,
    pub p90_us: Figure,
    pub p99_us: Figure,
    pub p99_9_us: Figure,
    pub max_us: Figure,
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
    pub per_second: Figure,
    /// Throughput of the slowest and of the fastest round.
    pub least_per_second: f64,
    pub most_per_second: f64,
    pub p50_us: Figure,
    pub p99_us: Figure,
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

impl Spread {
    pub fn of(took: &[Duration]) -> Spread {
        let took = spread(took.iter().map(|took| took.as_secs_f64() * 1e3));
        let [least_ms, median_ms, most_ms] = took.map(Figure);
        Spread { least_ms, median_ms, most_ms }
    }
}

impl Latency {
    pub fn of<'r>(rounds: impl Iterator<Item = &'r Latencies>) -> Latency {
        let (mut all, mut medians) = (latencies(), Vec::new());
        for round in rounds {
            medians.push(microseconds(round, 0.5));
            all += round;
        }
        let [least_p50_us, _, most_p50_us] = spread(medians.into_iter());
        let at = |quantile| Figure(microseconds(&all, quantile));
        Latency {
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: Figure(all.max() as f64 / 1e3),
            least_p50_us,
            most_p50_us,
            curve: curve(&all),
        }
    }

    /// Returns whether each round was slower than all rounds of `other`.
    fn is_slower_than(&self, other: &Latency) -> bool {
        self.least_p50_us > other.most_p50_us
    }

    /// Returns the spread of the rounds' medians.
    pub fn noise_percent(&self) -> f64 {
        (self.most_p50_us - self.least_p50_us) / self.p50_us.0.max(f64::MIN_POSITIVE) * 100.0
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
    pub fn of<'r>(at_once: u32, rounds: impl Iterator<Item = &'r Batch> + Clone) -> Saturated {
        let rates = spread(rounds.clone().map(Batch::per_second));
        let [least_per_second, per_second, most_per_second] = rates;
        let Latency { p50_us, p99_us, .. } = Latency::of(rounds.map(|round| &round.latencies));
        Saturated {
            at_once,
            per_second: Figure(per_second),
            least_per_second,
            most_per_second,
            p50_us,
            p99_us,
        }
    }
}

pub fn microseconds(latencies: &Latencies, quantile: f64) -> f64 {
    latencies.value_at_quantile(quantile) as f64 / 1e3
}

/// Returns the least value, the median and the largest value, or zeros.
pub fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let places = [0, values.len() / 2, values.len().saturating_sub(1)];
    places.map(|place| values.get(place).copied().unwrap_or_default())
}

/// Returns the rows of each function, in order of first appearance.
pub fn by_function(rows: &[FunctionFigures]) -> Vec<(&'static str, Vec<&FunctionFigures>)> {
    let mut functions: Vec<(&'static str, Vec<&FunctionFigures>)> = Vec::new();
    for row in rows {
        match functions.iter_mut().find(|(function, _)| *function == row.function) {
            Some((_, rows)) => rows.push(row),
            None => functions.push((row.function, vec![row])),
        }
    }
    functions
}

pub fn comparisons(rows: &[FunctionFigures]) -> Vec<BenchComparison> {
    let mut comparisons = Vec::new();
    for (function, mut rows) in by_function(rows) {
        rows.sort_by(|a, b| a.fresh.p50_us.0.total_cmp(&b.fresh.p50_us.0));
        let Some((quickest, others)) = rows.split_first() else { continue };
        comparisons.extend(others.iter().map(|row| BenchComparison {
            function,
            plugin: row.plugin.clone(),
            beside: quickest.plugin.clone(),
            times: row.fresh.p50_us.0 / quickest.fresh.p50_us.0,
            beyond_noise: row.fresh.is_slower_than(&quickest.fresh),
        }));
    }
    comparisons
}

pub fn find_doubts(machine: &Machine, rows: &[FunctionFigures]) -> Vec<String> {
    let mut doubts = Vec::new();
    if !machine.optimised {
        doubts.push("this is a debug build, which is slower than production".to_owned());
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
        let round = |us: &u64| {
            let mut round = latencies();
            round.record_n(us * 1_000, 1_000).unwrap();
            round
        };
        Latency::of(rounds.iter().map(round).collect::<Vec<_>>().iter())
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
        assert!((nines - 3_000_f64.log10()).abs() < 1e-9 && us == latency.max_us.0, "{latency:?}");
        assert!(latency.curve.iter().is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    }
}
