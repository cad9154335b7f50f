//! A mail server by others, aiosmtpd, in a process of its own.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
    time::Duration,
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(60);
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// Ended with the test.
pub struct Server {
    pub port: u16,
    events: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Server {
    /// `None` where aiosmtpd cannot be installed. `kind` is plain, starttls or tls; `pair` certificate and key.
    pub async fn start(
        kind: &str,
        pair: Option<&[PathBuf; 2]>,
        login: [&str; 2],
    ) -> Option<Server> {
        let files = pair.map_or(["-".into(), "-".into()], |pair| {
            pair.clone().map(|file| file.display().to_string())
        });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/smtp/server.py");
        let child = tokio::process::Command::new(python()?)
            .arg(script)
            .arg(kind)
            .args(files)
            .args(login)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.expect("python starts");
        let out = child.stdout.take().expect("it is piped");
        let mut server = Server { port: 0, events: BufReader::new(out).lines(), _child: child };
        let listening = server.next("listening").await;
        server.port = listening["port"].as_u64().unwrap().try_into().unwrap();
        Some(server)
    }

    /// The next event of this kind; those before it are passed over.
    pub async fn next(&mut self, event: &str) -> Value {
        loop {
            let line = timeout(PATIENCE, self.events.next_line()).await;
            let line = line.expect("an event in time").unwrap().expect("a server that runs");
            let found: Value = serde_json::from_str(&line).expect("JSON");
            if found["event"] == event {
                return found;
            }
        }
    }

    /// Whatever it still has to say when it is ended.
    pub async fn rest(mut self) -> Vec<Value> {
        self._child.start_kill().unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.events.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).expect("JSON"));
        }
        rest
    }
}

/// A python that has aiosmtpd, made once and kept. Where that cannot be, tests are skipped, which is said once and visibly.
fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = PYTHON.get_or_init(|| match install() {
        Ok(python) => Some(python),
        Err(error) => {
            let text =
                format!("SKIPPED: tests with aiosmtpd, which cannot be installed: {error}\n");
            // Past the test runner's capture.
            let _ = io::stderr().write_all(text.as_bytes());
            None
        }
    });
    made.as_deref()
}

fn install() -> io::Result<PathBuf> {
    let digest = hex::encode(&Sha256::digest(REQUIREMENTS)[..8]);
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tmp.join(format!("aiosmtpd-{digest}"));
    let python = |folder: &Path| folder.join("bin/python");
    if python(&folder).exists() {
        return Ok(python(&folder));
    }
    // Whole or not at all, whoever else makes it at the same time.
    let new = tempfile::Builder::new().prefix("aiosmtpd-new-").tempdir_in(tmp)?;
    done(Command::new("python3").args(["-m", "venv"]).arg(new.path()))?;
    let mut pip = Command::new(python(new.path()));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    done(pip.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/smtp/requirements.txt")))?;
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
