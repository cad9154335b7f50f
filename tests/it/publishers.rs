//! Trusted publishers: signatures of components, keys, and grants that depend on the publisher.

use std::{fs, os::unix::fs::PermissionsExt};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};
use tollhouse_app::{state::App, wiring};
use tollhouse_http as http;
use tollhouse_platform::random::Random;
use tollhouse_plugins::{PrivateKey, SignedComponent};

use crate::{
    app::{OPERATOR_TOKEN, Reply, TestApp, config, reply},
    command_line::run_against,
    plugins::{sprout_1_1, sprout_with_manifest_field, states, try_install, versions},
};

pub fn key(seed: u64) -> PrivateKey {
    PrivateKey::generate(&Random::seeded(seed))
}

pub fn signed(wasm: &[u8], key: &PrivateKey) -> Vec<u8> {
    SignedComponent::embed_signature(wasm, &key.sign(wasm))
}

/// Trusts the keys generated from these seeds.
pub async fn trust_publisher(app: &TestApp, publisher: &str, seeds: &[u64]) -> Reply {
    let keys: Vec<String> = seeds.iter().map(|seed| key(*seed).public().to_line()).collect();
    app.operator(Method::PUT, &format!("/publishers/{publisher}"), json!({ "keys": keys })).await
}

/// Another host on the same database, which accepts signed components only.
pub struct SignedOnlyHost {
    pub host: App,
    pub api: String,
    pub internal: String,
    _stop: watch::Sender<bool>,
}

impl SignedOnlyHost {
    pub async fn start(app: &TestApp) -> SignedOnlyHost {
        SignedOnlyHost::start_with(app, &[]).await
    }

    /// With more flags.
    pub async fn start_with(app: &TestApp, flags: &[&str]) -> SignedOnlyHost {
        let mut config = config(&app.database, flags);
        config.plugins.plugin_unsigned = false;
        let host = App::open(&config, app.app.clock.clone(), Random::system(), None).await;
        let host = host.expect("a host that starts");
        let bind = async || TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (public, internal) = (bind().await, bind().await);
        let url = |listener: &TcpListener| {
            format!("http://{}", listener.local_addr().expect("a bound listener"))
        };
        let (api, internal_url) = (url(&public), url(&internal));
        let (public, internal) = (http::Listener::plain(public), http::Listener::plain(internal));
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(wiring::serve(host.clone(), public, internal, stopped));
        SignedOnlyHost { host, api, internal: internal_url, _stop: stop }
    }

    pub async fn post(&self, app: &TestApp, path: &str, wasm: Vec<u8>) -> Reply {
        let request = app.client.post(format!("{}/internal/v1{path}", self.internal));
        reply(request.bearer_auth(OPERATOR_TOKEN).body(wasm)).await
    }
}

