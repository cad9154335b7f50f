//! Versions of plugins: grants, canaries, rollbacks, deactivation and removal.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_plugins::{Plugins, Unavailability};
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{Company, Reply, TestApp},
    fleet::{another_host, eventually},
    plugins::{sprout_1_1, sprout_with_manifest_field, states, try_install, versions},
    sprout::{SproutUpstream, TOKEN, notify, repack, sprout_order, start_payment},
    telemetry::execute_sql,
};

async fn install(app: &TestApp, wasm: &[u8], query: &str) -> Value {
    try_install(app, wasm.to_vec(), query).await.data().clone()
}

async fn change(app: &TestApp, what: &str, body: Value) -> Reply {
    app.operator(Method::POST, &format!("/plugins/sprout/{what}"), body).await
}

/// Installs sprout 1.0.0 as active and 1.1.0, which has one more channel, as ready. Returns both
/// digests.
async fn set_up(app: &TestApp, upstream: &SproutUpstream) -> [Value; 2] {
    let old = app.install(artifacts::SPROUT).await["digest"].clone();
    upstream.configure_account(app).await;
    let new = install(app, &sprout_1_1(), "activate=false").await["digest"].clone();
    [old, new]
}

/// Initializes a payment of a company. Returns whether the new version served it.
async fn is_new(app: &TestApp, company: &Company, reference: &str) -> bool {
    let order = sprout_order(app, reference);
    let begun = app.request(company, Method::POST, "/payment/initialize", Some(order)).await;
    begun.data()["channels"] == json!(["card", "ussd"])
}

