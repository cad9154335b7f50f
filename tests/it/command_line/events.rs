//! Event endpoints, and commands for developers of receivers.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::Query,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use super::{ProgramOutput, field, json_of, program, program_output, rows, run};
use crate::{
    app::{Company, TestApp},
    event_endpoints::is_signed_with,
    events::{Receiver, succeed},
    ports,
};

/// Time within which a line is printed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A developer's command, which uses the API with a company's key.
fn developer(api: &str, key: &str, arguments: &[&str]) -> Command {
    let mut command = program(arguments);
    command.env("TOLLHOUSE_API_URL", api).env("TOLLHOUSE_API_KEY", key);
    Command::from(command)
}

async fn run_developer(app: &TestApp, key: &str, arguments: &[&str]) -> ProgramOutput {
    program_output(developer(&app.api, key, arguments).output().await.expect("the program starts"))
}

/// `tollhouse listen` in a process of its own.
struct Listening {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    secret: String,
}

impl Listening {
    async fn start(api: &str, company: &Company, url: &str, more: &[&str]) -> Listening {
        let arguments = [&["listen", "--json", "--forward", url], more].concat();
        let mut command = developer(api, &company.key, &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut listening = Listening { child, lines, secret: String::new() };
        let start = listening.line().await;
        listening.secret = start["secret"].as_str().expect("a secret").to_owned();
        listening
    }

    async fn line(&mut self) -> Value {
        let line = timeout(TIMEOUT, self.lines.next_line()).await.expect("a line in time");
        serde_json::from_str(&line.expect("a pipe").expect("a line")).expect("JSON")
    }

    /// Interrupts it. Returns the exit code, the rest of its output and its errors.
    async fn interrupt(mut self) -> (Option<i32>, Value, String) {
        let id = i32::try_from(self.child.id().expect("a process")).expect("an id");
        kill_process(Pid::from_raw(id).expect("an id"), Signal::INT).expect("a process");
        let mut rest = String::new();
        while let Some(line) = self.lines.next_line().await.expect("a pipe") {
            rest += &line;
        }
        let mut errors = String::new();
        let stderr = self.child.stderr.as_mut().expect("a pipe");
        stderr.read_to_string(&mut errors).await.expect("text");
        let status = self.child.wait().await.expect("an end");
        (status.code(), serde_json::from_str(&rest).expect("JSON"), errors)
    }
}

both! {
    async fn event_endpoints_are_managed_by_commands(app: TestApp) {
        let id = &*app.company.id;
        let url = "https://books.example/events";
        let none = run(app, &["event-endpoint", "list", id]).await;
        assert_eq!(none.success_output(), "none\n");
        let made = ["event-endpoint", "create", id, url, "--types", "payment.success, payment.failed"];
        let made = run(app, &made).await;
        assert!(field(made.success_output(), "secret").starts_with("whsec_"));
        assert!(made.out.ends_with("\n\nThe secret is not shown again.\n"), "{}", made.out);
        assert_eq!((field(&made.out, "types"), field(&made.out, "active")), ("payment.success, payment.failed", "yes"));
        let endpoint = field(&made.out, "endpoint");
        let edit = ["event-endpoint", "edit", id, endpoint];
        let edited = run(app, &[&edit[..], &["--types", "", "--description", "books"]].concat()).await;
        assert_eq!((field(edited.success_output(), "types"), field(&edited.out, "description")), ("all", "books"));
        let edited = json_of(app, &[&edit[..], &["--active", "false", "--url", "https://b.example/"]].concat()).await;
        assert_eq!((&edited["active"], &edited["url"], &edited["types"]), (&json!(false), &json!("https://b.example/"), &json!([])));
        assert_eq!(run(app, &edit).await.failure().0, 2);
        let unknown = run(app, &[&edit[..], &["--types", "payment.sucess"]].concat()).await;
        assert!(unknown.failure().0 == 1 && unknown.err.contains("the types field must be any of card."), "{}", unknown.err);

        let rotated = run(app, &["event-endpoint", "rotate-secret", id, endpoint, "--yes"]).await;
        assert!(field(rotated.success_output(), "secret").starts_with("whsec_"));
        let list = run(app, &["event-endpoint", "list", id]).await;
        assert_eq!(rows(list.success_output()), [[endpoint, "https://b.example/", "all", "no", "books"]]);
        assert_eq!(run(app, &["event-endpoint", "delete", id, endpoint]).await.failure().0, 2);
        let deleted = run(app, &["event-endpoint", "delete", id, endpoint, "--yes"]).await;
        assert_eq!(deleted.success_output(), "deleted\n");
        let again = run(app, &["event-endpoint", "delete", id, endpoint, "--yes"]).await;
        assert_eq!(again.failure(), (1, "tollhouse: event endpoint not found"));
    }
    async fn events_are_forwarded_with_a_secret_of_the_run(app: TestApp) {
        succeed(app, "before").await;
        let address = ports::reserve_address().to_string();
        let url = format!("http://{address}/hook");
        let mut listening = Listening::start(&app.api, &app.company, &url, &[]).await;
        // No receiver.
        succeed(app, "order-1").await;
        let line = listening.line().await;
        assert_eq!((&line["type"], &line["status"]), (&json!("payment.success"), &Value::Null));
        assert!(line["error"].as_str().is_some_and(|error| error.contains("refused")), "{line}");
        let receiver = Receiver::start_at(&address).await;
        receiver.queue_responses(1, 500);
        for (reference, status) in [("order-2", 500), ("order-3", 200)] {
            succeed(app, reference).await;
            let line = listening.line().await;
            assert_eq!((&line["status"], &line["error"]), (&json!(status), &Value::Null));
            let got = receiver.got.lock().unwrap().last().expect("a webhook").clone();
            assert!(is_signed_with(&got, &listening.secret));
            assert_eq!((got.0["webhook-id"].to_str().unwrap(), got.0["content-type"].to_str().unwrap()), (line["id"].as_str().unwrap(), "application/json"));
            let sent = app.simulators.events().into_iter().find(|sent| sent.body.contains(reference));
            assert_eq!(got.1, sent.expect("a webhook").body, "the body is that of the webhook");
        }
        assert_eq!(receiver.count(), 2);
        let (code, end, errors) = listening.interrupt().await;
        assert_eq!((code, end, &*errors), (Some(0), json!({ "forwarded": 3 }), ""));
    }

    async fn chosen_types_are_forwarded_and_events_are_triggered(app: TestApp) {
        let receiver = Receiver::start().await;
        let types = ["--types", "payment.failed"];
        let mut listening = Listening::start(&app.api, &app.company, &receiver.url, &types).await;
        let key = &*app.company.key;
        for kind in ["payment.success", "payment.failed"] {
            let set = ["--set", "amount=5000", "--set", "reference=order-7", "--set", "metadata={\"a\":1}"];
            let triggered = run_developer(app, key, &[&["trigger", kind], &set[..]].concat()).await;
            assert_eq!(field(triggered.success_output(), "type"), kind);
            assert!(field(&triggered.out, "event").starts_with("evt_"));
            let data: Value = serde_json::from_str(field(&triggered.out, "data")).unwrap();
            assert_eq!((&data["amount"], &data["reference"], &data["metadata"]["a"]), (&json!(5000), &json!("order-7"), &json!(1)));
        }
        assert_eq!(listening.line().await["type"], "payment.failed");
        assert_eq!(receiver.count(), 1);
        for (arguments, code, message) in [
            (&["trigger", "payment.sucess"][..], 1, "tollhouse: the type field must be one of "),
            (&["trigger", "payment.failed", "--set", "amount=x"], 2, "error: invalid value 'amount=x'"),
            (&["trigger", "payment.failed", "--set", "status=x"], 1, "tollhouse: the data field must be"),
            (&["listen", "--forward", "127.0.0.1:3000"], 2, "tollhouse: --forward must be an http or https URL"),
            (&["listen", "--forward", "http://127.0.0.1/", "--types", "x"], 1, "tollhouse: the types field must be"),
            (&["listen", "--forward", "http://127.0.0.1/", "--api-url", "http://10.0.0.1"], 2, "tollhouse: --api-url would"),
            (&["listen", "--forward", "http://127.0.0.1/", "--api-url", "http://127.0.0.1:1"], 3, "tollhouse: the host at"),
        ] {
            let ended = run_developer(app, key, arguments).await;
            assert!(ended.failure().0 == code && ended.err.starts_with(message), "{} {}", ended.code, ended.err);
        }
        let unknown = run_developer(app, "sk_test_x", &["listen", "--forward", "http://127.0.0.1/"]).await;
        assert_eq!(unknown.failure(), (1, "tollhouse: the API key is not valid"));
        app.run_until_idle().await;
    }
}

/// A host that returns these parts of the events one after the other, and then the last one again.
/// Returns its URL and the cursors that it gets.
async fn scripted_host(parts: Vec<Response>) -> (String, Arc<Mutex<Vec<String>>>) {
    type Parameters = std::collections::HashMap<String, String>;
    let (parts, cursors) = (Arc::new(Mutex::new(parts)), Arc::new(Mutex::new(Vec::new())));
    let asked = cursors.clone();
    let list = async move |Query(query): Query<Parameters>| {
        asked.lock().unwrap().push(query["after"].clone());
        let mut parts = parts.lock().unwrap();
        if parts.is_empty() { part(&[], "00000009") } else { parts.remove(0) }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let router = Router::new().route("/api/v1/event/list", get(list));
    tokio::spawn(axum::serve(listener, router).into_future());
    (url, cursors)
}

fn part(ids: &[&str], next: &str) -> Response {
    let event = |id: &&str| json!({ "id": id, "event": "payment.success", "body": {} });
    let events: Vec<Value> = ids.iter().map(event).collect();
    Json(json!({ "error": false, "data": { "events": events, "next": next } })).into_response()
}

#[tokio::test]
async fn listening_outlasts_failures_of_the_host_and_forwards_each_event_once() {
    let error = json!({ "error": true, "message": "too many requests" });
    let (api, cursors) = scripted_host(vec![
        part(&["evt_00000002a"], "00000001"),
        part(&["evt_00000002a", "evt_00000003a"], "00000001"),
        StatusCode::BAD_GATEWAY.into_response(),
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "2")], Json(error)).into_response(),
        // Committed late, before the last one.
        part(&["evt_00000002a", "evt_00000002b", "evt_00000003a"], "00000003"),
        part(&["evt_00000003a", "evt_00000004a"], "00000004"),
    ])
    .await;
    let receiver = Receiver::start().await;
    let company =
        Company { id: "c".into(), key: "sk_test_x".to_owned(), event_secret: String::new() };
    let mut listening = Listening::start(&api, &company, &receiver.url, &[]).await;
    for id in ["evt_00000003a", "evt_00000002b", "evt_00000004a"] {
        assert_eq!(listening.line().await["id"], id);
    }
    let (code, end, errors) = listening.interrupt().await;
    assert_eq!((code, end), (Some(0), json!({ "forwarded": 3 })));
    assert_eq!(errors.lines().count(), 3, "{errors}");
    assert!(errors.contains("too many requests; retrying\nthe host responds again"), "{errors}");
    assert_eq!(cursors.lock().unwrap()[..3], ["", "00000001", "00000001"]);
}
