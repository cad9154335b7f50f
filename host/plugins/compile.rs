//! Machine code of components, kept on disk by digest and engine.

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

/// Of what a file of the cache consists: another number, and files of earlier releases are not read.
const FORMAT: u32 = 2;

/// Compiles `wasm` when it is its turn, or takes what this engine has compiled before.
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

/// What the cache holds, read and checked beside the requests.
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
    // SAFETY: what the compiler of this program made of a component: a moment ago, or as the cache has verified.
    let component = unsafe { Component::deserialize(engine, code) };
    component.map_err(|error| format!("the compiled component cannot be used: {error:#}"))
}
