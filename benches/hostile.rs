//! The cost of a hostile plugin for a healthy one beside it, and of a hostile company for another one
//! that calls the same plugin.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinHandle,
};
use tollhouse_platform::{
    clock::Clock,
    outbound::egress::{Egress, EgressError, EgressRequest, EgressResponse},
    random::Random,
    telemetry::resident_bytes,
};
use tollhouse_plugins::{Call, Credentials, Limits, PluginHandle, Plugins};

use crate::Bench;

/// Commands for the hostile guest, and the number of concurrent calls of each.
const HOSTILE_COMMANDS: [(&str, usize); 12] = [
    ("loop", 40),
    ("grow", 40),
    ("recurse", 40),
    ("panic", 40),
    ("big 9000000", 10),
    ("print 100000", 40),
    ("random-request", 40),
    ("many 100", 40),
    ("headers 100000", 40),
    ("leak 100000", 40),
    ("fetch https://169.254.169.254/", 40),
    ("concatenate \"", 40),
];
/// The same for the hostile company. Calls with an empty command are ordinary ones.
const HOSTILE_COMPANY_COMMANDS: [(&str, usize); 4] =
    [("", 400), ("loop", 40), ("big 9000000", 10), ("many 100", 40)];
const CALLS: usize = 20_000;
/// Number of calls when each benchmark runs only once.
const TRIAL_CALLS: usize = 50;
const PAID: &str = r#"{"status":"paid","amount":500000,"currency":"NGN"}"#;

pub fn measure(bench: &Bench) {
    if !bench.is_selected("plugins/hostile") {
        return;
    }
    let tries_only = bench.runs_once();
    let calls = if tries_only { TRIAL_CALLS } else { CALLS };
    bench.runtime.block_on(async {
        let [plugins, companies] = Pair::start().await;
        let of_plugins = HOSTILE_COMMANDS.map(|command| ("plugin", &plugins, command));
        let of_companies = HOSTILE_COMPANY_COMMANDS.map(|command| ("company", &companies, command));
        for (kind, pair, (trick, at_once)) in of_plugins.into_iter().chain(of_companies) {
            let quiet = pair.p99(calls).await;
            let tasks = pair.start_hostile_calls(trick, at_once);
            tokio::time::sleep(Duration::from_millis(if tries_only { 10 } else { 1_000 })).await;
            let beside = pair.p99(calls).await;
            let mib = resident_bytes().unwrap_or_default() >> 20;
            tasks.iter().for_each(JoinHandle::abort);
            if !tries_only {
                let ratio = beside.as_secs_f64() / quiet.as_secs_f64();
                println!(
                    "plugins/hostile: {at_once} times {trick:?}: another {kind}'s p99 is {beside:.0?}, \
                     {ratio:.2} times its quiet {quiet:.0?}; {mib} MiB resident"
                );
            }
        }
    });
}

/// Two callers in one host, one of them hostile. Upstream responses come from memory, so that waits
/// for the CPU are visible.
struct Pair {
    healthy: (PluginHandle, Credentials),
    hostile: (PluginHandle, Credentials),
}

impl Pair {
    /// Returns two plugins, and two companies of one plugin.
    async fn start() -> [Pair; 2] {
        let egress = Egress::scripted(std::sync::Arc::new(respond));
        let limits = Limits::default();
        let plugins = Plugins::new(limits, egress, Clock::system(), Random::system());
        let plugins = plugins.expect("an engine");
        let load = async |wasm: &[u8]| {
            let plugin = plugins.admit_without_install(wasm.to_vec()).await;
            let plugin = plugin.expect("a component of this repository");
            let credentials = Credentials::example(plugin.manifest());
            (plugin, credentials)
        };
        let [healthy, hostile] = [load(artifacts::SPROUT).await, load(artifacts::UNRULY).await];
        let company = |name| (hostile.0.clone().for_company(name), hostile.1.clone());
        let companies = Pair { healthy: company("quiet"), hostile: company("busy") };
        [Pair { healthy, hostile }, companies]
    }

    /// Returns the 99th percentile of sequential calls of the healthy caller, which a client on
    /// another thread requests over a socket.
    async fn p99(&self, calls: usize) -> Duration {
        let (plugin, credentials) = self.healthy.clone();
        let (mut client, server) = UnixStream::pair().expect("sockets");
        server.set_nonblocking(true).expect("a socket");
        let mut server = tokio::net::UnixStream::from_std(server).expect("a socket");
        let serving = tokio::spawn(async move {
            let call = Call::Verify("example-1".to_owned());
            while let Ok(request) = server.read_u8().await {
                plugin.execute_for_status(&credentials, &call).await.expect("a payment");
                server.write_u8(request).await.expect("a client");
            }
        });
        let measuring = tokio::task::spawn_blocking(move || {
            let mut latencies = Histogram::<u64>::new(3).expect("three valid digits");
            for _ in 0..calls {
                let began = Instant::now();
                client.write_all(&[0]).expect("a server");
                client.read_exact(&mut [0]).expect("a response");
                let took = began.elapsed().as_nanos() as u64;
                latencies.record(took).expect("a histogram that grows");
            }
            Duration::from_nanos(latencies.value_at_quantile(0.99))
        });
        let p99 = measuring.await.expect("a measurement");
        serving.await.expect("a healthy caller");
        p99
    }

    fn start_hostile_calls(&self, trick: &str, at_once: usize) -> Vec<JoinHandle<()>> {
        let one = |_| {
            let (plugin, mut credentials) = self.hostile.clone();
            credentials.values.insert("mood".to_owned(), trick.to_owned());
            tokio::spawn(async move {
                let examples = Call::examples(&plugin);
                let call = examples.iter().find(|call| matches!(call, Call::StartCheckout(_)));
                let call = call.expect("a provider");
                loop {
                    let _ = plugin.execute_for_status(&credentials, call).await;
                    tokio::task::yield_now().await;
                }
            })
        };
        (0..at_once).map(one).collect()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a script may fail")]
fn respond(_: &EgressRequest) -> Result<EgressResponse, EgressError> {
    Ok(EgressResponse { status: 200, headers: Vec::new(), body: PAID.into() })
}
