//! Runs jobs: in the background of a server, or explicitly for tests and clock advances.

use std::{
    collections::BTreeMap,
    ops::Deref,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{Notify, OwnedRwLockReadGuard, RwLock},
    time::timeout,
};
use tracing::Instrument;

use super::{
    Handler, Job, JobHost, JobResult, LISTED_FAILURES, MAX_CRASHES, PARK_AFTER_FAILURES, backoff,
    claim::claim,
    metrics::JobMetrics,
    slots::{QUICK, Slot, Slots},
    store::{self, Rescheduled},
};
use crate::{
    background::tasks::Tasks,
    clock::{Clock, Timestamp},
    error::{Error, Result, from_panic},
    limits::owner::on_behalf_of,
    random::Random,
    store::{Error as StoreError, Store},
    telemetry::spans,
};

/// Maximum length of a stored error.
const MAX_ERROR_CHARS: usize = 1_000;
/// Maximum delay before jobs of other hosts are noticed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Wait between two claims while jobs are due. A claim has a fixed cost, so it should take several.
const CLAIM_DELAY: Duration = Duration::from_millis(2);
/// Maximum wait after a claim of all jobs that are due: the next one of a claimed kind may be due
/// soon.
const WAIT_AFTER_CLAIM: Duration = Duration::from_millis(20);

/// The state that the workers of one host share.
pub struct Workers<H> {
    pub metrics: JobMetrics,
    parts: WorkerParts,
    pub(super) kinds: BTreeMap<&'static str, Kind<H>>,
    /// Notified when a slot is released for which a due job may wait.
    slot_freed: Arc<Notify>,
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
    /// Kinds of jobs that need not be retried for ever: they are parked after a day of failures.
    pub parked_kinds: &'static [&'static str],
    /// Simulators of a development environment, which follow the same clock.
    pub simulators: Option<RunSimulators>,
}

/// Does the work that is due, and returns its amount.
pub type RunSimulators = Box<dyn Fn() -> BoxFuture<'static, usize> + Send + Sync>;

pub(super) struct Kind<H> {
    handler: Handler<H>,
    pub(super) slots: Arc<Slots>,
}

