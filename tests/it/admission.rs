//! Admission of components: its checks, and the report that operators receive.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::{Engine, OPERATOR_TOKEN, TestApp, reply},
    plugins::{sprout_with_manifest_field, try_install},
    sprout::{repack, with_manifest},
};

async fn examine(app: &TestApp, wasm: &[u8]) -> Value {
    let request = app.client.post(format!("{}/internal/v1/plugins/examine", app.internal));
    reply(request.bearer_auth(OPERATOR_TOKEN).body(wasm.to_vec())).await.data().clone()
}

fn names(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().expect("a list").iter();
    checks.map(|check| check["check"].as_str().expect("a name")).collect()
}

const CHECKS: [&str; 11] = [
    "signature", "size", "manifest", "compile", "contract", "imports", "types", "interfaces",
    "start", "country", "examples",
];

both! {
    async fn examining_a_component_reports_every_check_and_installs_nothing(app: TestApp) {
        let report = examine(app, artifacts::SPROUT).await;
        assert_eq!((&report["admitted"], names(&report)), (&json!(true), CHECKS.to_vec()));
        assert_eq!(report["requested_capabilities"], json!(["address:base_url", "secret:token -> header authorization at base_url", "unsigned"]));
        let result_of = |step: &str| {
            let at = CHECKS.iter().position(|name| *name == step).expect("a step");
            report["checks"][at]["result"].as_str().expect("a text").to_owned()
        };
        assert!(result_of("manifest").starts_with("sprout 1.0.0, which requests address:base_url, secret:token -> header authorization at base_url"));
        assert!(result_of("imports").contains("tollhouse:plugin/http@1.0.0"), "{}", result_of("imports"));
        assert_eq!(result_of("interfaces"), "checkout, verification, notifications");
        assert!(result_of("examples").starts_with("checkout.start "), "{}", result_of("examples"));
        let shown = app.operator(Method::GET, "/plugins/sprout", Value::Null).await;
        assert_eq!(shown.failure(), (404, "plugin not found"));

        let report = examine(app, b"once upon a time").await;
        assert_eq!((&report["admitted"], names(&report)), (&json!(false), CHECKS[..3].to_vec()));
        assert_eq!(report["checks"][2]["passed"], false);
        assert!(report["checks"][2]["result"].as_str().is_some_and(|text| text.starts_with("the file is not WebAssembly")));
    }

    async fn a_component_that_violates_its_secret_bindings_is_rejected(app: TestApp) {
        for (binding, found) in [
            (json!({ "to": ["base_url"], "in": ["header:authorization"] }), "checkout.start ok"),
            (
                json!({ "to": ["base_url"], "in": ["header:x-token", "body"] }),
                "checkout.start fails with its example: a request to https://provider.example was not sent: \
                 the secret token is in the header authorization, where the manifest does not bind it to",
            ),
            (
                json!({}),
                "checkout.start fails with its example: a request to https://provider.example was not sent: \
                 the secret token is in the header authorization, where the manifest does not bind it to",
            ),
        ] {
            let wasm = repack(artifacts::SPROUT, |manifest| {
                manifest["secrets"] = json!({ "token": binding });
                let page = json!({ "url": "https://pay.sprout.example/S-1" });
                manifest["examples"] = json!({ "answers": [{ "to": "POST /sessions", "body": page }] });
            });
            let report = examine(app, &wasm).await;
            let result = report["checks"][10]["result"].as_str().expect("a text");
            assert!(result.starts_with(found), "{binding}: {result}");
            assert_eq!(report["admitted"], found.ends_with("ok"));
            assert_eq!(report["warnings"], json!([]));
        }
    }

    async fn an_unbound_secret_needs_a_grant_and_causes_a_warning(app: TestApp) {
        let wasm = sprout_with_manifest_field("secrets", json!(["token"]));
        let warning = "the secret token is not bound: it may be sent in any header and in the body, to every origin that the plugin may reach; bind it with \"to\" and \"in\"";
        let examined = examine(app, &wasm).await;
        assert_eq!((&examined["admitted"], &examined["warnings"]), (&json!(true), &json!([warning])));
        assert_eq!(examined["requested_capabilities"], json!(["address:base_url", "secret:token", "unsigned"]));
        let installed = try_install(app, wasm, "").await.data().clone();
        assert_eq!((&installed["state"], &installed["warnings"]), (&json!("waiting"), &json!([warning])));
        assert_eq!(installed["waits_for"], examined["requested_capabilities"]);
    }

    async fn a_component_that_traps_on_its_own_example_is_rejected(app: TestApp) {
        for (body, admitted) in [("all is well", true), ("panic", false)] {
            let wasm = repack(artifacts::UNRULY, |manifest| {
                manifest["examples"] = json!({ "notification": { "headers": {}, "body": body } });
            });
            assert_eq!(examine(app, &wasm).await["admitted"], admitted, "{body}");
            if !admitted {
                let refused = try_install(app, wasm, "grant=true").await;
                let (status, reason) = refused.failure();
                let expected = "notifications.parse fails with its example: it wrote";
                assert!(status == 400 && reason.starts_with(expected), "{reason}");
                assert!(reason.contains("told to") && reason.contains("the plugin trapped"), "{reason}");
            }
        }
    }
}

