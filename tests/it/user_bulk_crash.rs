//! Two hosts compete for the uploads of a company, and one of them is killed during an upload.

use std::{process::Command, time::Duration};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    app::{Database, Engine, OPERATOR_TOKEN, postgres, reply},
    process::Process,
};

/// Times from the start of an upload until the host is killed; some uploads have ended by then.
const KILLED_AFTER_MS: [u64; 5] = [2, 20, 60, 150, 400];
const USERS: usize = 1_000;

async fn serve(database: &Database) -> Process {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
    program.env("RUST_LOG", "off");
    Process::serve(program, database, &["--development", "--rate-per-s=0"]).await
}

async fn operator(host: &Process, method: Method, path: &str, body: Value) -> Value {
    let request = host.client.request(method, format!("{}/internal/v1{path}", host.internal));
    reply(request.bearer_auth(OPERATOR_TOKEN).json(&body)).await.data().clone()
}

fn users(round: usize) -> Value {
    let user = |n| {
        let email = format!("{round}-{n}@example.com");
        json!({ "first_name": "Ada", "last_name": "Obi", "email": email })
    };
    json!({ "users": (0..USERS).map(user).collect::<Vec<_>>() })
}

fn upload(host: &Process, key: &str, round: usize) -> RequestBuilder {
    let request = host.client.post(format!("{}/api/v1/user/bulk/create", host.api));
    request.bearer_auth(key).json(&users(round))
}

async fn total(host: &Process, key: &str) -> i64 {
    let list = host.client.get(format!("{}/api/v1/user/list?limit=1", host.api));
    reply(list.bearer_auth(key)).await.data()["total"].as_i64().expect("a number")
}

async fn an_upload_of_a_killed_host_is_all_or_nothing(engine: Engine) {
    let database = Database::create(engine).await;
    let host = serve(&database).await;
    let company =
        operator(&host, Method::POST, "/companies", json!({ "name": "Acme", "server": "test" }))
            .await;
    let text = |name: &str| company[name].as_str().expect("a text").to_owned();
    let (path, key) = (format!("/companies/{}", text("id")), text("api_key"));
    operator(&host, Method::PATCH, &format!("{path}/prices"), json!({ "customer.create": 1 }))
        .await;
    let credit = json!({ "amount": 100_000, "key": "first" });
    operator(&host, Method::POST, &format!("{path}/wallet/credit"), credit).await;
    for (round, ms) in KILLED_AFTER_MS.into_iter().enumerate() {
        let before = total(&host, &key).await;
        let mut victim = serve(&database).await;
        let (theirs, ours) = (upload(&victim, &key, round), upload(&host, &key, round));
        let killed = async {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            victim.child.kill().expect("SIGKILL");
        };
        let (_, (), ours) = tokio::join!(theirs.send(), killed, reply(ours));
        let processing = (400, "upload is processing");
        assert!(ours.status == 200 || ours.failure() == processing, "{}", ours.body);
        let seen = total(&host, &key).await - before;
        let whole = i64::try_from(USERS).expect("a small number");
        assert!(seen == 0 || seen == whole, "{seen} users of an upload");
        // After the lease of the killed host has expired, the same upload succeeds without
        // duplicates.
        operator(&host, Method::POST, "/clock/advance", json!({ "seconds": 121 })).await;
        assert_eq!(reply(upload(&host, &key, round)).await.status, 200);
        assert_eq!(total(&host, &key).await - before, whole);
    }
    let wallet = operator(&host, Method::GET, &format!("{path}/wallet"), Value::Null).await;
    assert_eq!(wallet["balance"], 100_000 - USERS * KILLED_AFTER_MS.len(), "each is charged once");
    drop(host);
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_of_a_killed_host_is_all_or_nothing_on_postgres() {
    let Some(server) = postgres() else { return };
    an_upload_of_a_killed_host_is_all_or_nothing(Engine::Postgres(server)).await;
}
