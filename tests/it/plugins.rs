//! Plugins of a running host: installation, upgrade and rollback under load, and rejection.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    app::{OPERATOR_TOKEN, Reply, TestApp, reply},
    fleet::served_version,
    sprout::{SproutUpstream, TOKEN, notify, repack, sprout_order, start_payment, with_manifest},
};

/// Sprout 1.1.0 offers one more channel, which payments show.
pub fn sprout_1_1() -> Vec<u8> {
    repack(artifacts::SPROUT, |manifest| {
        manifest["version"] = json!("1.1.0");
        manifest["channels"] = json!(["card", "ussd"]);
    })
}

/// `query` has the operator's grants.
pub async fn try_install(app: &TestApp, wasm: Vec<u8>, query: &str) -> Reply {
    let request = app.client.post(format!("{}/internal/v1/plugins?{query}", app.internal));
    reply(request.bearer_auth(OPERATOR_TOKEN).body(wasm)).await
}

/// Version and state of everything installed under a name, ordered by version.
pub async fn versions(app: &TestApp, name: &str) -> Vec<(String, String)> {
    let listed = app.operator(Method::GET, "/plugins", Value::Null).await.data().clone();
    let text = |plugin: &Value, key: &str| plugin[key].as_str().unwrap().to_owned();
    let mut versions: Vec<(String, String)> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|plugin| plugin["name"] == name)
        .map(|plugin| (text(plugin, "version"), text(plugin, "state")))
        .collect();
    versions.sort();
    versions
}

pub fn states(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(version, state)| ((*version).to_owned(), (*state).to_owned())).collect()
}

both! {
    async fn a_new_provider_serves_a_payment_from_start_to_settlement(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        let begin = async || app.post("/payment/initialize", sprout_order(app, "order-1")).await;
        let message = "the payment_service field must be one of provider_a, provider_b, provider_c";
        assert_eq!(begin().await.failure(), (400, message));

        let installed = app.install(artifacts::SPROUT).await;
        assert_eq!((&installed["version"], &installed["replaces"]), (&json!("1.0.0"), &Value::Null));
        assert_eq!(installed["interfaces"], json!(["checkout", "verification", "notifications"]));
        assert_eq!(begin().await.failure(), (400, "payment service key not found"));
        let set = json!({ "credentials": { "base_url": upstream.url } });
        let refused = app.operator(Method::PUT, "/providers/sprout", set).await;
        assert_eq!(refused.failure(), (400, "the credentials.token field is required"));
        let url = upstream.configure_account(app).await;

        let payment = begin().await.data().clone();
        assert_eq!(payment["checkout"]["url"], format!("{}/pay/order-1", upstream.url));
        assert_eq!(payment["payment_service"], "sprout");
        let session = upstream.sessions.lock().unwrap()["order-1"].clone();
        assert_eq!(session, json!({ "status": "open", "amount": 250_050, "currency": "NGN" }));

        upstream.set_status("order-1", "paid");
        assert_eq!(notify(app, &url, "order-1", "a guess").await.failure().0, 401);
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "pending"); // not even verified
        notify(app, &url, "order-1", TOKEN).await;
        app.run_until_idle().await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.wallet().await["balance"], json!(2500.5));

        start_payment(app, "order-2").await;
        upstream.set_status("order-2", "declined");
        app.advance(60).await;
        assert_eq!(app.fetch("order-2").await["status"], "failed");
        assert_eq!(app.events(), ["payment.success", "payment.failed"]);
    }

    async fn a_refund_at_a_provider_without_refunds_is_rejected_and_moves_no_money(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        upstream.configure_account(app).await;
        let payment = start_payment(app, "order-1").await;
        upstream.set_status("order-1", "paid");
        app.advance(60).await;
        let path = format!("/companies/{}/payments/{}/refund", app.company.id, payment["id"].as_str().unwrap());
        let refused = app.operator(Method::POST, &path, Value::Null).await;
        assert_eq!(refused.failure(), (400, "sprout does not support refunds"));
        app.advance(3600).await;
        assert_eq!(app.fetch("order-1").await["status"], "success");
        assert_eq!(app.wallet().await["balance"], json!(2500.5));
        assert_eq!(app.events(), ["payment.success"]);
    }
}

// ---- upgrades -----------------------------------------------------------------------------------

