//! Runs jobs: in the background of a server, or explicitly for tests and clock advances.

use std::{
    collections::BTreeMap,
    ops::Deref,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use tokio::sync::{Notify, OwnedRwLockReadGuard, RwLock, Semaphore};
use tracing::Instrument;

use super::{Handler, Job, JobHost, JobResult, LEASE_SECONDS, backoff, metrics::JobMetrics, store};
use crate::{
    background::tasks::Tasks,
    clock::{Clock, Timestamp},
    error::{Error, Result, from_panic},
    limits::owner::on_behalf_of,
    random::Random,
    store::Store,
    telemetry::spans,
};

/// Maximum number of concurrent runs per kind on this host.
const MAX_CONCURRENT_RUNS: usize = 64;
/// Maximum delay before jobs of other hosts are noticed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The state that the workers of one host share.
pub struct Workers<H> {
    pub metrics: JobMetrics,
    parts: WorkerParts,
    kinds: BTreeMap<&'static str, Kind<H>>,
    /// Notified when a kind without a free slot has one again.
    slot_freed: Notify,
    /// Read-locked while jobs run; write-locked while the clock is advanced.
    clock_lock: Arc<RwLock<()>>,
}

/// The parts of a host that job runs need.
pub struct WorkerParts {
    /// True if this host claims jobs; otherwise due jobs wait for other hosts.
    pub enabled: bool,
    pub store: Store,
    pub clock: Clock,
    pub random: Random,
    pub tasks: Tasks,
    /// Simulators of a development environment, which follow the same clock.
    pub simulators: Option<RunSimulators>,
}

/// Does the work that is due, and returns its amount.
pub type RunSimulators = Box<dyn Fn() -> BoxFuture<'static, usize> + Send + Sync>;

struct Kind<H> {
    handler: Handler<H>,
    slots: Arc<Semaphore>,
}

impl<H: JobHost> Workers<H> {
    pub fn new(handlers: &[(&'static str, Handler<H>)], parts: WorkerParts) -> Workers<H> {
        let kind = |handler| Kind { handler, slots: Arc::new(Semaphore::new(MAX_CONCURRENT_RUNS)) };
        let metrics = JobMetrics::default();
        metrics.enabled.set(parts.enabled.into());
        Workers {
            metrics,
            parts,
            kinds: handlers.iter().map(|(name, handler)| (*name, kind(*handler))).collect(),
            slot_freed: Notify::new(),
            clock_lock: Arc::default(),
        }
    }

    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.keys().copied()
    }
}

impl<H> Deref for Workers<H> {
    type Target = WorkerParts;

    fn deref(&self) -> &WorkerParts {
        &self.parts
    }
}

/// Runs jobs as they become due. Never returns.
pub async fn run_workers<H: JobHost>(host: H) {
    loop {
        let woken = host.workers().store.worker_wakeup();
        tokio::pin!(woken);
        woken.as_mut().enable();
        let wait = match start_due(&host).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(error = %error.chain(), "jobs could not be claimed");
                POLL_INTERVAL
            }
        };
        tokio::select! {
            () = woken => {}
            () = host.workers().slot_freed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Starts due jobs while their kind has free slots. Returns how long to wait for more.
pub async fn start_due<H: JobHost>(host: &H) -> Result<Duration> {
    let workers = host.workers();
    loop {
        let running = workers.clock_lock.clone().read_owned().await;
        let now = workers.clock.now();
        let next = next_due(host).await?;
        let due = next.iter().filter(|(_, at)| *at <= now);
        let free = due.map(|(kind, _)| (*kind, workers.kinds[kind].slots.available_permits()));
        let free: Vec<(&'static str, usize)> = free.filter(|(_, free)| *free > 0).collect();
        if free.is_empty() {
            let waits = next.iter().filter_map(|(_, at)| u64::try_from(at.0 - now.0).ok());
            let wait = waits.filter(|ms| *ms > 0).min().map(Duration::from_millis);
            return Ok(wait.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL));
        }
        // Spawned, to complete even during shutdown: a claimed but unstarted job stays leased.
        let claim = workers.tasks.spawn(claim_and_start(host.clone(), free, running));
        if claim.await.map_err(Error::internal)?? == 0 {
            // Due jobs are locked by another transaction: an immediate retry would waste CPU time.
            return Ok(POLL_INTERVAL);
        }
    }
}

/// Returns when the next job of each kind that this host knows is due.
async fn next_due<H: JobHost>(host: &H) -> Result<Vec<(&'static str, Timestamp)>> {
    let next = host.workers().store.select(async |tx| store::next_due(tx).await).await?;
    let known = |(kind, at): (String, Timestamp)| {
        host.workers().kinds.get_key_value(&*kind).map(|(kind, _)| (*kind, at))
    };
    Ok(next.into_iter().filter_map(known).collect())
}

/// Claims and starts jobs. Returns their number.
async fn claim_and_start<H: JobHost>(
    host: H,
    free: Vec<(&'static str, usize)>,
    running: OwnedRwLockReadGuard<()>,
) -> Result<usize> {
    let running = Arc::new(running);
    let jobs = claim(&host, free).await?;
    let count = jobs.len();
    for job in jobs {
        let slots = host.workers().kinds[&*job.kind].slots.clone();
        let slot = slots.clone().acquire_owned().await.map_err(Error::internal)?;
        let (host, running) = (host.clone(), running.clone());
        tokio::spawn(async move {
            run(&host, job).await;
            let was_full = slots.available_permits() == 0;
            drop((slot, running));
            if was_full {
                host.workers().slot_freed.notify_one();
            }
        });
    }
    Ok(count)
}

/// Claims up to this many jobs of each kind; none on a host whose workers are disabled.
async fn claim<H: JobHost>(host: &H, most: Vec<(&'static str, usize)>) -> Result<Vec<Job>> {
    let workers = host.workers();
    if !workers.enabled {
        return Ok(Vec::new());
    }
    let now = workers.clock.now();
    let (lease, times) = (workers.random.token(""), [now, now.plus_seconds(LEASE_SECONDS)]);
    let claimed = workers.store.write(async move |tx| -> Result<_> {
        let mut jobs = Vec::new();
        for (kind, most) in most {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            jobs.extend(store::claim(tx, kind, &lease, times, most).await?);
        }
        Ok(jobs)
    });
    claimed.await
}

async fn run<H: JobHost>(host: &H, job: Job) {
    let next = run_handler(host, &job).await;
    let now = host.workers().clock.now();
    let (next, failures) = match next {
        Ok(next) => (next, 0),
        Err(error) => {
            let (kind, subject) = (&*job.kind, &*job.subject);
            tracing::error!(kind, subject, error = %error.chain(), "job failed");
            (JobResult::RescheduleAt(backoff(now, job.failures)), job.failures + 1)
        }
    };
    let ended = host.workers().store.write(async move |tx| match next {
        JobResult::Done => store::finish(tx, &job, now).await,
        JobResult::RescheduleAt(at) => store::reschedule(tx, &job, at, now, failures).await,
    });
    if let Err(error) = ended.await {
        tracing::error!(%error, "job result was not recorded; the job runs again when its lease expires");
    }
}

async fn run_handler<H: JobHost>(host: &H, job: &Job) -> Result<JobResult> {
    let Some((kind, Kind { handler, .. })) = host.workers().kinds.get_key_value(&*job.kind) else {
        return Err(Error::internal("no handler for this kind of job"));
    };
    let (metrics, began) = (&host.workers().metrics, Instant::now());
    let late_ms = u64::try_from(host.workers().clock.now().0 - job.due_at.0).unwrap_or(0);
    metrics.record_start(kind, Duration::from_millis(late_ms));
    let span = spans::job(kind, job.failures);
    let handle = on_behalf_of((&job.company_id).into(), handler(host.for_operation(), job.clone()));
    let run = AssertUnwindSafe(handle).catch_unwind();
    let run = run.instrument(tracing::info_span!("job", kind, subject = job.subject));
    let next = run.instrument(span.clone()).await;
    let next = next.unwrap_or_else(|panic| Err(from_panic(panic)));
    let outcome = match &next {
        Ok(JobResult::Done) => "done",
        Ok(JobResult::RescheduleAt(_)) => "again",
        Err(_) => {
            spans::mark_failed(&span);
            "failed"
        }
    };
    metrics.record_end(kind, outcome, began.elapsed());
    next
}

/// Runs jobs until none is due. Returns the number of runs.
pub async fn run_due<H: JobHost>(host: &H) -> Result<usize> {
    let mut runs = 0;
    loop {
        let kinds = host.workers().kinds();
        let jobs = claim(host, kinds.map(|kind| (kind, MAX_CONCURRENT_RUNS)).collect()).await?;
        if jobs.is_empty() {
            return Ok(runs);
        }
        runs += jobs.len();
        futures::future::join_all(jobs.into_iter().map(|job| run(host, job))).await;
    }
}

/// Resolves when no job of this host is running.
pub async fn wait_until_idle<H: JobHost>(host: &H) {
    drop(host.workers().clock_lock.write().await);
}

/// Development and tests: advances the clock from one due job to the next. Returns when all due
/// jobs have run and the simulators have no work left. 403 on a host whose workers are disabled.
pub async fn advance<H: JobHost>(host: &H, seconds: i64) -> Result<()> {
    if !host.workers().enabled {
        return Err(Error::Forbidden("a host with no_jobs cannot advance the clock".to_owned()));
    }
    let _alone = host.workers().clock_lock.write().await;
    let clock = &host.workers().clock;
    let target = clock.now().plus_seconds(seconds);
    loop {
        let mut runs = run_due(host).await?;
        if let Some(run_simulators) = &host.workers().simulators {
            runs += run_simulators().await;
        }
        if runs > 0 {
            continue;
        }
        match next_due(host).await?.into_iter().map(|(_, at)| at).min() {
            Some(at) if at <= target => clock.advance_to(at),
            _ if clock.now() < target => clock.advance_to(target),
            _ => return Ok(()),
        }
    }
}
