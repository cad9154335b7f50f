//! Several hosts on one database: each host applies the plugin changes made on another.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, time::Duration};

use reqwest::{Method, header::RETRY_AFTER};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tollhouse_app::{
    state::{App, config::Config},
    wiring,
};
use tollhouse_http as http;
use tollhouse_platform::{
    clock::Timestamp,
    random::Random,
    store::{self, Tx, params},
};
use tollhouse_plugins::{InstallOptions, SignedComponent, Unavailability};

use crate::{
    app::{Company, TestApp, config, reply},
    plugins::{sprout_1_1, sprout_with_manifest_field, try_install, versions},
    sprout::{SproutUpstream, TOKEN, notify, sprout_order, start_payment},
};

/// Starts another host on the same database. Returns it, its API's URL, and a sender that stops it.
pub async fn another_host(app: &TestApp) -> (App, String, watch::Sender<bool>) {
    host_with_config(app, config(&app.database, &[])).await
}

pub async fn host_with_config(app: &TestApp, config: Config) -> (App, String, watch::Sender<bool>) {
    let host = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
    let host = host.expect("a host that starts");
    let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (public, internal) = (bind().await, bind().await);
    let api = format!("http://{}", public.local_addr().expect("bound"));
    let (public, internal) = (http::Listener::plain(public), http::Listener::plain(internal));
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(wiring::serve(host.clone(), public, internal, stopped));
    (host, api, stop)
}

pub fn served_version(host: &App) -> Option<String> {
    Some(host.plugins.get("sprout")?.manifest().version.to_string())
}

/// Waits until the condition holds, for at most 60 s.
pub async fn eventually(is: impl Fn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let followed = async {
        while !is() {
            looks.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), followed)
        .await
        .expect("a condition that holds in time");
}

