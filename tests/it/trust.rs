//! A host runs only components signed by a trusted publisher, and machine code that a host of the
//! fleet compiled from them, even if an attacker can write to the database or the code cache.

use std::{
    fs,
    path::{Path, PathBuf},
};

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::state::App;
use tollhouse_platform::{
    random::Random,
    store::{self, Tx},
};
use tollhouse_plugins::{SignedComponent, Unavailability};

use crate::{
    app::{MASTER_KEY, OPERATOR_TOKEN, TestApp, config, reply},
    command_line::run_against,
    fleet::served_version,
    plugins::{sprout_1_1, try_install},
    publishers::{SignedOnlyHost, key, signed, trust_publisher},
    sprout::{SproutUpstream, repack, sprout_order},
};

/// Changes rows as an attacker with write access to the database.
async fn write(
    app: &TestApp,
    rows: impl AsyncFnOnce(&mut Tx) -> store::Result<()> + Clone + Send + 'static,
) {
    app.app.store.write(rows).await.expect("rows of an attacker");
}

async fn set_signature(app: &TestApp, signature: Option<String>) {
    write(app, async move |tx| {
        let sql = tx.sql("UPDATE plugin_versions SET signature = $1 WHERE name = 'sprout'");
        sql.bind(signature).run().await.map(drop)
    })
    .await;
}

async fn set_component(app: &TestApp, wasm: Vec<u8>) {
    write(app, async move |tx| {
        let sql = tx.sql(
            "UPDATE plugin_components SET wasm = $1
             WHERE digest = (SELECT digest FROM plugin_versions WHERE name = 'sprout')",
        );
        sql.bind(wasm).run().await.map(drop)
    })
    .await;
}

/// Replaces the active component of Sprout, and its signature if there is a new one.
async fn replace(app: &TestApp, wasm: Vec<u8>, signature: Option<String>) {
    let digest = SignedComponent::parse(wasm.clone()).digest();
    write(app, async move |tx| {
        let sql = "INSERT INTO plugin_components (digest, wasm, created_at) VALUES ($1, $2, 0)";
        tx.sql(sql).bind(&digest).bind(wasm).run().await?;
        let sql = "UPDATE plugin_versions SET digest = $1, version = '1.1.0' WHERE name = 'sprout'";
        tx.sql(sql).bind(digest).run().await.map(drop)
    })
    .await;
    if signature.is_some() {
        set_signature(app, signature).await;
    }
}

fn signature(seed: u64, wasm: &[u8]) -> Option<String> {
    Some(hex::encode(key(seed).sign(wasm)))
}

/// Installs Sprout, signed by `acme`, as active.
async fn install_signed(app: &TestApp) {
    trust_publisher(app, "acme", &[1]).await.data();
    try_install(app, signed(artifacts::SPROUT, &key(1)), "grant=true").await.data();
}

/// Starts a host. Returns the version of Sprout that it serves; without one, Sprout is not ready.
async fn started(app: &TestApp, flags: &[&str]) -> Option<String> {
    let strict = SignedOnlyHost::start_with(app, flags).await;
    let served = served_version(&strict.host);
    let absence = strict.host.plugins.unavailability("sprout");
    assert_eq!(absence, served.is_none().then_some(Unavailability::NotReady));
    served
}

/// A key as settings pin it.
fn pinned(seed: u64) -> String {
    format!("pinned={}", key(seed).public().to_line())
}

fn served(version: &str) -> Option<String> {
    Some(version.to_owned())
}

// ---- components ---------------------------------------------------------------------------------