// ---- compiling ----------------------------------------------------------------------------------

fn leb(mut n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (n & 0x7f) as u8;
        n >>= 7;
        bytes.push(if n > 0 { low | 0x80 } else { low });
        if n == 0 {
            return bytes;
        }
    }
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &leb(content.len()), content].concat()
}

/// A valid component that is expensive to compile, with the manifest of sprout. Its only function
/// has this many blocks, each of which changes a local on a condition.
fn bomb(blocks: usize) -> Vec<u8> {
    const LOCALS: usize = 500;
    let mut body = [&[1][..], &leb(LOCALS), &[0x7f]].concat(); // (local i32 …)
    for n in 0..blocks {
        let local = leb(n % LOCALS);
        body.extend([0x02, 0x40, 0x20, 0x00, 0x0d, 0x00, 0x20]); // block (br_if 0 (local.get 0))
        body.extend(&local);
        body.extend([0x41, 0x01, 0x6a, 0x21]); // (local.set n (i32.add (local.get n) (i32.const 1)))
        body.extend(local);
        body.push(0x0b);
    }
    body.push(0x0b);
    let function = [leb(body.len()), body].concat();
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[1, 0x60, 0, 0]),
        section(3, &[1, 0]),
        section(10, &[&[1][..], &function].concat()),
    ]
    .concat();
    let component = [b"\0asm\x0d\0\x01\0".to_vec(), section(1, &module)].concat();
    with_manifest(&component, include_bytes!("../guests/sprout/manifest.json"))
}

/// Asserts that a host with this compiler limit rejects [`bomb`] for this reason, keeps serving,
/// and installs sprout.
async fn assert_bomb_rejected(flag: &str, reason: &str) {
    let app = TestApp::start_with(Engine::Sqlite, &[flag]).await;
    let before = app.initialize("order-1").await;
    let refused = try_install(&app, bomb(100_000), "grant=true").await;
    assert_eq!(refused.failure(), (400, reason));
    assert_eq!(app.initialize("order-1").await["id"], before["id"]);
    app.install(artifacts::SPROUT).await;
    app.finish().await;
}

#[tokio::test]
async fn a_component_that_takes_too_much_memory_to_compile_is_refused() {
    let flag = "--plugin-compile-mib=384";
    assert_bomb_rejected(flag, "compilation of the component takes more than 384 MiB of memory")
        .await;
}

#[tokio::test]
async fn a_component_that_takes_too_long_to_compile_is_refused() {
    let app = TestApp::start_with(Engine::Sqlite, &[]).await;
    // Its machine code is cached, so that the limit below applies to the bomb only.
    drop(app.install(artifacts::SPROUT).await);
    app.finish().await;
    let flag = "--plugin-compile-s=1";
    assert_bomb_rejected(flag, "compilation of the component takes longer than 1 s").await;
}

#[test]
fn an_invalid_component_is_reported_in_one_line() {
    let run = |wasm: &[u8]| {
        use std::{
            io::Write,
            process::{Command, Stdio},
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
        command.args(["compile-plugin", "4000000000", "60", "67108864"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a child");
        child.stdin.take().expect("a pipe").write_all(wasm).expect("a reader");
        child.wait_with_output().expect("an end")
    };
    let compiled = run(&bomb(10));
    assert!(compiled.status.success() && !compiled.stdout.is_empty());
    let mut broken = bomb(10);
    let end = broken.windows(2).position(|two| two == [0x21, 0x00]).expect("a local.set");
    broken[end] = 0xff;
    let refused = run(&broken);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0));
    let output = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(output.starts_with("tollhouse: ") && output.lines().count() == 1, "{output}");
}
