//! Guests in JavaScript. Each is built once per version of its sources, with npm.

use std::{
    collections::HashMap,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{LazyLock, Mutex},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

type Built = HashMap<&'static str, Option<Vec<u8>>>;

/// Returns the component of a guest. If it cannot be built, prints `SKIPPED` once and returns
/// `None`.
pub fn component(guest: &'static str) -> Option<Vec<u8>> {
    static BUILT: LazyLock<Mutex<Built>> = LazyLock::new(Mutex::default);
    let mut built = BUILT.lock().expect("no panic while locked");
    let wasm = built.entry(guest).or_insert_with(|| match build(guest) {
        Ok(wasm) => Some(wasm),
        Err(error) => {
            let text = format!("SKIPPED: tests with {guest}, which cannot be built: {error}\n");
            // Past the test runner's capture.
            let _ = io::stderr().write_all(text.as_bytes());
            None
        }
    });
    wasm.clone()
}

fn build(guest: &str) -> io::Result<Vec<u8>> {
    let root = fs::canonicalize(ROOT)?;
    let (source, sdk) = (root.join("tests/guests").join(guest), root.join("plugins/sdk/js"));
    let wit = root.join("wit/v1");
    let sources = [
        files(&source)?,
        files(&sdk)?,
        files(&sdk.join("src"))?,
        files(&sdk.join("bin"))?,
        files(&wit)?,
    ];
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let built = tmp.join(format!("{guest}-{}.wasm", digest(&sources.concat())?));
    if let Ok(wasm) = fs::read(&built) {
        return Ok(wasm);
    }
    let new = tempfile::Builder::new().prefix(&format!("{guest}-new-")).tempdir_in(tmp)?;
    for file in &sources[0] {
        fs::copy(file, new.path().join(file.file_name().unwrap_or_default()))?;
    }
    // Its paths are relative to the source.
    let package = new.path().join("package.json");
    let mut fields: Value = serde_json::from_slice(&fs::read(&package)?)?;
    fields["tollhouse"]["wit"] = json!(wit);
    fields["dependencies"]["tollhouse-plugin"] = json!(format!("file:{}", sdk.display()));
    fs::write(&package, fields.to_string())?;
    for arguments in [
        &["install", "--install-links", "--ignore-scripts", "--no-audit", "--no-fund"][..],
        &["run", "build"],
    ] {
        done(Command::new("npm").args(arguments).current_dir(new.path()))?;
    }
    let mut components = files(new.path())?;
    components.retain(|file| file.extension().is_some_and(|extension| extension == "wasm"));
    let component = components.pop().ok_or_else(|| io::Error::other("there is no component"))?;
    let wasm = fs::read(&component)?;
    // Renamed at the end, so that a concurrent or failed build leaves no incomplete file.
    fs::rename(component, built)?;
    Ok(wasm)
}

/// Returns the files of a folder, without those of its folders, in order.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn digest(files: &[PathBuf]) -> io::Result<String> {
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.display().to_string());
        digest.update(fs::read(file)?);
    }
    Ok(hex::encode(&digest.finalize()[..8]))
}

fn done(command: &mut Command) -> io::Result<()> {
    let Output { status, stderr, .. } = command.stdin(Stdio::null()).output()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&stderr).trim().replace('\n', " "))),
    }
}
