//! The OpenAPI documents: their content, and how they are served.

use std::collections::BTreeSet;

use reqwest::StatusCode;
use serde_json::Value;
use tollhouse_app::{
    identity::lookups::with_lookups,
    routes::{INTERNAL_DOCUMENT, PUBLIC_DOCUMENT, Route, internal_routes, public_routes},
};
use tollhouse_http::Access;

use crate::app::reply;

fn documents() -> [(&'static str, Vec<Route>, &'static Value); 2] {
    [
        ("public", public_routes(), &*PUBLIC_DOCUMENT),
        ("internal", internal_routes(), &*INTERNAL_DOCUMENT),
    ]
}

/// Every change of the documented interface fails here: review the difference, then run with
/// `INSTA_UPDATE=always`.
#[test]
fn the_documents_match_the_snapshots() {
    for (name, _, document) in documents() {
        insta::assert_snapshot!(name, format!("{document:#}"));
    }
}

fn statuses(operation: &Value) -> BTreeSet<&str> {
    let responses = operation["responses"].as_object().expect("responses");
    responses.keys().map(String::as_str).collect()
}

#[test]
fn routes_and_documented_operations_match_including_failures() {
    for (name, routes, document) in documents() {
        let mut described: BTreeSet<(String, String)> = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            described.extend(
                methods.as_object().expect("methods").keys().map(|m| (m.clone(), path.clone())),
            );
        }
        for route in &routes {
            let what = format!("{name}: {} {}", route.method, route.path);
            let path = route.path.replace("{*", "{");
            assert!(described.remove(&(route.method.to_owned(), path.clone())), "{what}");
            let operation = &document["paths"][path][route.method];
            let mut expected = match route.access {
                Access::Unthrottled => vec!["200", "431", "500"],
                Access::Unauthenticated => vec!["200", "431", "500", "503"],
                Access::Company(_) | Access::Operator(_) => {
                    vec!["200", "400", "401", "403", "429", "431", "500", "503"]
                }
            };
            if route.method != "get" {
                expected.extend(["408", "413"]);
            }
            if route.method != "get"
                && matches!(route.access, Access::Company(_) | Access::Operator(_))
            {
                expected.push("409");
                assert!(operation["parameters"].to_string().contains("Idempotency-Key"), "{what}");
            }
            if route.path.contains('{') {
                expected.push("404");
            }
            if operation["requestBody"].is_object() {
                expected.push("413");
            }
            if operation["requestBody"]["content"]["application/json"].is_object() {
                expected.push("415");
            }
            let of_its_own: Vec<String> = route.fails.iter().map(u16::to_string).collect();
            expected.extend(of_its_own.iter().map(String::as_str));
            let documented = statuses(operation);
            assert!(
                documented.is_superset(&expected.into_iter().collect()),
                "{what}: {documented:?}"
            );
            for text in ["operationId", "summary"] {
                assert!(operation[text].as_str().is_some_and(|text| !text.is_empty()), "{what}");
            }
            let named = operation["parameters"].as_array().expect("parameters").iter();
            let named: Vec<&str> =
                named.filter(|p| p["in"] == "path").filter_map(|p| p["name"].as_str()).collect();
            let segments = route.path.split('/').filter(|segment| segment.starts_with('{'));
            assert_eq!(
                named,
                segments.map(|s| s.trim_matches(['{', '*', '}'])).collect::<Vec<_>>(),
                "{what}"
            );
        }
        assert_eq!(described, BTreeSet::new(), "{name}: operations without a route");
    }
}

#[test]
fn operation_ids_are_unique_and_every_reference_resolves() {
    for (name, _, document) in documents() {
        let mut ids = BTreeSet::new();
        for operation in document["paths"]
            .as_object()
            .expect("paths")
            .values()
            .flat_map(|path| path.as_object())
            .flatten()
        {
            assert!(
                ids.insert(operation.1["operationId"].as_str()),
                "{name}: {}",
                operation.1["operationId"]
            );
        }
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let reference = reference.split('"').next().expect("a text");
            assert!(document.pointer(reference).is_some(), "{name}: {reference}");
        }
    }
}

both! {
    async fn each_listener_serves_its_own_document(app: TestApp) {
        for ((_, _, document), base) in documents().into_iter().zip([&app.api, &app.internal]) {
            let mut document = document.clone();
            with_lookups(&mut document, &app.app.plugins);
            let url = format!("{base}/openapi.json");
            let response = reply(app.client.get(&url)).await;
            assert_eq!((response.status, &response.body), (StatusCode::OK, &document));
            assert_eq!(response.headers["content-type"], "application/json");
            let known = app.client.get(&url).header("if-none-match", &response.headers["etag"]);
            let known = known.send().await.expect("a response");
            assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
            assert_eq!(known.text().await.expect("a text"), "");
            let other = app.client.get(&url).header("if-none-match", "\"0\"");
            assert_eq!(reply(other).await.status, StatusCode::OK);
        }
    }

    async fn the_viewer_is_complete_and_loads_nothing_from_other_origins(app: TestApp) {
        for base in [&app.api, &app.internal] {
            let page = app.client.get(format!("{base}/docs")).send().await.expect("a response");
            assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
            let policy = page.headers()["content-security-policy"].to_str().expect("a text").to_owned();
            assert!(policy.starts_with("default-src 'none';") && !policy.contains("http"), "{policy}");
            let html = page.text().await.expect("a page");
            assert!(!html.contains("://"), "{html}");
            let files: Vec<&str> = html.split(['"']).filter(|text| text.starts_with("docs/")).collect();
            assert_eq!(files.len(), 6, "{html}");
            for file in files {
                let file = app.client.get(format!("{base}/{file}")).send().await.expect("a response");
                assert_eq!(file.status(), StatusCode::OK, "{}", file.url());
                assert_eq!(file.headers()["x-content-type-options"], "nosniff");
                assert!(!file.bytes().await.expect("a file").is_empty());
            }
            let start = app.client.get(format!("{base}/docs/swagger-initializer.js")).send().await.expect("a response");
            let start = start.text().await.expect("a script");
            assert!(start.contains("\"url\": \"openapi.json\"") && !start.contains("http"), "{start}");
            let missing = reply(app.client.get(format!("{base}/docs/nothing.js"))).await;
            assert_eq!(missing.failure(), (404, "path not found"));
        }
    }
}
