//! A host that crashes between two of its transactions.

use futures::FutureExt;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::watch,
};
use tollhouse_app::{routes, state::App, wiring};
use tollhouse_http as http;
use tollhouse_platform::{background::jobs, random::Random};

use crate::app::{TestApp, config, smtp_flags};

/// Another host on the same database, with the same clock. It runs no jobs by itself.
pub struct CrashingHost {
    pub app: App,
    pub api: String,
    pub internal: String,
    /// Its own runtime, so that all its work stops when it is dropped.
    runtime: Option<Runtime>,
}

impl CrashingHost {
    /// Starts a host that crashes when it begins a transaction after this many.
    pub async fn start(beside: &TestApp, transactions: usize) -> CrashingHost {
        let smtp = smtp_flags(&beside.simulators);
        let own = ["--database-connections=2", "--portal=false"];
        let flags = smtp.iter().map(String::as_str).chain(own);
        let mut config = config(&beside.database, &flags.collect::<Vec<_>>());
        config.listeners.public_url = Some(beside.api.clone());
        let clock = beside.app.clock.clone();
        let start = move || {
            let mut runtime = Builder::new_multi_thread();
            let runtime = runtime.worker_threads(1).enable_all().build().expect("a runtime");
            let started = runtime.block_on(async move {
                let app = App::open(&config, clock, Random::system(), None).await;
                let app = app.expect("a host that starts");
                let api = listen(&app, routes::public_routes()).await;
                let internal = listen(&app, routes::internal_routes()).await;
                (app, api, internal)
            });
            (runtime, started)
        };
        let started = tokio::task::spawn_blocking(start).await;
        let (runtime, (app, api, internal)) = started.expect("a host");
        let host = CrashingHost { app, api, internal, runtime: Some(runtime) };
        host.crash_after(transactions);
        host
    }

    /// Lets it crash when it begins a transaction after this many from now on.
    pub fn crash_after(&self, transactions: usize) {
        self.app.store.crash_point.crash_after(transactions);
    }

    /// Returns whether it has not crashed.
    pub fn is_running(&self) -> bool {
        self.app.store.crash_point.crashed().now_or_never().is_none()
    }

    /// Returns the result of `work`, or `None` if the host crashes before.
    pub async fn until_crash<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.app.store.crash_point.crashed() => None,
        }
    }

    /// Runs due jobs, until the host crashes.
    pub async fn run_due(&self) {
        let app = self.app.clone();
        let runtime = self.runtime.as_ref().expect("a running host");
        let work = runtime.spawn(async move { jobs::run_due(&app).await });
        if let Some(done) = self.until_crash(work).await {
            done.expect("no panic").expect("jobs that run");
        }
    }
}

impl Drop for CrashingHost {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn listen(app: &App, routes: Vec<routes::Route>) -> String {
    let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", tcp.local_addr().expect("a bound listener"));
    let app = app.clone();
    let (_, never) = watch::channel(false);
    tokio::spawn(
        async move { wiring::listen(&app, http::Listener::plain(tcp), routes, never).await },
    );
    url
}
