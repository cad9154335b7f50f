//! Recordings of plugin calls, and their replay by another version.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::operations::recordings;
use tollhouse_platform::{clock::Timestamp, store};
use tollhouse_plugins::{Limits, recording::Recording};
use tollhouse_tools::replay::Replayer;

use crate::{
    app::{Engine, OPERATOR_TOKEN, PAYSTACK_KEY, TestApp, code_cache, postgres},
    codes,
    command_line::{ProgramOutput, run_against},
    sprout::repack,
    unruly::{initialize_with_narration, install_unruly},
};

/// The flags of a host that records calls.
pub const RECORDING_FLAGS: &[&str] = &["--plugin-recording-retention-hours=100"];

/// Saves all queued recordings. Returns the calls of a plugin, newest first.
pub async fn persisted_recordings(app: &TestApp, plugin: &str) -> Vec<Value> {
    while app.app.slot::<recordings::RecordingQueue>().count().await > 0 {
        recordings::persist_batch(&app.app).await.expect("saved recordings");
    }
    list(app, plugin, "limit=1000").await["docs"].as_array().expect("a list").clone()
}

async fn list(app: &TestApp, plugin: &str, query: &str) -> Value {
    let path = format!("/plugins/{plugin}/recordings?{query}");
    app.operator(Method::GET, &path, Value::Null).await.data().clone()
}

/// A recording, and its text.
pub async fn fetch_recording(app: &TestApp, plugin: &str, id: &str) -> (Recording, String) {
    let path = format!("/plugins/{plugin}/recordings/{id}");
    let read = app.operator(Method::GET, &path, Value::Null).await.data().clone();
    let text = read.to_string();
    (serde_json::from_value(read).expect("a recording"), text)
}

/// Loads a component for replay, in an engine of its own.
pub async fn replayer(wasm: &[u8]) -> Replayer {
    let limits = Limits { code_cache: Some(code_cache()), ..Limits::default() };
    Replayer::load(wasm.to_vec(), limits, &[]).await.expect("a component of ours")
}

async fn on_both_engines(test: impl AsyncFn(&TestApp)) {
    let engines = [Some(Engine::Sqlite), postgres().map(Engine::Postgres)];
    for engine in engines.into_iter().flatten() {
        let app = TestApp::start_with(engine, RECORDING_FLAGS).await;
        test(&app).await;
        app.finish().await;
    }
}

