//! Management of companies: settings, API keys and subscriptions. Secrets are shown once.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::{
    random::Random,
    store::{self, Store, Tx},
};
use tollhouse_sandbox::events::SignatureStatus;

use crate::app::{Company, NOW, Reply, TestApp};

const INVALID_URL: &str = "must be a valid http or https URL";
const BAD_KEY: &str = "the API key is not valid";

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().expect(field)
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// A path of the test company.
fn own(app: &TestApp, path: &str) -> String {
    format!("/companies/{}{path}", app.company.id)
}

async fn get(app: &TestApp, path: &str) -> Value {
    app.operator(Method::GET, path, Value::Null).await.data().clone()
}

async fn patch(app: &TestApp, body: Value) -> Reply {
    app.operator(Method::PATCH, &own(app, ""), body).await
}

async fn subscribe(app: &TestApp, body: Value) -> Reply {
    app.operator(Method::PUT, &own(app, "/subscription"), body).await
}

async fn new_key(app: &TestApp, body: Value) -> Value {
    app.operator(Method::POST, &own(app, "/keys"), body).await.data().clone()
}

/// Sends a request with this key of the company.
async fn with_key(app: &TestApp, key: &Value) -> Reply {
    let company = Company { key: text(key, "api_key").to_owned(), ..app.company.clone() };
    app.request(&company, Method::GET, "/payment/list", None).await
}

/// Returns all that operators can read about the company, in one text.
async fn everything(app: &TestApp) -> String {
    let mut seen = String::new();
    for path in ["", "/keys", "/providers", "/wallet", "/wallet/entries", "/events", "/audit"] {
        seen += &get(app, &own(app, path)).await.to_string();
    }
    for path in ["/companies", "/providers", "/audit", "/plugins"] {
        seen += &get(app, path).await.to_string();
    }
    seen
}

