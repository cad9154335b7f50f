//! Webhooks to companies: signing, retries, disabling and redelivery.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::http::{HeaderMap, StatusCode};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};
use tollhouse_app::{routes, state::App};
use tollhouse_platform::random::Random;

use crate::app::{OPERATOR_TOKEN, TestApp};

/// A status and an optional header.
type ScriptedResponse = (StatusCode, Option<(&'static str, String)>);

/// A webhook receiver whose responses a test can change while it runs.
#[derive(Clone, Default)]
pub struct Receiver {
    pub url: String,
    /// Sent one by one; all further responses are 200.
    responses: Arc<Mutex<VecDeque<ScriptedResponse>>>,
    pub got: Arc<Mutex<Vec<(HeaderMap, String)>>>,
    /// Delays the next response until the test sends.
    held: Arc<Mutex<Option<oneshot::Receiver<()>>>>,
}

impl Receiver {
    pub async fn start() -> Receiver {
        Receiver::start_at("127.0.0.1:0").await
    }

    pub async fn start_at(address: &str) -> Receiver {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
        let receiver = Receiver { url, ..Receiver::default() };
        let state = receiver.clone();
        let hook = async move |headers: HeaderMap, body: String| {
            let response = state.respond(headers, body);
            let held = state.held.lock().unwrap().take();
            if let Some(released) = held {
                released.await.expect("a test that still runs");
            }
            response
        };
        let router = axum::Router::new().route("/hook", axum::routing::post(hook));
        tokio::spawn(axum::serve(listener, router).into_future());
        receiver
    }

    fn respond(&self, headers: HeaderMap, body: String) -> (StatusCode, HeaderMap) {
        self.got.lock().unwrap().push((headers, body));
        let response = self.responses.lock().unwrap().pop_front();
        let (status, header) = response.unwrap_or((StatusCode::OK, None));
        let header = header.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        (status, header.into_iter().collect())
    }

    /// Holds the response to the next request until the test sends.
    pub fn hold_next(&self) -> oneshot::Sender<()> {
        let (release, released) = oneshot::channel();
        *self.held.lock().unwrap() = Some(released);
        release
    }

    pub async fn wait_for(&self, count: usize) {
        while self.count() < count {
            tokio::task::yield_now().await;
        }
    }

    pub fn queue_responses(&self, times: usize, status: u16) {
        let status = StatusCode::from_u16(status).unwrap();
        self.responses.lock().unwrap().extend((0..times).map(|_| (status, None)));
    }

    pub fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    fn header(&self, n: usize, name: &str) -> String {
        self.got.lock().unwrap()[n].0[name].to_str().unwrap().to_owned()
    }
}

/// Starts a receiver and sends the company's events to it.
pub async fn receive(app: &TestApp) -> Receiver {
    let receiver = Receiver::start().await;
    set_event_url(app, json!(receiver.url)).await;
    receiver
}

pub async fn set_event_url(app: &TestApp, url: Value) {
    let path = format!("/companies/{}", app.company.id);
    app.operator(Method::PATCH, &path, json!({ "event_url": url })).await.data();
}

/// Makes a successful payment, which emits one event.
pub async fn succeed(app: &TestApp, reference: &str) {
    let payment = app.initialize(reference).await;
    app.complete(&payment, "success").await;
    app.run_until_idle().await;
}

/// Returns the company's newest event, as operators see it.
pub async fn newest(app: &TestApp) -> Value {
    let path = format!("/companies/{}/events?limit=1", app.company.id);
    app.operator(Method::GET, &path, Value::Null).await.data()["docs"][0].clone()
}

async fn attempts(app: &TestApp, event: &Value) -> Vec<Value> {
    let id = event["id"].as_str().unwrap();
    let path = format!("/companies/{}/events/{id}/attempts", app.company.id);
    app.operator(Method::GET, &path, Value::Null).await.data().as_array().unwrap().clone()
}

fn state(event: &Value) -> &str {
    event["deliveries"][0]["state"].as_str().unwrap()
}

async fn queue_redelivery(app: &TestApp, event: &Value) {
    let id = event["id"].as_str().unwrap();
    let path = format!("/companies/{}/events/{id}/redeliver", app.company.id);
    app.operator(Method::POST, &path, Value::Null).await.data();
}

pub async fn redeliver(app: &TestApp, event: &Value) {
    queue_redelivery(app, event).await;
    app.run_until_idle().await;
}

both! {
    async fn an_event_has_the_documented_shape(app: TestApp) {
        let receiver = receive(app).await;
        succeed(app, "order-1").await;
        let (_, body) = receiver.got.lock().unwrap()[0].clone();
        let body: Value = serde_json::from_str(&body).unwrap();
        let payment = app.fetch("order-1").await;
        let fields = [
            "id", "user", "user_id", "email", "payment_service", "amount", "fees", "currency", "reference",
            "status", "narration", "metadata", "paid_at", "payment_channel",
        ];
        let data: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), payment[*field].clone())).collect();
        let expected = json!({
            "company_id": app.company.id, "event": "payment.success", "service": "tollhouse", "data": data,
        });
        assert_eq!(body, expected);
        assert!(receiver.header(0, "webhook-id").starts_with("evt_"));
    }

    async fn a_failing_receiver_gets_eight_attempts_with_one_id(app: TestApp) {
        let receiver = receive(app).await;
        receiver.queue_responses(100, 500);
        succeed(app, "order-1").await;
        let mut seen = vec![receiver.count()];
        // Each delay plus its maximum jitter: a fifth, or 2 s for the first.
        for seconds in [7, 360, 2_160, 8_640, 21_600, 43_200, 43_200, 86_400] {
            app.advance(seconds).await;
            seen.push(receiver.count());
        }
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8, 8]);
        let event = newest(app).await;
        assert_eq!(state(&event), "failed");
        let attempts = attempts(app, &event).await;
        assert_eq!(attempts.len(), 8);
        assert!(attempts.iter().all(|attempt| attempt["status"] == 500));
        let ids: Vec<String> = (0..8).map(|n| receiver.header(n, "webhook-id")).collect();
        assert!(ids.iter().all(|id| event["id"] == id.as_str()));
        assert_ne!(receiver.header(0, "webhook-timestamp"), receiver.header(7, "webhook-timestamp"));

        receiver.responses.lock().unwrap().clear();
        redeliver(app, &event).await;
        assert_eq!(state(&newest(app).await), "delivered");
    }

    async fn a_receiver_that_recovers_gets_its_event(app: TestApp) {
        let receiver = receive(app).await;
        receiver.queue_responses(2, 503);
        succeed(app, "order-1").await;
        app.advance(3_600).await;
        assert_eq!(receiver.count(), 3);
        assert_eq!(state(&newest(app).await), "delivered");
    }

    async fn retry_after_is_honoured(app: TestApp) {
        let receiver = receive(app).await;
        let patience = Some(("retry-after", "600".to_owned()));
        receiver.responses.lock().unwrap().push_back((StatusCode::TOO_MANY_REQUESTS, patience));
        succeed(app, "order-1").await;
        app.advance(590).await;
        assert_eq!(receiver.count(), 1);
        app.advance(20).await;
        assert_eq!(receiver.count(), 2);
    }

    async fn a_url_that_responds_410_is_disabled_until_it_is_set_again(app: TestApp) {
        let receiver = receive(app).await;
        receiver.queue_responses(1, 410);
        succeed(app, "order-1").await;
        assert_eq!(state(&newest(app).await), "disabled");
        succeed(app, "order-2").await;
        assert_eq!(receiver.count(), 1);
        let unsent = newest(app).await;
        assert_eq!(state(&unsent), "disabled");

        set_event_url(app, json!(receiver.url)).await;
        succeed(app, "order-3").await;
        assert_eq!(receiver.count(), 2);
        redeliver(app, &unsent).await;
        assert_eq!(receiver.count(), 3);
    }

    async fn five_days_of_failures_disable_a_url(app: TestApp) {
        let receiver = receive(app).await;
        receiver.queue_responses(1_000, 500);
        for day in 0..5 {
            succeed(app, &format!("order-{day}")).await;
            assert_eq!(state(&newest(app).await), "pending");
            app.advance(86_400).await;
        }
        succeed(app, "order-5").await;
        assert_eq!(state(&newest(app).await), "disabled");
        let tries = receiver.count();
        succeed(app, "order-6").await;
        assert_eq!(receiver.count(), tries);
    }

    async fn failures_a_week_apart_do_not_disable_a_url(app: TestApp) {
        let receiver = receive(app).await;
        receiver.queue_responses(1_000, 500);
        for week in 0..3 {
            succeed(app, &format!("order-{week}")).await;
            assert_eq!(state(&newest(app).await), "pending", "week {week}");
            app.advance(7 * 86_400).await;
        }
    }

    async fn a_redelivery_queued_during_a_delivery_is_sent(app: TestApp) {
        let receiver = receive(app).await;
        for (reference, status) in [("order-1", 200), ("order-2", 410)] {
            app.advance(1).await; // so that one event is the newest
            let (before, release) = (receiver.count(), receiver.hold_next());
            receiver.queue_responses(1, status);
            tokio::join!(succeed(app, reference), async {
                receiver.wait_for(before + 1).await;
                queue_redelivery(app, &newest(app).await).await;
                release.send(()).unwrap();
            });
            let event = newest(app).await;
            assert_eq!((receiver.count() - before, state(&event)), (2, "delivered"), "{status}");
            assert_eq!(attempts(app, &event).await.len(), 2);
        }
    }

    async fn a_concurrent_success_does_not_enable_a_url_disabled_by_410(app: TestApp) {
        let receiver = receive(app).await;
        for reference in ["order-1", "order-2"] {
            succeed(app, reference).await;
        }
        let list = format!("/companies/{}/events", app.company.id);
        let events = async || {
            let events = app.operator(Method::GET, &list, Value::Null).await;
            events.data()["docs"].as_array().unwrap().clone()
        };
        for event in events().await {
            queue_redelivery(app, &event).await;
        }
        let release = receiver.hold_next();
        receiver.queue_responses(1, 200);
        receiver.queue_responses(1, 410);
        tokio::join!(app.run_until_idle(), async {
            receiver.wait_for(4).await;
            while events().await.iter().any(|event| state(event) != "disabled") {}
            release.send(()).unwrap();
        });
        for event in events().await {
            assert_eq!((state(&event), attempts(app, &event).await.len()), ("disabled", 2));
        }
        succeed(app, "order-3").await;
        assert_eq!(receiver.count(), 4);
    }

    async fn a_callback_url_gets_the_event_too_but_never_twice(app: TestApp) {
        let (registered, callback) = (receive(app).await, Receiver::start().await);
        for (reference, url) in [("order-1", &callback.url), ("order-2", &registered.url)] {
            let mut order = app.order(reference);
            order["callback_url"] = json!(url);
            let payment = app.post("/payment/initialize", order).await.data().clone();
            app.complete(&payment, "success").await;
            app.run_until_idle().await;
        }
        assert_eq!((registered.count(), callback.count()), (2, 1));
        assert_eq!(registered.header(0, "webhook-id"), callback.header(0, "webhook-id"));
    }

    async fn redirects_are_failures(app: TestApp) {
        let (receiver, elsewhere) = (receive(app).await, Receiver::start().await);
        let location = Some(("location", elsewhere.url.clone()));
        receiver.responses.lock().unwrap().push_back((StatusCode::TEMPORARY_REDIRECT, location));
        succeed(app, "order-1").await;
        assert_eq!((receiver.count(), elsewhere.count()), (1, 0));
        assert_eq!(attempts(app, &newest(app).await).await[0]["status"], 307);
    }

    async fn events_to_private_or_plain_http_addresses_are_not_sent(app: TestApp) {
        for url in ["http://10.0.0.1/hook", "https://169.254.169.254/latest", "http://example.com/plain"] {
            set_event_url(app, json!(url)).await;
            succeed(app, url.trim_start_matches("http://").trim_start_matches("https://")).await;
            let attempts = attempts(app, &newest(app).await).await;
            assert_eq!(attempts[0]["status"], Value::Null);
            assert!(attempts[0]["error"].as_str().unwrap().starts_with("the request is not permitted"), "{url}");
        }
    }

    async fn an_event_can_be_redelivered_to_a_url_set_later(app: TestApp) {
        set_event_url(app, Value::Null).await;
        succeed(app, "order-1").await;
        let event = newest(app).await;
        let (first, second) = (receive(app).await, Receiver::start().await);
        for (url, counts) in [(&first.url, (1, 0)), (&second.url, (2, 1)), (&second.url, (3, 2))] {
            set_event_url(app, json!(url)).await;
            redeliver(app, &event).await;
            assert_eq!((first.count(), second.count()), counts);
        }
        assert_eq!(newest(app).await["deliveries"].as_array().unwrap().len(), 2);
    }

    async fn an_event_of_a_company_without_url_is_kept_but_not_sent(app: TestApp) {
        set_event_url(app, Value::Null).await;
        succeed(app, "order-1").await;
        let event = newest(app).await;
        assert_eq!(event["event"], "payment.success");
        assert_eq!(event["deliveries"], json!([]));
        redeliver(app, &event).await; // still without a URL
        assert_eq!(newest(app).await["deliveries"], json!([]));
        let unknown = format!("/companies/{}/events/evt_x/redeliver", app.company.id);
        assert_eq!(app.operator(Method::POST, &unknown, Value::Null).await.failure(), (404, "event not found"));
    }
}

