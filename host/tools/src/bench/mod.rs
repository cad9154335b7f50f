//! `tollhouse plugin bench`: measures calls through the host, under wasmtime alone, and natively.

mod cold;
mod load;
mod machine;
mod page;
mod plot;
mod report;
mod series;
mod text;

pub use self::report::BenchReport;
use self::{machine::Machine, report::FunctionFigures, series::Series};
use crate::prelude::*;
use tollhouse_platform::outbound::egress::Script;
use tollhouse_plugins::{Baseline, Plugins};

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
    usage: watch::Receiver<Usage>,
    /// Time from bytes to a callable plugin.
    pub admission: Duration,
}

impl BenchSubject {
    /// Admits the component into a new engine. `Err` is the reason against it.
    pub async fn load(wasm: Vec<u8>, limits: Limits) -> Result<BenchSubject, String> {
        let manifest = Manifest::read(&wasm)?;
        let script: Arc<Script> = Arc::new(manifest.examples.script());
        let plugins = engine(&limits, &script)?;
        let (copy, began) = (wasm.clone(), Instant::now());
        let plugin = plugins.admit_without_install(copy).await?;
        let admission = began.elapsed();
        let credentials = Credentials::example(plugin.manifest());
        let baseline = Baseline::new(&plugin, &credentials, script.clone())?;
        let (plugin, usage) = watch_usage(plugin);
        Ok(BenchSubject { plugin, credentials, baseline, wasm, limits, script, usage, admission })
    }
}

/// Creates an engine that has loaded nothing. The script responds to its requests.
fn engine(limits: &Limits, script: &Arc<Script>) -> Result<Plugins, String> {
    let egress = Egress::scripted(script.clone());
    crate::engine(limits.clone(), egress, Clock::system(), Random::system())
}

/// Measures every function of every subject, in rounds, so that disturbances affect all of them.
pub async fn compare(subjects: Vec<BenchSubject>, effort: Effort) -> Result<BenchReport, String> {
    let machine = Machine::current();
    let (mut components, mut series) = (Vec::new(), Vec::new());
    for subject in &subjects {
        components.push(cold::measure(subject, effort.cold_starts).await?);
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
    let functions: Vec<FunctionFigures> = series.iter().map(Series::figures).collect();
    Ok(BenchReport {
        iterations: effort.iterations,
        rounds: ROUNDS,
        comparisons: report::comparisons(&functions),
        doubts: report::find_doubts(&machine, &functions),
        machine,
        components,
        functions,
    })
}
