//! The API log: requests of companies to the API, without their content.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, time::timeout};
use tollhouse_app::{tenants::requests, wiring};
use tollhouse_http::{self as http, Access, CompletedRequest, RequestOrigin};
use tollhouse_platform::store::{self, Tx};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Company, NOW, TestApp, reply},
    telemetry::{execute_sql, metric_value, scrape},
};

const DAY: i64 = 86_400;
/// Stands for personal data in any part of a request.
const MARK: &str = "ada.marked@example.com";
const DROPPED: &str = "tollhouse_api_log_dropped_total";
/// Maximum number of buffered requests of one company.
const SHARE: usize = 1_024;

async fn flush(app: &TestApp) -> usize {
    requests::flush(&app.app).await.expect("saved requests")
}

/// A page of the API log of a company.
async fn page(app: &TestApp, company: &Company, query: &str) -> Value {
    let path = format!("/companies/{}/requests?{query}", company.id);
    app.operator(Method::GET, &path, Value::Null).await.data().clone()
}

/// The requests of a page.
async fn listed(app: &TestApp, company: &Company, query: &str) -> Vec<Value> {
    page(app, company, query).await["requests"].as_array().expect("a list").clone()
}

/// Method, route and status of each request in a list.
fn summaries(requests: &[Value]) -> Vec<String> {
    let text = |request: &Value| {
        let [method, route] = ["method", "route"].map(|name| request[name].as_str().expect("text"));
        format!("{method} {route} {}", request["status"])
    };
    requests.iter().map(text).collect()
}

/// All texts of the table.
async fn stored(app: &TestApp) -> String {
    type Row = (String, String, String, String, Option<String>, Option<String>, Option<String>);
    let rows = async |tx: &mut Tx| {
        let select = "SELECT company_id, id || ' ' || request_id, key_id, method || ' ' || route,
                 address, error, field FROM api_requests";
        tx.sql(select).all().await
    };
    let rows: store::Result<Vec<Row>> = app.app.store.read(rows).await;
    rows.expect("the table").iter().map(|row| format!("{row:?}\n")).collect()
}

/// Sends a request with the mark in its idempotency key, as in `path` and `body`.
async fn send_marked(app: &TestApp, method: &str, path: &str, body: Option<&Value>) {
    let method: Method = method.to_uppercase().parse().expect("a method");
    let request = app.client.request(method, format!("{}{path}", app.api));
    let request = request.bearer_auth(&app.company.key).header("idempotency-key", MARK);
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    request.send().await.expect("a response");
}

/// A completed request of a company.
fn completed(app: &TestApp, company: &Company, n: usize) -> CompletedRequest {
    CompletedRequest {
        company_id: company.id.clone(),
        key_id: "key".to_owned(),
        origin: RequestOrigin { request_id: n.to_string(), address: None },
        began_at: app.app.clock.now(),
        method: "GET",
        route: "/api/v1/payment/list".into(),
        status: 200,
        duration: Duration::from_millis(1),
        error: None,
    }
}

