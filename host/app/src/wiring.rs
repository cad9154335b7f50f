//! Assembles the application: the tables over all areas, opening a host, and serving.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use crate::{
    customers as users, identity,
    lending::{
        collections, loans, mandates,
        recollections::{self, Recollection},
        virtual_accounts,
    },
    messaging::{messages, otp},
    money::{
        cards::{self, Card},
        charges::{self, Charge, ChargeId, OwnerKind},
        disputes,
        payments::{self, Payment},
        reconciliation, routing,
    },
    operations::{
        monitor::{self, calls, hosts},
        operator_events, operators, recordings,
    },
    routes::{self, Route, internal_routes, public_routes},
    state::{
        App, Parts, RateLimits, Settings, Slots, Tables,
        config::{Config, OpenIdProvider},
        logs::save_repeatedly,
        metrics::Metrics,
        totals,
    },
    tenants::{companies, providers, requests, wallet},
    webhooks::{incoming, outgoing as events},
};
use tollhouse_http::{CompletedRequest, Listener, Readiness, idempotency, server, wait_for_stop};
use tollhouse_platform::{
    background::{
        jobs::{self, Handler, Job, JobResult, RunSimulators, Workers},
        log_buffer::LogBuffer,
        tasks::Tasks,
    },
    clock::Clock,
    crypto::seal::{SealedColumn, Sealer},
    error::Result,
    outbound::{egress::EgressByPurpose, files::Files},
    random::Random,
    store::{Store, Tx},
    telemetry::Telemetry,
};
use tollhouse_plugins::{LoggedCall, Plugins};

const JOBS: &[(&str, Handler<App>)] = &[
    (charges::REQUEST_JOB, |app, job| charges::request_job::<Recollection>(app, job).boxed()),
    (charges::RECONCILE_JOB, |app, job| reconcile_charge(app, job).boxed()),
    (charges::REFUND_JOB, |app, job| refund_charge(app, job).boxed()),
    (charges::DISPUTES_JOB, |app, job| disputes::disputes_job(app, job).boxed()),
    (disputes::ACCOUNT_JOB, |app, job| disputes::account_job(app, job).boxed()),
    (reconciliation::ACCOUNT_JOB, |app, job| reconciliation::account_job(app, job).boxed()),
    (events::DELIVER_JOB, |app, job| events::deliver_job(app, job).boxed()),
    (messages::EMAIL_JOB, |app, job| messages::deliver_job(app, job).boxed()),
    (messages::SMS_JOB, |app, job| messages::deliver_job(app, job).boxed()),
    (otp::WATCH_JOB, |app, job| otp::watch_job(app, job).boxed()),
    (users::REMOVE_JOB, |app, job| users::remove_job(app, job).boxed()),
    (cards::CONFIRM_JOB, |app, job| cards::confirm_job(app, job).boxed()),
    (cards::REVOKE_JOB, |app, job| cards::revoke_job(app, job).boxed()),
    (virtual_accounts::CLOSE_JOB, |app, job| virtual_accounts::close_job(app, job).boxed()),
    (virtual_accounts::TRANSFER_JOB, |app, job| virtual_accounts::transfer_job(app, job).boxed()),
    (collections::APPLY_JOB, |app, job| collections::apply_job(app, job).boxed()),
    (mandates::SYNC_JOB, |app, job| mandates::sync_job(app, job).boxed()),
    (loans::COLLECT_JOB, |app, job| recollections::collect_job(app, job).boxed()),
    // Jobs that hosts of the previous version enqueue.
    (payments::FORMER_JOB, |app, job| charges::adopt_job::<Payment>(app, job).boxed()),
    (cards::FORMER_REFUND_JOB, |app, job| cards::adopt_refund_job(app, job).boxed()),
    (recollections::FORMER_JOB, |app, job| charges::adopt_job::<Recollection>(app, job).boxed()),
];

/// Kinds whose jobs are parked after a day of failures. All others carry money, fees or personal
/// data: an abandoned one is worse than a retry every 30 minutes, so they are only listed.
const PARKED_KINDS: &[&str] = &[events::DELIVER_JOB, otp::WATCH_JOB];

async fn find_charge(app: &App, job: &Job, id: &ChargeId) -> Result<Option<Charge>> {
    let read = async |tx: &mut Tx| charges::find(tx, &job.company_id, id).await;
    Ok(app.store.select(read).await?)
}

