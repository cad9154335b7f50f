//! Requests of the command line to a host: retries, and protection of the operator token.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

use crate::{
    app::{Engine, OPERATOR_TOKEN, TestApp},
    command_line::run_against,
};

/// A host that cuts the connection after each of `cuts` requests, then responds with this status.
/// Resolves to the requests it received.
async fn flaky_host(cuts: usize, status: &'static str) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("a bound listener"));
    let body = json!({ "error": true, "message": "so it is" }).to_string();
    let response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let served = tokio::spawn(async move {
        let mut requests = Vec::new();
        while requests.len() <= cuts {
            let (mut stream, _) = listener.accept().await.expect("the program");
            let mut request = vec![0; 16 << 10];
            let length = stream.read(&mut request).await.expect("a request");
            requests.push(String::from_utf8_lossy(&request[..length]).to_lowercase());
            if requests.len() > cuts {
                stream.write_all(response.as_bytes()).await.expect("a sent response");
            }
        }
        requests
    });
    (url, served)
}

#[tokio::test]
async fn a_request_whose_response_is_lost_is_retried_with_its_idempotency_key() {
    let create = ["company", "create", "Acme", "--server", "test", "--json"];
    let key = |request: &str| {
        let line = request.lines().find_map(|line| line.strip_prefix("idempotency-key: "));
        line.map(str::to_owned)
    };
    let mut keys = BTreeSet::new();
    for (cuts, status, code) in [
        (0, "200 OK", 0),
        (1, "200 OK", 0),
        (0, "409 Conflict", 1),
        // The first of the two requests may still be in progress.
        (1, "409 Conflict", 3),
        (1, "400 Bad Request", 1),
        (0, "502 Bad Gateway", 3),
        (0, "503 Service Unavailable", 3),
    ] {
        let (url, served) = flaky_host(cuts, status).await;
        let ended = run_against(&url, OPERATOR_TOKEN, &create).await;
        assert_eq!(ended.code, code, "{cuts} {status}: {}", ended.err);
        if code > 0 {
            let error: Value = serde_json::from_str(ended.failure().1).expect("JSON");
            assert_eq!(error["status"].to_string(), status[..3], "{error}");
        }
        let requests = served.await.expect("no panic");
        let sent: BTreeSet<_> = requests.iter().map(|request| key(request)).collect();
        assert_eq!((requests.len(), sent.len()), (cuts + 1, 1), "{requests:?}");
        keys.extend(sent);
    }
    assert!(
        keys.len() == 7 && !keys.contains(&None),
        "each command has a key of its own: {keys:?}"
    );
    let (url, served) = flaky_host(2, "200 OK").await;
    assert_eq!(run_against(&url, OPERATOR_TOKEN, &create).await.failure().0, 3);
    served.abort();
    let (url, served) = flaky_host(1, "200 OK").await;
    assert_eq!(run_against(&url, OPERATOR_TOKEN, &["plugin", "list", "--json"]).await.code, 0);
    assert!(served.await.expect("no panic").iter().all(|request| key(request).is_none()));
}

#[tokio::test]
async fn the_token_is_sent_unencrypted_only_to_loopback_unless_permitted() {
    let app = TestApp::start(Engine::Sqlite).await;
    let url = app.internal.replace("127.0.0.1", "0.0.0.0"); // reaches this machine, but is not a loopback address
    let refused = run_against(&url, OPERATOR_TOKEN, &["plugin", "list"]).await;
    assert!(
        refused.failure().0 == 2 && refused.err.contains("internal_url_plain_http"),
        "{}",
        refused.err
    );
    run_against(&url, OPERATOR_TOKEN, &["plugin", "list", "--internal-url-plain-http"])
        .await
        .success_output();
    app.finish().await;
}
