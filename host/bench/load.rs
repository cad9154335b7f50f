//! Makes calls, one after the other or many at once, and notes how long each took.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use hdrhistogram::Histogram;

const SIGNIFICANT_DIGITS: u8 = 3;
/// A doubling that adds less is within the noise.
const LEAST_GAIN: f64 = 1.05;
/// Times the cores. Nothing here waits, so that more at once only queue.
const MOST_AT_ONCE: u32 = 32;

/// In nanoseconds.
pub type Latencies = Histogram<u64>;

pub fn latencies() -> Latencies {
    Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are among those that it can keep")
}

pub fn record(latencies: &mut Latencies, took: Duration) {
    let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    latencies.record(took).expect("the histogram grows with what is recorded");
}

/// So many calls.
pub struct Batch {
    pub latencies: Latencies,
    /// All of them.
    pub took: Duration,
}

impl Batch {
    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }
}

/// At least so many calls, by so many callers.
pub async fn batch<C, F>(calls: u32, at_once: u32, call: C) -> Result<Batch, String>
where
    C: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = Result<(), String>> + Send,
{
    let each = calls.div_ceil(at_once);
    let began = Instant::now();
    let tasks = (0..at_once).map(|_| {
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

/// How many calls at once this machine makes the most of: doubled, from twice its cores, until that adds no throughput.
pub async fn saturation<C, F>(calls: u32, cores: u32, call: C) -> Result<u32, String>
where
    C: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = Result<(), String>> + Send,
{
    let mut at_once = cores * 2;
    let mut most = batch(calls, at_once, call.clone()).await?.per_second();
    while at_once < cores * MOST_AT_ONCE {
        let doubled = batch(calls, at_once * 2, call.clone()).await?.per_second();
        if doubled < most * LEAST_GAIN {
            break;
        }
        (at_once, most) = (at_once * 2, doubled);
    }
    Ok(at_once)
}
