//! Tests of provider accounts by operators: their result, and that they have no other effect.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{PAYSTACK_KEY, Reply, TestApp},
    codes::use_gateways,
    identity,
    sprout::{SproutUpstream, TOKEN},
};

async fn test(app: &TestApp, path: &str) -> Reply {
    app.operator(Method::POST, &format!("{path}/test"), json!({})).await
}

async fn set(app: &TestApp, path: &str, body: Value) -> Value {
    app.operator(Method::PUT, path, body).await.data().clone()
}

fn sprout(token: &str, base_url: &str) -> Value {
    json!({ "credentials": { "token": token, "base_url": base_url } })
}

/// Details of the tests in an audit log.
async fn logged_tests(app: &TestApp, path: &str) -> Vec<Value> {
    let log = app.operator(Method::GET, path, Value::Null).await.data()["docs"].clone();
    let entries = log.as_array().expect("a list").iter();
    let tests = entries.filter(|entry| entry["action"] == "provider.test");
    tests.map(|entry| entry["detail"].clone()).collect()
}

both! {
    async fn accepted_credentials_are_reported_and_logged(app: TestApp) {
        let account = app.operator(Method::GET, "/providers", Value::Null).await.data()[0].clone();
        let before = app.simulators.paystack().requests().len();
        let tested = test(app, "/providers/provider_a").await;
        assert_eq!(tested.body["message"], "Provider tested successfully");
        assert_eq!(tested.data(), &json!({
            "provider": "provider_a", "account": account["account"], "mode": "test", "outcome": "accepted", "code": "",
            "detail": "provider_a was reached and accepted the credentials",
        }));
        let requests = app.simulators.paystack().requests().split_off(before);
        // One request with the account's secrets, and one with wrong ones.
        assert!(matches!(&requests[..], [one, other] if one == other), "{requests:?}");
        assert!(requests[0].0 == "GET" && requests[0].1.starts_with("/transaction/verify/"), "{requests:?}");
        let entry = json!({ "provider": "provider_a", "mode": "test", "outcome": "accepted" });
        assert_eq!(logged_tests(app, "/audit").await, [entry]);
        assert!(!tested.body.to_string().contains(PAYSTACK_KEY));
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
    }

    async fn each_cause_of_a_failed_test_has_its_own_outcome(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        let path = "/providers/sprout";
        for (account, outcome, code) in [
            (sprout("a_wrong_token", &upstream.url), "credentials_refused", ""),
            (sprout(TOKEN, "http://127.0.0.1:1"), "unreachable", "connect"),
            // 404 for every request, with any token.
            (sprout(TOKEN, &format!("{}/elsewhere", upstream.url)), "unclear", ""),
            (sprout("a_wrong_token", &format!("{}/elsewhere", upstream.url)), "unclear", ""),
            (sprout(TOKEN, &upstream.url), "accepted", ""),
        ] {
            set(app, path, account).await;
            let tested = test(app, path).await.data().clone();
            assert_eq!((&tested["outcome"], &tested["code"]), (&json!(outcome), &json!(code)), "{tested}");
            assert!(!tested.to_string().contains("a_wrong_token"), "{tested}");
        }
        app.simulators.faults().push(Fault::new("verify", FaultKind::Error500));
        let tested = test(app, "/providers/provider_a").await.data().clone();
        assert_eq!(tested["outcome"], "unavailable", "{tested}");
        // A deactivated account can be tested, too.
        set(app, path, json!({ "active": false })).await;
        assert_eq!(test(app, path).await.data()["outcome"], "accepted");
    }

    async fn accounts_of_companies_and_modes_are_tested_separately(app: TestApp) {
        let own = format!("/companies/{}/providers/sprout", app.company.id);
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        set(app, "/providers/sprout", sprout(TOKEN, &upstream.url)).await;
        let no_key = (400, "payment service key not found");
        assert_eq!(test(app, &own).await.failure(), no_key);
        let account = set(app, &own, sprout("a_wrong_token", &upstream.url)).await;
        let tested = test(app, &own).await.data().clone();
        assert_eq!((&tested["account"], &tested["outcome"]), (&account["account"], &json!("credentials_refused")));
        let entry = json!({ "provider": "sprout", "mode": "test", "outcome": "credentials_refused" });
        assert_eq!(logged_tests(app, &format!("/companies/{}/audit", app.company.id)).await, [entry]);
        assert_eq!(test(app, "/providers/sprout").await.data()["outcome"], "accepted");

        let of = async |path: &str, mode: &str| {
            app.operator(Method::POST, &format!("{path}/test"), json!({ "mode": mode })).await
        };
        assert_eq!(of("/providers/sprout", "test").await.data()["outcome"], "accepted");
        assert_eq!(of("/providers/sprout", "live").await.failure(), no_key);
        let refused = (400, "the mode field must be test, the mode of the company");
        assert_eq!(of(&own, "live").await.failure(), refused);
        let other = app.new_company("Beta Lending").await;
        let of_other = format!("/companies/{}/providers/sprout", other.id);
        assert_eq!(test(app, &of_other).await.failure(), no_key);
        for (path, message) in [
            ("/providers/weed", "provider not found"),
            ("/companies/none/providers/sprout", "company not found"),
        ] {
            assert_eq!(test(app, path).await.failure(), (404, message));
        }
        app.operator(Method::POST, "/plugins/sprout/deactivate", json!({})).await.data();
        assert_eq!(test(app, &own).await.failure(), (400, "sprout has been deactivated"));
    }

    async fn a_plugin_with_paid_calls_only_is_not_called(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        identity::install(app, "nigeria", artifacts::NIGERIA).await;
        for name in ["termii", "nigeria"] {
            let tested = test(app, &format!("/providers/{name}")).await.data().clone();
            assert_eq!(tested["outcome"], "not_testable");
            let detail = tested["detail"].as_str().expect("a sentence");
            assert!(detail.starts_with(&format!("{name} cannot be tested without a paid call")), "{detail}");
        }
        assert!(app.simulators.mailbox().list(None).is_empty());
        let page = crate::telemetry::scrape(app).await;
        let called = |name: &str| page.contains(&format!("tollhouse_plugin_calls_total{{plugin=\"{name}\""));
        assert!(!called("termii") && !called("nigeria"));
    }
}
