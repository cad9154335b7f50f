//! Machine code of components, kept on disk by digest and engine.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use wasmtime::{Engine, component::Component};

/// Compiles `wasm`, or takes what this engine has compiled before.
///
/// The cache holds machine code that is trusted as much as this program: its folder is made for this user alone.
pub fn component(
    engine: &Engine,
    cache: Option<&Path>,
    digest: &str,
    wasm: &[u8],
) -> Result<Component, String> {
    let file = cache.map(|folder| folder.join(file_name(engine, digest)));
    if let Some(component) = file.as_deref().and_then(|file| load(engine, file)) {
        return Ok(component);
    }
    let compiled = Component::new(engine, wasm)
        .map_err(|error| format!("the component does not compile: {error:#}"))?;
    let Some(file) = file else { return Ok(compiled) };
    match keep(&compiled, &file) {
        // From a mapped file: its memory images are shared between instances.
        Ok(()) => Ok(load(engine, &file).unwrap_or(compiled)),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "a compiled component was not kept");
            Ok(compiled)
        }
    }
}

fn file_name(engine: &Engine, digest: &str) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{digest}-{:016x}.cwasm", hasher.finish())
}

#[expect(unsafe_code, reason = "the file was written by this program into a folder of its own")]
fn load(engine: &Engine, file: &Path) -> Option<Component> {
    if !file.exists() {
        return None;
    }
    // SAFETY: only `keep` writes here, whole files under the digest of what they were made from.
    let loaded = unsafe { Component::deserialize_file(engine, file) };
    loaded
        .inspect_err(|error| tracing::warn!(file = %file.display(), %error, "compiling anew"))
        .ok()
}

fn keep(component: &Component, file: &Path) -> Result<(), String> {
    let code = component.serialize().map_err(|error| error.to_string())?;
    let folder = file.parent().unwrap_or(Path::new("."));
    make_private(folder).map_err(|error| error.to_string())?;
    let unfinished: PathBuf = file.with_extension(format!("{}.part", std::process::id()));
    fs::write(&unfinished, code).map_err(|error| error.to_string())?;
    fs::rename(&unfinished, file).map_err(|error| error.to_string())
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}
