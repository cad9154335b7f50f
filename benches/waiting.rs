//! Latency of a plugin while ten thousand calls of another one wait for a slow upstream.

use std::{
    cell::RefCell,
    convert::Infallible,
    io::{Write, stdin, stdout},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::http::{Request, Response};
use bytes::Bytes;
use futures::future::{join_all, pending};
use hdrhistogram::Histogram;
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};
use tollhouse_platform::{
    clock::Clock,
    outbound::egress::{Egress, EgressPolicy},
    random::Random,
    telemetry::resident_bytes,
};
use tollhouse_plugins::{Call, Credentials, Limits, PluginHandle, Plugins};

use crate::{Bench, installed::with_name};

/// First argument of this program when it acts as the upstream: one process may not have enough
/// file descriptors for both ends of the connections.
const UPSTREAM: &str = "upstream-that-waits";
const QUIET: &str = "plugins/quick/quiet";
const BESIDE: &str = "plugins/quick/beside-waiting";
const CALLS: usize = 10_000;
/// Number of calls when each benchmark runs only once.
const TRIAL_CALLS: usize = 50;
/// Timeout until all calls wait; never reached in practice.
const ALL_WAITING_TIMEOUT: Duration = Duration::from_secs(120);
const REFERENCE: &str = "example-1";
const PAID: &str = r#"{"status":"paid","amount":500000,"currency":"NGN"}"#;

pub fn measure(bench: &mut Bench) {
    if !bench.is_selected(QUIET) && !bench.is_selected(BESIDE) {
        return;
    }
    let count = if bench.runs_once() { TRIAL_CALLS } else { CALLS };
    let (quiet, beside) = (RefCell::new(latencies()), RefCell::new(latencies()));
    let host = bench.runtime.block_on(Host::start(count));
    bench.measure(QUIET, async |times| host.measure_calls(times, &quiet).await);
    let waiting = bench.runtime.block_on(host.start_waiting_calls(count));
    bench.measure(BESIDE, async |times| host.measure_calls(times, &beside).await);
    if bench.median(BESIDE).is_some() {
        waiting.print();
        let p99 = |of: &RefCell<Histogram<u64>>| of.borrow().value_at_quantile(0.99) as f64 / 1e3;
        let (quiet, beside) = (p99(&quiet), p99(&beside));
        let ratio = beside / quiet;
        println!("{BESIDE}: p99 {beside:.0} us, {ratio:.2} times {QUIET} ({quiet:.0} us)\n");
    }
    bench.runtime.block_on(host.stop(waiting));
}

fn latencies() -> Histogram<u64> {
    Histogram::new(3).expect("three valid digits")
}

/// A plugin with a slow upstream, one with a quick upstream, and both upstreams.
struct Host {
    slow: (PluginHandle, Credentials),
    quick: (PluginHandle, Credentials),
    upstream: Child,
    output: tokio::sync::Mutex<Lines<BufReader<ChildStdout>>>,
}

struct WaitingCalls {
    calls: Vec<JoinHandle<()>>,
    /// Resident memory of this process in bytes, when a tenth of the calls and when all wait.
    tenth: usize,
    all: usize,
}

