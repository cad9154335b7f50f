//! Query parameters: every route that needs a key rejects unknown ones and accepts documented ones;
//! limits are capped.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_http::Access;

use crate::{
    app::{OPERATOR_TOKEN, PAYSTACK_KEY, Reply, TestApp, reply},
    lending::{create_loan, create_recollection, create_user},
};

/// Sends a request with a query string to a route; the ids in its path do not exist.
async fn send(
    app: &TestApp,
    (base, key): (&str, &str),
    route: (&str, &str),
    query: &str,
) -> (u16, Value) {
    let (method, path) = route;
    let path = path.replace(['{', '}', '*'], "");
    let method: Method = method.to_uppercase().parse().expect("a method");
    let request = app.client.request(method, format!("{base}{path}?{query}")).bearer_auth(key);
    let response = request.send().await.expect("a response");
    let status = response.status().as_u16();
    let body = response.bytes().await.expect("a body");
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

async fn listed(app: &TestApp, path: &str) -> Reply {
    app.operator(Method::GET, path, Value::Null).await
}

both! {
    async fn routes_that_need_a_key_reject_unknown_parameters(app: TestApp) {
        let refused = (400, json!({ "error": true, "message": "unknown query parameter: statsu" }));
        for (base, key, route) in app.routes() {
            let names = (route.method, route.path);
            let response = send(app, (base, key), names, "statsu=success").await;
            if matches!(route.access, Access::Company(_) | Access::Operator(_)) {
                assert_eq!(response, refused, "{names:?}");
            } else {
                assert_eq!(response, send(app, (base, key), names, "").await, "{names:?}");
            }
        }
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
        assert_eq!(listed(app, "/companies").await.data()["total"], 1);
        // The key is checked first: an unauthenticated client learns nothing about a route.
        let url = format!("{}/api/v1/payment/list?statsu=success", app.api);
        assert_eq!(reply(app.client.get(url)).await.failure().0, 401);
        let long = format!("/payment/list?{}=1", "x".repeat(500));
        let named = format!("unknown query parameter: {}", "x".repeat(100));
        assert_eq!(app.get(&long).await.failure(), (400, &*named));
    }

    async fn routes_without_a_key_ignore_unknown_parameters(app: TestApp) {
        for (base, path) in [(&app.api, "/health/live"), (&app.api, "/health/ready"), (&app.internal, "/metrics"), (&app.api, "/openapi.json")] {
            let response = app.client.get(format!("{base}{path}?from=balancer")).send().await;
            assert_eq!(response.expect("a response").status(), 200, "{path}");
        }
        create_user(app, "ada").await;
        let link = app.get("/user/export").await.data()["path"].as_str().expect("a URL").to_owned();
        let file = app.client.get(format!("{link}&utm_source=mail")).send().await;
        assert_eq!(file.expect("a response").status(), 200);
        // A provider's webhook URL with an added parameter.
        let url = app.use_paystack("/providers/provider_a", PAYSTACK_KEY).await;
        app.simulators.paystack().set_webhook(PAYSTACK_KEY, &format!("{url}?region=eu"));
        let payment = app.initialize("order-1").await;
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }

    async fn every_documented_parameter_is_accepted(app: TestApp) {
        let mut taken = 0;
        for (base, key) in [(&*app.api, &*app.company.key), (&app.internal, OPERATOR_TOKEN)] {
            let document = reply(app.client.get(format!("{base}/openapi.json"))).await.body;
            for (path, operations) in document["paths"].as_object().expect("paths") {
                for (method, operation) in operations.as_object().expect("operations") {
                    let parameters = operation["parameters"].as_array().expect("parameters").iter();
                    for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
                        let name = parameter["name"].as_str().expect("a name");
                        let name = if name == "metadata" { "metadata.tier" } else { name };
                        let (_, body) = send(app, (base, key), (method, path), &format!("{name}=")).await;
                        let message = body["message"].as_str().unwrap_or_default();
                        assert!(!message.starts_with("unknown"), "{method} {path}: {message}");
                        taken += 1;
                    }
                }
            }
        }
        assert!(taken > 60, "{taken}");
    }

    async fn the_user_list_accepts_any_metadata_key_and_the_documented_sort_orders(app: TestApp) {
        for (query, refused) in [
            ("metadata.tier=gold&metadata.a.b=", None),
            ("sort-created_at=asc&sort-last_name=desc", None),
            ("metadata=gold", Some("metadata")),
            ("metadatax.tier=gold", Some("metadatax.tier")),
            ("sort-age=asc", Some("sort-age")),
            ("sort-metadata.tier=asc", Some("sort-metadata.tier")),
            ("Page=2", Some("Page")),
            ("page=1&pages=2", Some("pages")),
            ("=", Some("")),
            ("&&", None),
        ] {
            let response = app.get(&format!("/user/list?{query}")).await;
            match refused {
                None => drop(response.data()),
                Some(name) => {
                    let message = format!("unknown query parameter: {name}");
                    assert_eq!(response.failure(), (400, &*message), "{query}");
                }
            }
        }
        let page = app.get("/user/export?page=2").await;
        assert_eq!(page.failure(), (400, "unknown query parameter: page"));
        let ignored = json!({ "first_name": "Ada", "last_name": "Obi", "email": "ada@example.com", "shoe_size": 44 });
        app.post("/user/create", ignored).await.data();
    }

    async fn a_limit_above_1000_is_capped_except_on_the_user_list(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 100.0)]).await;
        create_recollection(app, json!({ "loan": "loan-1", "with_provider": false })).await.data();
        app.initialize("order-1").await;
        for list in ["/payment/list", "/recollection/list"] {
            for (limit, per_page) in [("7", 7), ("1000", 1_000), ("1001", 1_000), ("99999999999999999999", 1_000)] {
                let page = app.get(&format!("{list}?limit={limit}")).await.data().clone();
                assert_eq!((&page["per_page"], &page["total"]), (&json!(per_page), &json!(1)), "{list} {limit}");
            }
            assert_eq!(app.get(list).await.data()["per_page"], 20);
            for limit in ["0", "-1", "1.5", "x", "-99999999999999999999"] {
                let refused = app.get(&format!("{list}?limit={limit}")).await;
                assert_eq!(refused.failure(), (400, "the limit field must be a whole number of at least 1"), "{list} {limit}");
            }
        }
        let of_company = |path: &str| format!("/companies/{}{path}?limit=1001", app.company.id);
        for list in ["/companies?limit=1001", "/audit?limit=1001", &of_company("/audit"), &of_company("/events"), &of_company("/payments"), &of_company("/wallet/entries"), &of_company("/messages")] {
            assert_eq!(listed(app, list).await.data()["per_page"], 1_000, "{list}");
        }
        for stream in ["/events?limit=1001", "/transactions?limit=1001", "/credit-events?limit=1001", "/card-refunds?limit=1001"] {
            listed(app, stream).await.data();
        }
        let users = app.get("/user/list?limit=1001").await;
        assert_eq!(users.failure(), (400, "the limit field must be a whole number from 1 to 1000"));
        assert_eq!(app.get("/user/list?limit=1000").await.data()["per_page"], 1_000);
        app.run_until_idle().await;
    }
}
