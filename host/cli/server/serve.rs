//! `tollhouse serve`.

use std::error::Error;

#[cfg(target_os = "linux")]
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use sd_notify::NotifyState;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tollhouse_app::{
    state::{
        App,
        config::{Config, check},
    },
    wiring,
};
use tollhouse_http::{Endpoint, Listener};
use tollhouse_platform::{config::ConfigError, error, store};

use crate::prelude::*;

#[derive(Args)]
#[command(after_help = "\
Examples:
  tollhouse serve --config /etc/tollhouse/tollhouse.toml
  tollhouse serve --database sqlite:///var/lib/tollhouse/tollhouse.db \\
    --master-key-file master-key --operator-token-file operator-token

On SIGTERM or Ctrl-C, the host finishes requests and jobs in flight, then exits.")]
pub struct Serve {
    #[command(flatten)]
    config: Config,
}

impl Serve {
    /// Serves until SIGTERM or Ctrl-C.
    pub async fn run(self) -> Result {
        let mut config = self.config;
        config.plugins.plugin_compiler.get_or_insert_with(this_program);
        let wrong = check::problems(&config);
        if !wrong.is_empty() {
            return Err(wrong.into());
        }
        if !config.service.development {
            forbid_dumps().map_err(|error| Failure::refused(chain(&error)))?;
        }
        let reports = config.telemetry.start(tracing::Level::INFO);
        let reports = reports.map_err(|error| Failure::usage(chain(&*error)))?;
        let served = serve(&config).await;
        reports.shutdown().await;
        served
    }
}

/// Forbids core dumps and reads by other processes of the user, because memory holds secrets.
fn forbid_dumps() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Returns a path of the running program that stays valid when its file is replaced.
fn this_program() -> PathBuf {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { running } else { std::env::current_exe().unwrap_or(running) }
}

async fn serve(config: &Config) -> Result {
    let opened = App::open(config, Clock::system(), Random::system(), None).await;
    let app = opened.map_err(open_failure)?;
    let public = bind(config.listeners.public()).await?;
    let internal = bind(config.listeners.internal()).await?;
    let address = |listener: &Listener| {
        listener.address().map_or_else(|e| e.to_string(), |at| at.to_string())
    };
    tracing::info!(api = address(&public), internal = address(&internal), "serving");
    if config.service.no_jobs {
        tracing::warn!(
            "no_jobs is set: this host runs no jobs, sweeps, deliveries or messages, \
             and contacts no provider"
        );
    }
    // Before the notification: a supervisor may send the signal as soon as it has received it.
    let signal = stop_signal().map_err(|error| {
        Failure::refused(format!("signal handlers cannot be installed: {error}"))
    })?;
    notify_systemd(NotifyState::Ready);
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        signal.await;
        tracing::info!("shutting down; finishing requests and jobs in flight");
        notify_systemd(NotifyState::Stopping);
        let _ = stop.send(true);
    });
    wiring::serve(app, public, internal, stopped).await;
    Ok(Report::new(Value::Null, ""))
}

/// Notifies systemd of the state, if systemd runs this host.
fn notify_systemd(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "systemd could not be notified");
    }
}

/// Database errors keep their own exit code, because a restart may succeed.
fn open_failure(error: Box<dyn Error + Send + Sync>) -> Failure {
    if let Some(error) = error.downcast_ref::<store::Error>() {
        return error.clone().into();
    }
    match error.downcast_ref::<error::Error>() {
        Some(error::Error::Database(error)) => error.clone().into(),
        _ => Failure::refused(chain(&*error)),
    }
}

async fn bind(endpoint: Result<Endpoint, ConfigError>) -> Result<Listener> {
    Listener::bind(&endpoint?).await.map_err(Failure::refused)
}

/// Installs handlers of SIGTERM and Ctrl-C. The future completes at the first signal.
pub fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    #[test]
    fn forbid_dumps_makes_the_process_not_dumpable() {
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
        forbid_dumps().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