/// Clients that initialize payments one after the other until `stop` is set.
#[derive(Default)]
struct Traffic {
    initialized: watch::Sender<usize>,
    with_sprout: watch::Sender<bool>,
    stop: AtomicBool,
}

impl Traffic {
    /// Returns the payments in the responses. A failure ends the test.
    async fn client(&self, app: &TestApp, name: String, provider: &str) -> Vec<Value> {
        if provider == "sprout" {
            self.with_sprout.subscribe().wait_for(|with| *with).await.expect("a sender that lives");
        }
        let mut payments = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let mut order = app.order(&format!("{name}-{}", payments.len()));
            order["payment_service"] = json!(provider);
            payments.push(app.post("/payment/initialize", order).await.data().clone());
            self.initialized.send_modify(|count| *count += 1);
        }
        payments
    }

    /// Waits until this many more payments have been initialized.
    async fn wait_for_payments(&self, more: usize) {
        let enough = *self.initialized.borrow() + more;
        let mut initialized = self.initialized.subscribe();
        initialized.wait_for(|count| *count >= enough).await.expect("a sender that lives");
    }
}

both! {
    async fn a_plugin_is_upgraded_and_rolled_back_under_load(app: TestApp) {
        let (upstream, traffic) = (SproutUpstream::start().await, Traffic::default());
        let script = async {
            traffic.wait_for_payments(5).await;
            app.install(artifacts::SPROUT).await;
            let url = upstream.configure_account(app).await;
            traffic.with_sprout.send_replace(true);
            traffic.wait_for_payments(15).await;
            assert_eq!(app.install(&sprout_1_1()).await["replaces"], "1.0.0");
            assert_eq!(start_payment(app, "upgraded").await["channels"], json!(["card", "ussd"]));
            assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "ready"), ("1.1.0", "active")]));
            traffic.wait_for_payments(15).await;
            assert_eq!(app.install(artifacts::SPROUT).await["replaces"], "1.1.0");
            assert_eq!(start_payment(app, "rolled-back").await["channels"], json!(["card"]));
            assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "active"), ("1.1.0", "ready")]));
            traffic.wait_for_payments(15).await;
            traffic.stop.store(true, Ordering::Relaxed);
            url
        };
        let clients = join_all((0..5).map(|n| {
            let provider = if n < 2 { "provider_a" } else { "sprout" };
            traffic.client(app, format!("{provider}-{n}"), provider)
        }));
        let (by_client, url) = tokio::join!(clients, script);

        let total = by_client.iter().map(Vec::len).sum::<usize>() + 2;
        assert_eq!(app.get("/payment/list?limit=1").await.data()["total"], json!(total));
        for payments in &by_client[2..] {
            let mut served: Vec<&Value> = payments.iter().map(|payment| &payment["channels"]).collect();
            served.dedup(); // old, new, old: never back and forth
            assert!(served.len() <= 3 && *served[served.len() - 1] == json!(["card"]), "{served:?}");
        }
        // The active version settles the payments that any version began.
        let began: Vec<String> = upstream.sessions.lock().unwrap().keys().cloned().collect();
        assert_eq!(began.len(), 2 + by_client[2..].iter().map(Vec::len).sum::<usize>());
        for reference in &began {
            upstream.set_status(reference, "paid");
            assert_eq!(notify(app, &url, reference, TOKEN).await.status, 200);
        }
        app.run_until_idle().await;
        let successes = app.get("/payment/list?limit=1&provider=sprout&status=success").await;
        assert_eq!(successes.data()["total"], json!(began.len()));
        assert_eq!(app.wallet().await["balance"].as_f64(), Some(began.len() as f64 * 2500.5));
    }

    async fn a_request_that_began_on_the_old_version_ends_on_it(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        upstream.configure_account(app).await;
        let closed = upstream.gate.write().await;
        let old = start_payment(app, "order-1");
        let upgrade = async {
            let mut began = upstream.began.subscribe();
            began.wait_for(|began| *began == 1).await.expect("a sender that lives");
            // Another program, which returns a checkout URL of its own.
            let other = repack(artifacts::UNRULY, |manifest| {
                manifest["name"] = json!("sprout");
                manifest["version"] = json!("2.0.0");
                manifest["secrets"] = json!(["token"]);
            });
            app.install(&other).await;
            let new = start_payment(app, "order-2").await;
            drop(closed);
            new
        };
        let (old, new) = tokio::join!(old, upgrade);
        assert_eq!(new["checkout"]["url"], format!("{}/ok", upstream.url));
        assert_eq!(old["checkout"]["url"], format!("{}/pay/order-1", upstream.url));
        assert_eq!(*upstream.began.borrow(), 1);
    }

    async fn installing_the_same_component_again_changes_nothing(app: TestApp) {
        let first = app.install(artifacts::SPROUT).await;
        let again = app.install(artifacts::SPROUT).await;
        assert_eq!((&again["digest"], &again["replaces"]), (&first["digest"], &Value::Null));
        assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "active")]));
        let audit = app.operator(Method::GET, "/audit", Value::Null).await.data()["docs"].clone();
        let detail = json!({ "plugin": "sprout", "version": "1.0.0", "digest": first["digest"], "publisher": null, "grant": true });
        let noted = audit.as_array().unwrap().iter().filter(|entry| entry["detail"] == detail);
        assert!(noted.clone().all(|entry| entry["action"] == "plugin.install"));
        assert_eq!(noted.count(), 2);
    }

    async fn one_of_several_versions_installed_at_once_is_active(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        let next = sprout_1_1();
        tokio::join!(app.install(artifacts::SPROUT), app.install(&next), app.install(artifacts::SPROUT));
        upstream.configure_account(app).await;
        let listed = versions(app, "sprout").await;
        let active: Vec<&String> =
            listed.iter().filter(|(_, state)| state == "active").map(|(version, _)| version).collect();
        assert_eq!((listed.len(), active.len()), (2, 1), "{listed:?}");
        // This host uses the version that is active in the database, as other hosts do.
        let channels = if active[0] == "1.0.0" { json!(["card"]) } else { json!(["card", "ussd"]) };
        assert_eq!(start_payment(app, "order-1").await["channels"], channels);
    }
}

