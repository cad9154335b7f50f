//! Event endpoints: several receivers of a company's events, each with its types and its secret.

use axum::http::HeaderMap;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tollhouse_app::{routes, webhooks::outgoing};

use crate::{
    app::{Company, TestApp},
    events::{Receiver, newest, production_host, receive, redeliver, set_event_url, succeed},
};

/// Creates an event endpoint, by default for all events to a URL that does not exist.
pub async fn create(app: &TestApp, company: &Company, fields: Value) -> Value {
    let mut body = json!({ "url": "https://books.example/events" });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let path = format!("/companies/{}/event-endpoints", company.id);
    app.operator(Method::POST, &path, body).await.data().clone()
}

/// Creates an inactive endpoint with a previous secret.
pub async fn create_rotated(app: &TestApp) {
    let endpoint = create(app, &app.company, json!({ "active": false })).await;
    rotate(app, &endpoint).await;
}

/// Starts a receiver, and creates an endpoint of these types for it. Returns both.
async fn receive_at_endpoint(app: &TestApp, types: &[&str]) -> (Receiver, Value) {
    let receiver = Receiver::start().await;
    let fields = json!({ "url": receiver.url, "types": types });
    let endpoint = create(app, &app.company, fields).await;
    (receiver, endpoint)
}

async fn change(app: &TestApp, method: Method, endpoint: &Value, body: Value) -> Value {
    let id = endpoint["id"].as_str().unwrap();
    let path = format!("/companies/{}/event-endpoints/{id}", app.company.id);
    let response = app.operator(method, &path, body).await;
    assert_eq!(response.status, 200, "{}", response.body);
    response.body["data"].clone()
}

async fn rotate(app: &TestApp, endpoint: &Value) -> String {
    let id = endpoint["id"].as_str().unwrap();
    let path = format!("/companies/{}/event-endpoints/{id}/secret/rotate", app.company.id);
    secret(app.operator(Method::POST, &path, json!({})).await.data())
}

fn secret(endpoint: &Value) -> String {
    endpoint["secret"].as_str().expect("a secret").to_owned()
}

/// Returns whether a webhook is signed with a secret.
pub fn is_signed_with((headers, body): &(HeaderMap, String), secret: &str) -> bool {
    let header = |name: &str| headers[name].to_str().unwrap();
    let key = BASE64.decode(secret.strip_prefix("whsec_").expect("whsec_")).expect("base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(
        format!("{}.{}.{body}", header("webhook-id"), header("webhook-timestamp")).as_bytes(),
    );
    let wanted = format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()));
    header("webhook-signature").split(' ').any(|given| given == wanted)
}

/// Asserts that the last webhook of a receiver is signed with exactly one of these secrets for each
/// signature.
#[track_caller]
fn assert_signed(receiver: &Receiver, secrets: &[&str]) {
    let last = receiver.got.lock().unwrap().last().expect("a webhook").clone();
    let signatures = last.0["webhook-signature"].to_str().unwrap().split(' ').count();
    assert_eq!(signatures, secrets.len());
    assert!(secrets.iter().all(|secret| is_signed_with(&last, secret)));
}

