//! Pages about what runs the service: plugins, recorded calls, hosts and the master key.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::operations::monitor::hosts;

use super::Browser;
use crate::{
    app::TestApp,
    containment::{initialize_repeatedly, unreachable_url},
    plugins::try_install,
    principals::entries,
    recordings::{fetch_recording, persisted_recordings},
    sprout::repack,
    unruly::{initialize_with_narration, install_unruly, set_account},
};

async fn versions(app: &TestApp, plugin: &str) -> Vec<Value> {
    let found = app.operator(Method::GET, &format!("/plugins/{plugin}"), Value::Null).await;
    found.data().as_array().expect("a list").clone()
}

both! {
    async fn calls_of_the_active_version_are_shown_beside_the_canary(app: TestApp) {
        install_unruly(app).await;
        let unused = versions(app, "unruly").await[0]["calls"].clone();
        assert_eq!((&unused["calls"], &unused["p50_ms"], &unused["outcomes"]), (&json!(0), &Value::Null, &json!({})));
        assert_eq!(initialize_repeatedly(app, "well", 3, "").await.status, 200);
        initialize_with_narration(app, "broken", "panic").await.failure();
        let next = repack(artifacts::UNRULY, |manifest| manifest["version"] = json!("1.1.0"));
        let next = try_install(app, next, "activate=false").await.data()["digest"].clone();
        let waiting = versions(app, "unruly").await;
        let inactive = waiting.iter().find(|version| version["digest"] == next).expect("the version");
        assert_eq!((&inactive["calls"], &inactive["open_circuits"]), (&Value::Null, &json!([])));
        let all = json!({ "digest": next, "percent": 100 });
        app.operator(Method::POST, "/plugins/unruly/canary", all).await.data();
        assert_eq!(initialize_with_narration(app, "new", "").await.status, 200);

        let found = versions(app, "unruly").await;
        let calls = |state: &str| {
            let version = found.iter().find(|version| version["state"] == state);
            version.expect("a version")["calls"].clone()
        };
        let (active, canary) = (calls("active"), calls("canary"));
        assert_eq!((&active["calls"], &active["failed"], &active["outcomes"]), (&json!(4), &json!(1), &json!({ "ok": 3, "other": 1 })));
        assert_eq!((&canary["calls"], &canary["failed"]), (&json!(1), &json!(0)));
        let (median, p99) = (active["p50_ms"].as_f64(), active["p99_ms"].as_f64());
        assert!(median > Some(0.0) && median <= p99, "{active}");

        hosts::report(&app.app).await.expect("a report");
        let browser = Browser::signed_in(app, "ada", "platform").await;
        let list = browser.get("/console/plugins").await;
        list.shows(&["this host since its start", "/console/plugins/unruly", "1 (25.0 %)", "100 %"]);
        browser.get("/console/plugins/unruly").await.shows(&[
            "1.1.0, canary", "1 (25.0 %)", "<svg", "750 ok, 0 declined, 250 failed", "1000 ok, 0 declined, 0 failed",
            "No circuit breaker is open", "Granted capabilities", "address:base_url", "Versions by host", "live, this host",
            "There are no such recorded calls",
        ]);
        let file = browser.get("/console/plugins?format=csv").await;
        assert!(file.html.starts_with("Plugin,Version,State,Canary share,Calls,Failed,p99,"), "{}", file.html);
        // For a role that may see neither hosts nor recorded calls, the page omits both.
        app.operator(Method::PUT, "/roles/author", json!({ "permissions": ["plugins.read"] })).await.data();
        let author = Browser::signed_in(app, "eve", "author").await;
        let shown = author.get("/console/plugins/unruly").await;
        shown.shows(&["Versions"]);
        assert!(!shown.html.contains("Versions by host") && !shown.html.contains("recorded calls"), "{}", shown.html);
        assert!(entries(app, "/audit", "access.refuse").await.is_empty(), "the page asks for too much");
        assert_eq!(browser.get("/console/plugins/none").await.status, 404);
    }

    async fn open_circuits_name_the_company_or_the_origin(app: TestApp) {
        let upstream = install_unruly(app).await;
        initialize_repeatedly(app, "panic", 16, "panic").await;
        let open = versions(app, "unruly").await[0]["open_circuits"].clone();
        assert_eq!(open, json!([{ "company": app.company.id, "origin": null, "retry_after_s": 5 }]));
        let browser = Browser::signed_in(app, "ada", "platform").await;
        browser.get("/console/plugins/unruly").await.shows(&["calls for a company", &app.company.id, "in 5 s"]);

        drop(upstream);
        let activate = json!({ "digest": versions(app, "unruly").await[0]["digest"] });
        app.operator(Method::POST, "/plugins/unruly/activate", activate).await.data();
        app.advance(6).await;
        assert_eq!(initialize_with_narration(app, "probe", "").await.status, 200);
        let down = unreachable_url();
        let account = set_account(app, "/providers/unruly", &down).await;
        initialize_repeatedly(app, "down", 16, "many 1").await;
        let open = versions(app, "unruly").await[0]["open_circuits"].clone();
        assert_eq!(open, json!([{ "company": null, "origin": down, "retry_after_s": 5 }]));
        let id = account.rsplit('/').next().expect("an account");
        let page = browser.get("/console/plugins/unruly").await;
        page.shows(&["requests of an account to an origin", &down]);
        assert!(!page.html.contains(id), "the account's id is secret");
    }

    async fn a_recorded_call_shows_its_masked_requests(app: TestApp, "--plugin-recording-retention-hours=100") {
        app.paid_payment("order-1").await;
        let calls = persisted_recordings(app, "provider_a").await;
        let start = calls.iter().find(|call| call["function"] == "checkout.start").expect("a call");
        let id = start["id"].as_str().expect("an id");
        let browser = Browser::signed_in(app, "ada", "platform").await;
        browser.get("/console/plugins/provider_a").await.shows(&["Latest recorded calls", "checkout.start"]);
        let list = "/console/plugins/provider_a/recordings";
        let page = format!("{list}/{id}");
        browser.get(&format!("{list}?function=checkout.start")).await.shows(&[&page, "Recorded calls of provider_a"]);
        browser.get(&format!("{list}?function=none")).await.shows(&["There are no such recorded calls"]);
        let shown = browser.get(&page).await;
        shown.shows(&[
            &format!("tollhouse plugin replay provider_a.wasm {id}"), "POST ", "/transaction/initialize",
            "Status 200", "order-1", "Result",
        ]);
        let (_, text) = fetch_recording(app, "provider_a", id).await;
        assert!(text.contains("order-1"));
        for private in ["ada@example", crate::app::PAYSTACK_KEY] {
            assert!(!shown.html.contains(private), "{private}: {}", shown.html);
        }
        assert_eq!(browser.get(&format!("{list}/none")).await.status, 404);
        let reader = Browser::signed_in(app, "eve", "security").await;
        for path in [list, &page] {
            assert_eq!(reader.get(path).await.status, 403, "{path}");
        }
        let plugin = reader.get("/console/plugins/provider_a").await;
        assert!(!plugin.html.contains("recorded calls"), "{}", plugin.html);
    }

    async fn hosts_are_listed_with_what_they_serve(app: TestApp) {
        let browser = Browser::signed_in(app, "ada", "platform").await;
        browser.get("/console/hosts").await.shows(&["No host has reported yet"]);
        hosts::report(&app.app).await.expect("a report");
        browser.get("/console/hosts").await.shows(&["live, this host", "provider_a 1.", env!("CARGO_PKG_VERSION")]);
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(61));
        browser.get("/console/hosts").await.shows(&["lost"]);
    }

    async fn the_master_key_is_shown_and_rotated(app: TestApp) {
        let mut browser = Browser::signed_in(app, "ada", "platform").await;
        let page = browser.get("/console/master-key").await;
        page.shows(&["provider_accounts.credentials", "active", "Reseal values of former keys"]);
        let token = page.form_token();
        let rotate = "/console/master-key/rotate";
        let rotated = browser.submit(rotate, &[("form_token", &token)]).await;
        rotated.shows(&["0 values were resealed", "All values have been read", "Reseal again"]);
        assert_eq!(entries(app, "/audit", "master_key.rotate").await[0]["actor"], "ada");
        let again = browser.submit(rotate, &[("form_token", &token), ("cursor", "none")]).await;
        assert!(again.status == 400 && again.html.contains("cursor"), "{}", again.html);
        assert_eq!(browser.submit(rotate, &[("form_token", "x")]).await.status, 403);
        let mut reader = Browser::signed_in(app, "eve", "security").await;
        let shown = reader.get("/console/master-key").await;
        shown.shows(&["Sealed values"]);
        assert!(!shown.html.contains("Reseal"), "{}", shown.html);
        let token = shown.form_token();
        assert_eq!(reader.submit(rotate, &[("form_token", &token)]).await.status, 403);
    }
}
