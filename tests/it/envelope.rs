//! Properties of every response, on both listeners.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::app::{OPERATOR_TOKEN, Reply, TestApp, reply};

const MIB: usize = 1 << 20;

/// Returns URLs on both listeners that read a body, with their credentials.
fn body_routes(app: &TestApp) -> [(String, String); 4] {
    let operator =
        |path: &str| (format!("{}/internal/v1{path}", app.internal), OPERATOR_TOKEN.to_owned());
    let company = |path: &str| (format!("{}/api/v1{path}", app.api), app.company.key.clone());
    [
        company("/user/create"),
        company("/payment/initialize"),
        operator("/companies"),
        operator(&format!("/companies/{}/wallet/credit", app.company.id)),
    ]
}

/// Asserts the complete body of an error.
#[track_caller]
fn assert_failure(response: &Reply, status: u16, message: &str) {
    assert_eq!(response.failure(), (status, message));
    assert_eq!(response.body, json!({ "error": true, "message": message }));
    assert_eq!(response.headers["content-type"], "application/json");
}

async fn assert_nothing_created(app: &TestApp) {
    assert_eq!(app.get("/payment/list").await.data()["total"], 0);
    assert_eq!(app.operator(Method::GET, "/companies", Value::Null).await.data()["total"], 1);
    assert_eq!(app.wallet().await["balance"], 0);
}

