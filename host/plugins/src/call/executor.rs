//! Executes calls: each run has a fresh instance that ends at `http.send`; the next run
//! re-executes.
//!
//! `outcome::with_certainty` decides whether a failed call may have had an effect. `Progress::sent`
//! is set before bytes can leave, and reset only if it is certain that none did.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures::FutureExt;
use tokio::sync::{Mutex, Semaphore};
use tracing::Instrument;
use wasmtime::{Engine, component::Linker};

use super::{
    log::CallLog,
    outcome::{failure_reason, measurements, with_certainty},
    send::reserve_memory,
};
use crate::metrics::{self, PluginMetrics};
use crate::{
    Call, CallError, Fault, FaultCategory, NotificationRefusal, Plugin, PluginHandle, PluginReply,
    contract::v1,
    limits::{
        breaker::CircuitBreakers,
        bulkhead::{Bulkhead, MemoryBudget},
        cpu::{CpuExhausted, CpuMeter, interrupt_guests},
        cpu_throttle::{CpuPermits, cpu_permits, throttled},
        fair_semaphore::{FairPermit, FairSemaphore},
    },
    runtime::{
        cache::Cache,
        engine::{self, Limits, State},
        output::prepend_output,
        progress::Progress,
        session::{Grant, HttpRequest, Journal, JournalEntry, Session},
        transcript::Recorder,
    },
};
use tollhouse_platform::{
    clock::Clock,
    outbound::egress::{Egress, Script},
    random::Random,
};

/// State shared by all plugin calls.
#[derive(Clone)]
pub struct CallExecutor {
    pub engine: Engine,
    pub linker: Linker<State>,
    pub limits: Limits,
    /// Instance slots of the host. Calls queue here, because an exhausted pool returns an error.
    pub slots: Arc<FairSemaphore>,
    /// Serializes compilations, because each may use all cores and much memory.
    pub compiling: Arc<Mutex<()>>,
    pub metrics: PluginMetrics,
    pub egress: Egress,
    cache: Arc<Cache>,
    /// Circuit breakers. `None` if a script responds, because its failures are deliberate.
    pub breakers: Option<Arc<CircuitBreakers>>,
    /// Recorder of calls; unset if calls are not recorded.
    pub recorder: OnceLock<Recorder>,
    /// The log of calls; unset if calls are not logged.
    pub log: OnceLock<CallLog>,
    /// CPU permits for throttled calls.
    cpu_permits: Arc<Semaphore>,
    /// Makes all running guests yield.
    interrupt: Arc<dyn Fn() + Send + Sync>,
    pub clock: Clock,
    pub random: Random,
}

#[expect(clippy::large_enum_variant, reason = "one per run, which is matched at once")]
enum RunOutcome {
    Done(Result<PluginReply, Fault>),
    Suspended(HttpRequest, Box<Session>),
    /// Rejected before it began, because the queue is full or the wait was too long.
    Rejected,
    /// Stopped because other calls use the plugin's memory budget.
    MemoryBudgetFull(Box<Session>),
    Failed(String),
}

impl CallExecutor {
    pub fn new(
        limits: Limits,
        egress: Egress,
        clock: Clock,
        random: Random,
    ) -> wasmtime::Result<CallExecutor> {
        let engine = engine::new(&limits)?;
        let metrics = PluginMetrics::default();
        let (instances, interrupted) = (limits.instances as usize, engine.clone());
        Ok(CallExecutor {
            linker: v1::linker(&engine)?,
            slots: Arc::new(FairSemaphore::new(instances, instances)),
            compiling: Arc::default(),
            engine,
            limits,
            breakers: (!egress.is_scripted()).then(Arc::default),
            recorder: OnceLock::new(),
            log: OnceLock::new(),
            egress,
            cache: Arc::new(Cache::new(metrics.clone())),
            metrics,
            cpu_permits: Arc::new(Semaphore::new(cpu_permits())),
            interrupt: Arc::new(move || interrupt_guests(&interrupted)),
            clock,
            random,
        })
    }