/// Starts another host on this database outside development mode. Returns the URLs of its public
/// and internal listeners.
pub async fn production_host(app: &TestApp) -> (String, String) {
    let mut config = crate::app::config(&app.database, &[]);
    config.service.development = false;
    config.database.database_as_owner = true;
    let host = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
    let host = host.expect("a host that starts");
    let serve = async |routes| {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        tokio::spawn(axum::serve(listener, routes::router(&host, routes)).into_future());
        url
    };
    (serve(routes::public_routes()).await, serve(routes::internal_routes()).await)
}

both! {
    async fn event_urls_must_be_https_outside_development_mode(app: TestApp) {
        let (api, internal) = production_host(app).await;
        let operator = async |method: Method, path: &str, body: Value| {
            let request = app.client.request(method, format!("{internal}/internal/v1{path}"));
            crate::app::reply(request.bearer_auth(OPERATOR_TOKEN).json(&body)).await
        };
        let refused = (400, "the event_url field must be an https URL");
        let company = json!({ "name": "Acme", "server": "live", "event_url": "http://acme.example/" });
        assert_eq!(operator(Method::POST, "/companies", company).await.failure(), refused);
        let edit = format!("/companies/{}", app.company.id);
        for (url, result) in [("HTTP://acme.example/", Err(refused)), ("https://acme.example/", Ok(()))] {
            let edited = operator(Method::PATCH, &edit, json!({ "event_url": url })).await;
            match result {
                Ok(()) => assert_eq!(edited.data()["event_url"], url),
                Err(refused) => assert_eq!(edited.failure(), refused),
            }
        }
        let mut order = app.order("order-1");
        order["callback_url"] = json!("http://127.0.0.1/callback");
        let request = app.client.post(format!("{api}/api/v1/payment/initialize"));
        let response = crate::app::reply(request.bearer_auth(&app.company.key).json(&order)).await;
        assert_eq!(response.failure(), (400, "the callback_url field must be an https URL"));
        let advance = operator(Method::POST, "/clock/advance", json!({ "seconds": 1 })).await;
        assert_eq!(advance.failure().0, 403);
    }
}