async fn reconcile_charge(app: App, job: Job) -> Result<JobResult> {
    let found = find_charge(&app, &job, &ChargeId::from(&*job.subject)).await?;
    let Some(charge) = found else { return Ok(JobResult::Done) };
    match charge.owner_kind {
        OwnerKind::Payment => charges::reconcile_job::<Payment>(app, job, charge).await,
        OwnerKind::Card => charges::reconcile_job::<Card>(app, job, charge).await,
        OwnerKind::Recollection => charges::reconcile_job::<Recollection>(app, job, charge).await,
    }
}

async fn refund_charge(app: App, job: Job) -> Result<JobResult> {
    let read = async |tx: &mut Tx| charges::find_refund(tx, &job.company_id, &job.subject).await;
    let Some(refund) = app.store.select(read).await? else { return Ok(JobResult::Done) };
    let found = find_charge(&app, &job, &refund.charge_id).await?;
    let Some(charge) = found else { return Ok(JobResult::Done) };
    match charge.owner_kind {
        OwnerKind::Payment => charges::refund_job::<Payment>(app, charge, job).await,
        OwnerKind::Card => charges::refund_job::<Card>(app, charge, job).await,
        OwnerKind::Recollection => charges::refund_job::<Recollection>(app, charge, job).await,
    }
}

pub const SEALED: &[&[SealedColumn]] = &[
    &cards::SEALED,
    &charges::SEALED,
    &companies::SEALED,
    &events::SEALED,
    &idempotency::SEALED,
    &identity::SEALED,
    &mandates::SEALED,
    &messages::SEALED,
    &operators::SEALED,
    &providers::SEALED,
    &recordings::SEALED,
];

const TABLES: Tables = Tables {
    sweeps: &[
        |app| calls::sweep(app).boxed(),
        |app| cards::sweep(app).boxed(),
        |app| charges::sweep(app).boxed(),
        |app| disputes::sweep(app).boxed(),
        |app| idempotency::sweep(app.server.clone()),
        |app| identity::sweep(app).boxed(),
        |app| mandates::sweep(app).boxed(),
        |app| messages::sweep(app).boxed(),
        |app| operator_events::sweep(app).boxed(),
        |app| otp::sweep(app).boxed(),
        |app| reconciliation::sweep(app).boxed(),
        |app| recordings::sweep(app).boxed(),
        |app| requests::sweep(app).boxed(),
        |app| users::sweep(app).boxed(),
    ],
    sealed: SEALED,
    on_event_url_set: |tx, company_id, url| Box::pin(events::enable(tx, company_id, url)),
    webhook_subjects: &[
        (cards::SUBJECT, cards::CONFIRM_JOB),
        (incoming::CHARGE, charges::RECONCILE_JOB),
        (mandates::SUBJECT, mandates::SYNC_JOB),
        (payments::SUBJECT, payments::FORMER_JOB),
        (recollections::SUBJECT, recollections::FORMER_JOB),
    ],
    has_virtual_accounts: |tx, account_id| Box::pin(virtual_accounts::is_any_at(tx, account_id)),
    transfer_job: virtual_accounts::TRANSFER_JOB,
    dispute_job: charges::DISPUTES_JOB,
};

