//! `plugin check`: the plugins of this repository pass, and each violation of the contract is
//! reported.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tollhouse_platform::random::Random;
use tollhouse_plugins::{Limits, Manifest, PrivateKey, SignedComponent};
use tollhouse_tools::check;

use crate::{
    app::code_cache,
    javascript,
    plugins::sprout_with_bytes_replaced,
    sprout::{repack, with_manifest},
};

/// A report as `tollhouse plugin check --json` writes it, and as text.
async fn report(wasm: &[u8]) -> (Value, String) {
    report_within(Limits::default(), wasm).await
}

async fn report_within(limits: Limits, wasm: &[u8]) -> (Value, String) {
    let limits = Limits { code_cache: Some(code_cache()), ..limits };
    let report = check::check(wasm.to_vec(), limits).await.expect("an engine");
    (json!(report), report.to_string())
}

fn case<'r>(report: &'r Value, about: &str, case: &str) -> &'r Value {
    let mut cases = report["cases"].as_array().unwrap().iter();
    let found = cases.find(|row| row["about"] == about && row["case"] == case);
    found.unwrap_or_else(|| panic!("{about}: {case} is not in {report:#}"))
}

#[tokio::test]
async fn an_unknown_key_of_the_manifest_fails_with_a_suggestion() {
    let wasm = repack(artifacts::SPROUT, |manifest| {
        manifest["curencies"] = json!(["NGN"]);
        manifest["settings"]["base_url"]["mood"] = json!(1);
        manifest["$schema"] = json!("./manifest.schema.json");
    });
    let (report, text) = report(&wasm).await;
    let found = case(&report, "admission", "manifest keys");
    assert_eq!(found["outcome"], "failed", "{text}");
    assert_eq!(found["found"], "settings.base_url.mood, curencies (did you mean currencies?)");
}

#[tokio::test]
async fn a_case_fails_if_its_result_is_another_one() {
    let to = "POST /mpesa/stkpush/v1/processrequest";
    let answer = json!({ "to": to, "status": 503, "body": "out of order" });
    let mut manifest: Value =
        serde_json::from_slice(Manifest::section(artifacts::MPESA).expect("a section"))
            .expect("JSON");
    let cases = &mut manifest["examples"]["cases"];
    cases[0]["expect"] = json!("success");
    cases[1] = json!({ "name": "none", "function": "checkout.start", "expect": "session" });
    cases[2]["answers"] = json!([answer]);
    let wasm = with_manifest(artifacts::MPESA, manifest.to_string().as_bytes());
    let (report, text) = report(&wasm).await;
    let outcome = |about: &str, name: &str| case(&report, about, name)["outcome"].clone();
    assert_eq!(outcome("sessions.verify", "the case \"unanswered\""), "failed", "{text}");
    assert_eq!(outcome("admission", "the case \"none\""), "failed", "{text}");
    assert_eq!(outcome("sessions.start", "the case \"payer busy\""), "failed", "{text}");
    assert_eq!(outcome("session-refunds.check", "the case \"no result yet\""), "passed", "{text}");
    assert!(text.contains("expected  the result \"success\""), "{text}");
}

// ---- passing plugins ----------------------------------------------------------------------------

