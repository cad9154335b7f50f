//! `cargo sandbox` as a process.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::world::{KEY, Receiver, SUCCESS};

/// A debug build compiles all plugins at its first start.
const PATIENCE: Duration = Duration::from_secs(300);

/// A temporary folder, removed with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let dir = std::env::temp_dir().join(format!("tollhouse-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed when the test ends.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn program(dir: &Path) -> Command {
    let mut sandbox = Command::new(env!("CARGO_BIN_EXE_sandbox"));
    sandbox.arg("--dir").arg(dir).arg("--port=0");
    sandbox
}

#[test]
fn a_readiness_file_of_an_earlier_start_is_removed() {
    let folder = Folder::new("stale");
    let file = folder.0.join("sandbox.json");
    fs::write(&file, "{}").unwrap();
    fs::write(folder.0.join("master-key"), "invalid: the program does not get ready").unwrap();
    let ended = program(&folder.0).output().unwrap();
    assert!(!ended.status.success());
    assert!(!file.exists(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// Returns the contents of the readiness file.
pub async fn ready(dir: &Path) -> Value {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let file = dir.join("sandbox.json");
    let written = async {
        while !file.exists() {
            looks.tick().await;
        }
    };
    timeout(PATIENCE, written).await.expect("a program that gets ready");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test]
async fn simulators_alone_send_webhooks_and_receive_events_of_any_host() {
    let (folder, receiver) = (Folder::new("simulators"), Receiver::start().await);
    let running =
        program(&folder.0).arg("--simulators-only").stdout(Stdio::null()).spawn().unwrap();
    let _running = Running(running);
    let info = ready(&folder.0).await;
    let names: Vec<&String> = info.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["sandbox", "smtp"],
        "without a host, there are no addresses and keys of one"
    );
    assert!(!folder.0.join("tollhouse.db").exists());

    tollhouse_platform::crypto::tls::install_provider();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = |path: &str| format!("{}{path}", info["sandbox"].as_str().unwrap());
    let webhook = json!({ "secret_key": KEY, "url": receiver.url });
    let set = client.put(url("/paystack/webhook")).json(&webhook).send().await.unwrap();
    assert_eq!(set.status(), 204);
    let payment = json!({ "email": "ada@example.com", "amount": 500_000, "reference": "order-1" });
    let begun = client.post(url("/paystack/transaction/initialize")).bearer_auth(KEY);
    let begun: Value = begun.json(&payment).send().await.unwrap().json().await.unwrap();
    let page = begun["data"]["access_code"].as_str().unwrap();
    let paid = json!({ "outcome": "success", "card": SUCCESS });
    client.post(url(&format!("/checkout/{page}/complete"))).json(&paid).send().await.unwrap();
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let notified = async {
        while receiver.received().is_empty() {
            looks.tick().await;
        }
    };
    timeout(PATIENCE, notified).await.expect("a notification");
    assert_eq!(receiver.bodies()[0]["event"], "charge.success");

    for (body, status) in [
        (json!({ "company_id": "acme", "secret": "whsec_AAAA" }), 204),
        (json!({ "company_id": "acme", "secret": "AAAA" }), 400),
        (json!({ "secret": "whsec_AAAA" }), 400),
    ] {
        let set = client.put(url("/events/secret")).json(&body).send().await.unwrap();
        assert_eq!(set.status(), status, "{body}");
    }
    let event = json!({ "company_id": "acme", "event": "payment.success" });
    client.post(url("/events")).json(&event).send().await.unwrap();
    let events: Value = client.get(url("/events.json")).send().await.unwrap().json().await.unwrap();
    // The secret is registered, and this event is not signed with it.
    assert_eq!(events[0]["signature"], "invalid");
}