both! {
    async fn a_new_company_has_a_key_and_a_secret_that_are_shown_once(app: TestApp) {
        for (server, prefix) in [("test", "sk_test_"), ("live", "sk_live_")] {
            let body = json!({
                "name": "Ünïon Kredit", "server": server, "event_url": "https://union.example/events",
                "logo": "", "active": false, "id": "mine", "payment_service": "provider_a",
            });
            let response = app.operator(Method::POST, "/companies", body).await;
            let (made, id) = (response.data().clone(), text(response.data(), "id"));
            assert_eq!(response.body["message"], "Company created successfully");
            assert!(is_hex(id, 24), "{id}");
            let key = text(&made, "api_key");
            assert!(key.strip_prefix(prefix).is_some_and(|random| is_hex(random, 40)), "{key}");
            let secret = text(&made, "event_secret");
            let bytes = BASE64.decode(secret.strip_prefix("whsec_").expect("whsec_")).expect("padded base64");
            assert_eq!(bytes.len(), 32);

            let fetched = get(app, &format!("/companies/{id}")).await;
            assert_eq!(fetched, json!({
                "id": id, "name": "Ünïon Kredit", "server": server, "logo": null, "low_balance": null,
                "event_url": "https://union.example/events", "payment_service": "provider_a", "routing": null, "active": true,
                "countries": null, "sms_gateway": null, "sms_sender": null, "sms_prefixes": null, "fixed_otp": null,
                "subscription": { "active": true, "expires_at": null, "features": null },
                "created_at": NOW, "updated_at": NOW,
            }));
            let keys = get(app, &format!("/companies/{id}/keys")).await;
            assert_eq!(keys.as_array().map(Vec::len), Some(1));
            assert_eq!((&keys[0]["prefix"], &keys[0]["label"]), (&json!(key[..12]), &json!("first key")));
            let audit = get(app, &format!("/companies/{id}/audit")).await;
            let seen = format!("{fetched}{keys}{audit}{}", everything(app).await);
            assert!(!seen.contains(&key[12..]) && !seen.contains(&secret[6..]), "{seen}");
            let company = Company { id: id.into(), key: key.to_owned(), event_secret: String::new() };
            assert_eq!(app.request(&company, Method::GET, "/payment/list", None).await.data()["total"], 0);
        }
    }

    async fn a_company_with_an_invalid_field_is_not_created(app: TestApp) {
        let long = "ü".repeat(101);
        for (field, value, message) in [
            ("name", Value::Null, "the name field is required"),
            ("name", json!(""), "the name field is required"),
            ("name", json!(5), "the name field must be a string"),
            ("name", json!(long), "the name field must be at most 100 characters"),
            ("name", json!("a\nb"), "the name field must be free of control characters"),
            ("server", Value::Null, "the server field is required"),
            ("server", json!("production"), "the server field must be one of live, test"),
            ("server", json!(true), "the server field must be a string"),
            ("event_url", json!("nowhere"), &format!("the event_url field {INVALID_URL}")),
            ("event_url", json!("https://me:pass@acme.example"), &format!("the event_url field {INVALID_URL}")),
            ("event_url", json!(["https://acme.example"]), "the event_url field must be a string"),
            ("logo", json!("ftp://acme.example/logo"), &format!("the logo field {INVALID_URL}")),
            ("logo", json!(7), "the logo field must be a string"),
            ("payment_service", json!("provider_x"), "the payment_service field must be one of provider_a"),
        ] {
            let mut body = json!({ "name": "Beta Lending", "server": "test" });
            body[field] = value;
            assert_eq!(app.operator(Method::POST, "/companies", body.clone()).await.failure(), (400, message), "{body}");
        }
        let nothing = app.operator(Method::POST, "/companies", json!({})).await;
        assert_eq!(nothing.failure().1, "the name field is required");
        assert_eq!(get(app, "/companies").await["total"], 1);
        let longest = json!({ "name": long[2..], "server": "live" });
        app.operator(Method::POST, "/companies", longest).await.data();
    }

    async fn the_countries_migration_lets_existing_companies_send_to_all_numbers(app: TestApp) {
        let undo = async |tx: &mut Tx| -> store::Result<u64> {
            tx.sql("ALTER TABLE companies DROP COLUMN countries").run().await?;
            tx.sql("DELETE FROM _sqlx_migrations WHERE version = 16").run().await
        };
        app.app.store.write(undo).await.expect("statements");
        Store::open(&app.database.url, store::StoreLimits::default(), Random::system()).await.expect("a migration");
        let before = get(app, &own(app, "")).await;
        assert_eq!((&before["sms_prefixes"], &before["countries"]), (&json!(["+"]), &Value::Null));
        let new = app.new_company("Beta Lending").await;
        assert_eq!(get(app, &format!("/companies/{}", new.id)).await["sms_prefixes"], Value::Null);
    }

    async fn companies_are_listed_newest_first(app: TestApp) {
        for name in ["Beta", "Gamma"] {
            app.advance(1).await;
            app.new_company(name).await;
        }
        for (query, names) in [
            ("", vec!["Gamma", "Beta", "Acme Lending"]),
            ("?limit=2", vec!["Gamma", "Beta"]),
            ("?limit=2&page=2", vec!["Acme Lending"]),
            ("?page=9", vec![]),
        ] {
            let listed = get(app, &format!("/companies{query}")).await;
            let docs = listed["docs"].as_array().expect("a list");
            assert_eq!(docs.iter().map(|company| text(company, "name")).collect::<Vec<_>>(), names);
            assert_eq!(listed["total"], 3);
        }
    }

    async fn an_edit_changes_named_fields_only_and_clears_optional_ones(app: TestApp) {
        let before = get(app, &own(app, "")).await;
        app.advance(5).await;
        let mut expected = before.clone();
        for (field, value) in [
            ("name", json!("Acme Credit")),
            ("logo", json!("https://acme.example/logo.png")),
            ("event_url", json!("https://acme.example/events")),
            ("payment_service", json!("provider_a")),
            ("active", json!(false)),
            ("logo", json!("")),
            ("event_url", Value::Null),
            ("payment_service", json!("")),
            ("active", json!(true)),
        ] {
            let edited = patch(app, json!({ field: value })).await.data().clone();
            expected[field] = if value == "" { Value::Null } else { value };
            expected["updated_at"] = json!(app.app.clock.now());
            assert_eq!(edited, expected);
            assert_eq!(get(app, &own(app, "")).await, expected);
        }
        let nothing = patch(app, json!({ "server": "live", "id": "other", "active": null })).await;
        assert_eq!(nothing.data(), &expected);

        for (body, message) in [
            (json!({ "name": "" }), "the name field is required"),
            (json!({ "name": null }), "the name field is required"),
            (json!({ "name": "New", "logo": "x" }), "the logo field must be a valid http or https URL"),
            (json!({ "event_url": 1 }), "the event_url field must be a string"),
            (json!({ "payment_service": "provider_x" }), "the payment_service field must be one of provider_a"),
            (json!({ "active": "false" }), "the active field must be a boolean"),
        ] {
            assert_eq!(patch(app, body).await.failure(), (400, message));
        }
        assert_eq!(get(app, &own(app, "")).await, expected);
    }

    async fn an_update_of_a_subscription_keeps_unnamed_fields(app: TestApp) {
        let later = NOW.plus_seconds(3_600);
        for (body, active, expires_at, features) in [
            (json!({ "features": ["payments"] }), true, Value::Null, json!(["payments"])),
            (json!({ "expires_at": "2026-11-21T11:00:00+01:00" }), true, json!(later), json!(["payments"])),
            (json!({ "active": false }), false, json!(later), json!(["payments"])),
            (json!({}), false, json!(later), json!(["payments"])),
            (json!({ "features": null }), false, json!(later), Value::Null),
            (json!({ "active": true, "expires_at": null }), true, Value::Null, Value::Null),
            (json!({ "features": [] }), true, Value::Null, json!([])),
        ] {
            let response = subscribe(app, body.clone()).await.data()["subscription"].clone();
            assert_eq!(response, json!({ "active": active, "expires_at": expires_at, "features": features }), "{body}");
        }
        let before = get(app, &own(app, "")).await;
        for (body, message) in [
            (json!({ "active": 0 }), "the active field must be a boolean"),
            (json!({ "expires_at": "tomorrow" }), "the expires_at field must be an RFC 3339 timestamp"),
            (json!({ "expires_at": "2026-11-21" }), "the expires_at field must be an RFC 3339 timestamp"),
            (json!({ "expires_at": 1 }), "the expires_at field must be a string"),
            (json!({ "active": false, "features": "otp" }), "the features field must be a list of at most 100 strings"),
            (json!({ "features": [1] }), "the features field must be a list of at most 100 strings"),
            (json!({ "features": ["otp\u{0}"] }), "the features field must be free of control characters"),
            (json!({ "features": [""] }), "the features field must be a list of strings of 1 to 100 characters"),
            (json!({ "features": ["paymnts"] }), "the features field must be any of cards, identity, otp, payments, recollections, users"),
            (json!({ "features": ["otp", "Cards"] }), "the features field must be any of cards, identity, otp, payments, recollections, users"),
            (json!({ "features": ["x".repeat(101)] }), "the features field must be a list of strings of 1 to 100 characters"),
        ] {
            assert_eq!(subscribe(app, body).await.failure(), (400, message));
        }
        assert_eq!(get(app, &own(app, "")).await, before);
    }

    async fn a_subscription_expires_to_the_second(app: TestApp) {
        subscribe(app, json!({ "expires_at": NOW.plus_seconds(60) })).await.data();
        app.advance(59).await;
        assert_eq!(app.get("/payment/list").await.data()["total"], 0);
        app.advance(1).await;
        assert_eq!(app.get("/payment/list").await.failure(), (403, "active subscription required"));
    }
}

