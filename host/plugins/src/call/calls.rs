//! Executes calls: each run has a fresh instance that ends at `http.send`; the next run
//! re-executes.
//!
//! `judge` decides whether a failed call may have had an effect. `Progress::sent` is set before bytes
//! can leave, and reset only if it is certain that none did. `invalid`, `refused`, `not-found` and
//! `misconfigured` mean "not done", unless a request other than GET and HEAD has no response
//! (`Progress::unanswered`). `unavailable`, `other`, a trap, a limit or a time-out after a request was
//! sent: unknown.

use std::{
    marker::PhantomData,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use tokio::sync::{Mutex, SemaphorePermit};
use tracing::Instrument;
use wasmtime::{
    Engine, Store,
    component::{Component, Instance, Linker},
};

use super::{
    callable::Called,
    outcome::{judge, measured, why},
    send::{Way, check_secrets, hold},
};
use crate::metrics::{self, PluginMetrics};
use crate::{
    CallError, Certainty, Fault, FaultCategory, Kind, Plugin,
    contract::v1::{self, Answer},
    limits::{
        breaker::Breakers,
        bulkhead::{Bulkhead, Held},
        cpu::{CpuExhausted, CpuMeter},
        pace::{Lane, Turns, paced},
        places::Places,
    },
    runtime::{
        cache::Cache,
        engine::{self, Limits, State},
        heard::Recorder,
        output::after_last_words,
        progress::Progress,
        session::{Entry, Grant, HttpRequest, Journal, Session},
    },
};
use tollhouse_platform::{
    clock::Clock,
    outbound::egress::{self, Egress, EgressError, EgressRequest},
    random::Random,
};

/// State shared by all plugin calls.
pub struct Calls {
    pub engine: Engine,
    pub linker: Linker<State>,
    pub limits: Limits,
    /// Instance slots of the host. Calls queue here, because an exhausted pool returns an error.
    pub slots: Arc<Places>,
    /// Serializes compilations, because each may use all cores and much memory.
    compiling: Arc<Mutex<()>>,
    pub metrics: PluginMetrics,
    pub egress: Egress,
    cache: Arc<Cache>,
    /// Circuit breakers; `None` if a script answers requests, because its failures are deliberate.
    pub breakers: Option<Arc<Breakers<Way>>>,
    /// Recorder of calls; unset if calls are not recorded.
    pub recorder: OnceLock<Recorder>,
    /// CPU permits for throttled calls.
    turns: Arc<Turns>,
    pub clock: Clock,
    random: Random,
}

/// An instance that is ready to be called. `'f` is the lifetime of the call's arguments.
pub struct Running<'a, 'f> {
    pub store: &'a mut Store<State>,
    pub instance: &'a Instance,
    arguments: PhantomData<&'a &'f ()>,
}

pub type Invoke<'f, T> =
    dyn for<'a> Fn(Running<'a, 'f>) -> BoxFuture<'a, Answer<T>> + Send + Sync + 'f;

enum Run<T> {
    Done(Result<T, Fault>),
    Waits(HttpRequest, Box<Session>),
    /// Rejected before it began, because the queue is full or the wait was too long.
    TurnedAway,
    /// Stopped because other calls use the plugin's memory budget.
    Starved(Box<Session>),
    Broken(String),
}

impl Calls {
    pub fn new(
        limits: Limits,
        egress: Egress,
        clock: Clock,
        random: Random,
    ) -> wasmtime::Result<Calls> {
        let engine = engine::new(&limits)?;
        let metrics = PluginMetrics::default();
        Ok(Calls {
            linker: v1::linker(&engine)?,
            slots: Arc::new(Places::new(limits.instances as usize)),
            compiling: Arc::default(),
            engine,
            limits,
            breakers: (!egress.is_scripted()).then(Arc::default),
            recorder: OnceLock::new(),
            egress,
            cache: Arc::new(Cache::new(metrics.clone())),
            metrics,
            turns: Arc::default(),
            clock,
            random,
        })
    }

    /// Makes a call. A call with n requests takes n + 1 runs.
    pub async fn call<'f, T>(
        &self,
        called: Called<'_>,
        function: &'static str,
        grant: Arc<Grant>,
        invoke: &Invoke<'f, T>,
        progress: &mut Progress,
    ) -> Result<T, CallError> {
        let Called { plugin, bulkhead, company } = called;
        if self.egress.is_closed() {
            return Err(not_asked(Fault::EGRESS_CLOSED, "the host runs with no_jobs", CLOSED_S));
        }
        let Some(_under_way) = bulkhead.begin() else {
            return Err(not_asked("busy", TOO_MANY, BUSY_S));
        };
        // Anyone who knows a webhook's URL can send to it, so failures count against no company.
        let by_stranger = function == "notifications.parse";
        let is_probe = self.check_health(plugin, company, by_stranger)?;
        let _counted = plugin.meter.begin();
        let began = Instant::now();
        let span =
            metrics::call_span(&plugin.name, plugin.meter.version(), &plugin.digest, function);
        let work = self.run_to_the_end(called, grant, invoke, progress);
        let work = work.instrument(span.clone());
        let result = match tokio::time::timeout(self.limits.wall_clock, work).await {
            Ok(result) => result,
            Err(_) => {
                progress.timed_out = true;
                Err("the call exceeded its time limit".to_owned())
            }
        };
        match progress.turned_away {
            _ if by_stranger => {}
            true if is_probe => plugin.health.was_not_tried(company, self.clock.now()),
            true => {}
            false => self.look_after(plugin, company, result.is_err() && !progress.timed_out),
        }
        let result = judge(result, progress);
        let measured = measured(&result, progress, began.elapsed());
        plugin.meter.observe(function, &measured);
        metrics::called(&span, &measured, progress.used.requests);
        if let Err(CallError { fault, .. }) = &result
            && matches!(fault.category, FaultCategory::Misconfigured | FaultCategory::Other)
        {
            // A register's fault message may contain personal data.
            let is_country = plugin.manifest.kind == Kind::Country;
            let said = if is_country { "" } else { &*fault.message };
            let (plugin, code) = (&*plugin.label, &*fault.code);
            tracing::error!(
                alarm = "plugin",
                plugin,
                function,
                code,
                said,
                "plugin call requires attention"
            );
        }
        tracing::debug!(
            plugin = &*plugin.label,
            function,
            ok = result.is_ok(),
            runs = progress.used.runs,
            requests = progress.used.requests,
            cpu_us = progress.used.cpu.as_micros() as u64,
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
        by_stranger: bool,
    ) -> Result<bool, CallError> {
        if !plugin.health.is_fit() {
            let message = "this version is in quarantine after repeated failures";
            return Err(not_asked("quarantined", message, QUARANTINED_S));
        }
        plugin.health.admit(company, by_stranger, self.clock.now()).map_err(|seconds| {
            let message = "calls of this company failed repeatedly";
            not_asked("circuit-open", message, seconds)
        })
    }

    /// Records whether a call broke the plugin, and raises an alarm if this triggers quarantine.
    fn look_after(&self, plugin: &Plugin, company: &str, broke: bool) {
        if self.breakers.is_some() && plugin.health.saw(company, broke, self.clock.now()) {
            let plugin = &*plugin.label;
            tracing::error!(
                alarm = "quarantine",
                plugin,
                "plugin version is in quarantine after repeated failures; it is not called until it is activated again"
            );
        }
    }

    /// Executes the runs of a call. The outer `Err` says why the plugin broke, for operators.
    async fn run_to_the_end<'f, T>(
        &self,
        called: Called<'_>,
        grant: Arc<Grant>,
        invoke: &Invoke<'f, T>,
        progress: &mut Progress,
    ) -> Result<Result<T, Fault>, String> {
        let plugin = called.plugin;
        let deadline = Instant::now() + self.limits.wall_clock;
        let seed = u64::from_le_bytes(self.random.bytes());
        let mut journal = Journal::new(seed, self.clock.now());
        let mut held = Held::of(&called.bulkhead.memory);
        loop {
            if progress.used.cpu > self.limits.cpu {
                return Err(CpuExhausted.to_string()); // used by the host between two runs
            }
            let label = plugin.label.clone();
            let session = Session::new(journal, grant.clone(), label, self.cache.clone());
            let (request, session) = match self.run(called, session, invoke, progress).await {
                // Faults are logged, and the plugin may have seen secrets in a webhook.
                Run::Done(answer) => return Ok(answer.map_err(|fault| grant.clean(fault))),
                Run::Broken(reason) => return Err(reason),
                Run::Starved(session) if progress.used.requests > 0 => {
                    // Rejecting a call that has sent requests would leave its outcome unknown.
                    tokio::time::sleep(HUNGER).await;
                    journal = session.journal;
                    continue;
                }
                Run::TurnedAway | Run::Starved(_) => return Ok(Err(turned_away(progress))),
                Run::Waits(request, session) => (request, session),
            };
            progress.used.requests += 1;
            if progress.used.requests > self.limits.requests {
                return Err("the plugin exceeded its limit of requests".to_owned());
            }
            check_secrets(&request, &session, &mut progress.used.cpu)?;
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self.send(plugin, &request, &session, left, progress).await;
            let answer = hold(&mut held, &request, answer, progress);
            journal = session.journal;
            journal.entries.push(Entry::Http(request, answer));
        }
    }

    async fn run<'f, T>(
        &self,
        Called { plugin, bulkhead, .. }: Called<'_>,
        session: Session,
        invoke: &Invoke<'f, T>,
        progress: &mut Progress,
    ) -> Run<T> {
        let Some(_places) = self.places(bulkhead, progress.used.runs > 0).await else {
            return Run::TurnedAway;
        };
        let used = &mut progress.used;
        used.runs += 1;
        let (budget, meter) = (bulkhead.memory.clone(), Arc::new(CpuMeter::new(used.cpu)));
        let mut store = engine::store(&self.engine, &self.limits, budget, session, meter.clone());
        let run = async {
            let instance = plugin.guest.pre.instantiate_async(&mut store).await?;
            let arguments = PhantomData;
            invoke(Running { store: &mut store, instance: &instance, arguments }).await
        };
        let lane = Lane { own: &bulkhead.turns, of_all: &self.turns };
        let result = paced(run, &meter, &mut used.cpu, &lane).await;
        let mut state = store.into_data();
        used.peak_bytes = used.peak_bytes.max(state.memory.peak_bytes);
        if let Some(heard) = &mut progress.heard {
            state.session.tell(heard);
        }
        match result {
            Ok(answer) => {
                drop(log_output(&mut state, tracing::Level::DEBUG));
                Run::Done(answer)
            }
            Err(_) if state.session.waiting_for.is_some() => {
                let request = state.session.waiting_for.take();
                Run::Waits(request.expect("the run waits for it"), Box::new(state.session))
            }
            Err(_) if state.memory.starved => Run::Starved(Box::new(state.session)),
            Err(error) => {
                // Panic messages. Those of a register may contain personal data.
                let level = match plugin.manifest.kind {
                    Kind::Country => tracing::Level::DEBUG,
                    Kind::Provider | Kind::Sms => tracing::Level::WARN,
                };
                let wrote = log_output(&mut state, level);
                // With scripted responses, the output is for the author and not personal.
                let wrote = if self.breakers.is_none() { wrote } else { String::new() };
                Run::Broken(after_last_words(&wrote, why(&error, &state)))
            }
        }
    }

    /// Acquires an instance permit of the plugin and one of the host. `None`: a call that has not
    /// begun finds the queue full, or has waited for half of its wall-clock limit.
    async fn places<'c>(
        &'c self,
        bulkhead: &'c Bulkhead,
        has_begun: bool,
    ) -> Option<[SemaphorePermit<'c>; 2]> {
        let taken =
            async { Some([bulkhead.instance(has_begun).await?, self.slot(has_begun).await?]) };
        match has_begun {
            true => taken.await,
            false => tokio::time::timeout(self.limits.wall_clock / 2, taken).await.ok()?,
        }
    }

    async fn slot(&self, has_begun: bool) -> Option<SemaphorePermit<'_>> {
        if let Some(slot) = self.slots.take_free() {
            return Some(slot);
        }
        let began = Instant::now();
        let slot = self.slots.take(has_begun).await?;
        self.metrics.waited(began.elapsed());
        Some(slot)
    }

    /// Returns a copy whose requests are answered by a script and whose metrics are separate.
    pub fn scripted(
        &self,
        script: impl Fn(&EgressRequest) -> Result<egress::EgressResponse, EgressError>
        + Send
        + Sync
        + 'static,
    ) -> Calls {
        self.scripted_at(self.clock.clone(), self.random.clone(), script)
    }

    /// Returns a scripted copy with a clock and randomness of its own.
    pub fn scripted_at(
        &self,
        clock: Clock,
        random: Random,
        script: impl Fn(&EgressRequest) -> Result<egress::EgressResponse, EgressError>
        + Send
        + Sync
        + 'static,
    ) -> Calls {
        let metrics = PluginMetrics::default();
        Calls {
            engine: self.engine.clone(),
            linker: self.linker.clone(),
            limits: self.limits.clone(),
            slots: self.slots.clone(),
            compiling: self.compiling.clone(),
            egress: self.egress.with_script(Arc::new(script)),
            breakers: None,
            recorder: OnceLock::new(),
            turns: self.turns.clone(),
            cache: Arc::new(Cache::new(metrics.clone())),
            metrics,
            clock,
            random,
        }
    }

    /// Instantiates a component once, for admission. It waits for a slot however busy the host is.
    pub async fn try_out(&self, plugin: &Plugin) -> Result<(), String> {
        let _slot = self.slots.take(false).await.ok_or("the engine is closed")?;
        let starting = self.start_once(&plugin.guest, plugin.label.clone());
        let started = tokio::time::timeout(self.limits.wall_clock, starting).await;
        started.unwrap_or_else(|_| Err("the component took too long to start".to_owned()))
    }

    async fn start_once(&self, guest: &v1::Guest, label: Arc<str>) -> Result<(), String> {
        let journal = Journal::new(0, self.clock.now());
        let session = Session::new(journal, Arc::default(), label, self.cache.clone());
        let (bulkhead, meter) = (Bulkhead::new(&self.limits), Arc::<CpuMeter>::default());
        let budget = bulkhead.memory.clone();
        let mut store = engine::store(&self.engine, &self.limits, budget, session, meter.clone());
        let lane = Lane { own: &bulkhead.turns, of_all: &self.turns };
        let starting = guest.pre.instantiate_async(&mut store);
        let instance = paced(starting, &meter, &mut Duration::default(), &lane).await;
        let instance =
            instance.map_err(|error| format!("the component does not start: {error}"))?;
        guest.check(&mut store, &instance)
    }

    /// Returns machine code for a component, from the disk cache if possible.
    pub async fn compile(&self, digest: &str, wasm: &Arc<Vec<u8>>) -> Result<Component, String> {
        crate::runtime::compile::component(
            &self.engine, &self.limits, &self.compiling, digest, wasm,
        )
        .await
    }
}

/// Delay before a run is repeated that lacked memory.
const HUNGER: Duration = Duration::from_millis(20);
const TOO_MANY: &str = "too many calls of this plugin are in progress";
const BUSY_S: u32 = 1;
const QUARANTINED_S: u32 = 60;
const CLOSED_S: u32 = 60;

/// Marks the call as rejected by the host, and returns the fault.
fn turned_away(progress: &mut Progress) -> Fault {
    (progress.retry_after_s, progress.turned_away) = (Some(BUSY_S), true);
    Fault::new(FaultCategory::Unavailable, "busy", TOO_MANY)
}

/// The error of a call that was rejected before it began.
fn not_asked(code: &str, message: &str, retry_after_s: u32) -> CallError {
    let fault = Fault::new(FaultCategory::Unavailable, code, message);
    let certainty = Certainty::NotDone;
    CallError { fault, certainty, timed_out: false, retry_after_s: Some(retry_after_s) }
}

/// Logs and returns what the guest wrote to standard output and standard error.
fn log_output(state: &mut State, level: tracing::Level) -> String {
    let output = String::from_utf8_lossy(&state.output.contents()).into_owned();
    if !output.is_empty() {
        state.session.log(level, &output);
    }
    output
}