    /// Makes a call. A call with n requests takes n + 1 runs.
    pub async fn call(
        &self,
        called: &PluginHandle,
        call: &Call,
        grant: Arc<Grant>,
        progress: &mut Progress,
    ) -> Result<PluginReply, CallError> {
        let (PluginHandle { plugin, bulkhead, company, .. }, function) = (called, call.function());
        if self.egress.is_closed() {
            return Err(rejection(Fault::EGRESS_CLOSED, "the host runs with no_jobs", CLOSED_S));
        }
        let Some(_call_permit) = bulkhead.try_begin_call(company) else {
            return Err(rejection("busy", TOO_MANY_CALLS, BUSY_S));
        };
        // Anyone who knows a webhook's URL can send to it, so failures count against no company.
        let unauthenticated = call.is_notification();
        let is_probe = self.check_health(plugin, company, unauthenticated)?;
        let _counted = plugin.meter.begin_call();
        let began = Instant::now();
        let span =
            metrics::call_span(&plugin.name, plugin.meter.version(), &plugin.digest, function);
        let meter = progress.cpu.clone();
        let work = self.run_to_completion(called, call, grant, progress);
        let work = meter.count(work.instrument(span.clone()));
        let result = match tokio::time::timeout(self.limits.wall_clock, work).await {
            Ok(result) => result,
            Err(_) => {
                progress.timed_out = true;
                Err("the call exceeded its time limit".to_owned())
            }
        };
        progress.usage.cpu = meter.used();
        match progress.rejected {
            _ if unauthenticated => {}
            true if is_probe => plugin.health.breakers.abandon_probe(company, self.clock.now()),
            true => {}
            false => self.record_health(plugin, company, result.is_err() && !progress.timed_out),
        }
        let result = with_certainty(result, progress);
        let measured = measurements(&result, progress, began.elapsed());
        plugin.meter.observe(function, &measured);
        metrics::record_call(&span, &measured, progress.usage.requests);
        if let Err(CallError { fault, .. }) = &result
            && matches!(fault.category, FaultCategory::Misconfigured | FaultCategory::Other)
        {
            let fault_message = if call.is_personal() { "" } else { &*fault.message };
            let (plugin, code) = (&*plugin.label, &*fault.code);
            tracing::error!(
                alarm = "plugin",
                plugin,
                function,
                code,
                fault_message,
                "plugin call requires attention"
            );
        }
        tracing::debug!(
            plugin = &*plugin.label,
            function,
            ok = result.is_ok(),
            runs = progress.usage.runs,
            requests = progress.usage.requests,
            cpu_us = progress.usage.cpu.as_micros() as u64,
            duration_us = began.elapsed().as_micros() as u64,
            "plugin call"
        );
        result
    }

    /// Checks whether the plugin may be called. `Ok(true)`: the call is the half-open probe.
    fn check_health(
        &self,
        plugin: &Plugin,
        company: &str,
        unauthenticated: bool,
    ) -> Result<bool, CallError> {
        if !plugin.health.is_healthy() {
            let message = "this version is in quarantine after repeated failures";
            return Err(rejection("quarantined", message, QUARANTINED_S));
        }
        plugin.health.admit(company, unauthenticated, self.clock.now()).map_err(|seconds| {
            let message = "calls of this company failed repeatedly";
            rejection("circuit-open", message, seconds)
        })
    }

    /// Records whether a call broke the plugin, and raises an alarm if this triggers quarantine.
    fn record_health(&self, plugin: &Plugin, company: &str, failed: bool) {
        if self.breakers.is_some() && plugin.health.record(company, failed, self.clock.now()) {
            let plugin = &*plugin.label;
            tracing::error!(
                alarm = "quarantine",
                plugin,
                "plugin version is in quarantine after repeated failures; it is not called until it is activated again"
            );
        }
    }