impl<H: JobHost> Workers<H> {
    pub fn new(handlers: &[(&'static str, Handler<H>)], parts: WorkerParts) -> Workers<H> {
        let slot_freed = Arc::new(Notify::new());
        let slots = || Arc::new(Slots::new(slot_freed.clone()));
        let kind = |handler| Kind { handler, slots: slots() };
        let metrics = JobMetrics::default();
        metrics.enabled.set(parts.enabled.into());
        Workers {
            metrics,
            parts,
            kinds: handlers.iter().map(|(name, handler)| (*name, kind(*handler))).collect(),
            slot_freed,
            clock_lock: Arc::default(),
        }
    }

    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.keys().copied()
    }

    /// Returns the number of runs in progress on this host.
    pub fn running(&self) -> usize {
        self.kinds.values().map(|kind| kind.slots.running()).sum()
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

/// Starts the due jobs for which slots are free. Returns how long to wait before the next call.
pub async fn start_due<H: JobHost>(host: &H) -> Result<Duration> {
    let workers = host.workers();
    loop {
        let running = workers.clock_lock.clone().read_owned().await;
        let now = workers.clock.now();
        let next = next_due(host).await?;
        let is_due = |kind: &str| next.iter().any(|(due, at)| *due == kind && *at <= now);
        for (kind, Kind { slots, .. }) in &workers.kinds {
            slots.set_wanted(is_due(kind));
        }
        let due = workers.kinds.iter().filter(|(kind, of)| is_due(kind) && !of.slots.are_full());
        let due: Vec<&'static str> = due.map(|(kind, _)| *kind).collect();
        let waits = next.iter().filter_map(|(_, at)| u64::try_from(at.0 - now.0).ok());
        let wait = waits.filter(|ms| *ms > 0).min().map(Duration::from_millis);
        let wait = wait.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL);
        if due.is_empty() {
            return Ok(wait);
        }
        // Spawned, to complete even during shutdown: a claimed but unstarted job stays leased.
        let claim = workers.tasks.spawn(claim_and_start(host.clone(), due.clone(), running));
        let claimed = claim.await.map_err(Error::internal).flatten();
        if claimed.is_err() {
            due.iter().for_each(|kind| workers.kinds[kind].slots.set_wanted(true));
        }
        if claimed? == 0 {
            // Due jobs wait for a slot, whose release wakes this worker, or are locked by another
            // transaction: an immediate retry would waste CPU time.
            return Ok(wait);
        }
        // Runs end during the wait, so that the next claim takes several jobs.
        tokio::time::sleep(CLAIM_DELAY).await;
        if !due.iter().any(|kind| workers.kinds[kind].slots.are_wanted()) {
            return Ok(wait.min(WAIT_AFTER_CLAIM));
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
    kinds: Vec<&'static str>,
    running: OwnedRwLockReadGuard<()>,
) -> Result<usize> {
    let running = Arc::new(running);
    let jobs = claim(&host, kinds).await?;
    let count = jobs.len();
    for (job, slot) in jobs {
        let (host, running) = (host.clone(), running.clone());
        tokio::spawn(async move {
            run(&host, job, slot).await;
            drop(running);
        });
    }
    Ok(count)
}

async fn run<H: JobHost>(host: &H, job: Job, mut slot: Slot) {
    if job.crashes >= MAX_CRASHES {
        return park(host, job).await;
    }
    let began = Instant::now();
    let next = {
        let mut run = pin!(run_handler(host, &job));
        match timeout(QUICK, &mut run).await {
            Ok(next) => next,
            Err(_) => {
                slot.move_to_slow_lane();
                run.await
            }
        }
    };
    let is_done = matches!(next, Ok(JobResult::Done | JobResult::Finished));
    slot.record(is_done && began.elapsed() <= QUICK);
    if let Err(error) = record(host, job, next).await {
        tracing::error!(%error, "job result was not recorded; the job runs again when its lease expires");
    }
}

/// Records the result of a run.
async fn record<H: JobHost>(host: &H, job: Job, next: Result<JobResult>) -> Result<(), StoreError> {
    let (store, now) = (&host.workers().store, host.workers().clock.now());
    let again = |run_at| Rescheduled { run_at, failures: 0, error: None, is_parked: false };
    let next = match next {
        Ok(JobResult::Finished) => return Ok(()),
        Ok(JobResult::RescheduleAt(at)) => again(at),
        Ok(JobResult::PostponeTo(at)) => Rescheduled { failures: job.failures, ..again(at) },
        Ok(JobResult::Done) => {
            let done = job.clone();
            match store.write(async move |tx| store::finish(tx, &done).await).await {
                // It was enqueued again.
                Err(StoreError::NotOneRow) => again(now),
                finished => return finished,
            }
        }
        Err(error) => failed(host, &job, now, &error),
    };
    store.write(async move |tx| store::reschedule(tx, &job, now, next).await).await
}

/// Logs a failure. Returns when the job is retried, if it is.
fn failed<H: JobHost>(host: &H, job: &Job, now: Timestamp, error: &Error) -> Rescheduled {
    let (kind, subject, failures) = (&*job.kind, &*job.subject, job.failures + 1);
    let may_park = host.workers().parked_kinds.contains(&kind);
    let is_parked = may_park && failures >= PARK_AFTER_FAILURES;
    let error = error.chain();
    tracing::error!(kind, subject, failures, is_parked, error, "job failed");
    let error = Some(error.chars().take(MAX_ERROR_CHARS).collect());
    Rescheduled { run_at: backoff(now, job.failures), failures, error, is_parked }
}

/// Parks a claimed job whose last runs did not end before their leases expired.
async fn park<H: JobHost>(host: &H, job: Job) {
    let (kind, subject, crashes) = (job.kind.clone(), job.subject.clone(), job.crashes);
    let now = host.workers().clock.now();
    let next = Rescheduled {
        run_at: now,
        failures: job.failures.max(LISTED_FAILURES),
        error: Some(format!("the lease expired during each of the last {crashes} runs")),
        is_parked: true,
    };
    let store = &host.workers().store;
    let parked = store.write(async move |tx| store::reschedule(tx, &job, now, next).await);
    match parked.await {
        Ok(()) => {
            tracing::error!(kind, subject, crashes, "job was parked: its last runs did not end")
        }
        Err(error) => tracing::error!(%error, "job was not parked; its lease will expire"),
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
        Ok(JobResult::Done | JobResult::Finished) => "done",
        Ok(JobResult::RescheduleAt(_) | JobResult::PostponeTo(_)) => "again",
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
        let jobs = claim(host, host.workers().kinds().collect()).await?;
        if jobs.is_empty() {
            return Ok(runs);
        }
        runs += jobs.len();
        futures::future::join_all(jobs.into_iter().map(|(job, slot)| run(host, job, slot))).await;
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
        run_due(host).await?;
        if let Some(run_simulators) = &host.workers().simulators
            && run_simulators().await > 0
        {
            continue;
        }
        match next_due(host).await?.into_iter().map(|(_, at)| at).min() {
            Some(at) if at <= target => clock.advance_to(at),
            _ if clock.now() < target => clock.advance_to(target),
            _ => return Ok(()),
        }
    }
}