/// The same component with other bytes in its data.
fn patched(wasm: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut wasm = wasm.to_vec();
    let places: Vec<usize> =
        (0..wasm.len() - from.len()).filter(|at| wasm[*at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    for at in places {
        wasm[at..at + from.len()].copy_from_slice(to);
    }
    wasm
}

fn file(app: &TestApp, name: &str, content: &[u8]) -> String {
    let file = app.database.dir.path().join(name);
    std::fs::write(&file, content).expect("a file in a temporary folder");
    file.display().to_string()
}

async fn run(app: &TestApp, arguments: &[&str]) -> ProgramOutput {
    run_against(&app.internal, OPERATOR_TOKEN, arguments).await
}

fn id(call: &Value) -> &str {
    call["id"].as_str().expect("an id")
}

both! {
    async fn calls_are_recorded_only_if_enabled(app: TestApp) {
        app.paid_payment("order-1").await;
        assert_eq!(app.app.slot::<recordings::RecordingQueue>().count().await, 0);
        assert_eq!(persisted_recordings(app, "provider_a").await, Vec::<Value>::new());
        let writing = recordings::persist_batch(&app.app);
        let writing = tokio::time::timeout(std::time::Duration::from_millis(50), writing).await;
        assert!(writing.is_err(), "without recordings it must wait, not spin");
        let missing = app.operator(Method::GET, "/plugins/provider_a/recordings/none", Value::Null).await;
        assert_eq!(missing.failure(), (404, "recorded call not found"));
    }
}

#[tokio::test]
async fn recordings_are_listed_and_deleted_after_their_retention() {
    on_both_engines(async |app| {
        let other = app.new_company("Beta Lending").await;
        app.paid_payment("order-1").await;
        app.request(&other, Method::POST, "/payment/initialize", Some(app.order("order-2")))
            .await
            .data();
        let calls = persisted_recordings(app, "provider_a").await;
        let functions: Vec<&Value> = calls.iter().map(|call| &call["function"]).collect();
        for function in ["checkout.start", "notifications.parse", "verification.verify"] {
            assert!(functions.contains(&&json!(function)), "{functions:?}");
        }
        assert!(
            calls.iter().all(|call| call["outcome"] == "ok" && call["faithful"] == true),
            "{calls:?}"
        );
        let of_one =
            list(app, "provider_a", &format!("company={}&function=checkout.start", other.id)).await;
        assert_eq!(
            (&of_one["total"], &of_one["docs"][0]["company_id"]),
            (&json!(1), &json!(other.id))
        );
        assert_eq!(list(app, "sprout", "").await["total"], 0);

        let sweep = async || recordings::sweep(app.app.clone()).await.expect("a sweep");
        let begun = app.app.clock.now();
        app.app.clock.advance_to(Timestamp(begun.0 + 100 * 3_600_000));
        assert_eq!(sweep().await, 0);
        app.app.clock.advance_to(Timestamp(begun.0 + 100 * 3_600_000 + 1_000));
        assert_eq!(sweep().await, calls.len() as u64);
        app.run_until_idle().await;
    })
    .await;
}

#[tokio::test]
async fn recordings_contain_no_personal_data() {
    on_both_engines(async |app| {
        let mut order = app.order("order-1");
        order["narration"] = json!("Repayment of Chidinma Okonkwo, +2348031234567");
        order["metadata"] =
            json!({ "borrower": "Chidinma Okonkwo", "bvn": "22222222222", "tier": "gold" });
        let payment = app.post("/payment/initialize", order).await.data().clone();
        app.complete(&payment, "success").await;
        app.run_until_idle().await;
        let kept: Vec<(String, String)> = {
            let calls = persisted_recordings(app, "provider_a").await;
            assert!(calls.len() >= 3);
            let rows = app.app.store.read(async |tx| -> store::Result<Vec<(String,)>> {
                tx.sql("SELECT recording FROM plugin_recordings").all().await
            });
            assert!(rows.await.expect("rows").iter().all(|(sealed,)| sealed.starts_with("v1.")));
            let mut kept = Vec::new();
            for call in &calls {
                kept.push((
                    id(call).to_owned(),
                    fetch_recording(app, "provider_a", id(call)).await.1,
                ));
            }
            kept
        };
        for (id, text) in &kept {
            let text = text.to_lowercase();
            for private in [
                "ada@example", "chidinma", "okonkwo", "2348031234567", "22222222222", "auth_",
                PAYSTACK_KEY,
            ] {
                assert!(!text.contains(private), "{private} in {id}: {text}");
            }
        }
        assert!(kept.iter().any(|(_, text)| text.contains("order-1")), "references stay");
        assert!(
            kept.iter().any(|(_, text)| text.contains("charge.success")),
            "protocol values stay"
        );
    })
    .await;
}

/// Sends a code as an SMS through Termii.
async fn send_sms(app: &TestApp) {
    codes::use_gateways(app, &["termii"]).await;
    codes::set_prices(app).await;
    codes::credit(app, 100, "credit").await;
    codes::send_ok(app, codes::sms_request(json!({}))).await;
    app.run_until_idle().await;
}

#[tokio::test]
async fn recordings_contain_no_codes_and_no_lookups() {
    on_both_engines(async |app| {
        send_sms(app).await;
        let code = codes::latest_code(app, codes::PHONE, 6);
        let calls = persisted_recordings(app, "termii").await;
        assert_eq!(
            (calls.len(), &calls[0]["function"], &calls[0]["faithful"]),
            (1, &json!("sms.send"), &json!(true))
        );
        let (_, text) = fetch_recording(app, "termii", id(&calls[0])).await;
        assert!(
            !text.contains(&code) && !text.contains(codes::PHONE.trim_start_matches('+')),
            "{text}"
        );

        crate::identity::set_up(app).await;
        app.post("/kyc/nigeria/bvn/lookup", json!({ "bvn": crate::identity::BVN })).await.data();
        assert_eq!(app.app.slot::<recordings::RecordingQueue>().count().await, 0);
    })
    .await;
}

#[tokio::test]
async fn replay_shows_the_differences_of_another_version() {
    on_both_engines(async |app| {
        app.paid_payment("order-1").await;
        let calls = persisted_recordings(app, "provider_a").await;
        let same = file(app, "same.wasm", artifacts::PROVIDER_A);
        let replayed = run(app, &["plugin", "replay", &same, "--last", "10"]).await;
        let lines: Vec<&str> = replayed.success_output().lines().collect();
        assert_eq!(lines.len(), calls.len());
        assert!(lines.iter().all(|line| line.starts_with("the same  ")), "{lines:?}");

        let other = patched(artifacts::PROVIDER_A, b"callback_url", b"callback_uri");
        let other = file(
            app,
            "other.wasm",
            &repack(&other, |manifest| manifest["version"] = json!("1.1.0")),
        );
        let begun = calls.iter().find(|call| call["function"] == "checkout.start").expect("a call");
        let shown = run(app, &["plugin", "recording", "provider_a", id(begun)]).await;
        let call = file(app, "call.json", shown.success_output().as_bytes());
        // A file needs no host.
        let replayed =
            run_against("http://127.0.0.1:9", "none", &["plugin", "replay", &other, &call]).await;
        assert_eq!(
            (replayed.code, &*replayed.err),
            (1, "tollhouse: calls that differ: 1 of 1\n"),
            "{}",
            replayed.out
        );
        assert!(replayed.out.starts_with("DIFFERS   checkout.start  "), "{}", replayed.out);
        for part in [
            "provider_a@1.0.0+",
            "now provider_a@1.1.0+",
            "requests[0].body.callback_uri: \"https://lender.example/",
            "callback_url: \"",
        ] {
            assert!(replayed.out.contains(part), "{part}: {}", replayed.out);
        }

        let elsewhere =
            patched(artifacts::PROVIDER_A, b"/transaction/verify/", b"/transaction/check_/");
        let elsewhere = file(app, "elsewhere.wasm", &elsewhere);
        let verified =
            calls.iter().find(|call| call["function"] == "verification.verify").expect("a call");
        let replayed = run(app, &["plugin", "replay", &elsewhere, id(verified), "--json"]).await;
        let json: Value = serde_json::from_str(&replayed.out).expect("JSON");
        let differences = json[0]["differences"].as_array().expect("a list");
        let at = |at: &str| differences.iter().find(|one| one["at"] == at);
        assert!(at("requests[0].url").is_some() && at("requests[0].answer").is_some(), "{json:#}");
        assert_eq!(at("reply.outcome").expect("another outcome")["after"], "unavailable");
        assert_eq!(
            app.app.slot::<recordings::RecordingQueue>().count().await,
            0,
            "a replay is not recorded"
        );
    })
    .await;
}

/// Differences of a later version that a comparison of requests alone does not show.
#[tokio::test]
async fn replay_compares_defaults_signatures_and_secrets() {
    on_both_engines(async |app| {
        send_sms(app).await;
        app.paid_payment("order-1").await;
        let texts = persisted_recordings(app, "termii").await;
        let (text, _) = fetch_recording(app, "termii", id(&texts[0])).await;
        let other = repack(artifacts::TERMII, |manifest| {
            manifest["settings"]["route"]["default"] = json!("another");
        });
        let replayed = replayer(&other).await.replay("a text", &text).await;
        assert!(replayed.to_string().contains("now \"another\""), "{replayed}");

        let calls = persisted_recordings(app, "provider_a").await;
        let of = |function: &str| calls.iter().find(|call| call["function"] == function);
        let (recording, _) =
            fetch_recording(app, "provider_a", id(of("notifications.parse").expect("a call")))
                .await;
        let signs = patched(artifacts::PROVIDER_A, b"sha512", b"sha256");
        let replayed = replayer(&signs).await.replay("a notification", &recording).await;
        assert!(
            replayed.to_string().contains("vault[0].mac.algorithm: \"sha512\", now \"sha256\""),
            "{replayed}"
        );
        let (begun, text) =
            fetch_recording(app, "provider_a", id(of("checkout.start").expect("a call"))).await;
        assert!(text.contains("Bearer example-secret-secret_key"), "{text}");
        assert!(replayer(&signs).await.replay("a checkout", &begun).await.differences.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_call_that_cannot_be_replayed_is_reported_with_the_reason() {
    on_both_engines(async |app| {
        let component = file(app, "provider_a.wasm", artifacts::PROVIDER_A);
        let replay = async |arguments: &[&str]| {
            run(app, &[&["plugin", "replay", &*component], arguments].concat()).await
        };
        let none = replay(&["--last", "5"]).await;
        let expected = "tollhouse: no calls of provider_a are recorded: enable recording on the host with --plugin-recording-retention-hours";
        assert_eq!(none.failure(), (1, expected));
        assert_eq!(replay(&["6921"]).await.failure(), (1, "tollhouse: recorded call not found"));
        let wrong = file(app, "wrong.json", b"{}");
        let refused = replay(&[&wrong]).await;
        assert!(refused.failure().1.contains("wrong.json: not a recorded call: missing field"), "{}", refused.err);
        assert_eq!(replay(&[]).await.code, 2);
        app.initialize("order-1").await;
        let call = persisted_recordings(app, "provider_a").await[0].clone();
        let call = run(app, &["plugin", "recording", "provider_a", id(&call)]).await;
        let call = file(app, "call.json", call.success_output().as_bytes());
        let sprout = file(app, "sprout.wasm", artifacts::SPROUT);
        let another = run(app, &["plugin", "replay", &sprout, &call]).await;
        let expected = "call.json: a call of provider_a, but the component is sprout";
        assert!(another.failure().1.ends_with(expected), "{}", another.err);
        let misspelt = replay(&["no/such.json"]).await;
        assert!(misspelt.failure().1.starts_with("tollhouse: no/such.json: "), "{}", misspelt.err);
        let garbage = file(app, "garbage.wasm", b"once upon a time");
        assert_ne!(run(app, &["plugin", "replay", &garbage, "--last", "1"]).await.code, 0);
    })
    .await;
}

#[tokio::test]
async fn a_recording_that_masking_changed_is_marked() {
    on_both_engines(async |app| {
        let _upstream = install_unruly(app).await;
        // The narration, which is a command to the guest, is masked because it may be personal.
        assert_eq!(initialize_with_narration(app, "broken", "panic").await.status, 502);
        let calls = persisted_recordings(app, "unruly").await;
        assert_eq!((&calls[0]["outcome"], &calls[0]["faithful"]), (&json!("other"), &json!(false)));
    })
    .await;
}