impl Host {
    async fn start(count: usize) -> Host {
        raise_file_limit();
        let program = std::env::current_exe().expect("this program");
        let mut upstream = Command::new(program)
            .args([UPSTREAM, &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("this program starts");
        let output = upstream.stdout.take().expect("a pipe");
        let mut output = BufReader::new(output).lines();
        let port = output.next_line().await.expect("a line").expect("a port");
        let (wall_clock, queue) = (Duration::from_secs(3_600), CALLS);
        let limits = Limits { wall_clock, queue, ..Limits::default() };
        let policy = EgressPolicy { allow_loopback: true, ..EgressPolicy::default() };
        let egress = Egress::new(policy).expect("a client");
        let plugins = Plugins::new(limits, egress, Clock::system(), Random::system());
        let plugins = plugins.expect("an engine");
        let account = async |wasm: Vec<u8>, path: &str| {
            let plugin =
                plugins.admit_without_install(wasm).await.expect("a component of this repository");
            let mut credentials = Credentials::example(plugin.manifest());
            let url = format!("http://127.0.0.1:{port}/{path}");
            credentials.values.insert("base_url".to_owned(), url);
            (plugin, credentials)
        };
        Host {
            slow: account(with_name(artifacts::PROVIDER_A, "slow"), "slow").await,
            quick: account(artifacts::SPROUT.to_vec(), "quick").await,
            upstream,
            output: output.into(),
        }
    }

    /// Calls the quick plugin sequentially.
    async fn measure_calls(&self, times: u64, latencies: &RefCell<Histogram<u64>>) -> Duration {
        let (plugin, credentials) = &self.quick;
        let call = Call::Verify(REFERENCE.to_owned());
        let mut took = Duration::ZERO;
        for _ in 0..times {
            let began = Instant::now();
            plugin.execute_for_status(credentials, &call).await.expect("a payment");
            let one = began.elapsed();
            latencies.borrow_mut().record(one.as_nanos() as u64).expect("a histogram that grows");
            took += one;
        }
        took
    }

    /// Starts this many calls and returns when the slow upstream holds them all.
    async fn start_waiting_calls(&self, count: usize) -> WaitingCalls {
        let mut calls = Vec::new();
        let tenth = self.wait_until(&mut calls, count / 10).await;
        let all = self.wait_until(&mut calls, count).await;
        WaitingCalls { calls, tenth, all }
    }

    /// Returns the resident memory of this process in bytes, when `count` calls wait.
    async fn wait_until(&self, calls: &mut Vec<JoinHandle<()>>, count: usize) -> usize {
        calls.resize_with(count, || {
            let (plugin, credentials) = self.slow.clone();
            tokio::spawn(async move {
                // Cut when the upstream ends.
                let _ = plugin
                    .execute_for_status(&credentials, &Call::Verify(REFERENCE.to_owned()))
                    .await;
            })
        });
        let mut output = self.output.lock().await;
        timeout(ALL_WAITING_TIMEOUT, output.next_line()).await.expect("all wait").expect("a line");
        resident_bytes().unwrap_or_default()
    }

    async fn stop(mut self, waiting: WaitingCalls) {
        drop(self.upstream.stdin.take());
        self.upstream.wait().await.expect("the upstream ends");
        join_all(waiting.calls).await;
    }
}

impl WaitingCalls {
    fn print(&self) {
        let WaitingCalls { calls, tenth, all } = self;
        let (count, more) = (calls.len(), calls.len() - calls.len() / 10);
        let kib = (all.saturating_sub(*tenth) / more) >> 10;
        let (all, tenth) = (all >> 20, tenth >> 20);
        println!(
            "plugins/waiting: {count} calls wait in {all} MiB, a tenth of them in {tenth}: {kib} KiB per further call"
        );
    }
}

/// Raises the limit of open files to the permitted maximum.
fn raise_file_limit() {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).expect("what is allowed");
}

/// Acts as both upstreams if the arguments request it. Returns whether they do.
pub fn run_as_upstream() -> bool {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(UPSTREAM) {
        return false;
    }
    let count = arguments.next().and_then(|count| count.parse().ok()).expect("a number");
    raise_file_limit();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.spawn(serve(count));
    // Until the parent process closes the pipe.
    let _ = std::io::copy(&mut stdin().lock(), &mut std::io::sink());
    runtime.shutdown_background();
    true
}

/// Prints the port, and a line when a tenth of `count` requests wait, and when all do.
async fn serve(count: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    print_line(&listener.local_addr().expect("a bound listener").port().to_string());
    let waiting = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let waiting = waiting.clone();
        let service = service_fn(move |request| respond(request, waiting.clone(), count));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn respond(
    request: Request<Incoming>,
    waiting: Arc<AtomicUsize>,
    count: usize,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path().starts_with("/slow") {
        let now = waiting.fetch_add(1, Relaxed) + 1;
        if now == count / 10 || now == count {
            print_line("waiting");
        }
        pending::<()>().await;
    }
    Ok(Response::new(Full::new(Bytes::from_static(PAID.as_bytes()))))
}

fn print_line(line: &str) {
    let mut out = stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent process reads the pipe");
}