    /// Executes the runs of a call. The outer `Err` is the failure of the plugin, for operators.
    async fn run_to_completion(
        &self,
        called: &PluginHandle,
        call: &Call,
        grant: Arc<Grant>,
        progress: &mut Progress,
    ) -> Result<Result<PluginReply, Fault>, String> {
        let PluginHandle { plugin, bulkhead, company, .. } = called;
        let memory = bulkhead.memory_of(company);
        let deadline = Instant::now() + self.limits.wall_clock;
        let seed = u64::from_le_bytes(self.random.bytes());
        let mut journal = Journal::new(seed, self.random.bytes(), self.clock.now());
        let mut reserved = Vec::new();
        loop {
            if progress.cpu.exceeds(self.limits.cpu) {
                return Err(CpuExhausted.to_string()); // used by the host between two runs
            }
            let label = plugin.label.clone();
            let session = Session::new(journal, grant.clone(), label, self.cache.clone());
            let (request, session) = match self.run(called, &memory, call, session, progress).await
            {
                RunOutcome::Done(reply) => return Ok(redact(reply, &grant)),
                RunOutcome::Failed(reason) => return Err(reason),
                RunOutcome::MemoryBudgetFull(session) if progress.usage.requests > 0 => {
                    // Rejecting a call that has sent requests would leave its outcome unknown.
                    tokio::time::sleep(MEMORY_RETRY_DELAY).await;
                    journal = session.journal;
                    continue;
                }
                RunOutcome::Rejected | RunOutcome::MemoryBudgetFull(_) => {
                    return Ok(Err(reject(progress)));
                }
                RunOutcome::Suspended(request, session) => (request, session),
            };
            progress.usage.requests += 1;
            if progress.usage.requests > self.limits.requests {
                return Err("the plugin exceeded its limit of requests".to_owned());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let response = self.send(plugin, &request, &session, left, progress).await?;
            let response = reserve_memory(&memory, &mut reserved, &request, response, progress);
            journal = session.journal;
            journal.entries.push(JournalEntry::Http(request, response));
        }
    }

    async fn run(
        &self,
        PluginHandle { plugin, bulkhead, company, .. }: &PluginHandle,
        memory: &MemoryBudget,
        call: &Call,
        session: Session,
        progress: &mut Progress,
    ) -> RunOutcome {
        let has_begun = progress.usage.runs > 0;
        let Some(_permits) = self.acquire_instance(bulkhead, company, has_begun).await else {
            return RunOutcome::Rejected;
        };
        progress.usage.runs += 1;
        let (budget, meter) = (memory.clone(), progress.cpu.clone());
        let mut store = engine::store(&self.engine, &self.limits, budget, session, meter.clone());
        let run = async {
            let instance = plugin.guest.pre.instantiate_async(&mut store).await?;
            // Boxed, because it is large and the futures of all callers contain it.
            plugin.guest.offers.call(&mut store, &instance, call).boxed().await
        };
        let result = throttled(run, &meter, self.cpu(bulkhead, company)).await;
        let mut state = store.into_data();
        let peak_bytes = &mut progress.usage.peak_bytes;
        *peak_bytes = state.memory.peak_bytes.max(*peak_bytes);
        if let Some(transcript) = &mut progress.transcript {
            state.session.add_to_transcript(transcript);
        }
        let error = match result {
            Ok(reply) => {
                log_output(&mut state, tracing::Level::DEBUG);
                return RunOutcome::Done(reply);
            }
            Err(error) => error,
        };
        if let Some(request) = state.session.pending_request.take() {
            return RunOutcome::Suspended(request, Box::new(state.session));
        }
        if state.memory.budget_exhausted {
            return RunOutcome::MemoryBudgetFull(Box::new(state.session));
        }
        // Panic messages.
        let level = if call.is_personal() { tracing::Level::DEBUG } else { tracing::Level::WARN };
        let wrote = log_output(&mut state, level);
        // With scripted responses, the output is for the author and not personal.
        let wrote = if self.breakers.is_none() { wrote } else { String::new() };
        RunOutcome::Failed(prepend_output(&wrote, failure_reason(&error, &state)))
    }

    /// Acquires an instance permit of the plugin and one of the host. `None`: a call that has not
    /// begun finds the queue full, or has waited for half of its wall-clock limit.
    async fn acquire_instance<'c>(
        &'c self,
        bulkhead: &'c Bulkhead,
        company: &Arc<str>,
        has_begun: bool,
    ) -> Option<[FairPermit<'c>; 2]> {
        let taken = async {
            let of_plugin = bulkhead.acquire_instance(company, has_begun).await?;
            Some([of_plugin, self.acquire_slot(company, has_begun).await])
        };
        match has_begun {
            true => taken.await,
            false => tokio::time::timeout(self.limits.wall_clock / 2, taken).await.ok()?,
        }
    }

