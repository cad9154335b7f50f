//! Third-party programs from PyPI. Each set is installed once, in its own virtual environment.

use std::{
    collections::HashMap,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{LazyLock, Mutex},
};

use sha2::{Digest, Sha256};

type Made = HashMap<&'static str, Option<PathBuf>>;

/// Returns a Python with these requirements. If they cannot be installed, prints `SKIPPED` once and
/// returns `None`.
pub fn python(name: &'static str, requirements: &str) -> Option<PathBuf> {
    static MADE: LazyLock<Mutex<Made>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().expect("no panic while locked");
    let python = made.entry(name).or_insert_with(|| match install(name, requirements) {
        Ok(python) => Some(python),
        Err(error) => {
            let text = format!("SKIPPED: tests with {name}, which cannot be installed: {error}\n");
            // Past the test runner's capture.
            let _ = io::stderr().write_all(text.as_bytes());
            None
        }
    });
    python.clone()
}

fn install(name: &str, requirements: &str) -> io::Result<PathBuf> {
    let digest = hex::encode(&Sha256::digest(requirements)[..8]);
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tmp.join(format!("{name}-{digest}"));
    let python = |folder: &Path| folder.join("bin/python");
    if python(&folder).exists() {
        return Ok(python(&folder));
    }
    // Renamed at the end, so that a concurrent or failed installation leaves no incomplete folder.
    let new = tempfile::Builder::new().prefix(&format!("{name}-new-")).tempdir_in(tmp)?;
    let list = new.path().join("requirements.txt");
    done(Command::new("python3").args(["-m", "venv"]).arg(new.path()))?;
    fs::write(&list, requirements)?;
    let mut pip = Command::new(python(new.path()));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    done(pip.arg(list))?;
    if fs::rename(new.path(), &folder).is_ok() {
        let _ = new.keep();
    }
    Ok(python(&folder))
}

fn done(command: &mut Command) -> io::Result<()> {
    let Output { status, stderr, .. } = command.stdin(Stdio::null()).output()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&stderr).trim().replace('\n', " "))),
    }
}