both! {
    async fn a_component_serves_after_its_capabilities_are_granted(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        let waiting = install(app, artifacts::SPROUT, "").await;
        assert_eq!((&waiting["state"], &waiting["granted"]), (&json!("waiting"), &json!([])));
        assert_eq!(waiting["waits_for"], json!(["address:base_url", "secret:token -> header authorization at base_url", "unsigned"]));
        assert!(app.app.plugins.get("sprout").is_none());
        let refused = change(app, "activate", json!({ "digest": waiting["digest"] })).await;
        let reason = "this version requests capabilities that are not granted: send grant true";
        assert_eq!(refused.failure(), (409, reason));
        let granted = json!({ "digest": waiting["digest"], "grant": true });
        let active = change(app, "activate", granted).await.data()[0].clone();
        assert_eq!((&active["state"], &active["granted"]), (&json!("active"), &waiting["waits_for"]));
        upstream.configure_account(app).await;
        start_payment(app, "order-1").await;
    }

    async fn a_version_that_requests_more_waits_while_the_old_one_serves(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        upstream.configure_account(app).await;
        let greedy = repack(artifacts::SPROUT, |manifest| {
            (manifest["version"], manifest["channels"]) = (json!("1.1.0"), json!(["card", "ussd"]));
            manifest["hosts"] = json!(["files.sprout.example"]);
        });
        let waiting = install(app, &greedy, "").await;
        assert_eq!(waiting["waits_for"], json!(["host:files.sprout.example"]));
        assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "active"), ("1.1.0", "waiting")]));
        assert!(!is_new(app, &app.company, "order-1").await);
        assert_eq!(install(app, &greedy, "").await["state"], "waiting");
        // A version that requests no more than the active one needs no grant.
        let modest = sprout_with_manifest_field("version", json!("1.0.1"));
        let modest = install(app, &modest, "").await;
        assert_eq!((&modest["state"], &modest["replaces"]), (&json!("active"), &json!("1.0.0")));
        assert_eq!(install(app, &greedy, "grant=true").await["state"], "active");
        assert!(is_new(app, &app.company, "order-2").await);
        // The grant of a version is permanent.
        install(app, artifacts::SPROUT, "").await;
        assert_eq!(install(app, &greedy, "").await["state"], "active");
    }

    async fn a_version_that_widens_a_binding_waits_and_one_that_narrows_it_does_not(app: TestApp) {
        let with = |version: &str, secrets: Value| {
            repack(artifacts::SPROUT, |manifest| {
                (manifest["version"], manifest["secrets"]) = (json!(version), secrets);
            })
        };
        let bound = |places: Value| json!({ "token": { "to": ["base_url"], "in": places } });
        app.install(&with("1.0.0", json!(["token"]))).await;
        for (version, secrets, waits_for) in [
            ("1.0.1", bound(json!(["header:authorization", "header:x-token"])), json!([])),
            ("1.0.2", bound(json!(["header:authorization"])), json!([])),
            ("1.0.3", bound(json!(["header:authorization", "body"])), json!(["secret:token -> body at base_url"])),
            ("1.0.4", json!(["token"]), json!(["secret:token"])),
            ("1.0.5", bound(json!(["header:authorization"])), json!([])),
        ] {
            let installed = install(app, &with(version, secrets), "").await;
            let state = if waits_for == json!([]) { "active" } else { "waiting" };
            let found = (&installed["state"], &installed["waits_for"]);
            assert_eq!(found, (&json!(state), &waits_for), "{version}");
        }
    }

    async fn a_version_that_changes_a_price_waits_for_a_grant(app: TestApp) {
        const ITEM: &str = "price:identity.atlantis.citizen";
        let at = |version: &str, lookup: Value| {
            repack(artifacts::ATLANTIS, |manifest| {
                manifest["version"] = json!(version);
                manifest["country"]["identities"][0]["prices"]["lookup"] = lookup;
            })
        };
        let price = async || {
            let prices = app.operator(Method::GET, "/prices", Value::Null).await.data()["prices"].clone();
            prices["identity.atlantis.citizen"].clone()
        };
        let first = install(app, artifacts::ATLANTIS, "").await;
        let all = [".face=10", ".image=10", "=10"].map(|price| format!("{ITEM}{price}"));
        assert_eq!(first["waits_for"], json!([&*all[0], &*all[1], &*all[2], "unsigned"]));
        let granted = install(app, artifacts::ATLANTIS, "grant=true").await;
        assert_eq!((&granted["state"], &granted["granted"]), (&json!("active"), &first["waits_for"]));
        for (version, lookup) in [("1.0.1", json!(11)), ("1.0.2", json!(9.5)), ("1.0.3", json!(0))] {
            let waiting = install(app, &at(version, lookup.clone()), "").await;
            assert_eq!(waiting["waits_for"], json!([format!("{ITEM}={lookup}")]), "{version}");
            assert_eq!(price().await, json!({ "price": 10, "plan": "plugin" }));
        }
        assert_eq!(install(app, &at("1.0.4", json!(10)), "").await["state"], "active");
        assert_eq!(install(app, &at("1.0.1", json!(11)), "grant=true").await["state"], "active");
        assert_eq!(price().await, json!({ "price": 11, "plan": "plugin" }));

        // A host of the previous release granted no prices: the prices of the active version count
        // as granted.
        execute_sql(app, r#"UPDATE plugin_versions SET granted = '["unsigned"]' WHERE name = 'atlantis'"#).await;
        assert_eq!(install(app, &at("1.0.5", json!(11)), "").await["state"], "active");
        execute_sql(app, r#"UPDATE plugin_versions SET granted = '["unsigned"]' WHERE name = 'atlantis'"#).await;
        let waiting = install(app, &at("1.0.6", json!(12)), "").await;
        assert_eq!(waiting["waits_for"], json!([format!("{ITEM}=12")]));
    }

    async fn a_canary_serves_named_companies_and_a_share_of_all_calls(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        let [_, new] = set_up(app, &upstream).await;
        let other = app.new_company("Other").await;
        let try_on = async |percent: i64, companies: &[&str]| {
            let body = json!({ "digest": new, "percent": percent, "companies": companies });
            change(app, "canary", body).await.data().clone()
        };
        let tried = try_on(0, &[&other.id]).await;
        let canary = tried.as_array().expect("a list").iter().find(|version| version["state"] == "canary");
        assert_eq!(canary.expect("a canary")["companies"], json!([other.id]));
        assert!(is_new(app, &other, "order-1").await && !is_new(app, &app.company, "order-1").await);
        try_on(100, &[]).await;
        assert!(is_new(app, &app.company, "order-2").await);
        try_on(50, &[]).await;
        let mut served = [0, 0];
        for n in 0..40 {
            served[usize::from(is_new(app, &app.company, &format!("share-{n}")).await)] += 1;
        }
        assert!(served[0] > 4 && served[1] > 4, "{served:?}");
        let page = crate::telemetry::scrape(app).await;
        let digest = &new.as_str().expect("a digest")[..8];
        let series = format!("tollhouse_plugin_serving{{plugin=\"sprout\",version=\"1.1.0\",digest=\"{digest}\"}}");
        assert_eq!(crate::telemetry::metric_value(&page, &series), Some(1.0));
        let ended = change(app, "rollback", json!({})).await;
        ended.data();
        assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "active"), ("1.1.0", "ready")]));
        assert!(!is_new(app, &app.company, "order-3").await);
        let body = json!({ "digest": new, "percent": 101 });
        let refused = change(app, "canary", body).await;
        assert_eq!(refused.failure(), (400, "the percent field must be a whole number from 0 to 100"));
    }

    async fn rollback_reactivates_the_previous_version(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        let [_, new] = set_up(app, &upstream).await;
        change(app, "activate", json!({ "digest": new })).await.data();
        assert!(is_new(app, &app.company, "order-1").await);
        change(app, "rollback", json!({})).await.data();
        assert!(!is_new(app, &app.company, "order-2").await);
        let refused = change(app, "rollback", json!({})).await;
        assert_eq!(refused.failure(), (409, "no other version was active before this one"));
        let refused = change(app, "activate", json!({ "digest": "f".repeat(64) })).await;
        assert_eq!(refused.failure(), (404, "plugin version not found"));
        let unknown = app.operator(Method::POST, "/plugins/weed/rollback", json!({})).await;
        assert_eq!(unknown.failure(), (404, "plugin not found"));
    }

    async fn a_version_that_reads_a_secret_as_a_setting_cannot_serve_again(app: TestApp) {
        let in_clear = repack(artifacts::SPROUT, |manifest| {
            manifest["secrets"] = json!([]);
            manifest["settings"] = json!({ "base_url": { "kind": "url" }, "token": { "kind": "text" } });
        });
        let old = app.install(&in_clear).await["digest"].clone();
        app.install(&sprout_with_manifest_field("version", json!("1.1.0"))).await;
        let reason = "the manifest's setting \"token\" was a secret in version 1.1.0; give the setting another name";
        for (what, body) in [
            ("rollback", json!({})),
            ("activate", json!({ "digest": old })),
            ("canary", json!({ "digest": old })),
        ] {
            assert_eq!(change(app, what, body).await.failure(), (400, reason), "{what}");
        }
        assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "ready"), ("1.1.0", "active")]));
    }

    async fn a_version_that_never_served_does_not_restrict_others(app: TestApp) {
        app.install(artifacts::SPROUT).await;
        let blocks = repack(artifacts::SPROUT, |manifest| {
            (manifest["version"], manifest["secrets"]) = (json!("2.0.0"), json!(["token", "base_url"]));
            manifest["settings"] = json!({});
        });
        let waiting = install(app, &blocks, "").await;
        assert_eq!(waiting["waits_for"], json!(["secret:base_url", "secret:token"]));
        install(app, &sprout_1_1(), "").await;
        change(app, "rollback", json!({})).await.data();
        change(app, "deactivate", json!({})).await.data();
        change(app, "activate", json!({})).await.data();
        let path = format!("/plugins/sprout/{}", waiting["digest"].as_str().expect("a digest"));
        app.operator(Method::DELETE, &path, Value::Null).await.data();
        let fixed = install(app, &sprout_with_manifest_field("version", json!("1.2.0")), "").await;
        assert_eq!(fixed["state"], "active");
    }

    async fn a_default_address_needs_a_grant(app: TestApp) {
        app.install(artifacts::SPROUT).await;
        let elsewhere = repack(artifacts::SPROUT, |manifest| {
            manifest["version"] = json!("1.0.1");
            manifest["settings"]["base_url"]["default"] = json!("https://evil.example/api");
        });
        let waiting = install(app, &elsewhere, "").await;
        let requested = json!(["host:evil.example", "secret:token -> header authorization at evil.example"]);
        assert_eq!((&waiting["state"], &waiting["waits_for"]), (&json!("waiting"), &requested));
    }

    async fn a_plugin_with_a_pending_refund_is_not_removed(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        app.simulators.faults().push(Fault::new("refund", FaultKind::Cut).times(1));
        let path = format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().unwrap());
        assert_eq!(app.operator(Method::POST, &path, Value::Null).await.failure().0, 502);
        app.operator(Method::POST, "/plugins/provider_a/deactivate", json!({})).await.data();
        let shown = app.operator(Method::GET, "/plugins/provider_a", Value::Null).await.data().clone();
        let remove = format!("/plugins/provider_a/{}", shown[0]["digest"].as_str().unwrap());
        let refused = app.operator(Method::DELETE, &remove, Value::Null).await;
        assert!(refused.failure().1.contains("1 pending refunds"), "{}", refused.body);
        app.operator(Method::POST, "/plugins/provider_a/activate", json!({})).await.data();
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
    }

    async fn a_deactivated_plugin_serves_again_after_activation(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        let url = upstream.configure_account(app).await;
        start_payment(app, "order-1").await;
        upstream.set_status("order-1", "paid");
        change(app, "deactivate", json!({})).await.data();
        let begun = app.post("/payment/initialize", sprout_order(app, "order-2")).await;
        assert_eq!(begun.failure(), (400, "sprout has been deactivated"));
        let card = json!({
            "user_id": "ada", "currency": "NGN", "payment_service": "sprout",
            "checkout": { "success_url": "https://lender.example/" },
        });
        let begun = app.post("/card/create", card).await;
        assert_eq!(begun.failure(), (400, "sprout has been deactivated"));
        let verified = app.post("/payment/verify/order-1", json!({})).await;
        assert_eq!(verified.failure(), (400, "sprout has been deactivated"));
        // With 503, the provider retries the webhook later.
        let notified = notify(app, &url, "order-1", TOKEN).await;
        assert_eq!(notified.failure(), (503, "the provider has been deactivated, try again later"));
        let refused = change(app, "deactivate", json!({})).await;
        assert_eq!(refused.failure(), (409, "no version of the plugin is active"));
        change(app, "activate", json!({})).await.data();
        assert_eq!(notify(app, &url, "order-1", TOKEN).await.status, 200);
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
    }

    async fn a_version_that_records_need_is_not_removed(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        let [old, new] = set_up(app, &upstream).await;
        start_payment(app, "order-1").await;
        let remove = async |digest: &Value| {
            let path = format!("/plugins/sprout/{}", digest.as_str().expect("a digest"));
            app.operator(Method::DELETE, &path, Value::Null).await
        };
        let reason = "sprout 1.0.0 is in use: deactivate it, or activate another version";
        assert_eq!(remove(&old).await.failure(), (409, reason));
        assert_eq!(remove(&new).await.data()["version"], "1.1.0");
        assert_eq!(remove(&new).await.failure(), (404, "plugin not found"));
        change(app, "deactivate", json!({})).await.data();
        let needed = "sprout is needed by 1 pending payments, 1 accounts with credentials";
        assert_eq!(remove(&old).await.failure(), (409, needed));
        change(app, "activate", json!({})).await.data();
        upstream.set_status("order-1", "paid");
        app.advance(60).await;
        change(app, "deactivate", json!({})).await.data();
        let account = async |credentials: Value| {
            app.operator(Method::PUT, "/providers/sprout", json!({ "credentials": credentials })).await
        };
        let new_ones = account(json!({ "token": "t" })).await;
        assert_eq!(new_ones.failure(), (400, "sprout has been deactivated"));
        account(Value::Null).await.data();
        remove(&old).await.data();
        let shown = app.operator(Method::GET, "/plugins/sprout", Value::Null).await;
        assert_eq!(shown.failure(), (404, "plugin not found"));
        // After the removal, too, a former secret cannot become a setting.
        let in_clear = json!({ "base_url": { "kind": "url" }, "token": { "kind": "text" } });
        let spy = repack(artifacts::SPROUT, |manifest| {
            (manifest["version"], manifest["secrets"], manifest["settings"]) = (json!("2.0.0"), json!([]), in_clear);
        });
        let refused = try_install(app, spy, "grant=true").await;
        let reason = "the manifest's setting \"token\" was a secret in version 1.0.0; give the setting another name";
        assert_eq!(refused.failure(), (400, reason));
    }

    async fn other_hosts_follow_every_change_of_versions(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        let [_, new] = set_up(app, &upstream).await;
        let (host, _, stop) = another_host(app).await;
        let follows = async |is: fn(&Plugins) -> bool| eventually(|| is(&host.plugins)).await;
        let version = |plugins: &Plugins, company: &str| {
            plugins.provider("sprout", company).ok().map(|plugin| plugin.manifest().version.minor)
        };
        follows(|plugins| plugins.get("sprout").is_some()).await;
        change(app, "canary", json!({ "digest": new, "companies": ["one"] })).await.data();
        follows(|plugins| {
            let minor = |company| plugins.provider("sprout", company).map(|plugin| plugin.manifest().version.minor);
            minor("one").is_ok_and(|minor| minor == 1)
        })
        .await;
        assert_eq!(version(&host.plugins, "another"), Some(0));
        change(app, "deactivate", json!({})).await.data();
        follows(|plugins| plugins.unavailability("sprout") == Some(Unavailability::Deactivated)).await;
        assert_eq!(version(&host.plugins, "one"), None);
        change(app, "activate", json!({})).await.data();
        follows(|plugins| plugins.get("sprout").is_some()).await;
        stop.send_replace(true);
    }
}