both! {
    async fn only_components_signed_by_a_trusted_publisher_are_installed(app: TestApp) {
        let strict = SignedOnlyHost::start(app).await;
        let ours = signed(artifacts::SPROUT, &key(1));
        let unknown = "the component is not signed by a publisher that this host trusts: \
                       trust the publisher's key with `tollhouse publisher trust`";
        let unsigned = "the component is not signed: sign it with `tollhouse plugin sign`, \
                        or set plugin_unsigned on the host to accept unsigned components";
        let install = async |wasm: &[u8], query: &str| {
            strict.post(app, &format!("/plugins?grant=true{query}"), wasm.to_vec()).await
        };
        assert_eq!(install(artifacts::SPROUT, "").await.failure(), (400, unsigned));
        assert_eq!(install(&ours, "").await.failure(), (400, unknown));
        trust_publisher(app, "acme", &[1]).await.data();
        let another = signed(&sprout_1_1(), &key(1));
        let moved = [artifacts::SPROUT, &another[another.len() - 86..]].concat();
        assert_eq!(install(&moved, "").await.failure(), (400, unknown));
        assert_eq!(install(&signed(artifacts::SPROUT, &key(2)), "").await.failure(), (400, unknown));
        assert_eq!(versions(app, "sprout").await, []);

        let taken = install(&ours, "").await.data().clone();
        assert_eq!((&taken["publisher"], &taken["state"]), (&json!("acme"), &json!("active")));
        assert_eq!(taken["granted"], json!(["address:base_url", "publisher:acme", "secret:token -> header authorization at base_url"]));
        assert_eq!(taken["checks"][0], json!({ "check": "signature", "passed": true, "result": "by acme" }));
        let beside = format!("&signature={}", hex::encode(key(1).sign(artifacts::SPROUT)));
        let again = install(artifacts::SPROUT, &beside).await.data().clone();
        assert_eq!(again["digest"], taken["digest"], "one component has one digest, signed or not");
        let of_another = format!("&signature={}", hex::encode(key(1).sign(&sprout_1_1())));
        let again = install(&ours, &of_another).await.data().clone();
        assert_eq!(again["publisher"], "acme", "one valid signature is enough");
    }

    async fn a_component_without_a_trusted_signature_is_not_examined(app: TestApp) {
        let strict = SignedOnlyHost::start(app).await;
        let examined = strict.post(app, "/plugins/examine", b"no component at all".to_vec()).await;
        let checks = examined.data()["checks"].as_array().unwrap();
        assert_eq!((checks.len(), &checks[0]["check"], &checks[0]["passed"]), (1, &json!("signature"), &json!(false)));
        let lenient = app.client.post(format!("{}/internal/v1/plugins/examine", app.internal));
        let examined = reply(lenient.bearer_auth(OPERATOR_TOKEN).body(signed(artifacts::SPROUT, &key(1)))).await;
        let expected = "by an untrusted publisher: it counts as unsigned";
        assert_eq!(examined.data()["checks"][0]["result"], expected);
        assert_eq!(examined.data()["requested_capabilities"], json!(["address:base_url", "secret:token -> header authorization at base_url", "unsigned"]));
    }

    async fn a_version_by_another_publisher_waits_for_a_grant(app: TestApp) {
        trust_publisher(app, "acme", &[1]).await.data();
        trust_publisher(app, "beta", &[2]).await.data();
        try_install(app, signed(artifacts::SPROUT, &key(1)), "grant=true").await.data();
        let next = try_install(app, signed(&sprout_1_1(), &key(1)), "").await.data().clone();
        assert_eq!((&next["state"], &next["waits_for"]), (&json!("active"), &json!([])));
        for (version, key, waits_for) in
            [("1.2.0", Some(key(2)), json!(["publisher:beta"])), ("1.3.0", None, json!(["unsigned"]))]
        {
            let wasm = sprout_with_manifest_field("version", json!(version));
            let wasm = key.map_or(wasm.clone(), |key| signed(&wasm, &key));
            let waiting = try_install(app, wasm, "").await.data().clone();
            assert_eq!((&waiting["state"], &waiting["waits_for"]), (&json!("waiting"), &waits_for));
        }
        let expected = states(&[("1.0.0", "ready"), ("1.1.0", "active"), ("1.2.0", "waiting"), ("1.3.0", "waiting")]);
        assert_eq!(versions(app, "sprout").await, expected);
    }

    async fn a_component_stays_signed_when_it_is_installed_without_its_signature(app: TestApp) {
        trust_publisher(app, "acme", &[1]).await.data();
        try_install(app, artifacts::SPROUT.to_vec(), "grant=true").await.data();
        let signed = try_install(app, signed(artifacts::SPROUT, &key(1)), "grant=true").await;
        assert_eq!(signed.data()["publisher"], "acme");
        let again = try_install(app, artifacts::SPROUT.to_vec(), "grant=true").await;
        assert_eq!(again.data()["publisher"], "acme");
    }

    async fn another_signature_on_the_same_component_does_not_change_its_publisher(app: TestApp) {
        trust_publisher(app, "acme", &[1]).await.data();
        trust_publisher(app, "beta", &[2]).await.data();
        try_install(app, signed(artifacts::SPROUT, &key(1)), "grant=true").await.data();
        let again = try_install(app, signed(artifacts::SPROUT, &key(2)), "").await.data().clone();
        assert_eq!((&again["publisher"], &again["state"]), (&json!("acme"), &json!("active")));
        let theirs = try_install(app, signed(&sprout_1_1(), &key(2)), "").await.data().clone();
        assert_eq!((&theirs["state"], &theirs["waits_for"]), (&json!("waiting"), &json!(["publisher:beta"])));
        let ours = sprout_with_manifest_field("version", json!("1.2.0"));
        assert_eq!(try_install(app, signed(&ours, &key(1)), "").await.data()["state"], "active");
    }

    async fn versions_of_a_distrusted_publisher_keep_serving(app: TestApp) {
        let strict = SignedOnlyHost::start(app).await;
        trust_publisher(app, "acme", &[1]).await.data();
        let install = async |wasm: Vec<u8>| strict.post(app, "/plugins?grant=true", signed(&wasm, &key(1))).await;
        install(artifacts::SPROUT.to_vec()).await.data();
        install(sprout_1_1()).await.data();
        app.operator(Method::DELETE, "/publishers/acme", Value::Null).await.data();
        assert_eq!(install(sprout_with_manifest_field("version", json!("1.2.0"))).await.failure().0, 400);
        app.operator(Method::POST, "/plugins/sprout/rollback", json!({})).await.data();
        assert_eq!(versions(app, "sprout").await, states(&[("1.0.0", "active"), ("1.1.0", "ready")]));
    }

    async fn trusting_a_publisher_replaces_its_keys(app: TestApp) {
        let lines = |reply: &Reply| {
            let keys = reply.data()["keys"].as_array().unwrap().iter();
            keys.map(|key| key["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let line = |seed| key(seed).public().to_line();
        assert_eq!(lines(&trust_publisher(app, "acme", &[1]).await), [line(1)]);
        app.advance(1).await;
        assert_eq!(lines(&trust_publisher(app, "acme", &[2, 1]).await), [line(1), line(2)]);
        assert_eq!(lines(&trust_publisher(app, "acme", &[2]).await), [line(2)]);
        let taken = trust_publisher(app, "beta", &[3, 2]).await;
        assert_eq!(taken.failure(), (409, &*format!("the key {} belongs to the publisher acme", line(2))));
        let listed = app.operator(Method::GET, "/publishers", Value::Null).await;
        assert_eq!(listed.data().as_array().unwrap().len(), 1, "beta has no key");
        for (publisher, keys, status, reason) in [
            ("acme", json!([]), 400, "the keys field must be a list of at least one key"),
            ("acme", json!(["hello"]), 400, "the keys.0 field must be an Ed25519 key: the base64 line of its PEM file"),
            ("Acme", json!([line(1)]), 400, "a publisher's name must be 1 to 60 characters of a-z, 0-9, _, - and ."),
        ] {
            let refused = app.operator(Method::PUT, &format!("/publishers/{publisher}"), json!({ "keys": keys })).await;
            assert_eq!(refused.failure(), (status, reason));
        }
        let missing = app.operator(Method::DELETE, "/publishers/beta", Value::Null).await;
        assert_eq!(missing.failure(), (404, "publisher not found"));
        let wrong = try_install(app, artifacts::SPROUT.to_vec(), "signature=12").await;
        assert_eq!(wrong.failure(), (400, "the signature field must be 128 hexadecimal digits"));
    }

    async fn a_component_signed_on_the_command_line_can_be_installed(app: TestApp) {
        let strict = SignedOnlyHost::start(app).await;
        let dir = app.database.dir.path();
        let path = |name: &str| dir.join(name).display().to_string();
        let run = async |arguments: &[&str]| run_against(&strict.internal, OPERATOR_TOKEN, arguments).await;
        let (component, secret) = (path("sprout.wasm"), path("acme.key"));
        fs::write(&component, artifacts::SPROUT).unwrap();

        let made = run(&["plugin", "key", &secret]).await;
        let public = made.success_output().to_owned();
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(run(&["plugin", "key", &secret]).await.success_output(), public, "an existing key is kept");
        fs::write(path("acme.pub"), &public).unwrap();
        assert_eq!(run(&["publisher", "trust", "acme", &path("acme.pub")]).await.code, 0);
        assert!(run(&["publisher", "list"]).await.success_output().contains(public.lines().nth(1).unwrap()));

        assert_eq!(run(&["plugin", "install", "--grant", &component]).await.code, 1);
        fs::write(path("notes.txt"), "no component").unwrap();
        let refused = run(&["plugin", "sign", &path("notes.txt"), "--key", &secret]).await;
        assert!(refused.code == 2 && refused.err.contains("the file is not WebAssembly"), "{}", refused.err);
        assert_eq!(fs::read(path("notes.txt")).unwrap(), b"no component");
        let signed = run(&["plugin", "sign", &component, "--key", &secret, "--detached"]).await;
        assert!(signed.success_output().starts_with(&format!("{component}.sig is signed: sha256:")));
        assert_eq!(fs::read(&component).unwrap(), artifacts::SPROUT);
        assert_eq!(run(&["plugin", "install", "--grant", &component]).await.code, 0);
        let shown = run(&["plugin", "show", "sprout"]).await;
        assert!(shown.success_output().contains("signed by     acme"), "{}", shown.out);

        // The signature file of the former component is still there.
        fs::write(&component, sprout_1_1()).unwrap();
        for _ in 0..2 {
            run(&["plugin", "sign", &component, "--key", &secret]).await.success_output();
            let length = fs::metadata(&component).unwrap().len() as usize;
            assert_eq!(length, sprout_1_1().len() + 86, "the signature is replaced, not added");
        }
        assert_eq!(run(&["plugin", "install", &component]).await.code, 0);
        assert_eq!(run(&["publisher", "distrust", "acme", "--yes"]).await.code, 0);
        assert_eq!(run(&["publisher", "list", "--json"]).await.json(), json!([]));
    }
}
