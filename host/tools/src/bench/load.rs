//! Makes calls, sequentially or concurrently, and measures their latency.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use hdrhistogram::Histogram;

const SIGNIFICANT_DIGITS: u8 = 3;
/// Minimum gain in throughput of a doubling. A smaller one is noise.
const MIN_GAIN: f64 = 1.05;
/// Maximum concurrency per core. Calls here do not wait, so more would only queue.
const MAX_CONCURRENCY_PER_CORE: u32 = 32;

/// Latencies in nanoseconds.
pub type Latencies = Histogram<u64>;

pub fn latencies() -> Latencies {
    Histogram::new(SIGNIFICANT_DIGITS).expect("three significant digits are supported")
}

pub fn record(latencies: &mut Latencies, took: Duration) {
    let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    latencies.record(took).expect("the histogram resizes itself");
}

/// The measurements of several calls.
pub struct Batch {
    pub latencies: Latencies,
    /// Time for all calls together.
    pub took: Duration,
}

impl Batch {
    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }
}

/// Makes at least `calls` calls by `at_once` concurrent callers.
pub async fn batch<C, F>(calls: u32, concurrency: u32, call: C) -> Result<Batch, String>
where
    C: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = Result<(), String>> + Send,
{
    let each = calls.div_ceil(concurrency);
    let began = Instant::now();
    let tasks = (0..concurrency).map(|_| {
        let call = call.clone();
        let task = tokio::spawn(async move {
            let mut latencies = latencies();
            for _ in 0..each {
                let began = Instant::now();
                call().await?;
                record(&mut latencies, began.elapsed());
            }
            Ok::<_, String>(latencies)
        });
        async { task.await.map_err(|error| error.to_string())? }
    });
    let all = try_join_all(tasks).await?;
    let took = began.elapsed();
    let mut latencies = latencies();
    for one in all {
        latencies += one;
    }
    Ok(Batch { latencies, took })
}

/// Returns the saturating concurrency: doubled from twice the cores while throughput grows.
pub async fn saturating_concurrency<C, F>(calls: u32, cores: u32, call: C) -> Result<u32, String>
where
    C: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = Result<(), String>> + Send,
{
    let mut concurrency = cores * 2;
    let mut best_rate = batch(calls, concurrency, call.clone()).await?.per_second();
    while concurrency < cores * MAX_CONCURRENCY_PER_CORE {
        let doubled = batch(calls, concurrency * 2, call.clone()).await?.per_second();
        if doubled < best_rate * MIN_GAIN {
            break;
        }
        (concurrency, best_rate) = (concurrency * 2, doubled);
    }
    Ok(concurrency)
}