impl App {
    /// Opens the database and loads the installed plugins; the host is then ready to serve.
    pub async fn open(
        config: &Config,
        clock: Clock,
        random: Random,
        companion: Option<RunSimulators>,
    ) -> Result<App, Box<dyn Error + Send + Sync>> {
        let (settings, no_jobs) = (Settings::new(config)?, config.service.no_jobs);
        let sealer = Sealer::new(&config.master_key.read()?, random.clone())?;
        let provider = settings.openid_provider.as_ref();
        let to_provider = provider.map(OpenIdProvider::egress_policy).unwrap_or_default();
        let egress = EgressByPurpose::new(no_jobs, config.service.egress_policies(), to_provider)?;
        let (mailer, files) = (config.email.mailer()?, Files::new(&config.service.files)?);
        let (limits, to_upstreams) = (config.plugins.limits_with_cache(&sealer), &egress.plugins);
        let plugins = Plugins::new(limits, to_upstreams.clone(), clock.clone(), random.clone())?;
        let recordings = record_calls(&settings, &plugins);
        let store = open_store(config, random.clone()).await?;
        plugins.sync_once(&store).await?;
        let (rates, tasks) = (RateLimits::new(config, &clock), Tasks::default());
        let parts = jobs::WorkerParts {
            enabled: !no_jobs,
            store: store.clone(),
            clock: clock.clone(),
            random: random.clone(),
            tasks: tasks.clone(),
            parked_kinds: PARKED_KINDS,
            simulators: companion,
        };
        let workers = Workers::new(JOBS, parts);
        let (metrics, server_metrics) = (Metrics::default(), server::ServerMetrics::default());
        let (recorder, logged) = requests::recorder(&metrics.api_log_dropped);
        let telemetry = Telemetry::new(clock.now())
            .with(|registry| server_metrics.register(registry))
            .with(|registry| metrics.register(registry))
            .with(|registry| store.register(registry))
            .with(|registry| plugins.register(registry))
            .with(|registry| egress.plugins.metrics.register(registry))
            .with(|registry| workers.metrics.register(registry))
            .with(|registry| tasks.register(registry))
            .with(|registry| recordings.register(registry));
        let slots = new_slots(config, &clock, &random).with(recordings);
        let slots = slots.with(logged).with(log_calls(&settings, &plugins, &metrics));
        let parts = Parts {
            server: Arc::new(server::ServerParts {
                store: store.clone(),
                clock: clock.clone(),
                random: random.clone(),
                sealer: sealer.clone(),
                tasks: tasks.clone(),
                limits: config.requests.clone(),
                metrics: server_metrics,
                request_recorder: (settings.api_log_days > 0).then_some(recorder),
                telemetry,
                readiness: Readiness::default(),
                stopping: AtomicBool::new(false),
                runs_jobs: !no_jobs,
            }),
            slots: slots.with(companies::AcceptedKeys::load(&store, clock.now()).await?),
            store,
            clock,
            random,
            sealer,
            egress,
            files,
            mailer,
            settings,
            workers,
            rate_limits: rates,
            tasks,
            metrics,
            tables: TABLES,
        };
        Ok(App::new(parts, plugins))
    }
}

/// Records plugin calls, unless the retention is 0. Returns the queue of recordings.
fn record_calls(settings: &Settings, plugins: &Plugins) -> recordings::RecordingQueue {
    let (recorder, recorded) = recordings::recorder();
    if settings.recording_hours > 0 {
        plugins.set_recorder(recorder);
    }
    recorded
}

/// Logs plugin calls, unless their retention is 0. Returns the buffer of the log.
fn log_calls(settings: &Settings, plugins: &Plugins, metrics: &Metrics) -> LogBuffer<LoggedCall> {
    let (log, logged) = calls::log(&metrics.call_log_dropped);
    if settings.call_log_days > 0 {
        plugins.set_call_log(log);
    }
    logged
}

/// Returns the state of slices that is not loaded from the database.
fn new_slots(config: &Config, clock: &Clock, random: &Random) -> Slots {
    Slots::default()
        .with(hosts::HostIdentity::new(random, clock.now()))
        .with(messages::Gateways::new(config.otp.sms_gateways.clone(), clock.clone()))
        .with(identity::ImageLimiter::default())
        .with(operators::oidc::MetadataCache::default())
        .with(providers::statistics::Statistics::default())
}

async fn open_store(
    config: &Config,
    random: Random,
) -> Result<Store, Box<dyn Error + Send + Sync>> {
    let (url, limits) = (config.database.url()?, config.database.limits());
    // In development, the host applies migrations on any database.
    Ok(match config.service.development {
        true => Store::open(url.expose(), limits, random).await?,
        false => {
            let role = config.database.role_policy();
            Store::open_migrated(url.expose(), limits, random, role).await?
        }
    })
}

/// Interval between sweeps, and between releases of unused memory and connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
const FOLD_INTERVAL: Duration = Duration::from_secs(1);
const STATISTICS_INTERVAL: Duration = Duration::from_secs(1);
/// Wait after a failure, for example because the sample of a table took too long.
const STATISTICS_RETRY: Duration = Duration::from_secs(300);

