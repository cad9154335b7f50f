//! `tollhouse plugin run`, as plugin authors use it: a component is built, rebuilt and broken.

use std::{os::unix::fs::PermissionsExt, path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{
    app::{client, reply},
    plugins::sprout_1_1,
    ports,
    sprout::{SproutUpstream, TOKEN},
};

const STEP_TIMEOUT: Duration = Duration::from_secs(120);

pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub fn start(file: &Path, more: &[&str]) -> Running {
        Running::start_with(file, more, |_| {})
    }

    pub fn start_with(file: &Path, more: &[&str], set_up: impl FnOnce(&mut Command)) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
        command.args(["plugin", "run"]).arg(file).args(["--port", "0"]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        set_up(&mut command);
        let mut child = command.spawn().expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Running { child, lines }
    }

    /// Waits for the next line with this prefix and returns the rest of it.
    pub async fn line(&mut self, begins: &str) -> String {
        let next = async {
            loop {
                let line = self.lines.next_line().await.expect("a pipe").expect("another line");
                if let Some(rest) = line.strip_prefix(begins) {
                    return rest.trim().to_owned();
                }
            }
        };
        let line = timeout(STEP_TIMEOUT, next).await;
        line.unwrap_or_else(|_| panic!("no line begins with {begins:?}"))
    }
}

#[tokio::test]
async fn a_rebuilt_plugin_is_reloaded_and_an_invalid_one_is_not() {
    let (upstream, folder) =
        (SproutUpstream::start().await, tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("sprout.wasm");
    let build = |wasm: &[u8]| std::fs::write(&file, wasm).expect("a file");
    build(artifacts::SPROUT);
    let base_url = format!("base_url={}", upstream.url);
    let mut running = Running::start(
        &file,
        &["--credential", &base_url, "--credential", &format!("token={TOKEN}")],
    );
    assert!(running.line("sprout 1.0.0 is active (").await.ends_with(')'));
    let (api, key) = (running.line("API  ").await, running.line("API key").await);
    let webhooks = running.line("provider's webhooks ").await;
    assert!(webhooks.starts_with(&format!("{api}/api/v1/notifications/sprout/")), "{webhooks}");
    assert_eq!(client().post(webhooks).send().await.expect("a response").status(), 401);
    let begin = async |reference: &str| -> Value {
        let order = json!({
            "email": "ada@example.com", "amount": 2500.5, "currency": "NGN", "reference": reference,
            "checkout": { "success_url": "https://shop.example/done" },
        });
        let request = client().post(format!("{api}/api/v1/payment/initialize")).bearer_auth(&key);
        reply(request.json(&order)).await.data()["channels"].clone()
    };
    assert_eq!(begin("order-1").await, json!(["card"]));
    build(&sprout_1_1());
    running.line("sprout 1.1.0 is active (").await;
    assert_eq!(begin("order-2").await, json!(["card", "ussd"]));
    build(b"once upon a time");
    let reason = running.line("rejected, the previous version stays active:").await;
    assert!(reason.starts_with("the file is not WebAssembly"), "{reason}");
    assert_eq!(begin("order-3").await, json!(["card", "ussd"]));
}

#[tokio::test]
async fn recorded_calls_can_be_replayed() {
    let (upstream, folder) =
        (SproutUpstream::start().await, tempfile::tempdir().expect("a folder"));
    let (file, calls) = (folder.path().join("sprout.wasm"), folder.path().join("calls"));
    std::fs::write(&file, artifacts::SPROUT).expect("a file");
    let base_url = format!("base_url={}", upstream.url);
    let token = format!("token={TOKEN}");
    let record = calls.display().to_string();
    let mut running = Running::start(
        &file,
        &["--credential", &base_url, "--credential", &token, "--record", &record],
    );
    let (api, key) = (running.line("API  ").await, running.line("API key").await);
    let order = json!({
        "email": "ada@example.com", "amount": 2500.5, "currency": "NGN", "reference": "order-1",
        "checkout": { "success_url": "https://shop.example/done" },
    });
    let request = client().post(format!("{api}/api/v1/payment/initialize")).bearer_auth(&key);
    assert_eq!(reply(request.json(&order)).await.status, 200);
    let recorded = running.line("recorded ").await;
    assert!(recorded.ends_with("-checkout.start.json"), "{recorded}");
    let written = std::fs::read_to_string(&recorded).expect("a recording");
    assert!(!written.contains("ada@example.com") && !written.contains(TOKEN), "{written}");
    let replay = Command::new(env!("CARGO_BIN_EXE_tollhouse"))
        .args(["plugin", "replay"])
        .arg(&file)
        .arg(&recorded)
        .output()
        .await
        .expect("the program");
    assert!(replay.status.success(), "{replay:?}");
}

#[tokio::test]
async fn failed_calls_are_shown_and_no_temporary_file_remains() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, temporary) = (folder.path().join("sprout.wasm"), folder.path().join("tmp"));
    std::fs::write(&file, artifacts::SPROUT).expect("a file");
    std::fs::create_dir(&temporary).expect("a folder");
    let base_url = format!("base_url=http://{}", ports::reserve_address());
    let mut running = Running::start_with(&file, &["--credential", &base_url], |command| {
        command.env("TMPDIR", &temporary);
    });
    let (api, key) = (running.line("API  ").await, running.line("API key").await);
    let made: Vec<_> = std::fs::read_dir(&temporary).expect("a folder").collect();
    for entry in made {
        let mode = entry.and_then(|entry| entry.metadata()).expect("an entry").permissions().mode();
        assert_eq!(mode & 0o077, 0, "others can read the keys in it");
    }
    let order = json!({
        "email": "ada@example.com", "amount": 2500.5, "currency": "NGN",
        "checkout": { "success_url": "https://shop.example/done" },
    });
    let request = client().post(format!("{api}/api/v1/payment/initialize")).bearer_auth(&key);
    assert_eq!(reply(request.json(&order)).await.status, 502);
    let reason = running.line("checkout.start failed, unavailable \"connect\": ").await;
    assert!(!reason.is_empty());
    assert_eq!(running.line("  no response: ").await, "no_connection");

    let id = running.child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("a process");
    kill_process(id, Signal::TERM).expect("a process");
    let ended =
        timeout(STEP_TIMEOUT, running.child.wait()).await.expect("an end").expect("a child");
    assert!(ended.success());
    assert_eq!(std::fs::read_dir(&temporary).expect("a folder").count(), 0);
}

