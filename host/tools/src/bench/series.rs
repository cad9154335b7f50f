//! One function of one component, measured in rounds.

use super::{
    BenchSubject,
    load::{Batch, Latencies, batch, latencies, record},
    machine,
    report::{Figure, FunctionFigures, Latency, Saturated, microseconds, spread},
};
use crate::prelude::*;
use tollhouse_plugins::{NativeWorkload, ResponseMode};

/// Minimum gain in throughput of a doubling. A smaller one is noise.
const MIN_GAIN: f64 = 1.05;
/// Maximum concurrency per core. Calls here do not wait, so more would only queue.
const MAX_CONCURRENCY_PER_CORE: u32 = 32;

/// The measurements of one function of one component, from which [`FunctionFigures`] are made.
pub struct Series {
    /// Index of the subject.
    component_index: usize,
    measured: Arc<MeasuredCall>,
    status: String,
    usage: Usage,
    rounds: Vec<Round>,
    /// Concurrent calls that saturate the machine.
    concurrency: u32,
}

struct MeasuredCall {
    subject: Arc<BenchSubject>,
    call: Call,
    native: NativeWorkload,
}

impl MeasuredCall {
    /// Makes the call as the host makes it in production.
    async fn fresh(self: Arc<Self>) -> Result<(), String> {
        // A fault is as valid a call as any.
        let _ = self.subject.plugin.execute_for_status(&self.subject.credentials, &self.call).await;
        Ok(())
    }

    async fn baseline(self: Arc<Self>) -> Result<(), String> {
        let done = self.subject.baseline.call(&self.call, ResponseMode::Reexecute).await;
        done.map_err(|error| format!("{}: {error:#}", self.call.function()))
    }
}

/// The measurements of one round, for the fields of [`FunctionFigures`].
struct Round {
    fresh: Latencies,
    /// CPU time per call.
    cpu: Duration,
    warm: Option<Latencies>,
    baseline: Latencies,
    native: Latencies,
    saturated: Batch,
}

impl Series {
    pub async fn begin(
        component_index: usize,
        subject: Arc<BenchSubject>,
        call: Call,
    ) -> Result<Series, String> {
        let status = subject.plugin.execute_for_status(&subject.credentials, &call).await;
        let status = status.err().unwrap_or_else(|| "ok".to_owned());
        let usage = *subject.usage.borrow();
        let native = subject.baseline.native_workload(&call).await;
        let native = native.map_err(|error| format!("{}: {error:#}", call.function()))?;
        let measured = Arc::new(MeasuredCall { subject, call, native });
        let (rounds, concurrency) = (Vec::new(), 1);
        Ok(Series { component_index, measured, status, usage, rounds, concurrency })
    }

    /// Fills caches and determines the saturating concurrency: doubled from twice the cores while
    /// throughput grows.
    pub async fn warm_up(&mut self, calls: u32) -> Result<(), String> {
        let cores = u32::try_from(machine::cores()).unwrap_or(u32::MAX);
        let fresh = self.repeat(MeasuredCall::fresh);
        self.concurrency = cores * 2;
        let mut best_rate = batch(calls, self.concurrency, fresh.clone()).await?.per_second();
        while self.concurrency < cores * MAX_CONCURRENCY_PER_CORE {
            let doubled = batch(calls, self.concurrency * 2, fresh.clone()).await?.per_second();
            if doubled < best_rate * MIN_GAIN {
                break;
            }
            (self.concurrency, best_rate) = (self.concurrency * 2, doubled);
        }
        self.round(calls).await?;
        self.rounds.clear();
        Ok(())
    }

    pub async fn round(&mut self, calls: u32) -> Result<(), String> {
        let call = self.repeat(MeasuredCall::fresh);
        let began = machine::cpu_time();
        let fresh = batch(calls, 1, call.clone()).await?.latencies;
        let cpu = machine::cpu_time().saturating_sub(began);
        let cpu = cpu / u32::try_from(fresh.len()).unwrap_or(u32::MAX).max(1);
        let baseline = batch(calls, 1, self.repeat(MeasuredCall::baseline)).await?.latencies;
        let (warm, native) = (self.warm(calls).await, self.native(calls));
        let saturated = batch(calls.max(self.concurrency * 4), self.concurrency, call).await?;
        self.rounds.push(Round { fresh, cpu, warm, baseline, native, saturated });
        Ok(())
    }

    /// Returns a function that repeats a kind of call.
    fn repeat<F>(
        &self,
        call: impl Fn(Arc<MeasuredCall>) -> F + Clone + Send + 'static,
    ) -> impl Fn() -> F + Clone + Send + 'static {
        let measured = self.measured.clone();
        move || call(measured.clone())
    }

    async fn warm(&self, calls: u32) -> Option<Latencies> {
        let MeasuredCall { subject, call, .. } = &*self.measured;
        let mut instance = subject.baseline.warm_instance().await.ok()?;
        let mut latencies = latencies();
        for _ in 0..calls {
            let began = Instant::now();
            instance.call(call).await.ok()?;
            record(&mut latencies, began.elapsed());
        }
        Some(latencies)
    }

    fn native(&self, calls: u32) -> Latencies {
        let mut latencies = latencies();
        for _ in 0..calls {
            let began = Instant::now();
            self.measured.native.run();
            record(&mut latencies, began.elapsed());
        }
        latencies
    }

    pub fn figures(&self) -> FunctionFigures {
        let MeasuredCall { subject, call, .. } = &*self.measured;
        let rounds = || self.rounds.iter();
        let warm: Option<Vec<_>> = rounds().map(|round| round.warm.as_ref()).collect();
        let ratios = rounds()
            .map(|round| microseconds(&round.fresh, 0.5) / microseconds(&round.baseline, 0.5));
        let [_, ratio, _] = spread(ratios);
        let [_, cpu_us, _] = spread(rounds().map(|round| round.cpu.as_secs_f64() * 1e6));
        FunctionFigures {
            of: self.component_index,
            plugin: subject.plugin.label().to_owned(),
            function: call.function(),
            answer: self.status.clone(),
            runs: self.usage.runs,
            fresh: Latency::of(rounds().map(|round| &round.fresh)),
            baseline: Latency::of(rounds().map(|round| &round.baseline)),
            warm: warm.map(|warm| Latency::of(warm.into_iter())),
            native: Latency::of(rounds().map(|round| &round.native)),
            ratio,
            cpu_us: Figure(cpu_us),
            peak_memory_kib: self.usage.peak_bytes >> 10,
            saturated: Saturated::of(self.concurrency, rounds().map(|round| &round.saturated)),
        }
    }
}