/// Serves until `stop` is `true`. Then readiness returns 503, the listeners close after
/// `drain_delay`, and requests, their background tasks and jobs in flight have `shutdown_timeout`
/// to end.
pub async fn serve(app: App, public: Listener, internal: Listener, stop: watch::Receiver<bool>) {
    let mut beside = Vec::new();
    if app.workers.enabled {
        beside.extend([
            spawn_supervised(&app, "jobs", jobs::run_workers),
            spawn_supervised(&app, "sweeps", run_sweeps),
            spawn_supervised(&app, "folds", run_folds),
            spawn_supervised(&app, "statistics", refresh_statistics),
        ]);
    }
    beside.extend([
        spawn_supervised(&app, "plugins", |app| async move { app.plugins.sync(&app.store).await }),
        spawn_supervised(&app, "upkeep", release_unused),
        spawn_supervised(&app, "monitor", monitor::run),
        spawn_supervised(&app, "recordings", recordings::persist),
        spawn_supervised(&app, "provider_statistics", routing::learn_repeatedly),
    ]);
    // These run until the last request has ended.
    let logs = [
        spawn_supervised(&app, "api_log", save_api_log),
        spawn_supervised(&app, "call_log", save_call_log),
    ];
    let (close, closing) = watch::channel(false);
    let stopping = async {
        wait_for_stop(stop).await;
        app.server.stopping.store(true, Ordering::Relaxed);
        tokio::time::sleep(app.server.limits.drain_delay).await;
        beside.iter().for_each(JoinHandle::abort);
        close.send_replace(true);
        Instant::now() + app.server.limits.shutdown_timeout
    };
    let (deadline, (), ()) = tokio::join!(
        stopping,
        listen(&app, public, public_routes(), closing.clone()),
        listen(&app, internal, internal_routes(), closing),
    );
    logs.iter().for_each(JoinHandle::abort);
    if timeout_at(deadline, app.tasks.wait_until_idle()).await.is_err() {
        tracing::warn!("shutdown timed out with requests of disconnected clients in flight");
    }
    let flush = async || requests::flush(&app).await.and(calls::flush(&app).await);
    let is_flushed = matches!(timeout_at(deadline, flush()).await, Ok(Ok(_)));
    if timeout_at(deadline, jobs::wait_until_idle(&app)).await.is_err() {
        tracing::warn!("shutdown timed out with jobs in flight; their leases will expire");
    }
    // Flush again: the last jobs have made more calls.
    if !is_flushed || !matches!(timeout_at(deadline, flush()).await, Ok(Ok(_))) {
        tracing::warn!("the last API requests or plugin calls could not be saved");
    }
    if let Ok(Err(error)) = timeout_at(deadline, hosts::leave(&app)).await {
        tracing::warn!(error = %error.chain(), "this host could not be removed from the list of hosts");
    }
}

/// Runs a supervised background task until shutdown.
fn spawn_supervised<F>(app: &App, name: &'static str, work: fn(App) -> F) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let host = app.clone();
    app.tasks.spawn_supervised(name, move || work(host.clone()))
}

/// Serves one listener until `close` is `true`.
pub async fn listen(
    app: &App,
    listener: Listener,
    routes: Vec<Route>,
    close: watch::Receiver<bool>,
) {
    let (name, router) = (routes::listener_name(&routes), routes::router(app, routes));
    listener.serve(&app.server, name, router, close).await;
}

async fn save_api_log(app: App) {
    let buffer = app.slot::<LogBuffer<CompletedRequest>>().clone();
    save_repeatedly(app, buffer, |app| async move { requests::flush(&app).await }.boxed()).await;
}

async fn save_call_log(app: App) {
    let buffer = app.slot::<LogBuffer<LoggedCall>>().clone();
    save_repeatedly(app, buffer, |app| async move { calls::flush(&app).await }.boxed()).await;
}

async fn release_unused(app: App) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        app.rate_limits.prune();
        app.store.close_idle();
    }
}

async fn refresh_statistics(app: App) {
    loop {
        tokio::time::sleep(STATISTICS_INTERVAL).await;
        if let Err(error) = app.store.refresh_statistics().await {
            tracing::error!(%error, "statistics could not be refreshed");
            tokio::time::sleep(STATISTICS_RETRY).await;
        }
    }
}

/// Adds to balances and totals what PostgreSQL has inserted as deltas.
async fn run_folds(app: App) {
    loop {
        tokio::time::sleep(FOLD_INTERVAL).await;
        if let Err(error) = wallet::fold(&app).await {
            tracing::error!(error = %error.chain(), "ledger balances could not be folded");
        }
        if let Err(error) = totals::fold(&app).await {
            tracing::error!(error = %error.chain(), "totals of lists could not be folded");
        }
    }
}

async fn run_sweeps(app: App) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        for sweep in app.tables.sweeps {
            if let Err(error) = sweep(app.clone()).await {
                tracing::error!(error = %error.chain(), "expired rows could not be deleted");
            }
        }
    }
}