// ---- admission ----------------------------------------------------------------------------------

const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// Sprout with a name replaced by one of the same length, so that the component stays valid.
pub fn sprout_with_bytes_replaced(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len(), "{from} and {to}");
    let (mut wasm, from) = (artifacts::SPROUT.to_vec(), from.as_bytes());
    let found: Vec<usize> =
        (0..wasm.len() - from.len()).filter(|at| wasm[*at..].starts_with(from)).collect();
    assert!(!found.is_empty());
    for at in found {
        wasm[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    wasm
}

pub fn sprout_with_manifest_field(key: &str, value: Value) -> Vec<u8> {
    repack(artifacts::SPROUT, |manifest| manifest[key] = value)
}

/// A description, the component, and the begin of the error message.
type Refused = (&'static str, Vec<u8>, &'static str);

fn refused_components() -> Vec<Refused> {
    let sprout = artifacts::SPROUT;
    let twice = with_manifest(&with_manifest(sprout, b"{}"), b"{}");
    vec![
        ("nothing", Vec::new(), "the body must be a WebAssembly component"),
        ("garbage", b"once upon a time".to_vec(), "the file is not WebAssembly"),
        ("half a component", sprout[..sprout.len() / 2].to_vec(), "the file is not WebAssembly"),
        (
            "a module",
            b"\0asm\x01\0\0\0".to_vec(),
            "the file is a module, not a component: build it for wasm32-wasip2",
        ),
        (
            "no manifest",
            EMPTY_COMPONENT.to_vec(),
            "the component has no tollhouse:manifest section: add manifest.json as a custom section of that name",
        ),
        ("two manifests", twice, "the component has more than one tollhouse:manifest section"),
        (
            "another contract",
            sprout_with_bytes_replaced("@1.0.0", "@2.0.0"),
            "the component was built for version 2.0.0 of the contract; this host supports version 1",
        ),
        (
            "an import of its own",
            sprout_with_bytes_replaced("plugin/vault@1.0.0", "plugin/files@1.0.0"),
            "the component has an import that plugins may not use",
        ),
        (
            "an interface too little",
            sprout_with_bytes_replaced("plugin/verification@1.0.0", "plugin/examination2@1.0.0"),
            "a provider must export the interface verification",
        ),
        (
            "a gateway that sends nothing",
            sprout_with_manifest_field("kind", json!("sms")),
            "an SMS gateway must export the interface sms",
        ),
        (
            "a provider that sends messages",
            repack(artifacts::TERMII, |manifest| manifest["kind"] = json!("provider")),
            "a provider must export the interface checkout",
        ),
        (
            "a function of another name",
            sprout_with_bytes_replaced("verify", "verily"),
            "an interface differs from the contract: verification.verify: the function is missing",
        ),
        (
            "no code at all",
            with_manifest(EMPTY_COMPONENT, include_bytes!("../guests/sprout/manifest.json")),
            "a provider must export the interface checkout",
        ),
    ]
}

fn refused_manifests() -> Vec<Refused> {
    let sprout = artifacts::SPROUT;
    vec![
        (
            "a manifest that is no JSON",
            with_manifest(sprout, b"sprout"),
            "the manifest cannot be read",
        ),
        (
            "a manifest too large",
            with_manifest(sprout, &[b' '; 70_000]),
            "the manifest is larger than 64 KiB",
        ),
        (
            "a kind unknown here",
            sprout_with_manifest_field("kind", json!("oracle")),
            "the manifest's kind cannot be read: unknown variant `oracle`, expected one of `provider`, `sms`, `country`",
        ),
        (
            "a name for no URL",
            sprout_with_manifest_field("name", json!("Sprout/2")),
            "the manifest's name must be",
        ),
        (
            "no version",
            sprout_with_manifest_field("version", json!("newest")),
            "the manifest's version cannot be read",
        ),
        (
            "a host with a path",
            sprout_with_manifest_field("hosts", json!(["x.example/y"])),
            "the manifest's host \"x.example/y\" must be a host name",
        ),
        (
            "a host with a port",
            sprout_with_manifest_field("hosts", json!(["x.example:22"])),
            "the manifest's host",
        ),
        (
            "references too short to be unique",
            sprout_with_manifest_field("reference", json!({ "alphabet": "-", "max_length": 11 })),
            "the manifest's reference.max_length must be at least 12",
        ),
        (
            "a secret that is a setting as well",
            sprout_with_manifest_field(
                "settings",
                json!({ "base_url": { "kind": "url" }, "token": { "kind": "text" } }),
            ),
            "the manifest's \"token\" must be a secret or a setting, not both",
        ),
    ]
}

both! {
    async fn a_rejected_component_leaves_the_old_one_active(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        upstream.configure_account(app).await;
        for (what, wasm, reason) in refused_components().into_iter().chain(refused_manifests()) {
            let refused = try_install(app, wasm, "grant=true").await;
            let (status, message) = refused.failure();
            assert_eq!(status, 400, "{what}: {message}");
            assert!(message.starts_with(reason), "{what}: {message}");
            let payment = start_payment(app, &what.replace(' ', "-")).await;
            assert!(payment["checkout"]["url"].is_string(), "{what}");
        }
        let refused = try_install(app, vec![0; (32 << 20) + 1], "grant=true").await;
        assert_eq!(refused.failure(), (413, "the body is too large"));
        assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "active")]));
        let audit = app.operator(Method::GET, "/audit", Value::Null).await.data()["docs"].clone();
        let installs = audit.as_array().unwrap().iter().filter(|entry| entry["action"] == "plugin.install");
        assert_eq!(installs.count(), 2); // provider_a and sprout
    }
}