/// Checks that a component passes, and that each of these functions was called.
async fn check_passes(wasm: &[u8], functions: &[&str]) {
    let (report, text) = report(wasm).await;
    assert_eq!(report["passed"], true, "{text}");
    let names: Vec<&str> = report["functions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["function"].as_str().unwrap())
        .collect();
    assert_eq!(names, functions);
    for function in functions {
        assert_eq!(case(&report, function, "secrets stay hidden")["outcome"], "passed");
        assert!(case(&report, function, "the example")["outcome"] != "failed");
    }
    for verify in functions.iter().filter(|name| name.ends_with(".verify")) {
        let statuses = case(&report, verify, "examples of each status");
        assert_eq!(statuses["outcome"], "passed", "{statuses}");
    }
    assert_eq!(case(&report, "admission", "types")["outcome"], "passed");
    assert!(text.contains("cases passed") && !text.contains("FAILED"), "{text}");
}

const PARTIAL: [&str; 2] = ["partial-debits.charge-card", "partial-debits.debit"];
const PROVIDER: [&str; 15] = [
    "checkout.start", "verification.verify", "saved-card.charge", "saved-card.deauthorize",
    "direct-debit.debit", "declines.reason", "refunds.start", "refunds.check",
    "partial-refunds.start", "disputes.list", "disputes.fetch", "disputes.answer",
    "settlements.transactions", "settlements.list", "notifications.parse",
];
const MANDATES: [&str; 3] = ["mandates.begin", "mandates.query", "mandates.cancel"];
const ACCOUNTS: [&str; 20] = [
    "checkout.start", "verification.verify", "saved-card.charge", "saved-card.deauthorize",
    "direct-debit.debit", "declines.reason", "refunds.start", "refunds.check",
    "partial-refunds.start", "virtual-accounts.open", "virtual-accounts.close",
    "virtual-accounts.find-transfer", "account-enquiry.banks", "account-enquiry.resolve",
    "settlements.transactions", "settlements.list", MANDATES[0], MANDATES[1], MANDATES[2],
    "notifications.parse",
];
const SESSIONS: [&str; 6] = [
    "sessions.start", "sessions.verify", "sessions.receive", "session-refunds.start",
    "session-refunds.check", "session-refunds.receive",
];
const COUNTRY: [&str; 3] =
    ["identity-lookup.lookup", "identity-face.compare", "identity-document.read"];

mod built_in {
    use super::*;

    macro_rules! pass {
        ($($name:ident: $wasm:ident, $functions:expr;)*) => {
            $(#[tokio::test]
            async fn $name() {
                check_passes(artifacts::$wasm, $functions).await;
            })*

            /// A component that is not listed above does not compile here.
            #[test]
            fn every_component_is_checked() {
                macro_rules! is_checked {
                    ($component:ident) => {
                        let _ = $component;
                    };
                }
                artifacts::foreach_component!(is_checked);
            }
        };
    }
    pass! {
        africastalking: AFRICASTALKING, &["sms.send"];
        atlantis: ATLANTIS, &COUNTRY;
        ghana: GHANA, &COUNTRY[..2];
        jenga: JENGA, &SESSIONS[..3];
        mpesa: MPESA, &SESSIONS;
        nigeria: NIGERIA, &COUNTRY;
        provider_a: PROVIDER_A,
            &[&PROVIDER[..5], &PARTIAL, &PROVIDER[5..14], &MANDATES, &PROVIDER[14..]].concat();
        provider_b: PROVIDER_B, &PROVIDER;
        provider_c: PROVIDER_C, &ACCOUNTS;
        sapling: SAPLING, &SESSIONS[..3];
        sprout: SPROUT, &["checkout.start", "verification.verify", "notifications.parse"];
        termii: TERMII, &["sms.send"];
        twilio: TWILIO, &["sms.send"];
    }

    #[tokio::test]
    async fn momo_js() {
        let Some(wasm) = javascript::component("momo-js") else { return };
        check_passes(&wasm, &SESSIONS).await;
    }

    #[tokio::test]
    async fn unruly() {
        let (report, text) = report(artifacts::UNRULY).await;
        assert_eq!(report["passed"], false, "{text}");
        for (function, named, shown) in [
            (
                "verification.verify",
                "the example",
                "expected  an example for each request: add {\"to\": \"GET /verify/example-1\"",
            ),
            (
                "verification.verify",
                "the example",
                "request   GET https://provider.example/verify/example-1",
            ),
            (
                "notifications.parse",
                "the example",
                "expected  an example that is accepted: add \"notification\"",
            ),
            (
                "notifications.parse",
                "unsigned",
                "expected  rejection as unauthentic or malformed\n  found     accepted, about payment \"{}\"\n  request   [] {}\n",
            ),
        ] {
            assert_eq!(case(&report, function, named)["outcome"], "failed");
            assert!(text.contains(&format!("FAILED  {function}: {named}\n")), "{text}");
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }
}

// ---- failing plugins ----------------------------------------------------------------------------

/// `unruly` with one misbehaviour, and with examples for all of its requests.
fn unruly_with(mood: &str) -> Vec<u8> {
    repack(artifacts::UNRULY, |manifest| {
        manifest["settings"]["mood"] = json!({ "kind": "text", "default": mood });
        manifest["examples"] = json!({ "answers": [
            { "to": "GET ", "body": { "status": "paid" } },
            { "to": "POST ", "body": {} },
        ]});
    })
}

#[tokio::test]
async fn each_misbehaviour_is_reported() {
    const START: &str = "checkout.start";
    const VERIFY: &str = "verification.verify";
    let page = "fetch https://provider.example/page";
    for (mood, function, named, found) in [
        ("panic", START, "the example", "the plugin trapped"),
        ("loop", START, "the example", "exceeded its CPU budget"),
        ("grow", START, "the example", "exceeded its memory limit"),
        ("many 17", START, "the example", "exceeded its limit of requests"),
        (
            "fetch https://else.example/",
            START,
            "requests go to permitted origins",
            "https://else.example",
        ),
        ("echo-secret", START, "secrets stay hidden", "the result: vault-"),
        ("log-secret", START, "secrets stay hidden", "a log line: the secret is vault-"),
        (
            "send-secret query",
            START,
            "the example",
            "was not sent: the secret secret_key is in the URL, where the manifest does not bind it to",
        ),
        (
            "gossip",
            START,
            "faults and logs have no personal data",
            "the fault: Ada Obi has no account",
        ),
        ("concatenate", START, "hostile text: quotes", "the body is not JSON"),
        ("concatenate", START, "hostile text: line breaks", "the body is not JSON"),
        (page, START, "request 1: 500 with an HTML page", "a session with the URL"),
        (page, START, "request 1: 200 with {}", "a session with the URL"),
        ("credulous", VERIFY, "request 1: 404 with an HTML page", "a payment with status success"),
        ("credulous", VERIFY, "request 1: 401 with {}", "a payment with status success"),
        ("hasty", VERIFY, "request 1: 404 with an HTML page", "not-found: no 200"),
        ("hasty", VERIFY, "request 1: 429 with an HTML page", "not-found: no 200"),
    ] {
        let limits = match mood {
            "loop" => Limits { cpu: Duration::from_millis(50), ..Limits::default() },
            _ => Limits::default(),
        };
        let (report, text) = report_within(limits, &unruly_with(mood)).await;
        let failed = case(&report, function, named);
        assert_eq!(failed["outcome"], "failed", "{mood}: {failed:#}");
        let reason = failed["found"].as_str().unwrap();
        assert!(reason.contains(found), "{mood}: {reason}");
        assert!(text.contains(&format!("FAILED  {function}: {named}\n")), "{text}");
    }
}

#[tokio::test]
async fn matters_of_judgement_are_notes() {
    let (random, text) = report(&unruly_with("random-request")).await;
    let later = case(&random, "checkout.start", "the example an hour later");
    assert_eq!(later["outcome"], "noted", "{later}");
    assert_eq!(case(&random, "checkout.start", "the example repeated")["outcome"], "passed");
    assert!(text.contains("the call depends on the clock or on randomness"), "{text}");
    assert!(later["note"].as_str().unwrap().len() < 500, "{later}");
    let statuses = case(&random, "verification.verify", "examples of each status");
    let note = "no example shows a payment with the status failed or pending: ";
    assert!(statuses["note"].as_str().unwrap().starts_with(note), "{statuses}");

    // From the file, because a manifest that was read from a component has no examples.
    let manifest = include_str!("../guests/sprout/manifest.json");
    let mut manifest: Value = serde_json::from_str(manifest).unwrap();
    manifest["secrets"] = json!(["token"]);
    let unbound = with_manifest(artifacts::SPROUT, manifest.to_string().as_bytes());
    let (unbound, text) = report(&unbound).await;
    let secrets = case(&unbound, "admission", "secrets");
    assert_eq!((&secrets["outcome"], &unbound["passed"]), (&json!("noted"), &json!(true)));
    assert!(text.contains("the secret token is not bound"), "{text}");

    let (many, _) = report(&unruly_with("many 9")).await;
    let limits = case(&many, "checkout.start", "within the limits");
    assert_eq!(limits["note"], "uses more than half of a limit: 9 of 16 requests");
}

#[tokio::test]
async fn a_component_that_is_not_admitted_is_reported_with_the_failed_check() {
    let sprout = artifacts::SPROUT;
    for (wasm, failing, found) in [
        (b"once upon a time".to_vec(), "manifest", "the file is not WebAssembly"),
        (b"\0asm\x01\0\0\0".to_vec(), "manifest", "the file is a module, not a component"),
        (
            b"\0asm\x0d\0\x01\0".to_vec(),
            "manifest",
            "the component has no tollhouse:manifest section",
        ),
        (with_manifest(sprout, b"sprout"), "manifest", "the manifest cannot be read"),
        (vec![0; (32 << 20) + 1], "size", "the component is larger than 33554432 bytes"),
        (sprout_with_bytes_replaced("@1.0.0", "@2.0.0"), "contract", "built for version 2.0.0"),
        (
            sprout_with_bytes_replaced("plugin/vault@1.0.0", "plugin/files@1.0.0"),
            "imports",
            "plugin/files@1.0.0",
        ),
        (
            sprout_with_bytes_replaced("verify", "verily"),
            "types",
            "verification.verify: the function is missing",
        ),
        (
            sprout_with_bytes_replaced("save-instrument", "keep-instrument"),
            "types",
            "checkout.start: parameter order: record checkout-order: field save-instrument is missing",
        ),
        (
            sprout_with_bytes_replaced("plugin/verification@1.0.0", "plugin/examination2@1.0.0"),
            "interfaces",
            "a provider must export the interface verification",
        ),
        (
            repack(artifacts::ATLANTIS, |manifest| manifest["country"]["code"] = json!("ATL")),
            "country",
            "a country's code must be two capital letters",
        ),
    ] {
        let (report, text) = report(&wasm).await;
        let failed = case(&report, "admission", failing);
        assert_eq!(
            (&failed["outcome"], &report["plugin"]),
            (&json!("failed"), &Value::Null),
            "{failing}: {text}"
        );
        assert!(failed["found"].as_str().unwrap().contains(found), "{failing}: {failed}");
        assert_eq!(report["functions"], json!([]));
        assert!(text.starts_with("the component is not admitted: "), "{text}");
    }
}

#[tokio::test]
async fn a_report_is_reproducible() {
    let wasm = unruly_with("random-request");
    let cases = async || {
        let (mut report, _) = report(&wasm).await;
        let cases = report["cases"].as_array_mut().unwrap();
        cases.retain(|case| case["case"] != "within the limits"); // CPU time depends on the machine
        report["cases"].clone()
    };
    assert_eq!(cases().await, cases().await);
}

// ---- the command --------------------------------------------------------------------------------

#[tokio::test]
async fn the_output_of_a_guest_before_its_panic_is_shown() {
    let panics = repack(artifacts::UNRULY, |manifest| {
        manifest["examples"] = json!({ "notification": { "headers": {}, "body": "panic" } });
    });
    let (report, text) = report(&panics).await;
    let failed = case(&report, "notifications.parse", "the example");
    let found = failed["found"].as_str().unwrap_or_default();
    assert!(found.contains("panicked at") && found.contains("told to"), "{text}");
}

#[tokio::test]
async fn settings_missing_in_the_manifest_are_reported() {
    let nameless = repack(artifacts::SPROUT, |manifest| {
        let base_url = manifest["settings"]["base_url"].take();
        manifest["settings"] = json!({ "other_url": base_url });
        manifest["secrets"]["token"]["to"] = json!(["other_url"]);
    });
    let (report, text) = report(&nameless).await;
    let failed = case(&report, "checkout.start", "settings are those of the manifest");
    let found = failed["found"].as_str().unwrap_or_default();
    assert!(
        failed["outcome"] == "failed" && found.contains("settings.get of \"base_url\""),
        "{text}"
    );
}

/// Runs `tollhouse plugin check …`. Returns its exit code, output and error output.
async fn command(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
    let ended = command.args(["plugin", "check"]).args(arguments).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

#[tokio::test]
async fn the_command_exits_with_1_if_a_case_failed_and_needs_no_host() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, wasm: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, wasm).unwrap();
        path.display().to_string()
    };
    let (good, bad) =
        (file("sprout.wasm", artifacts::SPROUT), file("hasty.wasm", &unruly_with("hasty")));

    let (code, out, err) = command(&[&good]).await;
    assert_eq!((code, &*err), (Some(0), ""), "{out}");
    assert!(out.starts_with("sprout@1.0.0+"), "{out}");

    let key = PrivateKey::generate(&Random::seeded(1));
    let signed = SignedComponent::embed_signature(artifacts::SPROUT, &key.sign(artifacts::SPROUT));
    let (code, of_signed, _) = command(&[&file("signed.wasm", &signed)]).await;
    let label = |out: &str| out.split(':').next().unwrap().to_owned();
    assert_eq!((code, label(&of_signed)), (Some(0), label(&out)), "one digest, signed or not");

    let (code, out, err) = command(&[&bad, "--json"]).await;
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}"));
    assert_eq!((code, &report["passed"]), (Some(1), &json!(false)));
    let failed: Value = serde_json::from_str(&err).unwrap_or_else(|_| panic!("{err}"));
    assert!(failed["message"].as_str().unwrap().ends_with("cases failed"), "{err}");

    let escaped = br#"{"kind":"sms","name":"a","version":"1.0.0","display_name":"A","settings":{"\u001b[2J":"x"}}"#;
    let (code, out, err) =
        command(&[&file("escaped.wasm", &with_manifest(artifacts::SPROUT, escaped))]).await;
    assert!(
        code == Some(1) && out.contains("[2J") && !format!("{out}{err}").contains('\u{1b}'),
        "{out}{err}"
    );

    let (code, _, err) = command(&["no/such.wasm"]).await;
    assert_eq!(code, Some(2), "{err}");
    let (code, out, _) = command(&[&good, "--plugin-requests", "0"]).await;
    assert_eq!(code, Some(1), "{out}");
}
