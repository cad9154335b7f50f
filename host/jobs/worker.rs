//! Running jobs: in the background of a server, and by hand for tests and for a clock that is advanced.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use tokio::sync::{Notify, OwnedRwLockReadGuard, RwLock, Semaphore};
use tracing::Instrument;

use super::{Handler, Job, LEASE_SECONDS, Next, backoff, store};
use crate::{
    app::App,
    clock::Timestamp,
    error::{Error, Result, panicked},
    telemetry::{JobMetrics, JobOutcome, spans},
};

/// Jobs of a kind that run at once on this host.
const AT_ONCE: usize = 64;
/// How long other hosts' jobs may go unnoticed.
const POLL: Duration = Duration::from_secs(1);

/// What the workers of one host share.
pub struct Workers {
    pub metrics: JobMetrics,
    /// Whether this host claims jobs.
    pub enabled: bool,
    kinds: BTreeMap<&'static str, Kind>,
    /// A kind that was full has a slot again.
    freed: Notify,
    /// Held by whoever runs jobs; taken alone to move time.
    moving: Arc<RwLock<()>>,
}

struct Kind {
    handler: Handler,
    slots: Arc<Semaphore>,
}

impl Workers {
    #[must_use]
    pub fn new(handlers: &[(&'static str, Handler)]) -> Workers {
        let kind = |handler| Kind { handler, slots: Arc::new(Semaphore::new(AT_ONCE)) };
        let metrics = JobMetrics::default();
        metrics.enabled.set(1);
        Workers {
            metrics,
            enabled: true,
            kinds: handlers.iter().map(|(name, handler)| (*name, kind(*handler))).collect(),
            freed: Notify::new(),
            moving: Arc::default(),
        }
    }

    /// The same, which claim no job: what is due waits for other hosts.
    #[must_use]
    pub fn disabled(self) -> Workers {
        self.metrics.enabled.set(0);
        Workers { enabled: false, ..self }
    }

    /// Every kind that there is.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.keys().copied()
    }
}

/// Runs jobs as they become due, for as long as the server lives.
pub async fn work(app: App) {
    loop {
        let woken = app.store.jobs_woken();
        tokio::pin!(woken);
        woken.as_mut().enable();
        let wait = match start_due(&app).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(error = %error.chain(), "jobs could not be claimed");
                POLL
            }
        };
        tokio::select! {
            () = woken => {}
            () = app.workers.freed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Starts what is due and has slots; answers how long to wait for more.
pub async fn start_due(app: &App) -> Result<Duration> {
    loop {
        let running = app.workers.moving.clone().read_owned().await;
        let now = app.clock.now();
        let next = next_due(app).await?;
        let free: Vec<(&'static str, usize)> = next
            .iter()
            .filter(|(_, at)| *at <= now)
            .map(|(kind, _)| (*kind, app.workers.kinds[kind].slots.available_permits()))
            .filter(|(_, free)| *free > 0)
            .collect();
        if free.is_empty() {
            let later = next.iter().filter(|(_, at)| *at > now).map(|(_, at)| at.0 - now.0).min();
            let ms = later.and_then(|ms| u64::try_from(ms).ok());
            return Ok(ms.map_or(POLL, |ms| Duration::from_millis(ms).min(POLL)));
        }
        // Claimed to the end, even if the host stops now: a job that nobody begins would be leased all the same.
        let claim = app.tasks.spawn(start_claimed(app.clone(), free, running));
        if claim.await.map_err(Error::internal)?? == 0 {
            // What is due is locked by another transaction: asking again at once would only burn time.
            return Ok(POLL);
        }
    }
}

/// When the next job of each kind that this host knows is due.
async fn next_due(app: &App) -> Result<Vec<(&'static str, Timestamp)>> {
    let next = app.store.select(async |tx| store::next_due(tx).await).await?;
    let known = |(kind, at): (String, Timestamp)| {
        app.workers.kinds.get_key_value(&*kind).map(|(kind, _)| (*kind, at))
    };
    Ok(next.into_iter().filter_map(known).collect())
}

/// Answers how many jobs were started.
async fn start_claimed(
    app: App,
    free: Vec<(&'static str, usize)>,
    running: OwnedRwLockReadGuard<()>,
) -> Result<usize> {
    let running = Arc::new(running);
    let jobs = claim(&app, free).await?;
    let count = jobs.len();
    for job in jobs {
        let slots = app.workers.kinds[&*job.kind].slots.clone();
        let slot = slots.clone().acquire_owned().await.map_err(Error::internal)?;
        let (app, running) = (app.clone(), running.clone());
        tokio::spawn(async move {
            run(&app, job).await;
            let was_full = slots.available_permits() == 0;
            drop((slot, running));
            if was_full {
                app.workers.freed.notify_one();
            }
        });
    }
    Ok(count)
}

/// Up to so many of each of these kinds; none on a host whose workers are disabled.
async fn claim(app: &App, most: Vec<(&'static str, usize)>) -> Result<Vec<Job>> {
    if !app.workers.enabled {
        return Ok(Vec::new());
    }
    let now = app.clock.now();
    let (lease, times) = (app.random.token(""), [now, now.plus_seconds(LEASE_SECONDS)]);
    let claimed = app.store.write(async move |tx| -> Result<_> {
        let mut jobs = Vec::new();
        for (kind, most) in most {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            jobs.extend(store::claim(tx, kind, &lease, times, most).await?);
        }
        Ok(jobs)
    });
    claimed.await
}

async fn run(app: &App, job: Job) {
    let next = measured(app, &job).await;
    let now = app.clock.now();
    let (next, failures) = match next {
        Ok(next) => (next, 0),
        Err(error) => {
            let (kind, subject) = (&*job.kind, &*job.subject);
            tracing::error!(kind, subject, error = %error.chain(), "job failed");
            (Next::At(backoff(now, job.failures)), job.failures + 1)
        }
    };
    let ended = app.store.write(async move |tx| match next {
        Next::Done => store::finish(tx, &job, now).await,
        Next::At(at) => store::reschedule(tx, &job, at, now, failures).await,
    });
    if let Err(error) = ended.await {
        tracing::error!(%error, "a job's end was not recorded; its lease will end");
    }
}

async fn measured(app: &App, job: &Job) -> Result<Next> {
    let Some((kind, Kind { handler, .. })) = app.workers.kinds.get_key_value(&*job.kind) else {
        return Err(Error::internal("no handler for this kind of job"));
    };
    let (metrics, began) = (&app.workers.metrics, Instant::now());
    let late_ms = u64::try_from(app.clock.now().0 - job.due_at.0).unwrap_or(0);
    metrics.began(kind, Duration::from_millis(late_ms));
    let span = spans::job(kind, job.failures);
    let run = AssertUnwindSafe(handler(app.for_operation(), job.clone())).catch_unwind();
    let run = run.instrument(tracing::info_span!("job", kind, subject = job.subject));
    let next = run.instrument(span.clone()).await;
    let next = next.unwrap_or_else(|panic| Err(panicked(panic)));
    let outcome = match &next {
        Ok(Next::Done) => JobOutcome::Done,
        Ok(Next::At(_)) => JobOutcome::Again,
        Err(_) => JobOutcome::Failed,
    };
    if outcome == JobOutcome::Failed {
        spans::failed(&span);
    }
    metrics.ended(kind, outcome, began.elapsed());
    next
}

/// Runs what is due, and what becomes due by that, until nothing is; answers how many runs that took.
pub async fn run_due(app: &App) -> Result<usize> {
    let mut runs = 0;
    loop {
        let jobs = claim(app, app.workers.kinds().map(|kind| (kind, AT_ONCE)).collect()).await?;
        if jobs.is_empty() {
            return Ok(runs);
        }
        runs += jobs.len();
        futures::future::join_all(jobs.into_iter().map(|job| run(app, job))).await;
    }
}

/// Resolves when no job of this host is under way any more.
pub async fn under_way(app: &App) {
    drop(app.workers.moving.write().await);
}

/// Development and tests: moves time forward, from one due job to the next, and answers after all that became due, and what
/// that caused, has run.
///
/// 403 on a host whose workers are disabled: what becomes due there stays due.
pub async fn advance(app: &App, seconds: i64) -> Result<()> {
    if !app.workers.enabled {
        return Err(Error::Forbidden("a host with no_jobs does not move the clock".to_owned()));
    }
    let _alone = app.workers.moving.write().await;
    let target = app.clock.now().plus_seconds(seconds);
    loop {
        settle(app).await?;
        match next_due(app).await?.into_iter().map(|(_, at)| at).min() {
            Some(at) if at <= target => app.clock.advance_to(at),
            _ if app.clock.now() < target => app.clock.advance_to(target),
            _ => return Ok(()),
        }
    }
}

/// Jobs, and what other parts of a development environment do by the same clock, until all is quiet.
async fn settle(app: &App) -> Result<()> {
    loop {
        let runs = run_due(app).await?;
        let beside = match &app.companion {
            Some(companion) => companion().await,
            None => 0,
        };
        if runs + beside == 0 {
            return Ok(());
        }
    }
}
