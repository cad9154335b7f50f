//! Machine code of components, kept on disk by digest and engine.

mod child;

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    path::{Path, PathBuf},
};

use tokio::sync::Mutex;
use wasmtime::{Engine, component::Component};

pub use self::child::{Compiler, compile_as_child};
use super::engine::Limits;

/// Compiles `wasm` when it is its turn, or takes what this engine has compiled before.
///
/// The cache holds machine code that is trusted as much as this program: a folder that others may write into is not used.
pub async fn component(
    engine: &Engine,
    limits: &Limits,
    turn: &Mutex<()>,
    digest: &str,
    wasm: &[u8],
) -> Result<Component, String> {
    let folder = limits.compile_cache.as_deref().filter(|folder| is_ours(folder));
    let file = folder.map(|folder| folder.join(file_name(engine, digest)));
    if let Some(component) = file.as_deref().and_then(|file| load(engine, file)) {
        return Ok(component);
    }
    let code = {
        let _turn = turn.lock().await;
        limits.compiler.compile(engine, limits, wasm).await?
    };
    let Some(file) = file else { return code_of(engine, &code) };
    match write_whole(&code, &file) {
        // From a mapped file: its memory images are shared between instances.
        Ok(()) => load(engine, &file).map_or_else(|| code_of(engine, &code), Ok),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "a compiled component was not kept");
            code_of(engine, &code)
        }
    }
}

fn file_name(engine: &Engine, digest: &str) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{digest}-{:016x}.cwasm", hasher.finish())
}

#[expect(
    unsafe_code,
    reason = "the file was written by this program into a folder that only its user may write into"
)]
fn load(engine: &Engine, file: &Path) -> Option<Component> {
    if !file.exists() {
        return None;
    }
    // SAFETY: only `write_whole` writes here (`is_ours`), whole files under the digest of what they were made from.
    let loaded = unsafe { Component::deserialize_file(engine, file) };
    loaded
        .inspect_err(|error| tracing::warn!(file = %file.display(), %error, "compiling anew"))
        .ok()
}

#[expect(unsafe_code, reason = "the code was made by this program, or by a child of it")]
fn code_of(engine: &Engine, code: &[u8]) -> Result<Component, String> {
    // SAFETY: what the compiler of this program made of a component a moment ago.
    let component = unsafe { Component::deserialize(engine, code) };
    component.map_err(|error| format!("the compiled component cannot be used: {error:#}"))
}

/// Whoever reads `file` finds all of it, whatever crashes or writes the same at once.
fn write_whole(code: &[u8], file: &Path) -> io::Result<()> {
    let (unfinished, mut writer) = create_unfinished(file)?;
    let written = writer
        .write_all(code)
        .and_then(|()| writer.sync_all())
        .and_then(|()| fs::rename(&unfinished, file));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished); // the first error says more
    }
    written
}

/// A file that nobody else writes: the process id alone is not unique among containers or within a process.
fn create_unfinished(file: &Path) -> io::Result<(PathBuf, File)> {
    for n in 0..1000 {
        let unfinished = file.with_extension(format!("{}.{n}.part", std::process::id()));
        match File::create_new(&unfinished) {
            Ok(writer) => return Ok((unfinished, writer)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many unfinished files; remove *.part from the folder"))
}

/// Whether only this user writes into the folder, which is made if it is not there.
fn is_ours(folder: &Path) -> bool {
    let reason = match make_private(folder) {
        Ok(()) => fault(folder),
        Err(error) => Some(error.to_string()),
    };
    let Some(reason) = reason else { return true };
    tracing::warn!(folder = %folder.display(), reason, "the folder of compiled components is not used");
    false
}

/// Why the folder is not used. One that is not there is made when it is needed.
pub fn fault(folder: &Path) -> Option<String> {
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => Some(format!("{} is no folder", folder.display())),
        Ok(found) if is_private(&found) => None,
        Ok(_) => Some(
            "it belongs to somebody else or others may write into it: empty it, own it, and set its mode to 0700"
                .to_owned(),
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(error.to_string()),
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(unix)]
fn is_private(folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    folder.uid() == rustix::process::geteuid().as_raw() && folder.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_private(_: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_beside_what_others_left_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("d.cwasm");
        let (theirs, _) = create_unfinished(&file).unwrap();
        write_whole(b"code", &file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"code");
        assert_eq!(fs::read(&theirs).unwrap(), b"");
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_may_write_into_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a/b");
        assert!(is_ours(&inside) && is_ours(&inside));
        for (mode, ours) in [(0o770, false), (0o707, false), (0o755, true), (0o700, true)] {
            fs::set_permissions(&inside, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_ours(&inside), ours, "{mode:o}");
        }
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(!is_ours(&folder.path().join("file")));
    }
}