    async fn acquire_slot(&self, company: &Arc<str>, has_begun: bool) -> FairPermit<'_> {
        let waiting = match self.slots.try_acquire_or_wait(company, has_begun) {
            Ok(slot) => return slot,
            Err(waiting) => waiting,
        };
        let began = Instant::now();
        let slot = waiting.permit().await;
        self.metrics.observe_instance_wait(began.elapsed());
        slot
    }

    fn cpu<'c>(&'c self, bulkhead: &'c Bulkhead, company: &'c Arc<str>) -> CpuPermits<'c> {
        let (plugin, host) = (&bulkhead.cpu, &*self.cpu_permits);
        CpuPermits { plugin, company, host, interrupt: &*self.interrupt }
    }

    /// Returns a copy whose requests get responses from a script and whose metrics are separate.
    pub fn with_script(&self, script: Arc<Script>) -> CallExecutor {
        let metrics = PluginMetrics::default();
        CallExecutor {
            egress: self.egress.with_script(script),
            breakers: None,
            recorder: OnceLock::new(),
            log: OnceLock::new(),
            cache: Arc::new(Cache::new(metrics.clone())),
            metrics,
            ..self.clone()
        }
    }

    /// Instantiates a component once, for admission. It waits for a slot however busy the host is.
    pub async fn instantiate_trial(&self, plugin: &Plugin) -> Result<(), String> {
        let company = Arc::default();
        let _slot = self.slots.acquire(&company, false).await;
        let (label, journal) = (plugin.label.clone(), Journal::new(0, [0; 32], self.clock.now()));
        let session = Session::new(journal, Arc::default(), label, self.cache.clone());
        let (bulkhead, meter) = (Bulkhead::new(&self.limits), Arc::<CpuMeter>::default());
        let budget = bulkhead.memory_of(&company).as_ref().clone();
        let mut store = engine::store(&self.engine, &self.limits, budget, session, meter.clone());
        let starting = plugin.guest.pre.instantiate_async(&mut store);
        let starting = throttled(starting, &meter, self.cpu(&bulkhead, &company));
        let instance = tokio::time::timeout(self.limits.wall_clock, meter.count(starting))
            .await
            .map_err(|_| "the component took too long to start")?
            .map_err(|error| format!("the component does not start: {error}"))?;
        plugin.guest.offers.check(&mut store, &instance)
    }
}

/// Delay before a run that lacked memory is repeated.
const MEMORY_RETRY_DELAY: Duration = Duration::from_millis(20);
const TOO_MANY_CALLS: &str = "too many calls of this plugin, or of this company, are in progress";
const BUSY_S: u32 = 1;
const QUARANTINED_S: u32 = 60;
const CLOSED_S: u32 = 60;

/// Redacts secrets from texts that are logged: the plugin may have seen some in a webhook.
fn redact(reply: Result<PluginReply, Fault>, grant: &Grant) -> Result<PluginReply, Fault> {
    match reply {
        Err(fault) => Err(grant.redact_fault(fault)),
        Ok(PluginReply::Parsed(Err(NotificationRefusal::Malformed(why)))) => {
            let refusal = NotificationRefusal::Malformed(grant.redact(&why));
            Ok(PluginReply::Parsed(Err(refusal)))
        }
        Ok(reply) => Ok(reply),
    }
}

/// Marks the call as rejected by the host, and returns the fault.
fn reject(progress: &mut Progress) -> Fault {
    (progress.retry_after_s, progress.rejected) = (Some(BUSY_S), true);
    Fault::new(FaultCategory::Unavailable, "busy", TOO_MANY_CALLS)
}

/// The error of a call that was rejected before it began.
fn rejection(code: &str, message: &str, retry_after_s: u32) -> CallError {
    let fault = Fault::new(FaultCategory::Unavailable, code, message);
    CallError { retry_after_s: Some(retry_after_s), ..CallError::not_done(fault) }
}

/// Logs and returns what the guest wrote to standard output and standard error.
fn log_output(state: &mut State, level: tracing::Level) -> String {
    let output = String::from_utf8_lossy(&state.output.contents()).into_owned();
    if !output.is_empty() {
        state.session.log(level, &output);
    }
    output
}