both! {
    async fn an_untrusted_component_in_the_database_is_not_loaded(app: TestApp) {
        install_signed(app).await;
        let early = SignedOnlyHost::start(app).await;
        assert_eq!(served_version(&early.host), served("1.0.0"));
        replace(app, sprout_1_1(), None).await;
        assert_eq!(started(app, &[]).await, None, "another component with the former's signature");
        set_signature(app, signature(2, &sprout_1_1())).await;
        assert_eq!(started(app, &[]).await, None, "signed by an untrusted key");

        early.host.plugins.sync_once(&early.host.store).await.expect("a registry that is read");
        assert_eq!(served_version(&early.host), served("1.0.0"), "the former version stays");
        app.app.plugins.sync_once(&app.app.store).await.expect("a registry that is read");
        assert_eq!(served_version(&app.app), served("1.1.0"), "this host takes unsigned plugins");

        SproutUpstream::start().await.configure_account(app).await;
        let late = SignedOnlyHost::start(app).await;
        let request = app.client.post(format!("{}/api/v1/payment/initialize", late.api));
        let order = sprout_order(app, "order-1");
        let refused = reply(request.bearer_auth(&app.company.key).json(&order)).await;
        assert_eq!(refused.failure(), (503, "sprout is unavailable, please try again later"));
        let digest = SignedComponent::parse(sprout_1_1()).digest();
        let activate = json!({ "digest": digest });
        let request = app.client.post(format!("{}/internal/v1/plugins/sprout/activate", late.internal));
        let refused = reply(request.bearer_auth(OPERATOR_TOKEN).json(&activate)).await;
        let reason = "the component is not signed by a publisher that this host trusts: \
                      trust the publisher's key with `tollhouse publisher trust`";
        assert_eq!(refused.failure(), (400, reason));
    }

    async fn a_component_that_does_not_match_its_signature_is_not_loaded(app: TestApp) {
        install_signed(app).await;
        assert_eq!(started(app, &[]).await, served("1.0.0"));
        set_component(app, sprout_1_1()).await;
        assert_eq!(started(app, &[]).await, None, "another component under this digest");
        set_component(app, artifacts::SPROUT.to_vec()).await;
        assert_eq!(started(app, &[]).await, served("1.0.0"));
        for wrong in [None, signature(1, &sprout_1_1()), signature(2, artifacts::SPROUT), Some("00".to_owned())] {
            set_signature(app, wrong.clone()).await;
            assert_eq!(started(app, &[]).await, None, "{wrong:?}");
        }
        // Installing it again restores its signature.
        let again = try_install(app, signed(artifacts::SPROUT, &key(1)), "").await.data().clone();
        assert_eq!((&again["state"], &again["publisher"]), (&json!("active"), &json!("acme")));
        assert_eq!(started(app, &[]).await, served("1.0.0"));
        write(app, async |tx| {
            let sql = "UPDATE plugin_versions SET name = 'provider_a' WHERE name = 'sprout'";
            tx.sql("DELETE FROM plugin_versions WHERE name = 'provider_a'").run().await?;
            tx.sql(sql).run().await.map(drop)
        })
        .await;
        let strict = SignedOnlyHost::start(app).await;
        assert_eq!(strict.host.plugins.unavailability("provider_a"), Some(Unavailability::NotReady), "of another name");
    }

    async fn a_component_is_loaded_after_its_publisher_is_distrusted(app: TestApp) {
        install_signed(app).await;
        app.advance(60).await;
        trust_publisher(app, "acme", &[2]).await.data();
        assert_eq!(started(app, &[]).await, served("1.0.0"), "signed by its former key");
        app.operator(Method::DELETE, "/publishers/acme", Value::Null).await.data();
        assert_eq!(started(app, &[]).await, served("1.0.0"));
        // A key that was removed before the component was installed does not count.
        app.advance(60).await;
        replace(app, sprout_1_1(), signature(1, &sprout_1_1())).await;
        let now = app.app.clock.now();
        write(app, async move |tx| {
            let sql = tx.sql("UPDATE plugin_versions SET installed_at = $1 WHERE name = 'sprout'");
            sql.bind(now).run().await.map(drop)
        })
        .await;
        assert_eq!(started(app, &[]).await, None);
        trust_publisher(app, "acme", &[1]).await.data();
        assert_eq!(started(app, &[]).await, served("1.1.0"));
    }

    async fn a_component_verified_by_a_former_release_is_loaded_unless_publishers_are_pinned(app: TestApp) {
        install_signed(app).await;
        set_signature(app, Some(String::new())).await;
        assert_eq!(started(app, &[]).await, served("1.0.0"));
        let pin = format!("--plugin-publishers={}", pinned(1));
        assert_eq!(started(app, &[&pin]).await, None, "no signature is stored");
        try_install(app, signed(artifacts::SPROUT, &key(1)), "").await.data();
        assert_eq!(started(app, &[&pin]).await, served("1.0.0"));
    }

    async fn only_pinned_publishers_count_if_the_settings_pin_any(app: TestApp) {
        install_signed(app).await;
        let pin = |seed: u64| format!("--plugin-publishers={}", pinned(seed));
        assert_eq!(started(app, &[&pin(1)]).await, served("1.0.0"));
        assert_eq!(started(app, &[&pin(2)]).await, None, "acme is only in the database");
        let both = format!("{},{}", pin(2), pinned(1));
        assert_eq!(started(app, &[&both]).await, served("1.0.0"));

        let strict = SignedOnlyHost::start_with(app, &[&pin(2)]).await;
        let install = async |wasm: Vec<u8>| strict.post(app, "/plugins?grant=true", wasm).await;
        let unknown = "the component is not signed by a publisher that this host trusts: add the publisher's key to the setting plugin_publishers";
        assert_eq!(install(signed(&sprout_1_1(), &key(1))).await.failure(), (400, unknown));
        let taken = install(signed(&sprout_1_1(), &key(2))).await.data().clone();
        assert_eq!((&taken["publisher"], &taken["state"]), (&json!("pinned"), &json!("active")));
        assert_eq!(started(app, &[&pin(2)]).await, served("1.1.0"));

        let run = async |arguments: &[&str]| run_against(&strict.internal, OPERATOR_TOKEN, arguments).await;
        let file = app.database.dir.path().join("mallory.pub");
        fs::write(&file, key(3).public().to_pem()).expect("a file");
        let refused = run(&["publisher", "trust", "mallory", &file.display().to_string()]).await;
        let pinned = "publishers are pinned by the setting plugin_publishers: change it on every host";
        assert!(refused.code == 1 && refused.err.contains(pinned), "{}", refused.err);
        let refused = run(&["publisher", "distrust", "acme", "--yes"]).await;
        assert!(refused.code == 1 && refused.err.contains(pinned), "{}", refused.err);
        let listed = run(&["publisher", "list", "--json"]).await.json();
        let keys = json!([{ "key": key(2).public().to_line(), "added_at": null }]);
        assert_eq!(listed, json!([{ "name": "pinned", "keys": keys }]));
    }
}

