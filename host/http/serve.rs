//! A server: both listeners and the work in the background, until it is told to stop.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{Listener, Route, internal_routes, name_of, public_routes, router};
use crate::{
    app::{App, SWEEPS},
    jobs, monitor, recordings,
};

/// Between two sweeps, and between two releases of unused memory and connections.
const CLEAN: Duration = Duration::from_secs(60);

/// Serves until `stop` shows `true`. Then readiness says 503, nothing new is accepted after `drain`, and what is in flight has
/// `shutdown` to end: requests, what they left behind, and jobs.
pub async fn serve(app: App, public: Listener, internal: Listener, stop: watch::Receiver<bool>) {
    let mut beside = Vec::new();
    if app.workers.enabled {
        beside.extend([keep(&app, "jobs", jobs::work), keep(&app, "cleaning", clean)]);
    }
    beside.extend([
        keep(&app, "plugins", follow_plugins),
        keep(&app, "upkeep", release_unused),
        keep(&app, "monitor", monitor::watch),
        keep(&app, "recordings", recordings::write_down),
    ]);
    let (close, closing) = watch::channel(false);
    let stopping = async {
        stopped(stop).await;
        app.stopping.store(true, Ordering::Relaxed);
        tokio::time::sleep(app.settings.http.drain).await;
        beside.iter().for_each(JoinHandle::abort);
        close.send_replace(true);
        Instant::now() + app.settings.http.shutdown
    };
    let (deadline, (), ()) = tokio::join!(
        stopping,
        listen(&app, public, public_routes(), closing.clone()),
        listen(&app, internal, internal_routes(), closing),
    );
    if timeout_at(deadline, app.tasks.finished()).await.is_err() {
        tracing::warn!("requests whose callers had gone were left under way");
    }
    if timeout_at(deadline, jobs::under_way(&app)).await.is_err() {
        tracing::warn!("jobs were left under way; their leases will end");
    }
}

/// What the host does beside requests, for as long as it serves.
fn keep<F>(app: &App, name: &'static str, work: fn(App) -> F) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let host = app.clone();
    app.tasks.keep(name, move || work(host.clone()))
}

/// Serves one listener until `close` shows `true`.
pub async fn listen(
    app: &App,
    listener: Listener,
    routes: Vec<Route>,
    close: watch::Receiver<bool>,
) {
    listener.serve(app, name_of(&routes), router(app, routes), close).await;
}

/// A sender that is gone will never say stop.
pub(super) async fn stopped(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn follow_plugins(app: App) {
    app.plugins.keep_up(&app.store).await;
}

/// Keeps the memory and the connections of this host bounded.
async fn release_unused(app: App) {
    loop {
        tokio::time::sleep(CLEAN).await;
        app.rates.prune();
        app.store.close_unused();
    }
}

/// Runs the sweeps, which delete rows and files.
async fn clean(app: App) {
    loop {
        tokio::time::sleep(CLEAN).await;
        for sweep in SWEEPS {
            if let Err(error) = sweep(app.clone()).await {
                tracing::error!(error = %error.chain(), "what is out of date could not be cleared");
            }
        }
    }
}