both! {
    async fn an_unknown_path_gets_404(app: TestApp) {
        let paths = [
            "/", "/api", "/api/v1", "/internal/v1", "/api/v2/payment/list", "/api/v1/payment/list/",
            "/internal/v1/companies/", "/api/v1/payment", "/api/v1/PAYMENT/list", "/../api/v1/user", "/health",
        ];
        for (base, credential) in [(&app.api, &*app.company.key), (&app.internal, OPERATOR_TOKEN)] {
            for path in paths {
                for method in [Method::GET, Method::POST] {
                    let request = app.client.request(method, format!("{base}{path}"));
                    let response = reply(request.bearer_auth(credential)).await;
                    assert_failure(&response, 404, "path not found");
                }
            }
        }
        // Invalid path parameters.
        for value in ["%00", "a%0Ab", "%FF", "%C3%28"] {
            let response = app.get(&format!("/payment/fetch/reference/{value}")).await;
            assert_failure(&response, 404, "path not found");
        }
    }

    async fn an_unsupported_method_gets_405_with_the_allowed_methods(app: TestApp) {
        let mut allowed: BTreeMap<(&str, &str, &str), BTreeSet<String>> = BTreeMap::new();
        for (base, credential, route) in app.routes() {
            let methods = allowed.entry((base, credential, route.path)).or_default();
            methods.insert(route.method.to_uppercase());
            if route.method == "get" {
                methods.insert("HEAD".to_owned());
            }
        }
        for ((base, credential, path), methods) in allowed {
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
                if methods.contains(method) {
                    continue;
                }
                let url = format!("{base}{}", path.replace(['{', '}'], ""));
                let request = app.client.request(method.parse().expect("a method"), url);
                let response = reply(request.bearer_auth(credential)).await;
                assert_failure(&response, 405, "the method is not allowed");
                let listed = response.headers["allow"].to_str().expect("a list of methods");
                let listed: BTreeSet<String> = listed.split(',').map(|method| method.trim().to_owned()).collect();
                assert_eq!(listed, methods, "{method} {path}");
            }
        }
    }

    async fn a_body_that_is_not_a_json_object_is_rejected(app: TestApp) {
        let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
        let (json, no_object) = ("application/json", "the body must be a JSON object");
        let (not_json, wrong_type) = ("the body is not valid JSON", "the content type must be application/json");
        for (url, key) in body_routes(app) {
            for (content_type, body, status, message) in [
                (Some(json), "{ \"name\": ", 400, not_json),
                (Some(json), "{} {}", 400, not_json),
                (Some(json), "{ \"name\": NaN }", 400, not_json),
                (Some(json), "\u{feff}{}", 400, not_json),
                (Some(json), &deep, 400, not_json),
                (Some(json), "[]", 400, no_object),
                (Some(json), "null", 400, no_object),
                (Some(json), "\"{}\"", 400, no_object),
                (Some("text/plain"), "{}", 415, wrong_type),
                (Some("application/x-www-form-urlencoded"), "name=x", 415, wrong_type),
                (Some("multipart/form-data; boundary=x"), "--x--", 415, wrong_type),
                (Some("application/jsonp"), "{}", 415, wrong_type),
                (None, "{}", 415, wrong_type),
            ] {
                let mut request = app.client.post(&url).bearer_auth(&key).body(body.to_owned());
                if let Some(content_type) = content_type {
                    request = request.header("content-type", content_type);
                }
                assert_failure(&reply(request).await, status, message);
            }
            let bytes = app.client.post(&url).bearer_auth(&key).header("content-type", json);
            assert_failure(&reply(bytes.body(b"{\"name\": \"\xff\"}".to_vec())).await, 400, not_json);
            for content_type in ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.acme+json"] {
                let request = app.client.post(&url).bearer_auth(&key).header("content-type", content_type);
                let message = reply(request.body("{}")).await.body["message"].clone();
                assert!(message.as_str().expect("a message").ends_with("field is required"), "{content_type}: {message}");
            }
        }
        assert_nothing_created(app).await;
    }

    async fn a_body_of_more_than_a_mebibyte_gets_413(app: TestApp) {
        for (url, key) in body_routes(app) {
            let send = async |bytes: usize| {
                let body = format!("{{}}{}", " ".repeat(bytes - 2));
                let request = app.client.post(&url).bearer_auth(&key).header("content-type", "application/json");
                reply(request.body(body)).await
            };
            assert_failure(&send(MIB + 1).await, 413, "the body is too large");
            let read = send(MIB).await;
            assert!(read.failure().1.ends_with("field is required"), "{}", read.body);
        }
        let notification = format!("{}/api/v1/notifications/provider_a/x", app.api);
        let request = app.client.post(notification).body(" ".repeat(MIB + 1));
        assert_failure(&reply(request).await, 413, "the body is too large");
        assert_nothing_created(app).await;
    }

    async fn an_invalid_query_parameter_is_named(app: TestApp) {
        for (query, message) in [
            ("status=%00", "the status field must be free of control characters"),
            ("user_id=a%0Db", "the user_id field must be free of control characters"),
            ("limit=many", "the limit field must be a whole number of at least 1"),
            ("limit=1&limit=0", "the limit field must be a whole number of at least 1"),
            ("page=-1", "the page field must be a whole number from 1 to 1000000000"),
        ] {
            assert_failure(&app.get(&format!("/payment/list?{query}")).await, 400, message);
        }
        assert_eq!(app.get("/payment/list?limit=0&limit=7").await.data()["per_page"], 7);
    }

    async fn every_response_has_a_request_id(app: TestApp) {
        let longest = "x".repeat(128);
        let with = |url: &str, id: Option<&str>| -> RequestBuilder {
            let request = app.client.get(url);
            match id {
                Some(id) => request.header("x-request-id", id.as_bytes()),
                None => request,
            }
        };
        let mut made = BTreeSet::new();
        for url in [
            format!("{}/health/live", app.api),
            format!("{}/api/v1/payment/list", app.api), // 401
            format!("{}/nowhere", app.internal),
        ] {
            for id in ["order-1/try_2", "~", &longest] {
                assert_eq!(reply(with(&url, Some(id))).await.headers["x-request-id"], id);
            }
            let long = format!("{longest}x");
            for id in [None, Some(""), Some("two words"), Some("tab\there"), Some(&*long), Some("größe")] {
                let response = reply(with(&url, id)).await;
                let new = response.headers["x-request-id"].to_str().expect("visible characters").to_owned();
                let hex = new.len() == 24 && new.bytes().all(|b| b.is_ascii_hexdigit());
                assert!(hex, "{new} in place of {id:?}");
                assert!(made.insert(new), "an id was generated twice");
            }
        }
    }

    async fn api_responses_forbid_caching_and_content_sniffing(app: TestApp) {
        for (url, status, private) in [
            (format!("{}/api/v1/payment/list", app.api), 200, true),
            (format!("{}/api/v1/payment/fetch/reference/nothing", app.api), 404, true),
            (format!("{}/api/v1/payment/list?limit=x", app.api), 400, true),
            (format!("{}/api/v1/payment/initialize", app.api), 405, true),
            (format!("{}/api/v1/nowhere", app.api), 404, true),
            (format!("{}/internal/v1/companies", app.internal), 401, true),
            (format!("{}/health/ready", app.api), 200, false),
            (format!("{}/nowhere", app.internal), 404, false),
        ] {
            let response = reply(app.client.get(&url).bearer_auth(&app.company.key)).await;
            assert_eq!(response.status, status, "{url}");
            assert_eq!(response.headers["x-content-type-options"], "nosniff", "{url}");
            let kept = response.headers.get("cache-control").map(|value| value.to_str().unwrap());
            assert_eq!(kept, private.then_some("no-store"), "{url}");
            assert!(!response.headers.contains_key("strict-transport-security"), "{url}");
        }
    }

    async fn head_gets_the_response_of_get_without_a_body(app: TestApp) {
        for (path, key, status) in [
            ("/api/v1/payment/list", &*app.company.key, 200),
            ("/api/v1/payment/fetch/reference/nothing", &app.company.key, 404),
            ("/api/v1/payment/list", "sk_test_nobody", 401),
            ("/health/live", "", 200),
        ] {
            let url = format!("{}{path}", app.api);
            let get = app.client.get(&url).bearer_auth(key).send().await.expect("a response");
            let head = app.client.head(&url).bearer_auth(key).send().await.expect("a response");
            assert_eq!((head.status().as_u16(), get.status().as_u16()), (status, status));
            for header in ["content-type", "content-length"] {
                assert_eq!(head.headers().get(header), get.headers().get(header), "{path} {header}");
            }
            assert_eq!(head.text().await.expect("a text"), "");
        }
    }

    async fn a_running_host_is_alive_and_ready(app: TestApp) {
        for base in [&app.api, &app.internal] {
            for (path, message) in [("live", "alive"), ("ready", "ready")] {
                let response = reply(app.client.get(format!("{base}/health/{path}"))).await;
                assert_eq!(response.status, 200);
                assert_eq!(response.body, json!({ "error": false, "message": message }));
            }
        }
    }
}