// ---- machine code -------------------------------------------------------------------------------

/// A code cache, and hosts that use it.
struct CodeFolder<'a> {
    app: &'a TestApp,
    folder: PathBuf,
}

impl CodeFolder<'_> {
    /// A host with this compiler and these master keys.
    async fn host(&self, compiler: &str, master_keys: &str) -> App {
        let mut config = config(&self.app.database, &[]);
        let file = self.folder.with_extension("keys");
        fs::write(&file, master_keys).expect("a file");
        config.master_key.master_key_file = Some(file);
        config.plugins.plugin_cache = Some(self.folder.clone());
        config.plugins.plugin_compiler = Some(compiler.into());
        let host = App::open(&config, self.app.app.clock.clone(), Random::system(), None).await;
        host.expect("a host that starts")
    }

    /// Returns whether a host loads the cached machine code of Sprout; its compiler always fails.
    async fn is_loaded(&self) -> bool {
        served_version(&self.host("/bin/false", MASTER_KEY).await).is_some()
    }

    fn file(&self, wasm: &[u8]) -> PathBuf {
        let digest = SignedComponent::parse(wasm.to_vec()).digest();
        let mut files =
            fs::read_dir(&self.folder).expect("a folder").map(|file| file.unwrap().path());
        let is_it =
            |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with(&digest);
        files.find(is_it).expect("machine code")
    }
}

fn flipped(file: &Path, at: usize) -> Vec<u8> {
    let mut bytes = fs::read(file).expect("a file");
    bytes[at] ^= 1;
    bytes
}

both! {
    async fn machine_code_that_no_host_wrote_is_recompiled(app: TestApp) {
        let upstream = SproutUpstream::start().await;
        app.install(artifacts::SPROUT).await;
        upstream.configure_account(app).await;
        let other = repack(artifacts::UNRULY, |manifest| manifest["name"] = json!("other"));
        app.install(&other).await;
        let folder = tempfile::tempdir().expect("a folder");
        let kept = CodeFolder { app, folder: folder.path().join("code") };
        let program = env!("CARGO_BIN_EXE_tollhouse");
        kept.host(program, MASTER_KEY).await;
        let file = kept.file(artifacts::SPROUT);
        let good = fs::read(&file).expect("machine code");
        let of_other = fs::read(kept.file(&other)).expect("machine code");
        assert!(kept.is_loaded().await, "by another host with the same key");
        let end = good.len() - 1;
        let head = good.iter().position(|byte| *byte == b'\n').expect("a first line") + 1;
        for (what, bytes) in [
            ("of another component", of_other),
            ("without a code", good[head..].to_vec()),
            ("with another code", flipped(&file, head - 2)),
            ("changed at its end", flipped(&file, end)),
            ("cut off", good[..end].to_vec()),
            ("empty", Vec::new()),
        ] {
            fs::write(&file, bytes).expect("a file");
            assert!(!kept.is_loaded().await, "{what}");
            assert!(served_version(&kept.host(program, MASTER_KEY).await).is_some(), "{what}");
            assert!(kept.is_loaded().await, "{what}: it was not recompiled");
        }

        // Machine code of another master key is ignored; that of a former key is loaded.
        let other_key = "09".repeat(32);
        let with_keys = async |keys: &str| served_version(&kept.host("/bin/false", keys).await);
        assert_eq!(with_keys(&other_key).await, None);
        assert_eq!(with_keys(&format!("{other_key}\n{MASTER_KEY}")).await, served("1.0.0"));
    }
}
