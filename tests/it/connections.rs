//! Limits of a listener: connections per address, and requests with unknown keys.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tollhouse_app::{state::App, tenants::companies::AcceptedKeys};
use tollhouse_platform::{random::Random, store};

use crate::app::{TestApp, config, reply};

/// Longer than any operation here takes, so that a hang fails the test.
const TIMEOUT: Duration = Duration::from_secs(30);
const LIVENESS_REQUEST: &str = "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n";

/// Opens a connection from this client address and sends a request. `None`: the host closed it
/// without a response.
async fn connect_from(app: &TestApp, client: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .bind(format!("{client}:0").parse().expect("an address"))
        .expect("an address of loopback");
    let host = app.internal.strip_prefix("http://").expect("a URL of the harness");
    let mut stream = socket.connect(host.parse().expect("an address")).await.expect("a connection");
    if stream.write_all(LIVENESS_REQUEST.as_bytes()).await.is_err() {
        return None;
    }
    let received = timeout(TIMEOUT, stream.read(&mut [0; 1_000]))
        .await
        .expect("a response or a closed connection");
    received.is_ok_and(|bytes| bytes > 0).then_some(stream)
}

both! {
    async fn connections_beyond_the_limit_of_an_address_are_closed_and_others_are_served(app: TestApp, "--max-connections-per-address=3") {
        // The test client already has one.
        let one = connect_from(app, "127.0.0.1").await.expect("a connection");
        let two = connect_from(app, "127.0.0.1").await.expect("a connection");
        assert!(connect_from(app, "127.0.0.1").await.is_none());
        let other = connect_from(app, "127.0.0.2").await.expect("a connection of another address");
        app.get("/payment/list").await.data(); // listeners count separately
        drop(two);
        let again = async {
            loop {
                if let Some(stream) = connect_from(app, "127.0.0.1").await {
                    break stream;
                }
            }
        };
        let again =
            timeout(TIMEOUT, again).await.expect("a connection that replaces the closed one");
        let metrics = app.client.get(format!("{}/metrics", app.internal)).send().await;
        let metrics = metrics.expect("a response").text().await.expect("a text");
        let refused = r#"tollhouse_connections_refused_total{listener="internal"} "#;
        assert!(metrics.lines().any(|line| line.starts_with(refused)), "{metrics}");
        drop((one, other, again));
    }

    async fn connections_per_address_can_be_unlimited(app: TestApp, "--max-connections-per-address=0") {
        let mut all = Vec::new();
        for _ in 0..50 {
            all.push(connect_from(app, "127.0.0.1").await.expect("a connection"));
        }
        drop(all);
    }

    async fn requests_with_unknown_keys_take_no_permits_of_known_clients(app: TestApp, "--max-requests=2", "--database-connections=1") {
        // The only connection for reads: while it is held, keys cannot be looked up.
        app.get("/payment/list").await.data();
        let (release, released) = watch::channel(false);
        let (holds, mut held) = watch::channel(false);
        let host = app.app.clone();
        let hold = tokio::spawn(async move {
            let hold = host.store.read(async |_| -> store::Result<()> {
                holds.send_replace(true);
                released.clone().wait_for(|released| *released).await.expect("an open channel");
                Ok(())
            });
            hold.await
        });
        held.wait_for(|held| *held).await.expect("a held connection");
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
        timeout(TIMEOUT, refused).await.expect("a refusal");
        let mut known = list(&app.company.key);
        let waits = timeout(Duration::from_millis(200), &mut known).await;
        assert!(waits.is_err(), "the known client was rejected: {waits:?}");
        release.send_replace(true);
        hold.await.expect("no panic").expect("a transaction");
        known.await.expect("no panic").data();
        let mut statuses = Vec::new();
        for response in unknown {
            statuses.push(response.await.expect("no panic").status.as_u16());
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [401, 503, 503, 503]);
    }

    async fn a_starting_host_knows_recently_used_keys(app: TestApp) {
        let unused = app.new_company("Beta Lending").await;
        let revoked = app.new_company("Gamma Lending").await;
        for company in [&app.company, &revoked] {
            app.request(company, Method::GET, "/payment/list", None).await.data();
        }
        app.app.tasks.wait_until_idle().await;
        let keys = format!("/companies/{}/keys", revoked.id);
        let key = app.operator(Method::GET, &keys, Value::Null).await.data()[0]["id"].clone();
        let path = format!("{keys}/{}", key.as_str().expect("an id"));
        assert_eq!(app.operator(Method::DELETE, &path, Value::Null).await.status, 200);
        let known = async || {
            let settings = config(&app.database, &[]);
            let host = App::open(&settings, app.app.clock.clone(), Random::system(), None).await;
            let host = host.expect("a host that starts");
            [&app.company, &unused, &revoked].map(|company| host.slot::<AcceptedKeys>().contains(&company.key))
        };
        assert_eq!(known().await, [true, false, false]);
        app.advance(7 * 86_400 - 60).await;
        assert_eq!(known().await, [true, false, false]);
        app.advance(120).await;
        assert_eq!(known().await, [false, false, false]);
    }
}