// ---- keys ---------------------------------------------------------------------------------------

both! {
    async fn a_key_is_replaced_without_downtime(app: TestApp) {
        let old = get(app, &own(app, "/keys")).await[0].clone();
        let new = new_key(app, json!({ "label": "second server" })).await;
        assert_eq!((&new["label"], &new["expires_at"]), (&json!("second server"), &Value::Null));
        assert!(text(&new, "api_key").starts_with(text(&new, "prefix")));
        let first = json!({ "api_key": app.company.key });
        for key in [&first, &new] {
            with_key(app, key).await.data();
        }

        let path = own(app, &format!("/keys/{}", text(&old, "id")));
        let revoked = app.operator(Method::DELETE, &path, Value::Null).await;
        assert_eq!((revoked.status.as_u16(), &revoked.body["message"]), (200, &json!("Key revoked successfully")));
        assert_eq!(with_key(app, &first).await.failure(), (401, BAD_KEY));
        with_key(app, &new).await.data();

        app.advance(5).await;
        app.operator(Method::DELETE, &path, Value::Null).await; // keeps the original time
        let keys = get(app, &own(app, "/keys")).await;
        let of = |id: &Value| keys.as_array().unwrap().iter().find(|key| key["id"] == *id).unwrap().clone();
        assert_eq!((&of(&old["id"])["revoked_at"], &of(&new["id"])["revoked_at"]), (&json!(NOW), &Value::Null));
        let unknown = app.operator(Method::DELETE, &own(app, "/keys/nothing"), Value::Null).await;
        assert_eq!(unknown.failure(), (404, "key not found"));
    }

    async fn an_expired_key_is_rejected(app: TestApp) {
        let key = new_key(app, json!({ "expires_at": NOW.plus_seconds(60) })).await;
        assert_eq!(key["expires_at"], json!(NOW.plus_seconds(60)));
        app.advance(59).await;
        with_key(app, &key).await.data();
        app.advance(1).await;
        assert_eq!(with_key(app, &key).await.failure(), (401, BAD_KEY));
        app.get("/payment/list").await.data(); // the other key stays valid

        for (body, message) in [
            (json!({ "label": 5 }), "the label field must be a string"),
            (json!({ "label": "x".repeat(101) }), "the label field must be at most 100 characters"),
            (json!({ "expires_at": "soon" }), "the expires_at field must be an RFC 3339 timestamp"),
            (json!({ "expires_at": app.app.clock.now() }), "the expires_at field must be in the future"),
        ] {
            assert_eq!(app.operator(Method::POST, &own(app, "/keys"), body).await.failure(), (400, message));
        }
        assert_eq!(get(app, &own(app, "/keys")).await.as_array().map(Vec::len), Some(2));
    }

    async fn the_last_use_of_a_key_is_recorded_at_most_once_a_minute(app: TestApp) {
        let key = new_key(app, json!({})).await;
        let last_used_at = async || {
            app.app.tasks.wait_until_idle().await; // it is recorded in the background
            let keys = get(app, &own(app, "/keys")).await;
            let keys = keys.as_array().unwrap();
            keys.iter().find(|k| k["id"] == key["id"]).expect("the key")["last_used_at"].clone()
        };
        assert_eq!(last_used_at().await, Value::Null);
        for (seconds, noted) in [(0, 0), (59, 0), (1, 60), (3_600, 3_660)] {
            app.advance(seconds).await;
            for _ in 0..3 {
                with_key(app, &key).await.data();
            }
            assert_eq!(last_used_at().await, json!(NOW.plus_seconds(noted)));
        }
    }

    async fn rejected_requests_do_not_change_the_last_use_of_a_key(app: TestApp) {
        let key = new_key(app, json!({})).await;
        let known = text(&key, "api_key");
        let last_used_at = async || {
            app.app.tasks.wait_until_idle().await;
            let keys = get(app, &own(app, "/keys")).await;
            keys.as_array().unwrap().iter().map(|key| key["last_used_at"].clone()).collect::<Vec<_>>()
        };
        let wrong_secret = format!("{}x", &known[..known.len() - 1]);
        let strangers = async || {
            for stranger in [
                &*wrong_secret,
                &known[..known.len() - 8],
                &known.to_uppercase(),
                text(&key, "id"),
                "sk_test_0000000000000000000000000000000000000000",
                "sk_",
                "' OR ''='",
            ] {
                let stranger = Company { key: stranger.to_owned(), ..app.company.clone() };
                let refused = app.request(&stranger, Method::GET, "/payment/list", None).await;
                assert_eq!(refused.failure(), (401, "the API key is not valid"), "{}", stranger.key);
            }
            for header in ["", "Bearer", &format!("Basic {known}"), &format!("Bearer{known}")] {
                let request = app.client.get(format!("{}/api/v1/payment/list", app.api));
                let refused = crate::app::reply(request.header("authorization", header)).await;
                assert_eq!(refused.failure().0, 401, "{header}");
            }
        };
        strangers().await;
        assert_eq!(last_used_at().await, [Value::Null, Value::Null]);
        with_key(app, &key).await.data();
        let used = last_used_at().await;
        assert!(used.contains(&json!(NOW)), "{used:?}");
        app.advance(3_600).await;
        strangers().await;
        assert_eq!(last_used_at().await, used);

        let revoke = own(app, &format!("/keys/{}", text(&key, "id")));
        app.operator(Method::DELETE, &revoke, Value::Null).await;
        assert_eq!(with_key(app, &key).await.failure().0, 401);
        assert_eq!(last_used_at().await, used);
    }

    async fn a_key_that_has_fetched_a_record_is_rejected_at_once_when_it_may_no_longer(app: TestApp) {
        let payment = app.initialize("order-1").await;
        let paths = [
            format!("/payment/fetch/{}", text(&payment, "id")),
            "/payment/fetch/reference/order-1".to_owned(),
        ];
        let expires_at = NOW.plus_seconds(60);
        let key = new_key(app, json!({ "expires_at": expires_at })).await;
        let other = app.new_company("Beta Lending").await;
        let holder = Company { key: text(&key, "api_key").to_owned(), ..app.company.clone() };
        let fetch = async |holder: &Company, expected: (u16, &str)| {
            for path in &paths {
                let response = app.request(holder, Method::GET, path, None).await;
                let message = response.body["message"].as_str();
                assert_eq!((response.status.as_u16(), message), (expected.0, Some(expected.1)));
            }
        };
        let fetched = (200, "Payment fetched successfully");
        for _ in 0..2 { // The second time, this host knows the keys.
            fetch(&holder, fetched).await;
            fetch(&app.company, fetched).await;
            fetch(&other, (404, "payment not found")).await;
        }
        patch(app, json!({ "active": false })).await.data();
        fetch(&holder, (403, "the company is suspended")).await;
        patch(app, json!({ "active": true })).await.data();
        subscribe(app, json!({ "active": false })).await.data();
        fetch(&holder, (403, "active subscription required")).await;
        subscribe(app, json!({ "active": true, "features": ["otp"] })).await.data();
        fetch(&holder, (403, "your plan does not include payments")).await;
        subscribe(app, json!({ "features": ["otp", "payments"], "expires_at": expires_at })).await.data();
        fetch(&holder, fetched).await;
        app.advance(60).await;
        fetch(&holder, (401, BAD_KEY)).await;
        fetch(&app.company, (403, "active subscription required")).await;
        subscribe(app, json!({ "features": null, "expires_at": null })).await.data();
        fetch(&app.company, fetched).await;
        let keys = get(app, &own(app, "/keys")).await;
        for key in keys.as_array().expect("keys") {
            let revoke = own(app, &format!("/keys/{}", text(key, "id")));
            app.operator(Method::DELETE, &revoke, Value::Null).await.data();
        }
        fetch(&app.company, (401, BAD_KEY)).await;
        app.run_until_idle().await;
    }

    async fn a_rotated_event_secret_stays_valid_for_a_day(app: TestApp) {
        let rotate = async || {
            let response = app.operator(Method::POST, &own(app, "/event-secret/rotate"), Value::Null).await;
            let secret = text(response.data(), "event_secret").to_owned();
            assert_eq!(BASE64.decode(&secret["whsec_".len()..]).map(|bytes| bytes.len()), Ok(32));
            secret
        };
        let mut order = 0;
        // Emits an event. Returns the result of verifying it with this secret, and its number of
        // signatures.
        let mut verify_event = async |secret: &str| {
            order += 1;
            app.simulators.set_event_secret(&app.company.id, secret);
            let payment = app.initialize(&format!("order-{order}")).await;
            app.complete(&payment, "success").await;
            app.run_until_idle().await;
            let event = app.simulators.events().remove(0);
            let header = event.headers.iter().find(|(name, _)| name == "webhook-signature");
            (event.signature, header.map_or(0, |(_, value)| value.split(' ').count()))
        };
        let (first, second) = (app.company.event_secret.clone(), rotate().await);
        assert_ne!(first, second);
        assert_eq!(verify_event(&first).await, (SignatureStatus::Valid, 2));
        assert_eq!(verify_event(&second).await, (SignatureStatus::Valid, 2));
        app.advance(24 * 3_600).await;
        assert_eq!(verify_event(&first).await, (SignatureStatus::Invalid, 1));
        assert_eq!(verify_event(&second).await, (SignatureStatus::Valid, 1));

        let (third, fourth) = (rotate().await, rotate().await);
        assert_eq!(verify_event(&second).await, (SignatureStatus::Invalid, 2)); // only one previous is kept
        assert_eq!(verify_event(&third).await, (SignatureStatus::Valid, 2));
        assert_eq!(verify_event(&fourth).await, (SignatureStatus::Valid, 2));
        let seen = everything(app).await;
        assert!([first, second, third, fourth].iter().all(|secret| !seen.contains(&secret[6..])));
    }
}
