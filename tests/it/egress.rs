//! Private addresses are allowed per purpose: plugins, events or images.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use reqwest::Method;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    app::{Engine, TestApp, postgres},
    identity::{self, BVN},
    unruly::{SECRET, initialize_with_narration},
};

/// An address of this machine that is neither public nor loopback.
const PRIVATE: &str = "0.0.0.0";

/// A listener that records connections and never responds.
struct SilentListener {
    url: String,
    reached: Arc<AtomicBool>,
}

impl SilentListener {
    async fn start() -> SilentListener {
        let listener = TcpListener::bind((PRIVATE, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let reached = Arc::<AtomicBool>::default();
        let noted = reached.clone();
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                noted.store(true, Relaxed);
            }
        });
        SilentListener { url: format!("https://{PRIVATE}:{port}"), reached }
    }
}

/// Returns whether plugins, events and images reach a private address on a host with this flag.
async fn reached(engine: Engine, flag: &str) -> [bool; 3] {
    let app = TestApp::start_with(engine, &[flag]).await;
    let (upstream, receiver, pictures) = (
        SilentListener::start().await,
        SilentListener::start().await,
        SilentListener::start().await,
    );

    app.install(artifacts::UNRULY).await;
    let credentials = json!({ "secret_key": SECRET, "base_url": upstream.url });
    let account = json!({ "credentials": credentials });
    // An account is rejected if no call could reach its upstream.
    if app.operator(Method::PUT, "/providers/unruly", account).await.status == 200 {
        assert_eq!(initialize_with_narration(&app, "order-1", "many 1").await.status, 502);
    }

    identity::set_up(&app).await;
    let body = json!({ "bvn": BVN, "image": format!("{}/selfie.jpg", pictures.url) });
    assert_eq!(app.post("/kyc/nigeria/bvn/lookup/with-face", body).await.status, 400);

    let company = format!("/companies/{}", app.company.id);
    app.operator(Method::PATCH, &company, json!({ "event_url": receiver.url })).await.data();
    let payment = app.initialize("order-2").await;
    app.complete(&payment, "success").await;
    app.run_until_idle().await;
    assert!(app.events().is_empty());
    app.finish().await;
    [upstream, receiver, pictures].map(|bystander| bystander.reached.load(Relaxed))
}

async fn check_each_purpose(engine: Engine) {
    for (flag, expected) in [
        ("--allow-private-plugins=0.0.0.0", [true, false, false]),
        ("--allow-private-events=0.0.0.0", [false, true, false]),
        ("--allow-private-images=0.0.0.0", [false, false, true]),
        ("--allow-private-images=10.0.0.1", [false, false, false]),
    ] {
        assert_eq!(reached(engine.clone(), flag).await, expected, "{flag}");
    }
}

#[tokio::test]
async fn private_addresses_are_allowed_per_purpose_on_sqlite() {
    check_each_purpose(Engine::Sqlite).await;
}

#[tokio::test]
async fn private_addresses_are_allowed_per_purpose_on_postgres() {
    let Some(server) = postgres() else { return };
    check_each_purpose(Engine::Postgres(server)).await;
}
