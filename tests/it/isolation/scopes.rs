//! API keys are limited to their scopes and networks.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::tenants::companies::scopes::SCOPES;
use tollhouse_http::Access;

use super::{UNKNOWN_ID, another_key, routes_of, send, text};
use crate::{
    app::{Company, NOW, TestApp},
    principals::entries,
};

const REFUSED_ADDRESS: &str = "the API key may not be used from this address";

async fn with_key(app: &TestApp, limits: Value) -> Company {
    let key = another_key(app, limits).await;
    Company { key: text(&key, "api_key").to_owned(), ..app.company.clone() }
}

both! {
    async fn every_route_needs_the_scope_of_its_row(app: TestApp) {
        let mut used = Vec::new();
        for (base, route) in routes_of(app, Access::Company("")) {
            let Access::Company(scope) = route.access else { unreachable!() };
            let others: Vec<_> = SCOPES.iter().filter(|other| **other != scope).collect();
            assert_eq!(others.len(), SCOPES.len() - 1, "{scope} is not in SCOPES");
            let holder = with_key(app, json!({ "scopes": others })).await;
            let refused = send(app, base, &route, &holder, UNKNOWN_ID).await;
            let message = format!("the API key lacks the scope {scope}");
            assert_eq!(refused.failure(), (403, &*message), "{}", route.path);
            let holder = with_key(app, json!({ "scopes": [scope] })).await;
            let allowed = send(app, base, &route, &holder, UNKNOWN_ID).await;
            assert_ne!(allowed.status, 403, "{}: {}", route.path, allowed.body);
            used.push(scope);
        }
        assert!(SCOPES.iter().all(|scope| used.contains(scope)), "a scope without a route");
        app.run_until_idle().await;
    }

    async fn a_key_is_usable_only_from_its_networks(app: TestApp) {
        app.initialize("order-1").await;
        let get = async |holder: &Company, path: &str| app.request(holder, Method::GET, path, None).await;
        let fetch = "/payment/fetch/reference/order-1";
        for addresses in [json!(["127.0.0.1"]), json!(["203.0.113.0/24", "127.0.0.0/8"])] {
            let holder = with_key(app, json!({ "addresses": addresses })).await;
            for path in ["/payment/list", fetch, fetch] {
                get(&holder, path).await.data();
            }
        }
        let holder = with_key(app, json!({ "addresses": ["203.0.113.0/24", "2001:db8::/32"] })).await;
        for path in ["/payment/list", fetch, fetch] {
            assert_eq!(get(&holder, path).await.failure(), (403, REFUSED_ADDRESS), "{path}");
        }
        let reader = with_key(app, json!({ "scopes": ["payments.read"] })).await;
        for _ in 0..2 {
            get(&reader, fetch).await.data();
        }
        let refused = app.request(&reader, Method::POST, "/payment/initialize", Some(app.order("order-2"))).await;
        assert_eq!(refused.failure(), (403, "the API key lacks the scope payments.write"));
        app.app.tasks.wait_until_idle().await;
        let log = format!("/companies/{}/audit", app.company.id);
        let refusals = entries(app, &log, "key.refuse").await;
        let operations: Vec<_> = refusals.iter().map(|entry| &entry["detail"]["operation"]).collect();
        assert_eq!(operations, ["POST /api/v1/payment/initialize", "GET /api/v1/payment/list"]);
        assert_eq!((&refusals[1]["address"], &refusals[1]["actor"]), (&json!("127.0.0.1"), &json!("API key")));
    }

    async fn limits_of_a_key_are_validated_shown_and_kept_by_rotation(app: TestApp) {
        let keys = format!("/companies/{}/keys", app.company.id);
        for (body, message) in [
            (json!({ "scopes": ["payments"] }), format!("the scopes field must be any of {}", SCOPES.join(", "))),
            (json!({ "addresses": ["localhost"] }), "the addresses field must be IP addresses or networks such as 203.0.113.0/24".to_owned()),
            (json!({ "addresses": ["10.0.0.0/33"] }), "the addresses field must be IP addresses or networks such as 203.0.113.0/24".to_owned()),
        ] {
            let refused = app.operator(Method::POST, &keys, body).await;
            assert_eq!(refused.failure(), (400, &*message));
        }
        let limits = json!({ "scopes": ["otp.send"], "addresses": ["10.1.2.3/8", "::1"], "expires_at": NOW.plus_seconds(3_600) });
        let key = another_key(app, limits).await;
        let expected = (json!(["otp.send"]), json!(["10.0.0.0/8", "::1/128"]));
        assert_eq!((&key["scopes"], &key["addresses"]), (&expected.0, &expected.1));
        let rotated = app.operator(Method::POST, &format!("{keys}/{}/rotate", text(&key, "id")), json!({})).await;
        let rotated = rotated.data();
        assert_eq!((&rotated["scopes"], &rotated["addresses"]), (&expected.0, &expected.1));
        let listed = app.operator(Method::GET, &keys, Value::Null).await.data().clone();
        let is_first = |key: &&Value| app.company.key.starts_with(text(key, "prefix"));
        let first = listed.as_array().expect("keys").iter().find(is_first).expect("the first key");
        assert_eq!((&first["scopes"], &first["addresses"]), (&Value::Null, &Value::Null));
    }
}