#[tokio::test]
async fn the_example_request_obeys_the_manifest() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("jenga.wasm");
    std::fs::write(&file, artifacts::JENGA).expect("a file");
    let base_url = format!("base_url=http://{}", ports::reserve_address());
    let settings = ["merchant_code=1", "account_number=2", "merchant_name=Acme", &*base_url];
    let more: Vec<&str> =
        settings.into_iter().flat_map(|setting| ["--credential", setting]).collect();
    let mut running = Running::start(&file, &more);
    let (api, key) = (running.line("API  ").await, running.line("API key").await);
    let printed = running.line("  curl -s ").await;
    let (_, body) = printed.split_once(" -d '").expect("a body");
    let order: Value = serde_json::from_str(body.trim_end_matches('\'')).expect("JSON");
    assert_eq!(order["phone"], "+254764555291");
    assert_eq!(order["amount"], 5000, "the amount of the manifest's examples");
    let request = client().post(format!("{api}/api/v1/payment/initialize")).bearer_auth(&key);
    // The request is complete: it fails at the upstream, which does not run.
    assert_eq!(reply(request.json(&order)).await.status, 502);
}

#[tokio::test]
async fn a_plugin_that_cannot_run_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sprout.wasm");
    for (wasm, more, expected) in [
        (&b"once upon a time"[..], &[][..], "tollhouse: the file is not WebAssembly"),
        (
            artifacts::SPROUT,
            &[],
            "tollhouse: the account needs more values: add --credential base_url=",
        ),
        (
            artifacts::JENGA,
            &["--credential", "merchant_code=1"],
            "tollhouse: the account needs more values: \
             add --credential account_number=… --credential merchant_name=…",
        ),
        (
            artifacts::SPROUT,
            &["--credential", "base_url"],
            "tollhouse: --credential must have the form NAME=VALUE",
        ),
        (
            artifacts::SPROUT,
            &["--credential", "base_url=http://127.0.0.1:1", "--credential", "key=1"],
            "tollhouse: --credential key=…: the manifest has no such credential",
        ),
    ] {
        std::fs::write(&file, wasm).expect("a file");
        let running = Running::start(&file, more);
        let ended = timeout(STEP_TIMEOUT, running.child.wait_with_output()).await;
        let ended = ended.expect("an end").expect("an output");
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        let is_reported = errors.lines().any(|line| line.starts_with(expected));
        assert!(!ended.status.success() && is_reported, "{errors}");
    }
}
