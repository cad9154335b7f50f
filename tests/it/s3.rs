//! Files in a bucket of a third-party S3 server.

use std::process::{Command, Stdio};

use reqwest::Client;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
};

use crate::{
    app::{Database, Engine, OPERATOR_TOKEN, client, reply},
    process::Process,
    python::python,
};

/// A server process, killed when dropped.
struct Server {
    url: String,
    client: Client,
    _child: Child,
}

impl Server {
    /// Starts the server with a bucket. Returns `None` if moto cannot be installed.
    async fn start() -> Option<Server> {
        let python = python("moto", include_str!("s3/requirements.txt"))?;
        let child = tokio::process::Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/s3/server.py"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.expect("python starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let line = lines.next_line().await.expect("a line").expect("a server that runs");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        let server = Server {
            url: format!("http://127.0.0.1:{}", ready["port"]),
            client: client(),
            _child: child,
        };
        let made = server.client.put(format!("{}/exports", server.url)).send().await;
        assert!(made.expect("a response").status().is_success());
        Some(server)
    }

    /// The server's listing of the bucket.
    async fn list(&self) -> String {
        let list = self.client.get(format!("{}/exports?list-type=2", self.url)).send().await;
        list.expect("a response").text().await.expect("a text")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_stored_in_a_bucket_and_deleted_when_it_expires() {
    let Some(s3) = Server::start().await else { return };
    let database = Database::create(Engine::Sqlite).await;
    let mut program = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
    program
        .env("AWS_ENDPOINT_URL", &s3.url)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    let flags = ["--files=s3://exports/acme/loans", "--development"];
    let host = Process::serve(program, &database, &flags).await;
    let internal = async |path: &str, body: Value| {
        let request = host.client.post(format!("{}/internal/v1{path}", host.internal));
        reply(request.bearer_auth(OPERATOR_TOKEN).json(&body)).await.data().clone()
    };
    let company = internal("/companies", json!({ "name": "Acme", "server": "test" })).await;
    let key = company["api_key"].as_str().expect("a key").to_owned();

    // Ten megabytes: more than one part.
    let filler = "x".repeat(10_000);
    let users: Value = (0..1_000)
        .map(|n| json!({ "first_name": "Ada", "last_name": "Obi", "email": format!("{n}@example.com"), "metadata": { "filler": filler } }))
        .collect();
    let create =
        host.client.post(format!("{}/api/v1/user/bulk/create", host.api)).bearer_auth(&key);
    assert_eq!(reply(create.json(&json!({ "users": users }))).await.status, 200);
    let export = host.client.get(format!("{}/api/v1/user/export", host.api)).bearer_auth(&key);
    let export = reply(export).await;
    let link = export.data()["path"].as_str().expect("a URL").to_owned();
    let fetched = async || host.client.get(&link).send().await.expect("a response");
    let csv = fetched().await.text().await.expect("a text");
    assert_eq!((csv.lines().count(), csv.matches(&filler).count()), (1_001, 1_000));
    let name = link.split('?').next().and_then(|url| url.rsplit('/').next()).expect("a name");
    assert!(s3.list().await.contains(&format!("<Key>acme/loans/{name}</Key>")));

    internal("/clock/advance", json!({ "seconds": 961 })).await;
    assert_eq!(fetched().await.status(), 403);
    let left = s3.list().await;
    assert!(!left.contains("<Key>"), "{left}");
}
