//! The third-party mail server aiosmtpd, in a process of its own.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

use crate::python::python;

const EVENT_TIMEOUT: Duration = Duration::from_secs(60);
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// A server process, killed when dropped.
pub struct Server {
    pub port: u16,
    events: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Server {
    /// Returns `None` if aiosmtpd cannot be installed. `kind` is plain, starttls or tls; `pair` is
    /// a certificate and its key.
    pub async fn start(
        kind: &str,
        pair: Option<&[PathBuf; 2]>,
        login: [&str; 2],
    ) -> Option<Server> {
        let files = pair.map_or(["-".into(), "-".into()], |pair| {
            pair.clone().map(|file| file.display().to_string())
        });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/smtp/server.py");
        let child = tokio::process::Command::new(python("aiosmtpd", REQUIREMENTS)?)
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

    /// Returns the next event of this kind, and skips those before it.
    pub async fn next(&mut self, event: &str) -> Value {
        loop {
            let line = timeout(EVENT_TIMEOUT, self.events.next_line()).await;
            let line = line.expect("an event in time").unwrap().expect("a server that runs");
            let found: Value = serde_json::from_str(&line).expect("JSON");
            if found["event"] == event {
                return found;
            }
        }
    }

    /// Kills the server. Returns its remaining events.
    pub async fn stop_and_drain(mut self) -> Vec<Value> {
        self._child.start_kill().unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.events.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).expect("JSON"));
        }
        rest
    }
}
