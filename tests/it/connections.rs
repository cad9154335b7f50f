//! Who takes the room of a listener: connections of one address, and requests with unknown keys.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tollhouse::store;

use crate::app::{Engine, TestApp, reply};

/// Longer than anything here takes, so that what hangs fails.
const PATIENCE: Duration = Duration::from_secs(30);
const LIVE: &str = "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n";

async fn app(flags: &[&str]) -> TestApp {
    TestApp::start_with(Engine::Sqlite, flags).await
}

/// Whether the host answers on a new connection from a client at this address. Otherwise it has closed the connection.
async fn is_served(app: &TestApp, client: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .bind(format!("{client}:0").parse().expect("an address"))
        .expect("an address of loopback");
    let host = app.internal.strip_prefix("http://").expect("a URL of the harness");
    let mut stream = socket.connect(host.parse().expect("an address")).await.expect("a connection");
    if stream.write_all(LIVE.as_bytes()).await.is_err() {
        return None;
    }
    let answered =
        timeout(PATIENCE, stream.read(&mut [0; 1_000])).await.expect("an answer or an end");
    answered.is_ok_and(|bytes| bytes > 0).then_some(stream)
}

#[tokio::test]
async fn connections_of_one_address_are_bounded_and_do_not_keep_out_others() {
    // The harness has one of its own.
    let app = app(&["--max-connections-per-address=3"]).await;
    let one = is_served(&app, "127.0.0.1").await.expect("a connection");
    let two = is_served(&app, "127.0.0.1").await.expect("a connection");
    assert!(is_served(&app, "127.0.0.1").await.is_none());
    let other = is_served(&app, "127.0.0.2").await.expect("a connection of another address");
    app.get("/payment/list").await.data(); // the other listener counts for itself
    drop(two);
    let again = async {
        loop {
            if let Some(stream) = is_served(&app, "127.0.0.1").await {
                break stream;
            }
        }
    };
    let again =
        timeout(PATIENCE, again).await.expect("a connection in the place of the one that ended");
    let metrics = app.client.get(format!("{}/metrics", app.internal)).send().await;
    let metrics = metrics.expect("an answer").text().await.expect("a text");
    let refused = r#"tollhouse_connections_refused_total{listener="internal"} "#;
    assert!(metrics.lines().any(|line| line.starts_with(refused)), "{metrics}");
    drop((one, other, again));
    app.finish().await;
}

#[tokio::test]
async fn connections_of_one_address_may_be_unbounded() {
    let app = app(&["--max-connections-per-address=0"]).await;
    let mut all = Vec::new();
    for _ in 0..50 {
        all.push(is_served(&app, "127.0.0.1").await.expect("a connection"));
    }
    drop(all);
    app.finish().await;
}

#[tokio::test]
async fn requests_with_unknown_keys_take_no_place_of_callers() {
    // One connection to the database for reading: whoever holds it keeps keys from being looked up.
    let app = app(&["--max-requests=2", "--database-connections=1"]).await;
    app.get("/payment/list").await.data();
    let (release, released) = watch::channel(false);
    let (holds, mut held) = watch::channel(false);
    let host = app.app.clone();
    let hold = tokio::spawn(async move {
        let hold = host.store.read(async |_| -> store::Result<()> {
            holds.send_replace(true);
            released.clone().wait_for(|released| *released).await.expect("its sender is here");
            Ok(())
        });
        hold.await
    });
    held.wait_for(|held| *held).await.expect("a connection that is held");
    let list = |key: &str| {
        let request = app.client.get(format!("{}/api/v1/payment/list", app.api)).bearer_auth(key);
        tokio::spawn(reply(request))
    };
    let unknown: Vec<_> = (0..4).map(|n| list(&format!("sk_test_unknown_{n}"))).collect();
    let refused = async {
        while !unknown.iter().any(JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, refused).await.expect("a refusal");
    let mut known = list(&app.company.key);
    let waits = timeout(Duration::from_millis(200), &mut known).await;
    assert!(waits.is_err(), "the caller was refused: {waits:?}");
    release.send_replace(true);
    hold.await.expect("no panic").expect("a transaction");
    known.await.expect("no panic").data();
    let mut statuses = Vec::new();
    for answer in unknown {
        statuses.push(answer.await.expect("no panic").status.as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [401, 503, 503, 503]);
    app.finish().await;
}
