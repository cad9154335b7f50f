//! Compiles components and caches machine code on disk, by digest and engine.

mod child;
mod code_cache;

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::Mutex;
use wasmtime::{Engine, component::Component};

pub use self::{
    child::{Compiler, compile_as_child},
    code_cache::{CodeCache, fault},
};
use super::engine::Limits;

/// Version of the file format. Files of other versions are not read.
const FORMAT: u32 = 2;

/// Returns cached machine code of this engine, else compiles `wasm` when `turn` is free.
pub async fn component(
    engine: &Engine,
    limits: &Limits,
    turn: &Mutex<()>,
    digest: &str,
    wasm: &[u8],
) -> Result<Component, String> {
    let cache = limits.code_cache.as_ref().filter(|cache| cache.is_usable());
    let name = file_name(engine, digest);
    if let Some(cache) = cache
        && let Some(component) = load(engine, cache, &name).await
    {
        return Ok(component);
    }
    let code = {
        let _turn = turn.lock().await;
        limits.compiler.compile(engine, limits, wasm).await?
    };
    if let Some(cache) = cache {
        cache.keep(&name, &code);
    }
    component_of(engine, &code)
}

fn file_name(engine: &Engine, digest: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (FORMAT, engine.precompile_compatibility_hash()).hash(&mut hasher);
    format!("{digest}-{:016x}.cwasm", hasher.finish())
}

/// Reads and verifies cached code on a blocking thread.
async fn load(engine: &Engine, cache: &CodeCache, name: &str) -> Option<Component> {
    let (engine, cache, name) = (engine.clone(), cache.clone(), name.to_owned());
    let work = tokio::task::spawn_blocking(move || {
        let component = component_of(&engine, &cache.read(&name)?);
        component.inspect_err(|reason| cache.say_unused(&name, reason)).ok()
    });
    work.await.ok().flatten()
}

#[expect(unsafe_code, reason = "the code was made by this program, or by a child of it")]
fn component_of(engine: &Engine, code: &[u8]) -> Result<Component, String> {
    // SAFETY: this program's compiler has just made the code, or the cache has verified its MAC.
    let component = unsafe { Component::deserialize(engine, code) };
    component.map_err(|error| format!("the compiled component cannot be used: {error:#}"))
}
