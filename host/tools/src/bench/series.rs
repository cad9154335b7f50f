//! One function of one component, measured in rounds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Subject,
    load::{self, Batch, Latencies, batch, latencies, record},
    machine,
    report::Row,
};
use tollhouse_plugins::{Answering, Call, Native, Typed, Usage};

pub struct Series {
    /// Index of the subject.
    pub of: usize,
    measured: Arc<Measured>,
    /// `ok`, or a summary of the failure.
    pub answer: String,
    pub used: Usage,
    pub rounds: Vec<Round>,
    /// Concurrent calls that saturate the machine.
    pub at_once: u32,
}

struct Measured {
    subject: Arc<Subject>,
    call: Call,
    typed: Typed,
    native: Native,
}

pub struct Round {
    /// Through the host: a fresh instance per run.
    pub fresh: Latencies,
    /// CPU time per call.
    pub cpu: Duration,
    /// On a warm instance; `None` if the component fails on reuse.
    pub warm: Option<Latencies>,
    pub floor: Latencies,
    pub native: Latencies,
    pub saturated: Batch,
}

impl Series {
    pub async fn begin(of: usize, subject: Arc<Subject>, call: Call) -> Result<Series, String> {
        let answer = subject.plugin.make(&subject.credentials, &call).await;
        let answer = answer.err().unwrap_or_else(|| "ok".to_owned());
        let (used, typed) = (subject.used(), Typed::from(&call));
        let native = subject.floor.native(&typed).await;
        let native = native.map_err(|error| format!("{}: {error:#}", call.function()))?;
        let measured = Arc::new(Measured { subject, call, typed, native });
        Ok(Series { of, measured, answer, used, rounds: Vec::new(), at_once: 1 })
    }

    /// Fills caches and determines the saturating concurrency.
    pub async fn warm_up(&mut self, calls: u32) -> Result<(), String> {
        let cores = u32::try_from(machine::cores()).unwrap_or(u32::MAX);
        self.at_once = load::saturation(calls, cores, self.fresh()).await?;
        self.round(calls).await?;
        self.rounds.clear();
        Ok(())
    }

    pub async fn round(&mut self, calls: u32) -> Result<(), String> {
        let began = machine::cpu_time();
        let fresh = batch(calls, 1, self.fresh()).await?.latencies;
        let cpu = machine::cpu_time().saturating_sub(began);
        let cpu = cpu / u32::try_from(fresh.len()).unwrap_or(u32::MAX).max(1);
        let floor = batch(calls, 1, self.floor()).await?.latencies;
        let (warm, native) = (self.warm(calls).await, self.native(calls));
        let saturated = batch(calls.max(self.at_once * 4), self.at_once, self.fresh()).await?;
        self.rounds.push(Round { fresh, cpu, warm, floor, native, saturated });
        Ok(())
    }

    /// Returns the call as the host makes it in production.
    fn fresh(&self) -> impl Fn() -> Made + Clone + Send + 'static {
        let measured = self.measured.clone();
        move || {
            let measured = measured.clone();
            Box::pin(async move {
                let Measured { subject, call, .. } = &*measured;
                // A fault is as valid a call as any.
                let _ = subject.plugin.make(&subject.credentials, call).await;
                Ok(())
            })
        }
    }

    fn floor(&self) -> impl Fn() -> Made + Clone + Send + 'static {
        let measured = self.measured.clone();
        move || {
            let measured = measured.clone();
            Box::pin(async move {
                let floor = &measured.subject.floor;
                let done = floor.call(&measured.typed, Answering::Replayed).await;
                done.map_err(|error| format!("{}: {error:#}", measured.call.function()))
            })
        }
    }

    async fn warm(&self, calls: u32) -> Option<Latencies> {
        let Measured { subject, typed, .. } = &*self.measured;
        let mut instance = subject.floor.instance().await.ok()?;
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

    pub fn row(&self) -> Row {
        let Measured { subject, call, .. } = &*self.measured;
        Row::new(subject.plugin.label(), call.function(), self)
    }
}

type Made = futures::future::BoxFuture<'static, Result<(), String>>;
