//! `tollhouse serve`.

use std::error::Error;

use clap::Args;
use serde_json::Value;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tollhouse::{
    app::App,
    clock::Clock,
    config::{Config, ConfigError, check},
    error,
    http::{self, Endpoint, Listener},
    random::Random,
    store,
};

use super::{
    failure::{Failure, chain},
    output::Report,
};

#[derive(Args)]
#[command(after_help = "\
Examples:
  tollhouse serve --config /etc/tollhouse/tollhouse.toml
  tollhouse serve --database sqlite:///var/lib/tollhouse/tollhouse.db \\
    --master-key-file master-key --operator-token-file operator-token

SIGTERM and Ctrl-C end it: requests and jobs under way are finished.")]
pub struct Serve {
    #[command(flatten)]
    config: Config,
}

impl Serve {
    /// Until a signal says stop.
    pub async fn run(self) -> Result<Report, Failure> {
        let config = self.config;
        let wrong = check::problems(&config);
        if !wrong.is_empty() {
            return Err(Failure::settings(wrong));
        }
        let reports = config.telemetry.reporting().start();
        let reports = reports.map_err(|error| Failure::Usage(chain(&*error)))?;
        let served = serve(&config).await;
        reports.finish().await;
        served
    }
}

async fn serve(config: &Config) -> Result<Report, Failure> {
    let opened = App::open(config, Clock::system(), Random::system(), None).await;
    let app = opened.map_err(not_opened)?;
    let public = bind(config.listeners.public()).await?;
    let internal = bind(config.listeners.internal()).await?;
    let address = |listener: &Listener| {
        listener.address().map_or_else(|e| e.to_string(), |at| at.to_string())
    };
    tracing::info!(api = address(&public), internal = address(&internal), "serving");
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        if let Err(error) = until_signal().await {
            tracing::error!(%error, "signals are not heard");
            return;
        }
        tracing::info!("finishing what is under way");
        let _ = stop.send(true);
    });
    http::serve(app, public, internal, stopped).await;
    Ok(Report::new(Value::Null, ""))
}

/// The database has its own exit code: whoever starts the host again may find it there.
fn not_opened(error: Box<dyn Error + Send + Sync>) -> Failure {
    if let Some(error) = error.downcast_ref::<store::Error>() {
        return error.clone().into();
    }
    match error.downcast_ref::<error::Error>() {
        Some(error::Error::Database(error)) => error.clone().into(),
        _ => Failure::refused(chain(&*error)),
    }
}

async fn bind(endpoint: Result<Endpoint, ConfigError>) -> Result<Listener, Failure> {
    let endpoint = endpoint.map_err(|error| Failure::settings(vec![error]))?;
    let bound = Listener::bind(&endpoint).await;
    bound.map_err(|error| Failure::refused(error.to_string()))
}

async fn until_signal() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        done = tokio::signal::ctrl_c() => done,
        _ = terminate.recv() => Ok(()),
    }
}
