//! One function of one component, measured in rounds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    BenchSubject,
    load::{self, Batch, Latencies, batch, latencies, record},
    machine,
    report::FunctionFigures,
};
use tollhouse_plugins::{Call, ContractCall, NativeWorkload, ResponseMode, Usage};

pub struct Series {
    /// Index of the subject.
    pub component_index: usize,
    measured: Arc<MeasuredCall>,
    /// `ok`, or a summary of the failure.
    pub status: String,
    pub usage: Usage,
    pub rounds: Vec<Round>,
    /// Concurrent calls that saturate the machine.
    pub concurrency: u32,
}

struct MeasuredCall {
    subject: Arc<BenchSubject>,
    call: Call,
    typed: ContractCall,
    native: NativeWorkload,
}

pub struct Round {
    /// Through the host: a fresh instance per run.
    pub fresh: Latencies,
    /// CPU time per call.
    pub cpu: Duration,
    /// On a warm instance; `None` if the component fails on reuse.
    pub warm: Option<Latencies>,
    pub baseline: Latencies,
    pub native: Latencies,
    pub saturated: Batch,
}

impl Series {
    pub async fn begin(
        component_index: usize,
        subject: Arc<BenchSubject>,
        call: Call,
    ) -> Result<Series, String> {
        let answer = subject.plugin.execute_for_status(&subject.credentials, &call).await;
        let answer = answer.err().unwrap_or_else(|| "ok".to_owned());
        let (used, typed) = (subject.used(), ContractCall::from(&call));
        let native = subject.baseline.native_workload(&typed).await;
        let native = native.map_err(|error| format!("{}: {error:#}", call.function()))?;
        let measured = Arc::new(MeasuredCall { subject, call, typed, native });
        Ok(Series {
            component_index,
            measured,
            status: answer,
            usage: used,
            rounds: Vec::new(),
            concurrency: 1,
        })
    }

    /// Fills caches and determines the saturating concurrency.
    pub async fn warm_up(&mut self, calls: u32) -> Result<(), String> {
        let cores = u32::try_from(machine::cores()).unwrap_or(u32::MAX);
        self.concurrency = load::saturating_concurrency(calls, cores, self.fresh()).await?;
        self.round(calls).await?;
        self.rounds.clear();
        Ok(())
    }

    pub async fn round(&mut self, calls: u32) -> Result<(), String> {
        let began = machine::cpu_time();
        let fresh = batch(calls, 1, self.fresh()).await?.latencies;
        let cpu = machine::cpu_time().saturating_sub(began);
        let cpu = cpu / u32::try_from(fresh.len()).unwrap_or(u32::MAX).max(1);
        let floor = batch(calls, 1, self.baseline()).await?.latencies;
        let (warm, native) = (self.warm(calls).await, self.native(calls));
        let saturated =
            batch(calls.max(self.concurrency * 4), self.concurrency, self.fresh()).await?;
        self.rounds.push(Round { fresh, cpu, warm, baseline: floor, native, saturated });
        Ok(())
    }

    /// Returns the call as the host makes it in production.
    fn fresh(&self) -> impl Fn() -> CallFuture + Clone + Send + 'static {
        let measured = self.measured.clone();
        move || {
            let measured = measured.clone();
            Box::pin(async move {
                let MeasuredCall { subject, call, .. } = &*measured;
                // A fault is as valid a call as any.
                let _ = subject.plugin.execute_for_status(&subject.credentials, call).await;
                Ok(())
            })
        }
    }

    fn baseline(&self) -> impl Fn() -> CallFuture + Clone + Send + 'static {
        let measured = self.measured.clone();
        move || {
            let measured = measured.clone();
            Box::pin(async move {
                let floor = &measured.subject.baseline;
                let done = floor.call(&measured.typed, ResponseMode::Reexecute).await;
                done.map_err(|error| format!("{}: {error:#}", measured.call.function()))
            })
        }
    }

    async fn warm(&self, calls: u32) -> Option<Latencies> {
        let MeasuredCall { subject, typed, .. } = &*self.measured;
        let mut instance = subject.baseline.warm_instance().await.ok()?;
        let mut latencies = latencies();
        for _ in 0..calls {
            let began = Instant::now();
            instance.call(typed).await.ok()?;
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

    pub fn row(&self) -> FunctionFigures {
        let MeasuredCall { subject, call, .. } = &*self.measured;
        FunctionFigures::new(subject.plugin.label(), call.function(), self)
    }
}

type CallFuture = futures::future::BoxFuture<'static, Result<(), String>>;
