//! Compares plugins: what a call costs through this host, beside the same component under wasmtime alone.
//!
//! Nothing leaves, and no database is asked: the upstream's answers are the examples in the plugin's manifest.

mod machine;
mod report;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::future::try_join_all;
use hdrhistogram::Histogram;

pub use self::report::Report;
use self::{
    machine::Machine,
    report::{PluginReport, Row},
};
use crate::{
    clock::Clock,
    egress::{Egress, Script},
    plugins::{
        Answering, Call, Callable, Credentials, Floor, Limits, Manifest, Plugins, Typed, Usage,
    },
    random::Random,
};

/// So many times each call is measured anew: what they differ by is the noise.
const ROUNDS: u32 = 5;
const SIGNIFICANT_DIGITS: u8 = 3;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Calls of each function, over all rounds.
    pub iterations: u32,
    /// Calls at once.
    pub concurrency: u32,
}

/// A component that is measured, with what its manifest gives for that.
pub struct Subject {
    pub plugin: Callable,
    pub credentials: Credentials,
    pub floor: Floor,
    /// Of the latest call.
    used: Arc<Mutex<Usage>>,
    component_bytes: usize,
    /// How long it took from bytes to a plugin that can be called.
    pub admission: Duration,
}

impl Subject {
    /// Admits the component into an engine of its own; `Err` says what is wrong with it.
    pub async fn load(wasm: Vec<u8>, limits: Limits) -> Result<Subject, String> {
        let manifest = Manifest::read(&wasm)?;
        let script: Arc<Script> = Arc::new(manifest.examples.script());
        let (egress, clock) = (Egress::scripted(script.clone()), Clock::system());
        let plugins = Plugins::new(limits, egress, clock, Random::system());
        let plugins = plugins.map_err(|error| format!("no engine: {error:#}"))?;
        let (component_bytes, began) = (wasm.len(), Instant::now());
        let plugin = plugins.try_out(wasm).await?;
        let admission = began.elapsed();
        let credentials = Credentials::example(plugin.manifest());
        let floor = Floor::new(&plugin, &credentials, script)?;
        let used = Arc::<Mutex<Usage>>::default();
        let latest = used.clone();
        let plugin = plugin.watched(Arc::new(move |usage| {
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = usage;
        }));
        Ok(Subject { plugin, credentials, floor, used, component_bytes, admission })
    }

    fn used(&self) -> Usage {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> PluginReport {
        PluginReport {
            plugin: self.plugin.label().to_owned(),
            component_kib: self.component_bytes >> 10,
            admission_ms: self.admission.as_millis(),
        }
    }
}

/// Measures every function of every subject, in rounds, so that what disturbs the machine disturbs all of them.
pub async fn compare(subjects: Vec<Subject>, effort: Effort) -> Result<Report, String> {
    let machine = Machine::this();
    let plugins = subjects.iter().map(Subject::report).collect();
    let mut series = Vec::new();
    for subject in subjects.into_iter().map(Arc::new) {
        for call in Call::examples(&subject.plugin) {
            series.push(Series::begin(subject.clone(), call).await?);
        }
    }
    let calls = effort.iterations.div_ceil(ROUNDS).max(1);
    for series in &mut series {
        series.round(calls, effort.concurrency).await?; // until everything is warm
        series.rounds.clear();
    }
    for _ in 0..ROUNDS {
        for series in &mut series {
            series.round(calls, effort.concurrency).await?;
        }
    }
    let rows = series.iter().map(Series::row).collect();
    Ok(Report::new(machine, plugins, rows, effort))
}

/// One function of one subject.
struct Series {
    measured: Arc<Measured>,
    /// `ok`, or what the plugin said instead.
    answer: String,
    used: Usage,
    rounds: Vec<Round>,
}

struct Measured {
    subject: Arc<Subject>,
    call: Call,
    typed: Typed,
}

struct Round {
    host: Histogram<u64>,
    floor: Histogram<u64>,
    host_cpu: Duration,
}

impl Series {
    async fn begin(subject: Arc<Subject>, call: Call) -> Result<Series, String> {
        let answer = subject.plugin.make(&subject.credentials, &call).await;
        let answer = answer.err().unwrap_or_else(|| "ok".to_owned());
        let used = subject.used();
        let measured = Measured { typed: Typed::from(&call), subject, call };
        Ok(Series { measured: Arc::new(measured), answer, used, rounds: Vec::new() })
    }

    async fn round(&mut self, calls: u32, concurrency: u32) -> Result<(), String> {
        let measured = self.measured.clone();
        let began = machine::cpu_time();
        let host = batch(calls, concurrency, move || {
            let measured = measured.clone();
            async move {
                let Measured { subject, call, .. } = &*measured;
                // A plugin's refusal is as good a call as any.
                let _ = subject.plugin.make(&subject.credentials, call).await;
                Ok(())
            }
        });
        let host = host.await?;
        let host_cpu = machine::cpu_time().saturating_sub(began);
        let measured = self.measured.clone();
        let floor = batch(calls, concurrency, move || {
            let measured = measured.clone();
            async move {
                let floor = &measured.subject.floor;
                let done = floor.call(&measured.typed, Answering::Replayed).await;
                done.map_err(|error| format!("{}: {error:#}", measured.call.function()))
            }
        });
        self.rounds.push(Round { host, floor: floor.await?, host_cpu });
        Ok(())
    }

    fn row(&self) -> Row {
        let Measured { subject, call, .. } = &*self.measured;
        Row::new(subject.plugin.label(), call.function(), &self.answer, self.used, &self.rounds)
    }
}

/// The latencies of so many calls, in nanoseconds.
async fn batch<C, F>(calls: u32, concurrency: u32, call: C) -> Result<Histogram<u64>, String>
where
    C: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = Result<(), String>> + Send,
{
    let each = calls.div_ceil(concurrency);
    let tasks = (0..concurrency).map(|_| {
        let call = call.clone();
        let task = tokio::spawn(async move {
            let mut latencies = histogram();
            for _ in 0..each {
                let began = Instant::now();
                call().await?;
                let took = began.elapsed().as_nanos() as u64;
                latencies.record(took).expect("the histogram grows with what is recorded");
            }
            Ok::<_, String>(latencies)
        });
        async { task.await.map_err(|error| error.to_string())? }
    });
    let mut all = histogram();
    for latencies in try_join_all(tasks).await? {
        all += latencies;
    }
    Ok(all)
}

fn histogram() -> Histogram<u64> {
    Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are among those that it can keep")
}
