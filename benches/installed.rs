//! Startup of a host with many installed plugins, whose machine code is on disk.

use std::{
    cell::RefCell,
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tollhouse_platform::{
    clock::Clock,
    crypto::seal::{Sealer, new_master_key},
    outbound::egress::{Egress, EgressPolicy},
    random::Random,
    store::{self, Store},
    telemetry::resident_bytes,
};
use tollhouse_plugins::{CodeCache, InstallOptions, Limits, Plugins, SignedComponent, TrustPolicy};

use crate::Bench;

const NAME: &str = "plugins/installed";
const PLUGINS: usize = 1_000;
/// Number of plugins when each benchmark runs only once.
const TRIAL_PLUGINS: usize = 5;

pub fn measure(bench: &mut Bench) {
    if !bench.is_selected(NAME) {
        return;
    }
    let count = if bench.runs_once() { TRIAL_PLUGINS } else { PLUGINS };
    let host = bench.runtime.block_on(Host::create(count));
    let grown = RefCell::new(Vec::new());
    bench.measure(NAME, async |iterations| {
        let mut took = Duration::ZERO;
        for _ in 0..iterations {
            let (time, bytes) = host.start().await;
            took += time;
            grown.borrow_mut().push(bytes / count);
        }
        took
    });
    let mut grown = grown.into_inner();
    grown.sort_unstable();
    if let (Some(time), Some(bytes)) = (bench.median(NAME), grown.get(grown.len() / 2)) {
        let (ms, kib) = (time / 1e6, bytes >> 10);
        println!("{NAME}: {count} plugins serve after {ms:.0} ms, {kib} KiB resident each\n");
    }
}

/// The data of a stopped host: its database and its machine code.
struct Host {
    folder: TempDir,
    store: Store,
    code: CodeCache,
}

impl Host {
    async fn create(count: usize) -> Host {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let url = format!("sqlite://{}", folder.path().join("bench.db").display());
        let store = Store::open(&url, store::StoreLimits::default(), Random::system()).await;
        let random = Random::system();
        let sealer = Sealer::new(&new_master_key(&random), random).expect("a key");
        let code = CodeCache::new(folder.path().join("code"), sealer);
        let host = Host { folder, store: store.expect("a database"), code };
        let plugins = host.plugins();
        let mut compiled: Option<String> = None;
        for n in 0..count {
            let wasm = with_name(artifacts::PROVIDER_A, &format!("plugin_{n}"));
            if let Some(name) = &compiled {
                host.copy_code(name, &wasm);
            }
            let options = InstallOptions { grant: true, activate: true };
            let kept = plugins
                .install(&host.store, SignedComponent::parse(wasm), options, async |_, _| Ok(()))
                .await;
            kept.expect("a plugin of this repository");
            compiled.get_or_insert_with(|| host.only_file());
        }
        host
    }

    /// Copies the machine code, because compiling it a thousand times would take long.
    fn copy_code(&self, name: &str, wasm: &[u8]) {
        let (_, engine) = name.split_once('-').expect("a digest and an engine");
        let copy = format!("{}-{engine}", hex::encode(Sha256::digest(wasm)));
        self.code.store(&copy, &self.code.read(name).expect("what was compiled"));
    }

    fn only_file(&self) -> String {
        let mut files = fs::read_dir(self.folder.path().join("code")).expect("a folder");
        let file = files.next().expect("what was compiled").expect("a file");
        file.file_name().into_string().expect("a name")
    }

    fn plugins(&self) -> Plugins {
        let trust = TrustPolicy { accepts_unsigned: true, ..TrustPolicy::default() };
        let limits = Limits { code_cache: Some(self.code.clone()), trust, ..Limits::default() };
        let egress = Egress::new(EgressPolicy::default()).expect("a client");
        Plugins::new(limits, egress, Clock::system(), Random::system()).expect("an engine")
    }

    /// Returns the time until all plugins serve, and the memory in bytes that they add.
    async fn start(&self) -> (Duration, usize) {
        let plugins = self.plugins();
        let (before, began) = (resident_bytes().unwrap_or_default(), Instant::now());
        plugins.sync_once(&self.store).await.expect("the plugins that serve");
        let took = began.elapsed();
        let after = resident_bytes().unwrap_or_default();
        (took, after.saturating_sub(before))
    }
}

/// Returns the component under another name: an added manifest overrides the one inside.
pub fn with_name(wasm: &[u8], name: &str) -> Vec<u8> {
    let mut manifest: Value = serde_json::from_str(provider_a::MANIFEST).expect("a manifest");
    manifest["name"] = json!(name);
    let section = [&b"\x12tollhouse:manifest"[..], manifest.to_string().as_bytes()].concat();
    let mut component = [wasm, &[0]].concat();
    let mut left = section.len();
    while left >= 0x80 {
        component.push(left as u8 | 0x80);
        left >>= 7;
    }
    component.push(left as u8);
    component.extend(section);
    component
}