/// Writes the rows of another host that has activated this component as version 1.1.0 of sprout.
async fn activate_elsewhere(app: &TestApp, digest: &str, wasm: Vec<u8>) {
    let digest = digest.to_owned();
    let rows = async move |tx: &mut Tx| -> store::Result<()> {
        tx.sql("INSERT INTO plugin_components (digest, wasm, created_at) VALUES ($1, $2, 0)")
            .params(params![&digest, wasm])
            .run()
            .await?;
        tx.sql("UPDATE plugin_versions SET state = 'ready' WHERE name = 'sprout'").run().await?;
        tx.sql("INSERT INTO plugin_versions (name, digest, version, state, companies, installed_at, active_at)
                VALUES ('sprout', $1, '1.1.0', 'active', '[]', 0, 0)")
            .bind(digest)
            .run()
            .await?;
        Ok(())
    };
    app.app.store.write(rows).await.expect("the other host's rows");
}

both! {
    async fn an_active_version_that_would_fail_admission_today_keeps_serving(app: TestApp) {
        app.install(artifacts::SPROUT).await;
        let former = sprout_with_manifest_field("currencies", json!(["usdt"]));
        let refused = try_install(app, former.clone(), "grant=true").await;
        let reason = "the manifest's currency \"usdt\" is not an ISO 4217 code, like NGN";
        assert_eq!(refused.failure(), (400, reason));
        activate_elsewhere(app, &SignedComponent::parse(former.clone()).digest(), former).await;
        let (late, _, stop) = another_host(app).await;
        let serves = late.plugins.get("sprout").expect("the version active elsewhere");
        assert_eq!(serves.manifest().currencies, ["usdt"]);
        stop.send_replace(true);
    }

    async fn a_row_that_names_another_plugins_component_is_not_served(app: TestApp) {
        app.install(artifacts::SPROUT).await;
        let unruly = artifacts::UNRULY.to_vec();
        let digest = SignedComponent::parse(unruly.clone()).digest();
        activate_elsewhere(app, &digest, unruly).await;
        // The component is also active under its own name.
        app.app.store.write(async move |tx| -> store::Result<()> {
            tx.sql("INSERT INTO plugin_names (name) VALUES ('unruly')").run().await?;
            tx.sql("INSERT INTO plugin_versions (name, digest, version, state, companies, installed_at, active_at)
                    VALUES ('unruly', $1, '1.0.0', 'active', '[]', 0, 0)").bind(digest).run().await?;
            Ok(())
        }).await.expect("rows");
        app.app.plugins.sync_once(&app.app.store).await.expect("a registry that is read");
        let served = app.app.plugins.get("sprout").expect("the former version");
        assert_eq!(served.manifest().name, "sprout");
        assert!(app.app.plugins.get("unruly").is_some());
    }

    async fn other_hosts_load_a_newly_installed_version(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        let (host, api, stop) = another_host(app).await;
        assert_eq!(served_version(&host), None);
        for (n, wasm) in [artifacts::SPROUT, &sprout_1_1(), artifacts::SPROUT].into_iter().enumerate() {
            let installed = app.install(wasm).await;
            upstream.configure_account(app).await;
            eventually(|| served_version(&host).map(Value::from).as_ref() == Some(&installed["version"])).await;
            let order = sprout_order(app, &format!("order-{n}"));
            let Company { key, .. } = &app.company;
            let begun = reply(app.client.post(format!("{api}/api/v1/payment/initialize")).bearer_auth(key).json(&order)).await;
            assert_eq!(begun.data()["channels"], installed["manifest"]["channels"]);
        }
        stop.send_replace(true);
        let (late, _, stop) = another_host(app).await;
        assert_eq!(served_version(&late), Some("1.0.0".to_owned()));
        stop.send_replace(true);
    }

    async fn concurrent_installations_on_two_hosts_leave_one_active_version(app: TestApp) {
        let (host, _, stop) = another_host(app).await;
        for n in 0..5 {
            let version = |host: &str| sprout_with_manifest_field("version", json!(format!("1.{n}.0-{host}")));
            let install = async |app: &App, wasm: Vec<u8>| {
                let options = InstallOptions { grant: true, activate: true };
                app.plugins.install(&app.store, SignedComponent::parse(wasm), options, async |_, _| Ok(())).await.map(drop)
            };
            let both = tokio::join!(install(&app.app, version("a")), install(&host, version("b")));
            for result in [both.0, both.1] {
                assert!(result.is_ok(), "{result:?}");
            }
            let listed = versions(app, "sprout").await;
            assert_eq!(listed.iter().filter(|(_, state)| state == "active").count(), 1, "{listed:?}");
        }
        stop.send_replace(true);
    }

    async fn a_plugin_not_loaded_on_this_host_gets_503_until_it_is(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        let url = upstream.configure_account(app).await.replace(&app.api, "");
        app.app.store.write(async |tx| -> store::Result<u64> {
            let sql = tx.sql("UPDATE plugin_components SET wasm = $1 WHERE digest = (SELECT digest FROM plugin_versions WHERE name = 'sprout')");
            sql.bind(&b"of a later engine"[..]).run().await
        }).await.expect("a component");
        let (late, api, stop) = another_host(app).await;
        assert_eq!(late.plugins.unavailability("sprout"), Some(Unavailability::NotReady));
        let begin = async |reference: &str| {
            let order = sprout_order(app, reference);
            let request = app.client.post(format!("{api}/api/v1/payment/initialize"));
            reply(request.bearer_auth(&app.company.key).json(&order)).await
        };
        let refused = begin("order-1").await;
        assert_eq!(refused.failure(), (503, "sprout is unavailable, please try again later"));
        assert_eq!(refused.headers[RETRY_AFTER], "5");
        let mut order = sprout_order(app, "order-2");
        order["currency"] = json!("KES");
        let request = app.client.post(format!("{api}/api/v1/payment/initialize"));
        let refused = reply(request.bearer_auth(&app.company.key).json(&order)).await;
        assert_eq!(refused.status, 503, "its currencies are unknown here: {refused:?}");
        assert_eq!(app.get("/payment/fetch/reference/order-1").await.status, 404);
        let notified = notify(app, &format!("{api}{url}"), "order-1", TOKEN).await;
        assert_eq!(notified.failure(), (503, "the provider is not ready on this host, try again later"));

        app.app.store.write(async |tx| -> store::Result<u64> {
            let sql = tx.sql("UPDATE plugin_components SET wasm = $1 WHERE digest = (SELECT digest FROM plugin_versions WHERE name = 'sprout')");
            sql.bind(artifacts::SPROUT).run().await
        }).await.expect("a component");
        late.clock.advance_to(Timestamp(late.clock.now().0 + 60_000));
        late.plugins.sync_once(&late.store).await.expect("a registry that is read");
        begin("order-1").await.data();
        stop.send_replace(true);
    }

    async fn compiling_a_plugin_does_not_delay_other_changes(app: TestApp) {
        app.install(artifacts::SPROUT).await;
        let folder = tempfile::tempdir().expect("a folder");
        let (compiler, hold) = (folder.path().join("compiler"), folder.path().join("hold"));
        let (program, held) = (env!("CARGO_BIN_EXE_tollhouse"), hold.display());
        let script = format!("#!/bin/sh\nwhile [ -e {held} ]; do /bin/sleep 0.02; done\nexec {program} \"$@\"\n");
        std::fs::write(&compiler, script).expect("a program");
        std::fs::set_permissions(&compiler, Permissions::from_mode(0o700)).expect("a program");
        let mut config = config(&app.database, &[]);
        config.plugins.plugin_compiler = Some(compiler);
        config.plugins.plugin_cache = Some(folder.path().join("cache"));
        let (host, _, stop) = host_with_config(app, config).await;
        assert_eq!(served_version(&host), Some("1.0.0".to_owned()));

        std::fs::write(&hold, "").expect("a file");
        app.install(artifacts::UNRULY).await;
        app.operator(Method::POST, "/plugins/sprout/deactivate", json!({})).await.data();
        let absence = |name: &'static str, absence| {
            let plugins = host.plugins.clone();
            eventually(move || plugins.unavailability(name) == absence)
        };
        absence("sprout", Some(Unavailability::Deactivated)).await;
        absence("unruly", Some(Unavailability::NotReady)).await;
        app.operator(Method::POST, "/plugins/sprout/activate", json!({})).await.data();
        std::fs::remove_file(&hold).expect("a file");
        absence("unruly", None).await;
        absence("sprout", None).await;
        assert!(host.plugins.get("unruly").is_some() && host.plugins.get("sprout").is_some());
        stop.send_replace(true);
    }

    async fn a_version_that_cannot_be_loaded_leaves_the_previous_one_serving(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        upstream.configure_account(app).await;
        let sprout = sprout_1_1();
        let digest = SignedComponent::parse(sprout.clone()).digest();
        activate_elsewhere(app, &digest, b"of a later engine".to_vec()).await;
        app.app.plugins.sync_once(&app.app.store).await.expect("a registry that is read");
        assert_eq!(served_version(&app.app), Some("1.0.0".to_owned()));
        assert!(start_payment(app, "order-1").await["checkout"]["url"].is_string());

        // Loading is retried after a minute, even if it would succeed earlier.
        app.app.store.write(async move |tx| -> store::Result<()> {
            let digest = SignedComponent::parse(sprout.clone()).digest();
            tx.sql("UPDATE plugin_components SET wasm = $1 WHERE digest = $2").bind(&sprout[..]).bind(digest).run().await?;
            Ok(())
        }).await.expect("the other host's rows");
        app.app.plugins.sync_once(&app.app.store).await.expect("a registry that is read");
        assert_eq!(served_version(&app.app), Some("1.0.0".to_owned()));
        app.advance(60).await;
        app.app.plugins.sync_once(&app.app.store).await.expect("a registry that is read");
        assert_eq!(served_version(&app.app), Some("1.1.0".to_owned()));

        let second = app.app.store.write(async move |tx| -> store::Result<u64> {
            tx.sql("UPDATE plugin_versions SET state = 'active' WHERE name = 'sprout'").run().await
        }).await;
        assert!(store::is_duplicate(&second.expect_err("two active versions")));
    }
}
