//! A server: both listeners and the work in the background, until it is told to stop.

use std::time::Duration;

use tokio::{net::TcpListener, sync::watch};

use super::{internal_routes, public_routes, router};
use crate::{
    app::App,
    error::{Error, Result},
    jobs, monitor,
};

/// How soon this host notices that another one has changed the plugins.
const FOLLOW: Duration = Duration::from_secs(1);

/// How long jobs under way may take to finish.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves until `stop` shows `true`; requests under way are finished.
pub async fn serve(
    app: App,
    public: TcpListener,
    internal: TcpListener,
    stop: watch::Receiver<bool>,
) -> Result<()> {
    let workers = tokio::spawn(jobs::work(app.clone()));
    let following = tokio::spawn(follow_plugins(app.clone()));
    let watching = tokio::spawn(monitor::watch(app.clone()));
    let public = axum::serve(public, router(&app, public_routes()));
    let internal = axum::serve(internal, router(&app, internal_routes()));
    let public = public.with_graceful_shutdown(stopped(stop.clone())).into_future();
    let internal = internal.with_graceful_shutdown(stopped(stop)).into_future();
    let served = tokio::try_join!(public, internal).map_err(Error::internal);
    workers.abort();
    following.abort();
    watching.abort();
    if tokio::time::timeout(PATIENCE, jobs::under_way(&app)).await.is_err() {
        tracing::warn!("jobs were left under way; their leases will end");
    }
    served.map(|_| ())
}

/// A sender that is gone will never say stop.
async fn stopped(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn follow_plugins(app: App) {
    loop {
        tokio::time::sleep(FOLLOW).await;
        if let Err(error) = app.plugins.follow(&app.store).await {
            tracing::error!(error = %error.chain(), "the plugin registry cannot be read");
        }
    }
}
