//! Makes calls, sequentially or concurrently, and measures their latency.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use hdrhistogram::Histogram;

/// Latencies in nanoseconds.
pub type Latencies = Histogram<u64>;

pub fn latencies() -> Latencies {
    Histogram::new(3).expect("three significant digits are supported")
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

/// Makes at least `calls` calls by `concurrency` concurrent callers.
pub async fn batch<F: Future<Output = Result<(), String>> + Send>(
    calls: u32,
    concurrency: u32,
    call: impl Fn() -> F + Clone + Send + 'static,
) -> Result<Batch, String> {
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