both! {
    async fn a_former_secret_of_any_version_cannot_become_a_setting(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        upstream.configure_account(app).await;
        let repacked = |version: &str, secrets: Value, settings: Value| {
            repack(artifacts::SPROUT, |manifest| {
                manifest["version"] = json!(version);
                manifest["secrets"] = secrets;
                manifest["settings"] = settings;
            })
        };
        let base_url = json!({ "base_url": { "kind": "url" } });
        app.install(&repacked("1.1.0", json!([]), base_url.clone())).await;
        // The version that had the secret is no longer active.
        let in_clear = json!({ "base_url": { "kind": "url" }, "token": { "kind": "text" } });
        let refused = try_install(app, repacked("1.2.0", json!([]), in_clear), "grant=true").await;
        let reason = "the manifest's setting \"token\" was a secret in version 1.0.0; give the setting another name";
        assert_eq!(refused.failure(), (400, reason));
        assert_eq!(served_version(&app.app), Some("1.1.0".to_owned()));
        assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "ready"), ("1.1.0", "active")]));
        // A setting may become a secret, but not a setting again.
        app.install(&repacked("1.3.0", json!(["token", "base_url"]), json!({}))).await;
        let refused = try_install(app, repacked("1.4.0", json!(["token"]), base_url), "grant=true").await;
        assert_eq!(refused.failure().0, 400);
    }
}
