//! Benchmarks of the host and of the baselines it is compared with.
//!
//! `cargo bench -p tollhouse` runs all, `cargo bench -p tollhouse -- plugins` those with `plugins`
//! in their name, and `cargo bench -p tollhouse -- --test` runs each once. docs/PERFORMANCE.md
//! explains the figures.

mod backlog;
mod database;
mod deliveries;
mod hostile;
mod http;
mod installed;
mod plugins;
mod routing;
mod store;
mod waiting;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use criterion::Criterion;
use futures::future::join_all;
use tokio::runtime::Runtime;
use tollhouse_platform::background::runtime;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SAMPLES: usize = 20;

fn main() {
    if waiting::run_as_upstream() {
        return;
    }
    let criterion = Criterion::default()
        .sample_size(SAMPLES)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let runtime = runtime::start().expect("a runtime");
    let mut bench = Bench { criterion, runtime, samples: BTreeMap::new(), ratios: Vec::new() };
    plugins::measure(&mut bench);
    installed::measure(&mut bench);
    waiting::measure(&mut bench);
    deliveries::measure(&bench);
    hostile::measure(&bench);
    store::measure(&mut bench);
    routing::measure(&mut bench);
    http::measure(&mut bench);
    backlog::measure(&mut bench);
    bench.criterion.final_summary();
    plugins::compare(&bench);
    http::compare(&bench);
}

/// Criterion and its samples. Ratios are taken within one run only.
struct Bench {
    criterion: Criterion,
    runtime: Runtime,
    /// Nanoseconds per iteration of each sample.
    samples: BTreeMap<String, Vec<f64>>,
    /// Ratios of alternating measurements.
    ratios: Vec<(String, f64)>,
}

impl Bench {
    /// Measures `run`, which does its work this many times and returns the time it took.
    fn measure(&mut self, name: &str, run: impl AsyncFn(u64) -> Duration) {
        let (runtime, seen) = (&self.runtime, self.samples.entry(name.to_owned()).or_default());
        self.criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let took = runtime.block_on(run(iterations));
                seen.push(took.as_nanos() as f64 / iterations as f64);
                took
            });
        });
    }

    /// Returns whether each benchmark runs only once, as criterion does under `cargo test`.
    fn runs_once(&self) -> bool {
        let given = |flag: &str| std::env::args().any(|argument| argument == flag);
        given("--test") || !given("--bench")
    }

    /// Returns whether the command line selects a benchmark, to skip expensive setup otherwise.
    fn is_selected(&self, name: &str) -> bool {
        let words: Vec<String> =
            std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
        words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Returns the median; `None` if the benchmark was filtered out or ran only once.
    fn median(&self, name: &str) -> Option<f64> {
        let mut samples = self.samples.get(name).filter(|seen| seen.len() >= SAMPLES)?.clone();
        samples.sort_by(f64::total_cmp);
        samples.get(samples.len() / 2).copied()
    }

    /// Prints the ratio of `name` to `base`, and both medians.
    fn print_ratio(&self, name: &str, base: &str) {
        if let (Some(time), Some(least)) = (self.median(name), self.median(base)) {
            let (ratio, us, base_us) = (time / least, time / 1e3, least / 1e3);
            println!("{name}: {us:.1} us, {ratio:.2} times {base} ({base_us:.1} us)");
        }
    }
}

/// Repeats the work sequentially.
async fn repeat(iterations: u64, work: impl AsyncFn()) -> Duration {
    let began = Instant::now();
    for _ in 0..iterations {
        work().await;
    }
    began.elapsed()
}

/// Divides the iterations among concurrent workers.
async fn divide<W, F>(
    iterations: u64,
    workers: impl ExactSizeIterator<Item = W>,
    work: impl Fn(W, u64) -> F,
) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let count = workers.len() as u64;
    let began = Instant::now();
    let tasks = (0..).zip(workers).map(|(n, worker)| {
        let own = iterations / count + u64::from(n < iterations % count);
        tokio::spawn(work(worker, own))
    });
    for done in join_all(tasks.collect::<Vec<_>>()).await {
        done.expect("no worker fails");
    }
    began.elapsed()
}
