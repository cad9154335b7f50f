//! A plugin call: minimal native, native, warm, fresh under wasmtime alone, and through the host.

use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;
use tempfile::TempDir;
use tollhouse_platform::{
    crypto::seal::{Sealer, new_master_key},
    random::Random,
};
use tollhouse_plugin::{
    checkout::{self, CheckoutOrder},
    notifications,
    testing::{FakeHost, Installed},
    types::Money,
    verification,
};
use tollhouse_plugins::{Call, CodeCache, Limits, ResponseMode, Webhook};
use tollhouse_tools::bench::BenchSubject;

use crate::{Bench, repeat};

/// Measured functions of `provider_a`, without and with a request.
const FUNCTIONS: [&str; 3] = ["notifications.parse", "checkout.start", "verification.verify"];

pub fn measure(bench: &mut Bench) {
    let paystack = load(bench, artifacts::PROVIDER_A);
    for function in FUNCTIONS {
        let call = example(&paystack, function);
        measure_call(bench, &format!("plugins/{function}"), &paystack, &call);
    }
    let unruly = load(bench, artifacts::UNRULY);
    // Its parser accepts every notification and does nothing else.
    let call = Call::ParseNotification(Webhook { headers: Vec::new(), body: Bytes::new() });
    measure_call(bench, "plugins/empty", &unruly, &call);
    measure_native(bench);
    measure_admission(bench);
}

pub fn compare(bench: &Bench) {
    for call in FUNCTIONS.iter().copied().chain(["empty"]) {
        bench.print_ratio(&format!("plugins/{call}/host"), &format!("plugins/{call}/baseline"));
    }
    for call in FUNCTIONS {
        // The native time of `tollhouse plugin bench`, which is available for every component.
        let least = format!("plugins/{call}/least-native");
        bench.print_ratio(&format!("plugins/{call}/native"), &least);
    }
}

fn load(bench: &Bench, wasm: &[u8]) -> BenchSubject {
    let subject = bench.runtime.block_on(BenchSubject::load(wasm.to_vec(), Limits::default()));
    subject.expect("a component of this repository")
}

fn example(subject: &BenchSubject, function: &str) -> Call {
    let mut calls = Call::examples(&subject.plugin).into_iter();
    calls.find(|call| call.function() == function).expect("a function that it offers")
}

fn measure_call(bench: &mut Bench, name: &str, subject: &BenchSubject, call: &Call) {
    let BenchSubject { plugin, credentials, baseline, .. } = subject;
    let least = bench.runtime.block_on(baseline.native_workload(call)).expect("a call");
    bench.measure(&format!("{name}/least-native"), async |iterations| {
        repeat(iterations, async || least.run()).await
    });
    bench.measure(&format!("{name}/host"), async |iterations| {
        let work = async || {
            plugin.execute_for_status(credentials, call).await.expect("the example's result")
        };
        repeat(iterations, work).await
    });
    for (base, answering) in
        [("baseline", ResponseMode::Reexecute), ("baseline-one-run", ResponseMode::Inline)]
    {
        bench.measure(&format!("{name}/{base}"), async |iterations| {
            let work = async || baseline.call(call, answering).await.expect("a call");
            repeat(iterations, work).await
        });
    }
    bench.measure(&format!("{name}/warm"), async |iterations| {
        let mut warm = baseline.warm_instance().await.expect("an instance");
        let began = Instant::now();
        for _ in 0..iterations {
            warm.call(call).await.expect("a call");
        }
        began.elapsed()
    });
}

/// Measures the plugin's crate, compiled natively, on the SDK's test host.
fn measure_native(bench: &mut Bench) {
    let manifest: Value = serde_json::from_str(provider_a::MANIFEST).expect("a manifest");
    let examples = &manifest["examples"];
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let signature = text(&examples["notification"]["headers"]["x-paystack-signature"]);
    let headers = vec![("x-paystack-signature".to_owned(), signature)];
    let body = text(&examples["notification"]["body"]).into_bytes();
    bench.measure("plugins/notifications.parse/native", async |iterations| {
        let _host = native_host(examples);
        let call = async || {
            let (headers, body) = (headers.clone(), body.clone());
            let notifications =
                <provider_a::Paystack as notifications::Guest>::parse(headers, body);
            assert_eq!(notifications.expect("a signed notification").len(), 1);
        };
        repeat(iterations, call).await
    });
    bench.measure("plugins/checkout.start/native", async |iterations| {
        let mut took = std::time::Duration::ZERO;
        for _ in 0..iterations {
            let (host, order) = (native_host(examples), order()); // new, because it records requests
            let began = Instant::now();
            let session = <provider_a::Paystack as checkout::Guest>::start(order);
            took += began.elapsed();
            drop((host, session.expect("a session")));
        }
        took
    });
    bench.measure("plugins/verification.verify/native", async |iterations| {
        let mut took = std::time::Duration::ZERO;
        for _ in 0..iterations {
            let host = native_host(examples);
            let began = Instant::now();
            let payment = <provider_a::Paystack as verification::Guest>::verify("example-1".into());
            took += began.elapsed();
            drop((host, payment.expect("a payment")));
        }
        took
    });
}

fn native_host(examples: &Value) -> Installed {
    let body = |n: usize| examples["answers"][n]["body"].clone();
    FakeHost::new()
        .manifest(provider_a::MANIFEST)
        .secret("secret_key", "example-secret")
        .answer("POST", "/transaction/initialize", 200, body(0))
        .answer("GET", "/transaction/verify/example-1", 200, body(1))
        .install()
}

fn order() -> CheckoutOrder {
    CheckoutOrder {
        service_ref: "example-1".into(),
        amount: Money { minor: 500_000, currency: "NGN".into() },
        email: "ada@example.com".into(),
        customer_name: Some("Ada Obi".into()),
        narration: "Example".into(),
        channels: Vec::new(),
        success_url: "https://shop.example/done".into(),
        cancel_url: None,
        metadata: r#"{"order":"1"}"#.into(),
        save_instrument: false,
    }
}

/// Measures the time from component bytes to a callable plugin, without and with cached code.
fn measure_admission(bench: &mut Bench) {
    let folder = TempDir::new().expect("a temporary folder");
    let random = Random::system();
    let sealer = Sealer::new(&new_master_key(&random), random).expect("a key");
    let cache = CodeCache::new(folder.path().join("plugins"), sealer);
    let cached = Limits { code_cache: Some(cache), ..Limits::default() };
    for (name, limits) in [("cold", Limits::default()), ("cached", cached)] {
        bench.measure(&format!("plugins/admission/{name}"), async |iterations| {
            let mut took = std::time::Duration::ZERO;
            for _ in 0..iterations {
                let wasm = artifacts::PROVIDER_A.to_vec();
                let subject = BenchSubject::load(wasm, limits.clone()).await.expect("a component");
                took += subject.admission;
            }
            took
        });
    }
}
