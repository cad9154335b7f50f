//! `tollhouse plugin bench`: measures calls through the host, under wasmtime alone, and natively.

mod cold;
mod load;
mod machine;
mod page;
mod plot;
mod report;
mod series;
mod text;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use self::{machine::Machine, report::ComponentFigures, series::Series};
pub use self::{machine::resident_bytes, report::BenchReport};
use tollhouse_platform::{
    clock::Clock,
    outbound::egress::{Egress, Script},
    random::Random,
};
use tollhouse_plugins::{
    Baseline, Call, Credentials, Limits, Manifest, PluginHandle, Plugins, Usage,
};

/// Number of measurements of each call. Their spread is the noise.
const ROUNDS: u32 = 5;

/// The extent of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Calls of each function, over all rounds.
    pub iterations: u32,
    /// Cold starts of each component with an empty cache, and as many with a full one.
    pub cold_starts: u32,
}

/// A component under measurement, with the examples of its manifest.
pub struct BenchSubject {
    pub plugin: PluginHandle,
    pub credentials: Credentials,
    pub baseline: Baseline,
    wasm: Vec<u8>,
    limits: Limits,
    script: Arc<Script>,
    /// Usage of the latest call.
    used: Arc<Mutex<Usage>>,
    /// Time from bytes to a callable plugin.
    pub admission: Duration,
}

impl BenchSubject {
    /// Admits the component into a new engine. `Err` is the reason against it.
    pub async fn load(wasm: Vec<u8>, limits: Limits) -> Result<BenchSubject, String> {
        let manifest = Manifest::read(&wasm)?;
        let script: Arc<Script> = Arc::new(manifest.examples.script());
        let plugins = engine(&limits, &script)?;
        let (kept, began) = (wasm.clone(), Instant::now());
        let plugin = plugins.admit_without_install(wasm).await?;
        let admission = began.elapsed();
        let credentials = Credentials::example(plugin.manifest());
        let floor = Baseline::new(&plugin, &credentials, script.clone())?;
        let used = Arc::<Mutex<Usage>>::default();
        let latest = used.clone();
        let plugin = plugin.with_observer(Arc::new(move |usage| {
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = usage;
        }));
        Ok(BenchSubject {
            plugin,
            credentials,
            baseline: floor,
            wasm: kept,
            limits,
            script,
            used,
            admission,
        })
    }

    fn used(&self) -> Usage {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates an engine that has loaded nothing. The script answers its requests.
fn engine(limits: &Limits, script: &Arc<Script>) -> Result<Plugins, String> {
    let (egress, clock) = (Egress::scripted(script.clone()), Clock::system());
    let plugins = Plugins::new(limits.clone(), egress, clock, Random::system());
    plugins.map_err(|error| format!("the engine cannot be created: {error:#}"))
}

/// Measures every function of every subject, in rounds, so that disturbances affect all of them.
pub async fn compare(subjects: Vec<BenchSubject>, effort: Effort) -> Result<BenchReport, String> {
    let machine = Machine::current();
    let (mut components, mut series) = (Vec::new(), Vec::new());
    for subject in &subjects {
        let cold = cold::measure(subject, effort.cold_starts).await?;
        components.push(ComponentFigures::new(subject.plugin.label(), subject.wasm.len(), &cold));
    }
    for (n, subject) in subjects.into_iter().map(Arc::new).enumerate() {
        for call in Call::examples(&subject.plugin) {
            series.push(Series::begin(n, subject.clone(), call).await?);
        }
    }
    let calls = effort.iterations.div_ceil(ROUNDS).max(1);
    for series in &mut series {
        series.warm_up(calls).await?;
    }
    for _ in 0..ROUNDS {
        for series in &mut series {
            series.round(calls).await?;
        }
    }
    let rows = series.iter().map(Series::row).collect();
    Ok(BenchReport::new(machine, components, rows, effort))
}
