//! Cold starts, from a component's bytes to its first response, and memory of an idle component.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Subject, engine, machine};
use tollhouse_platform::{
    crypto::seal::{Sealer, new_master_key},
    random::Random,
};
use tollhouse_plugins::{Call, CodeCache, Limits};

/// Enough copies to make memory that the allocator retains negligible.
const IDLE_COPIES: usize = 16;

pub struct Cold {
    /// First responses, with compilation.
    pub compiled: Vec<Duration>,
    /// First responses, with machine code on disk.
    pub cached: Vec<Duration>,
    /// Memory of an installed, idle component; `None` if the system does not report it.
    pub idle_bytes: Option<usize>,
}

/// Measures cold starts, each in a new engine.
pub async fn measure(subject: &Subject, starts: u32) -> Result<Cold, String> {
    let folder =
        TempDir::new().map_err(|error| format!("a temporary folder cannot be created: {error}"))?;
    let uncached = Limits { code_cache: None, ..subject.limits.clone() };
    let random = Random::system();
    let sealer =
        Sealer::new(&new_master_key(&random), random).map_err(|error| error.to_string())?;
    let code = Some(CodeCache::new(folder.path().join("code"), sealer));
    let cached = Limits { code_cache: code, ..subject.limits.clone() };
    let mut cold = Cold { compiled: Vec::new(), cached: Vec::new(), idle_bytes: None };
    first_answer(subject, &cached).await?; // fills the cache
    for _ in 0..starts {
        cold.compiled.push(first_answer(subject, &uncached).await?);
        cold.cached.push(first_answer(subject, &cached).await?);
    }
    cold.idle_bytes = idle(subject, &cached).await?;
    Ok(cold)
}

async fn first_answer(subject: &Subject, limits: &Limits) -> Result<Duration, String> {
    let (plugins, wasm) = (engine(limits, &subject.script)?, subject.wasm.clone());
    let began = Instant::now();
    let plugin = plugins.try_out(wasm).await?;
    if let Some(call) = Call::examples(&plugin).first() {
        // A fault is as valid a response as any.
        let _ = plugin.make(&subject.credentials, call).await;
    }
    Ok(began.elapsed())
}

/// Returns the memory that one more component adds to this process.
async fn idle(subject: &Subject, limits: &Limits) -> Result<Option<usize>, String> {
    let plugins = engine(limits, &subject.script)?;
    let mut installed = vec![plugins.try_out(subject.wasm.clone()).await?];
    let before = machine::resident_bytes();
    for _ in 0..IDLE_COPIES {
        installed.push(plugins.try_out(subject.wasm.clone()).await?);
    }
    let after = machine::resident_bytes();
    Ok(before.zip(after).map(|(before, after)| after.saturating_sub(before) / IDLE_COPIES))
}