/// Returns the states of an event's deliveries by URL.
fn states(event: &Value, receiver: &Receiver) -> Vec<String> {
    let all = event["deliveries"].as_array().unwrap().iter();
    let of = all.filter(|delivery| delivery["url"] == receiver.url.as_str());
    of.map(|delivery| delivery["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn endpoints_can_select_every_documented_type() {
    let documented: Vec<&str> = routes::webhooks().iter().map(|webhook| webhook.kind).collect();
    let mut types = outgoing::TYPES.to_vec();
    types.sort_unstable();
    let mut sorted = documented.clone();
    sorted.sort_unstable();
    assert_eq!(types, sorted);
}

both! {
    async fn each_matching_endpoint_gets_an_event_signed_with_its_own_secret(app: TestApp) {
        let registered = receive(app).await;
        let (all, of_all) = receive_at_endpoint(app, &[]).await;
        let (paid, of_paid) = receive_at_endpoint(app, &["payment.success", "payment.failed"]).await;
        let (refunds, _) = receive_at_endpoint(app, &["payment.refunded"]).await;
        succeed(app, "order-1").await;
        let counts = [&registered, &all, &paid, &refunds].map(Receiver::count);
        assert_eq!(counts, [1, 1, 1, 0]);
        assert_signed(&registered, &[&app.company.event_secret]);
        assert_signed(&all, &[&secret(&of_all)]);
        assert_signed(&paid, &[&secret(&of_paid)]);
        let bodies = [&registered, &all, &paid].map(|receiver| receiver.got.lock().unwrap()[0].clone());
        assert!(bodies.iter().all(|(headers, body)| *body == bodies[0].1 && headers["webhook-id"] == bodies[0].0["webhook-id"]));

        // A failing endpoint is retried and disabled without the others.
        app.advance(1).await; // so that one event is the newest
        paid.queue_responses(1, 410);
        all.queue_responses(1, 500);
        succeed(app, "order-2").await;
        app.advance(10).await;
        let event = newest(app).await;
        assert_eq!([&registered, &all, &paid].map(|receiver| states(&event, receiver).concat()), ["delivered", "delivered", "disabled"]);
        succeed(app, "order-3").await;
        assert_eq!([&registered, &all, &paid].map(Receiver::count), [3, 4, 2]);
        // Its URL is set again.
        change(app, Method::PATCH, &of_paid, json!({ "url": paid.url })).await;
        succeed(app, "order-4").await;
        assert_eq!([&registered, &all, &paid].map(Receiver::count), [4, 5, 3]);
    }

    async fn a_url_gets_an_event_once_with_the_signatures_of_all_its_secrets(app: TestApp) {
        let (receiver, endpoint) = receive_at_endpoint(app, &["payment.refunded"]).await;
        set_event_url(app, Value::Null).await;
        let mut order = app.order("order-1");
        order["callback_url"] = json!(receiver.url);
        let payment = app.post("/payment/initialize", order).await.data().clone();
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(receiver.count(), 1);
        assert_signed(&receiver, &[&app.company.event_secret, &secret(&endpoint)]);
        set_event_url(app, json!(receiver.url)).await;
        succeed(app, "order-2").await;
        assert_eq!(receiver.count(), 2);
        assert_signed(&receiver, &[&app.company.event_secret, &secret(&endpoint)]);
        // Without the endpoint, the URL remains the company's own.
        change(app, Method::DELETE, &endpoint, Value::Null).await;
        succeed(app, "order-3").await;
        assert_eq!(receiver.count(), 3);
        assert_signed(&receiver, &[&app.company.event_secret]);
    }

    async fn deliveries_to_an_endpoint_end_with_it(app: TestApp) {
        set_event_url(app, Value::Null).await;
        let (elsewhere, mut moved) = (Receiver::start().await, 0);
        for (method, body) in [
            (Method::PATCH, json!({ "active": false })),
            (Method::PATCH, json!({ "url": elsewhere.url })),
            (Method::DELETE, Value::Null),
        ] {
            let (receiver, endpoint) = receive_at_endpoint(app, &[]).await;
            receiver.queue_responses(1, 500);
            succeed(app, &receiver.url).await;
            assert_eq!(states(&newest(app).await, &receiver), ["pending"]);
            change(app, method.clone(), &endpoint, body.clone()).await;
            let event = newest(app).await;
            assert_eq!(states(&event, &receiver), ["disabled"]);
            app.advance(3_600).await;
            redeliver(app, &event).await;
            moved += usize::from(body["url"].is_string());
            assert_eq!((receiver.count(), elsewhere.count()), (1, moved));
            assert_eq!(states(&newest(app).await, &receiver), ["disabled"]);
            if method == Method::PATCH {
                // Active at this URL again.
                change(app, Method::PATCH, &endpoint, json!({ "active": true, "url": receiver.url })).await;
                assert_eq!(receiver.count(), 1);
                redeliver(app, &event).await;
                assert_eq!(receiver.count(), 2);
                assert_signed(&receiver, &[&secret(&endpoint)]);
                change(app, Method::DELETE, &endpoint, Value::Null).await;
            }
            app.advance(1).await; // so that the next event is the newest
        }
    }

    async fn a_delivery_that_was_queued_while_its_endpoint_was_deleted_ends(app: TestApp) {
        set_event_url(app, Value::Null).await;
        let (receiver, endpoint) = receive_at_endpoint(app, &[]).await;
        let payment = app.initialize("order-1").await;
        receiver.queue_responses(1, 500);
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        let id = endpoint["id"].as_str().unwrap().to_owned();
        // As if both transactions had run at the same time.
        let deleted = app.app.store.write(async move |tx| {
            tx.sql("DELETE FROM event_endpoints WHERE id = $1").bind(&id).run().await
        });
        assert_eq!(deleted.await.unwrap(), 1);
        assert_eq!(states(&newest(app).await, &receiver), ["pending"]);
        app.advance(10).await;
        assert_eq!((states(&newest(app).await, &receiver), receiver.count()), (vec!["disabled".to_owned()], 1));
    }

    async fn an_event_can_be_redelivered_to_an_endpoint_created_later(app: TestApp) {
        set_event_url(app, Value::Null).await;
        succeed(app, "order-1").await;
        let event = newest(app).await;
        let (receiver, endpoint) = receive_at_endpoint(app, &["payment.success"]).await;
        let (other, _) = receive_at_endpoint(app, &["payment.failed"]).await;
        redeliver(app, &event).await;
        assert_eq!((receiver.count(), other.count()), (1, 0));
        assert_signed(&receiver, &[&secret(&endpoint)]);
        // The URL of a deleted endpoint becomes that of the company.
        change(app, Method::DELETE, &endpoint, Value::Null).await;
        set_event_url(app, json!(receiver.url)).await;
        redeliver(app, &event).await;
        assert_eq!(receiver.count(), 2);
        assert_signed(&receiver, &[&app.company.event_secret]);
    }

    async fn a_rotated_secret_signs_beside_the_new_one_for_a_day(app: TestApp) {
        let (receiver, endpoint) = receive_at_endpoint(app, &[]).await;
        let second = rotate(app, &endpoint).await;
        assert_ne!(secret(&endpoint), second);
        succeed(app, "order-1").await;
        assert_signed(&receiver, &[&second, &secret(&endpoint)]);
        app.advance(86_400).await;
        succeed(app, "order-2").await;
        assert_signed(&receiver, &[&second]);
        let path = format!("/companies/{}/event-endpoints", app.company.id);
        let listed = app.operator(Method::GET, &path, Value::Null).await.data().to_string();
        assert!(!listed.contains("whsec_") && !listed.contains("secret"), "{listed}");
    }

    async fn fields_of_endpoints_are_checked(app: TestApp) {
        let path = format!("/companies/{}/event-endpoints", app.company.id);
        let post = async |body: Value| app.operator(Method::POST, &path, body).await;
        let types = outgoing::TYPES.join(", ");
        for (body, message) in [
            (json!({}), "the url field is required".to_owned()),
            (json!({ "url": "ftp://a.example/" }), "the url field must be a valid http or https URL".to_owned()),
            (json!({ "url": "https://a.example/", "types": ["payment.sucess"] }), format!("the types field must be any of {types}")),
        ] {
            assert_eq!(post(body).await.failure(), (400, &*message));
        }
        let first = create(app, &app.company, json!({ "url": "http://10.0.0.0/" })).await;
        for n in 1..10 {
            create(app, &app.company, json!({ "url": format!("http://10.0.0.{n}/") })).await;
        }
        let eleventh = post(json!({ "url": "https://11.example/" })).await;
        assert_eq!(eleventh.failure(), (400, "the company has 10 event endpoints, which is the maximum"));
        let listed = app.operator(Method::GET, &path, Value::Null).await.data().clone();
        assert_eq!(listed.as_array().unwrap().len(), 10);
        let taken = app.operator(Method::PATCH, &format!("{path}/{}", first["id"].as_str().unwrap()), json!({ "url": "http://10.0.0.1/" })).await;
        assert_eq!(taken.failure(), (400, "the url field must be the URL of no other event endpoint"));
        let edited = change(app, Method::PATCH, &first, json!({ "types": ["payment.failed"], "description": "x" })).await;
        assert_eq!((&edited["types"], &edited["description"]), (&json!(["payment.failed"]), &json!("x")));
        let edited = change(app, Method::PATCH, &first, json!({ "types": null, "description": "" })).await;
        assert_eq!((&edited["types"], &edited["description"], &edited["url"]), (&json!([]), &Value::Null, &first["url"]));

        // Another company has its own endpoints, and reaches no other.
        let other = app.new_company("Beta Lending").await;
        let theirs = create(app, &other, json!({ "url": "http://10.0.0.1/" })).await;
        for (method, rest) in [(Method::PATCH, ""), (Method::DELETE, ""), (Method::POST, "/secret/rotate")] {
            let path = format!("{path}/{}{rest}", theirs["id"].as_str().unwrap());
            assert_eq!(app.operator(method, &path, json!({})).await.failure(), (404, "event endpoint not found"));
        }
        succeed(app, "order-1").await;
        let urls = newest(app).await["deliveries"].as_array().unwrap().len();
        assert_eq!(urls, 11);
    }

    async fn endpoints_must_be_https_outside_development_mode(app: TestApp) {
        let (_, internal) = production_host(app).await;
        let path = format!("{internal}/internal/v1/companies/{}/event-endpoints", app.company.id);
        let send = async |method: Method, path: &str, url: &str| {
            let request = app.client.request(method, path).bearer_auth(crate::app::OPERATOR_TOKEN);
            crate::app::reply(request.json(&json!({ "url": url }))).await
        };
        let refused = (400, "the url field must be an https URL");
        assert_eq!(send(Method::POST, &path, "http://a.example/").await.failure(), refused);
        let endpoint = send(Method::POST, &path, "https://a.example/").await.data().clone();
        let one = format!("{path}/{}", endpoint["id"].as_str().unwrap());
        assert_eq!(send(Method::PATCH, &one, "http://a.example/").await.failure(), refused);
        send(Method::PATCH, &one, "https://b.example/").await.data();
    }
}
