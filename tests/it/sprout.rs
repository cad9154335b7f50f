//! The environment of the smallest provider: its upstream, its webhooks, and changed manifests.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::HeaderMap,
    routing::{get, post},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{RwLock, watch},
};
use tollhouse_plugins::Manifest;

use crate::app::{Reply, TestApp, reply};

pub const TOKEN: &str = "sprout_token_of_the_service";

/// An upstream with Sprout's protocol.
#[derive(Clone, Default)]
pub struct SproutUpstream {
    pub url: String,
    /// Status, amount and currency by reference.
    pub sessions: Arc<Mutex<BTreeMap<String, Value>>>,
    pub began: Arc<watch::Sender<usize>>,
    /// Loses the response to the next request for a session.
    pub loses_response: Arc<AtomicBool>,
    /// Holds back responses while it is locked for writing.
    pub gate: Arc<RwLock<()>>,
}

impl SproutUpstream {
    pub async fn start() -> SproutUpstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let upstream = SproutUpstream { url, ..SproutUpstream::default() };
        let router = Router::new()
            .route("/sessions", post(SproutUpstream::begin))
            .route("/sessions/{reference}", get(SproutUpstream::show))
            .fallback(async || (StatusCode::NOT_FOUND, Json(Value::Null)))
            .with_state(upstream.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        upstream
    }

    async fn begin(
        State(upstream): State<SproutUpstream>,
        headers: HeaderMap,
        Json(request): Json<Value>,
    ) -> (StatusCode, Json<Value>) {
        if !is_authentic(&headers) {
            return (StatusCode::UNAUTHORIZED, Json(Value::Null));
        }
        let reference = request["ref"].as_str().expect("a reference").to_owned();
        let url = format!("{}/pay/{reference}", upstream.url);
        let mut session = json!({
            "status": "open", "amount": request["amount"], "currency": request["currency"],
        });
        if let Some(url) = request.get("notify") {
            session["notify"] = url.clone();
        }
        upstream.sessions.lock().unwrap().insert(reference, session);
        upstream.began.send_modify(|began| *began += 1);
        let _open = upstream.gate.read().await;
        if upstream.loses_response.swap(false, Ordering::Relaxed) {
            return (StatusCode::GATEWAY_TIMEOUT, Json(Value::Null));
        }
        (StatusCode::OK, Json(json!({ "url": url })))
    }

    async fn show(
        State(upstream): State<SproutUpstream>,
        Path(reference): Path<String>,
        headers: HeaderMap,
    ) -> (StatusCode, Json<Value>) {
        if !is_authentic(&headers) {
            return (StatusCode::UNAUTHORIZED, Json(Value::Null));
        }
        match upstream.sessions.lock().unwrap().get(&reference) {
            Some(session) => (StatusCode::OK, Json(session.clone())),
            None => (StatusCode::NOT_FOUND, Json(Value::Null)),
        }
    }

    pub fn set_status(&self, reference: &str, status: &str) {
        self.sessions.lock().unwrap().get_mut(reference).expect("a session")["status"] =
            json!(status);
    }

    /// Sets up the service account at this upstream. Returns the webhook URL.
    pub async fn configure_account(&self, app: &TestApp) -> String {
        let set = json!({ "credentials": { "token": TOKEN, "base_url": self.url } });
        let account = app.operator(Method::PUT, "/providers/sprout", set).await.data().clone();
        account["notification_url"].as_str().unwrap().to_owned()
    }
}

fn is_authentic(headers: &HeaderMap) -> bool {
    headers["authorization"] == format!("Bearer {TOKEN}")
}

pub async fn notify(app: &TestApp, url: &str, reference: &str, token: &str) -> Reply {
    let request = app.client.post(url).header("x-sprout-token", token);
    reply(request.json(&json!({ "ref": reference }))).await
}

/// Changes the manifest of a component: an outer section takes precedence over the one inside.
pub fn repack(wasm: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let manifest = Manifest::read(wasm).expect("a guest of ours");
    let mut manifest = serde_json::to_value(manifest).unwrap();
    change(&mut manifest);
    with_manifest(wasm, manifest.to_string().as_bytes())
}

pub fn with_manifest(wasm: &[u8], manifest: &[u8]) -> Vec<u8> {
    let section = [&b"\x12tollhouse:manifest"[..], manifest].concat();
    let mut component = wasm.to_vec();
    component.push(0);
    let mut left = section.len();
    while left >= 0x80 {
        component.push(left as u8 | 0x80);
        left >>= 7;
    }
    component.push(left as u8);
    component.extend(section);
    component
}

pub fn sprout_order(app: &TestApp, reference: &str) -> Value {
    let mut order = app.order(reference);
    order["payment_service"] = json!("sprout");
    order
}

pub async fn start_payment(app: &TestApp, reference: &str) -> Value {
    app.post("/payment/initialize", sprout_order(app, reference)).await.data().clone()
}