both! {
    async fn requests_are_logged_with_key_route_status_and_error(app: TestApp, "--api-log-days=3") {
        app.initialize("order-1").await;
        app.fetch("order-1").await; // authenticated in the statement that finds the payment
        app.fetch("order-1").await;
        let mut order = app.order("order-2");
        order["checkout"]["success_url"] = json!("not a URL");
        let refused = app.post("/payment/initialize", order).await;
        assert_eq!(refused.status, 400);
        let missing = app.client.get(format!("{}/api/v1/payment/fetch/none", app.api));
        let missing = missing.bearer_auth(&app.company.key).header("x-request-id", "mine-1");
        assert_eq!(reply(missing).await.status, 404);
        // Not authenticated, and of no company.
        let stranger = Company { key: "sk_test_unknown".to_owned(), ..app.company.clone() };
        assert_eq!(app.request(&stranger, Method::GET, "/payment/list", None).await.status, 401);
        app.client.get(format!("{}/health/live", app.api)).send().await.expect("a response");
        app.run_until_idle().await;

        assert_eq!(flush(app).await, 5);
        let requests = listed(app, &app.company, "").await;
        assert_eq!(summaries(&requests), [
            "GET /api/v1/payment/fetch/{id} 404",
            "POST /api/v1/payment/initialize 400",
            "GET /api/v1/payment/fetch/reference/{reference} 200",
            "GET /api/v1/payment/fetch/reference/{reference} 200",
            "POST /api/v1/payment/initialize 200",
        ]);
        let errors: Vec<_> = requests.iter().map(|r| (r["error"].clone(), r["field"].clone())).collect();
        assert_eq!(errors[..3], [
            (json!("not_found"), Value::Null),
            (json!("invalid"), json!("checkout.success_url")),
            (Value::Null, Value::Null),
        ]);
        assert_eq!(requests[0]["request_id"], "mine-1");
        assert_eq!(requests[1]["request_id"], refused.headers["x-request-id"].to_str().expect("text"));
        let keys = format!("/companies/{}/keys", app.company.id);
        let key = app.operator(Method::GET, &keys, Value::Null).await.data()[0].clone();
        for request in &requests {
            assert_eq!((&request["key"], &request["key_prefix"]), (&key["id"], &key["prefix"]));
            assert_eq!(request["created_at"], json!(NOW));
            assert!(request["duration_us"].as_i64().is_some_and(|us| us > 0), "{request}");
            let address: IpAddr = request["address"].as_str().expect("text").parse().expect("an address");
            assert!(address.is_loopback());
        }
    }

    async fn requests_refused_after_authentication_are_logged(app: TestApp, "--api-log-days=3") {
        let limited = json!({ "scopes": ["users.read"] });
        let keys = format!("/companies/{}/keys", app.company.id);
        let made = app.operator(Method::POST, &keys, limited).await.data().clone();
        let key = made["api_key"].as_str().expect("a key").to_owned();
        let id = made["id"].as_str().expect("an id");
        let caller = Company { key, ..app.company.clone() };
        app.request(&caller, Method::GET, "/user/list", None).await.data();
        for path in ["/payment/list", "/payment/fetch/none"] {
            assert_eq!(app.request(&caller, Method::GET, path, None).await.status, 403);
        }
        app.operator(Method::DELETE, &format!("{keys}/{id}"), Value::Null).await;
        // The key of the second one is known to the host until its statement rejects it.
        for path in ["/payment/fetch/none", "/payment/list"] {
            app.request(&caller, Method::GET, path, None).await;
        }
        let suspend = format!("/companies/{}", app.company.id);
        app.operator(Method::PATCH, &suspend, json!({ "active": false })).await.data();
        assert_eq!(app.get("/payment/list").await.status, 403);
        app.app.tasks.wait_until_idle().await;
        flush(app).await;
        let of_key = listed(app, &app.company, &format!("key={id}&outcome=failed")).await;
        assert!(of_key.iter().all(|request| request["error"] == "forbidden"), "{of_key:?}");
        let all = listed(app, &app.company, "").await;
        assert!(all.iter().all(|request| request["status"] != 401), "{all:?}");
        assert_eq!(summaries(&all)[0], "GET /api/v1/payment/list 403");
        assert!(summaries(&of_key).contains(&"GET /api/v1/payment/list 403".to_owned()));
    }

    async fn nothing_is_logged_by_default(app: TestApp) {
        app.initialize("order-1").await;
        assert_eq!(flush(app).await, 0);
        assert_eq!(page(app, &app.company, "").await, json!({ "requests": [], "next": null }));
    }

    async fn the_log_has_no_personal_data_and_no_secret(app: TestApp, "--api-log-days=3") {
        let user = json!({
            "user_id": "ada", "first_name": "Marked", "last_name": "Marked", "email": MARK,
            "metadata": { MARK: MARK },
        });
        app.post("/user/create", user).await.data();
        app.get(&format!("/user/fetch/{MARK}")).await.data();
        let names = [
            "email", "phone", "reference", "amount", "currency", "user_id", "payment_service", "bvn",
            "identifier", "token", "bank_code", "account_number", "narration", "type", "image",
        ];
        let mut body = json!({ MARK: MARK, "metadata": { MARK: MARK }, "data": { MARK: MARK } });
        for name in names {
            body[name] = json!(MARK);
        }
        let mut routes = BTreeSet::new();
        for (_, _, route) in app.routes() {
            if !matches!(route.access, Access::Company(_)) {
                continue;
            }
            let fill = |segment: &'static str| if segment.starts_with('{') { MARK } else { segment };
            let path = route.path.split('/').map(fill).collect::<Vec<_>>().join("/");
            for query in ["", &format!("?{MARK}={MARK}"), &format!("?metadata.{MARK}=%01")] {
                let body = (route.method != "get").then_some(&body);
                send_marked(app, route.method, &format!("{path}{query}"), body).await;
            }
            routes.insert(route.path);
        }
        app.run_until_idle().await;
        assert_eq!(flush(app).await, 2 + 3 * app.routes().iter().filter(|(.., route)| matches!(route.access, Access::Company(_))).count());
        let requests = listed(app, &app.company, "limit=1000").await;
        let logged: BTreeSet<&str> = requests.iter().map(|request| request["route"].as_str().expect("text")).collect();
        assert_eq!(logged, routes);
        for (kind, field) in [("invalid", json!("first_name")), ("invalid", Value::Null), ("not_found", Value::Null)] {
            assert!(requests.iter().any(|r| r["error"] == kind && r["field"] == field), "{kind} {field}");
        }
        let stored = stored(app).await;
        assert!(stored.contains("/api/v1/user/fetch/{email_or_id}"), "{stored}");
        for hidden in ["marked", "Marked", "ada.", "example.com", &app.company.key, "sk_test"] {
            assert!(!stored.contains(hidden), "{hidden} is in {stored}");
        }
    }

    async fn expired_requests_are_deleted(app: TestApp, "--api-log-days=2") {
        app.get("/payment/list").await.data();
        flush(app).await;
        app.advance(DAY).await;
        app.get("/user/list").await.data();
        flush(app).await;
        let sweep = async || requests::sweep(app.app.clone()).await.expect("a sweep");
        assert_eq!(sweep().await, 0);
        app.advance(DAY).await;
        assert_eq!(sweep().await, 0, "kept for two whole days");
        app.advance(1).await;
        assert_eq!(sweep().await, 1);
        assert_eq!(summaries(&listed(app, &app.company, "").await), ["GET /api/v1/user/list 200"]);
        app.advance(DAY).await;
        assert_eq!(sweep().await, 1);
    }

    async fn a_flood_of_one_company_leaves_room_for_another(app: TestApp, "--api-log-days=1") {
        let quiet = app.new_company("Quiet Lending").await;
        let record = app.app.server.request_recorder.clone().expect("a recorder");
        for n in 0..2 * SHARE {
            record(completed(app, &app.company, n));
        }
        app.request(&quiet, Method::GET, "/payment/list", None).await.data();
        assert_eq!(metric_value(&scrape(app).await, DROPPED), Some(SHARE as f64));
        assert_eq!(flush(app).await, SHARE + 1);
        assert_eq!(summaries(&listed(app, &quiet, "").await), ["GET /api/v1/payment/list 200"]);

        // All of them, newest first, although they began in the same millisecond.
        let first = page(app, &app.company, "limit=1000").await;
        let next = format!("limit=1000&after={}", first["next"].as_str().expect("a cursor"));
        let last = page(app, &app.company, &next).await;
        assert_eq!(last["next"], Value::Null);
        let pages = [first, last].map(|page| page["requests"].as_array().expect("a list").clone());
        let numbers: Vec<usize> = pages.concat().iter().map(|request| request["request_id"].as_str().expect("text").parse().expect("a number")).collect();
        assert!(numbers.into_iter().eq((0..SHARE).rev()));
    }

    async fn a_failed_flush_loses_its_requests_only(app: TestApp, "--api-log-days=1") {
        app.get("/payment/list").await.data();
        execute_sql(app, "ALTER TABLE api_requests RENAME TO api_requests_away").await;
        requests::flush(&app.app).await.expect_err("no table");
        app.get("/payment/list").await.data();
        execute_sql(app, "ALTER TABLE api_requests_away RENAME TO api_requests").await;
        assert_eq!(flush(app).await, 1);
        assert_eq!(listed(app, &app.company, "").await.len(), 1);
        assert_eq!(metric_value(&scrape(app).await, DROPPED), Some(1.0));
    }

    async fn a_host_that_stops_saves_the_last_requests(app: TestApp, "--api-log-days=1") {
        let bind = async || http::Listener::plain(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
        let (public, internal) = (bind().await, bind().await);
        let api = format!("http://{}", public.address().expect("bound"));
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(wiring::serve(app.app.clone(), public, internal, stopped));
        let list = |path: &str| app.client.get(format!("{api}/api/v1{path}")).bearer_auth(&app.company.key);
        reply(list("/payment/list")).await.data();
        let flushed = async { while listed(app, &app.company, "").await.is_empty() {} };
        timeout(Duration::from_secs(30), flushed).await.expect("the task saves requests");
        reply(list("/user/list")).await.data();
        stop.send_replace(true);
        timeout(Duration::from_secs(30), serving).await.expect("an end").expect("no panic");
        let all = summaries(&listed(app, &app.company, "").await);
        assert_eq!(all, ["GET /api/v1/user/list 200", "GET /api/v1/payment/list 200"]);
    }

    async fn a_client_that_disconnects_is_logged_with_status_499(app: TestApp, "--api-log-days=1") {
        app.simulators.faults().push(Fault::new("initialize", FaultKind::Slow).times(1).delay_ms(500));
        let begun = async { while app.get("/payment/list").await.data()["total"] != 1 {} };
        tokio::select! {
            _ = app.post("/payment/initialize", app.order("order-1")) => panic!("a response before the provider's"),
            () = begun => {}
        }
        let logged = async {
            let of_initialize = |text: &String| text == "POST /api/v1/payment/initialize 499";
            while !summaries(&listed(app, &app.company, "method=POST").await).iter().any(of_initialize) {
                flush(app).await;
            }
        };
        timeout(Duration::from_secs(30), logged).await.expect("a request without a response");
        app.run_until_idle().await;
    }

    async fn the_log_is_filtered_and_belongs_to_one_company(app: TestApp, "--api-log-days=30") {
        let other = app.new_company("Beta Lending").await;
        app.get("/payment/list").await.data();
        app.advance(DAY).await;
        app.get("/payment/list?page=0").await;
        app.advance(1).await;
        let refused = app.post("/user/create", json!({})).await;
        app.request(&other, Method::GET, "/user/list", None).await.data();
        let record = app.app.server.request_recorder.clone().expect("a recorder");
        record(CompletedRequest { status: 503, ..completed(app, &app.company, 1) });
        flush(app).await;
        let id = refused.headers["x-request-id"].to_str().expect("text");
        let (list, create) = ("GET /api/v1/payment/list", "POST /api/v1/user/create");
        let [ok, bad, failed, down] = [
            format!("{list} 200"), format!("{list} 400"), format!("{create} 400"), format!("{list} 503"),
        ];
        let day = |days: i64| NOW.plus_seconds(days * DAY).to_datetime().format("%d-%m-%Y").to_string();
        let [today, tomorrow] = [0, 1].map(day);
        for (query, expected) in [
            ("", vec![&down, &failed, &bad, &ok]),
            ("outcome=success", vec![&ok]),
            ("outcome=failed", vec![&down, &failed, &bad]),
            ("outcome=client_error", vec![&failed, &bad]),
            ("outcome=server_error", vec![&down]),
            ("method=POST", vec![&failed]),
            ("method=DELETE", vec![]),
            ("key=key", vec![&down]),
            (&format!("request_id={id}"), vec![&failed]),
            (&format!("created_at={today}"), vec![&ok]),
            (&format!("created_at={tomorrow}&method=GET"), vec![&down, &bad]),
            (&format!("created_at={today}/{tomorrow}"), vec![&down, &failed, &bad, &ok]),
            ("created_at=01-01-1900/02-01-1900", vec![]),
            ("created_at=01-01-1900/01-01-2200", vec![&down, &failed, &bad, &ok]),
        ] {
            let found = summaries(&listed(app, &app.company, query).await);
            assert!(found.iter().eq(expected.iter().copied()), "{query}: {found:?}");
        }
        assert_eq!(summaries(&listed(app, &other, "").await), ["GET /api/v1/user/list 200"]);
        let path = format!("/companies/{}/requests", app.company.id);
        for (query, field) in [("outcome=lost", "outcome"), ("method=get", "method"), ("after=x", "after"), ("limit=0", "limit"), ("created_at=x", "created_at")] {
            let refused = app.operator(Method::GET, &format!("{path}?{query}"), Value::Null).await;
            let (status, message) = refused.failure();
            assert!(status == 400 && message.starts_with(&format!("the {field} field must be")), "{message}");
        }
        let missing = app.operator(Method::GET, "/companies/none/requests", Value::Null).await;
        assert_eq!(missing.failure(), (404, "company not found"));
    }
}
