//! Cold starts, from a component's bytes to its first response, and memory of an idle component.

use tempfile::TempDir;

use super::{
    BenchSubject, engine,
    report::{ComponentFigures, Spread},
};
use crate::prelude::*;
use tollhouse_platform::{
    crypto::seal::{Sealer, new_master_key},
    telemetry::resident_bytes,
};
use tollhouse_plugins::CodeCache;

/// Enough copies to make memory that the allocator retains negligible.
const IDLE_COPIES: usize = 16;

/// Measures cold starts, each in a new engine.
pub async fn measure(subject: &BenchSubject, starts: u32) -> Result<ComponentFigures, String> {
    let folder =
        TempDir::new().map_err(|error| format!("a temporary folder cannot be created: {error}"))?;
    let uncached = Limits { code_cache: None, ..subject.limits.clone() };
    let random = Random::system();
    let sealer =
        Sealer::new(&new_master_key(&random), random).map_err(|error| error.to_string())?;
    let code = Some(CodeCache::new(folder.path().join("code"), sealer));
    let cached = Limits { code_cache: code, ..subject.limits.clone() };
    time_first_response(subject, &cached).await?; // fills the cache
    let (mut cold_compiled, mut cold_cached) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        cold_compiled.push(time_first_response(subject, &uncached).await?);
        cold_cached.push(time_first_response(subject, &cached).await?);
    }
    let idle_bytes = measure_idle_memory(subject, &cached).await?;
    Ok(ComponentFigures {
        plugin: subject.plugin.label().to_owned(),
        size_kib: subject.wasm.len() >> 10,
        cold_compiled: Spread::of(&cold_compiled),
        cold_cached: Spread::of(&cold_cached),
        idle_kib: idle_bytes.map(|bytes| bytes >> 10),
    })
}

async fn time_first_response(subject: &BenchSubject, limits: &Limits) -> Result<Duration, String> {
    let (plugins, wasm) = (engine(limits, &subject.script)?, subject.wasm.clone());
    let began = Instant::now();
    let plugin = plugins.admit_without_install(wasm).await?;
    if let Some(call) = Call::examples(&plugin).first() {
        // A fault is as valid a response as any.
        let _ = plugin.execute_for_status(&subject.credentials, call).await;
    }
    Ok(began.elapsed())
}

/// Returns the memory that one more component adds to this process.
async fn measure_idle_memory(
    subject: &BenchSubject,
    limits: &Limits,
) -> Result<Option<usize>, String> {
    let plugins = engine(limits, &subject.script)?;
    let mut installed = vec![plugins.admit_without_install(subject.wasm.clone()).await?];
    let before = resident_bytes();
    for _ in 0..IDLE_COPIES {
        installed.push(plugins.admit_without_install(subject.wasm.clone()).await?);
    }
    let after = resident_bytes();
    Ok(before.zip(after).map(|(before, after)| after.saturating_sub(before) / IDLE_COPIES))
}
