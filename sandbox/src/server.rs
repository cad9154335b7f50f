//! The HTTP server: all routes, and a custom accept loop, because a fault must be able to drop a
//! connection. SMTP uses the same loop.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, Uri},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post, put},
};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tower::ServiceExt;

use crate::{
    Fault, Simulators, africastalking,
    faults::{Faults, inject},
    flutterwave, jenga, momo, monnify, mpesa, pages, paystack,
    registers::{self, dojah, prembly},
    termii, twilio,
};

/// Delay after a failed accept (for example without free file descriptors), to avoid a busy loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The connection of a request, which each request carries as an extension.
#[derive(Clone, Default)]
pub(crate) struct Connection(Arc<Notify>);

impl Connection {
    /// Drops the connection and thus the client; never returns.
    pub(crate) async fn abort(&self) -> Response {
        self.0.notify_one();
        std::future::pending().await
    }
}

pub(crate) fn router(simulators: Simulators) -> Router {
    let faults = simulators.faults().clone();
    let env = simulators.0.env.clone();
    Router::new()
        .route("/", get(pages::front_page))
        .route("/checkout/{id}", get(pages::show_checkout).post(pages::submit_checkout))
        .route("/checkout/{id}/complete", post(pages::complete_checkout))
        .route("/phone/{number}", get(pages::show_phone).post(pages::submit_answer))
        .route("/phone/{number}/answer", post(pages::answer_prompt))
        .route("/mailbox", get(mailbox))
        .route("/mailbox/{id}/html", get(pages::show_html))
        .route("/events", with_faults(&faults, "events", post(receive_event)))
        .route("/events/secret", put(set_event_secret))
        .route("/events.json", get(list_events))
        .route("/faults", get(list_faults).post(push_fault).delete(clear_faults))
        .route("/faults/release", post(release))
        .nest("/paystack", paystack::router(simulators.paystack(), &faults))
        .nest("/flutterwave", flutterwave::router(simulators.flutterwave(), &faults))
        .nest("/monnify", monnify::router(simulators.monnify(), &faults))
        .nest("/momo", momo::router(simulators.momo(), &faults))
        .nest("/mpesa", mpesa::router(simulators.mpesa(), &faults))
        .nest("/jenga", jenga::router(simulators.jenga(), &faults))
        .nest("/termii/api", termii::router(&env))
        .nest("/africastalking", africastalking::router(&env))
        .nest("/twilio", twilio::router(&env))
        .nest("/prembly", prembly::router(&env))
        .nest("/dojah", dojah::router(&env))
        .nest("/images", registers::pictures())
        .with_state(simulators)
}

/// A route whose calls can fail by faults scripted under this name.
pub(crate) fn with_faults<S: Clone + Send + Sync + 'static>(
    faults: &Faults,
    operation: &'static str,
    route: MethodRouter<S>,
) -> MethodRouter<S> {
    route.route_layer(from_fn_with_state((faults.clone(), operation), inject))
}

/// Accepts connections forever, each in a task of its own.
pub(crate) async fn accept<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Disables Nagle's algorithm; if that fails, the socket still works.
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve(stream));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

pub(crate) async fn serve_http(stream: TcpStream, router: Router) {
    let connection = Connection::default();
    let cut = connection.0.clone();
    let service = hyper::service::service_fn(move |mut request: hyper::Request<_>| {
        request.extensions_mut().insert(connection.clone());
        normalize_path(request.uri_mut());
        router.clone().oneshot(request)
    });
    tokio::select! {
        biased;
        () = cut.notified() => {}
        result = http1::Builder::new().serve_connection(TokioIo::new(stream), service) => {
            if let Err(error) = result {
                tracing::debug!(%error, "connection ended early");
            }
        }
    }
}

/// Normalizes `/refund/` and `//refund` to `/refund`, as providers do: some client libraries send
/// such paths.
fn normalize_path(uri: &mut Uri) {
    let (path, query) = (uri.path(), uri.query());
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    let tidy = format!("/{}", steps.join("/"));
    if tidy == path {
        return;
    }
    let target = match query {
        Some(query) => format!("{tidy}?{query}"),
        None => tidy,
    };
    if let Ok(target) = target.parse() {
        *uri = target;
    }
}

#[derive(Deserialize)]
struct MailboxQuery {
    to: Option<String>,
}

async fn mailbox(
    State(simulators): State<Simulators>,
    Query(query): Query<MailboxQuery>,
) -> impl IntoResponse {
    Json(simulators.mailbox().list(query.to.as_deref()))
}

async fn receive_event(State(simulators): State<Simulators>, headers: HeaderMap, body: String) {
    simulators.0.events.receive(&headers, body, simulators.0.env.clock.now());
}

#[derive(Deserialize)]
struct EventSecret {
    company_id: String,
    secret: String,
}

/// Control endpoint of the simulators: registers the secret that signs a company's events.
async fn set_event_secret(State(simulators): State<Simulators>, body: String) -> Response {
    match serde_json::from_str::<EventSecret>(&body) {
        Ok(EventSecret { company_id, secret }) if secret.starts_with("whsec_") => {
            simulators.set_event_secret(&company_id, &secret);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => error_response(
            StatusCode::BAD_REQUEST,
            "company_id and secret (whsec_...) are required",
        ),
    }
}

async fn list_events(State(simulators): State<Simulators>) -> impl IntoResponse {
    Json(simulators.events())
}

async fn list_faults(State(simulators): State<Simulators>) -> impl IntoResponse {
    Json(simulators.faults().list())
}

async fn push_fault(State(simulators): State<Simulators>, body: String) -> Response {
    let fault = serde_json::from_str::<Fault>(&body)
        .map_err(|error| error.to_string())
        .and_then(|fault| fault.validate().map(|()| fault));
    match fault {
        Ok(fault) => {
            simulators.faults().push_unchecked(fault);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(reason) => error_response(StatusCode::BAD_REQUEST, &reason),
    }
}

async fn clear_faults(State(simulators): State<Simulators>) -> StatusCode {
    simulators.faults().clear();
    StatusCode::NO_CONTENT
}

async fn release(State(simulators): State<Simulators>) -> impl IntoResponse {
    Json(json!({ "released": simulators.release() }))
}

pub(crate) fn error_response(status: StatusCode, reason: &str) -> Response {
    (status, Json(json!({ "error": reason }))).into_response()
}
