//! Runs calls: a fresh instance per run, ended at `http.send`, run again with the answer.

use std::{
    marker::PhantomData,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use tokio::sync::{Mutex, SemaphorePermit};
use tracing::Instrument;
use wasmtime::{
    Engine, Store, Trap, WasmBacktrace,
    component::{Component, Instance, Linker},
};

use super::{
    CallError, Certainty, Fault, FaultCategory, Kind, Plugin,
    breaker::Breakers,
    bulkhead::{Bulkhead, Held},
    cache::Cache,
    callable::Called,
    cpu::{CpuExhausted, CpuMeter},
    engine::{self, Limits, MOST_FRAMES, State},
    heard::Recorder,
    output::after_last_words,
    pace::{Lane, Turns, paced},
    places::Places,
    progress::{Progress, Usage},
    send::{Way, check_secrets, hold},
    session::{Ended, Entry, Grant, HttpRequest, Journal, Session},
    v1::{self, Answer},
};
use crate::{
    clock::Clock,
    egress::{self, Egress, EgressError, Outgoing},
    random::Random,
    telemetry::{CallMeasured, CallOutcome, PluginMetrics, spans},
};

/// Everything that plugin calls share.
pub struct Calls {
    pub engine: Engine,
    pub linker: Linker<State>,
    pub limits: Limits,
    /// The pool answers a full house with an error, so callers wait in front of it.
    pub slots: Arc<Places>,
    /// Each may take all processors and much memory: one component is compiled at a time.
    compiling: Arc<Mutex<()>>,
    pub metrics: PluginMetrics,
    pub egress: Egress,
    cache: Arc<Cache>,
    /// None where a script answers: it has its reasons.
    pub breakers: Option<Arc<Breakers<Way>>>,
    /// Who writes calls down, if anybody does.
    pub recorder: OnceLock<Recorder>,
    /// For calls that need much processor time.
    turns: Arc<Turns>,
    pub clock: Clock,
    random: Random,
}

/// An instance that is about to be called. `'f` is how long the call's arguments live: longer than the run.
pub struct Running<'a, 'f> {
    pub store: &'a mut Store<State>,
    pub instance: &'a Instance,
    arguments: PhantomData<&'a &'f ()>,
}

/// Calls one function of an instance.
pub type Invoke<'f, T> =
    dyn for<'a> Fn(Running<'a, 'f>) -> BoxFuture<'a, Answer<T>> + Send + Sync + 'f;

enum Run<T> {
    Done(Result<T, Fault>),
    Waits(HttpRequest, Box<Session>),
    /// Too many wait already.
    TurnedAway,
    /// Others of the plugin have the memory that it wants.
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

    /// One call: as many runs as it has requests, and one more.
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
        // Whoever knows a notification's URL may send one: what that does to a plugin is no company's doing.
        let by_stranger = function == "notifications.parse";
        let is_probe = self.check_health(plugin, company, by_stranger)?;
        let _counted = plugin.meter.begin();
        let began = Instant::now();
        let span =
            spans::plugin_call(&plugin.name, plugin.meter.version(), &plugin.digest, function);
        let work = self.run_to_the_end(called, grant, invoke, progress);
        let work = work.instrument(span.clone());
        let result = match tokio::time::timeout(self.limits.wall_clock, work).await {
            Ok(result) => result,
            Err(_) => {
                progress.timed_out = true;
                Err("the call took longer than allowed".to_owned())
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
        spans::called(&span, &measured, progress.used.requests);
        if let Err(CallError { fault, .. }) = &result
            && matches!(fault.category, FaultCategory::Misconfigured | FaultCategory::Other)
        {
            // A register's words may be about somebody.
            let is_country = plugin.manifest.kind == Kind::Country;
            let said = if is_country { "" } else { &*fault.message };
            let (plugin, code) = (&*plugin.label, &*fault.code);
            tracing::error!(
                alarm = "plugin",
                plugin,
                function,
                code,
                said,
                "an operator must look"
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

    /// Whether the call finds out how a company's calls fare by now.
    fn check_health(
        &self,
        plugin: &Plugin,
        company: &str,
        by_stranger: bool,
    ) -> Result<bool, CallError> {
        if !plugin.health.is_fit() {
            let message = "it broke again and again: it is in quarantine";
            return Err(not_asked("quarantined", message, QUARANTINED_S));
        }
        plugin.health.admit(company, by_stranger, self.clock.now()).map_err(|seconds| {
            let message = "calls of this company broke it again and again";
            not_asked("left-alone", message, seconds)
        })
    }

    /// Takes a plugin that breaks again and again out of service.
    fn look_after(&self, plugin: &Plugin, company: &str, broke: bool) {
        if self.breakers.is_some() && plugin.health.saw(company, broke, self.clock.now()) {
            let plugin = &*plugin.label;
            tracing::error!(
                alarm = "quarantine",
                plugin,
                "the plugin broke again and again, and is called no more until it is activated again"
            );
        }
    }

    /// `Err` when the plugin broke, with the reason for operators.
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
                return Err(CpuExhausted.to_string()); // by what the host has done between two runs
            }
            let label = plugin.label.clone();
            let session = Session::new(journal, grant.clone(), label, self.cache.clone());
            let (request, session) = match self.run(called, session, invoke, progress).await {
                // A plugin has seen what a notification carried; faults are logged.
                Run::Done(answer) => return Ok(answer.map_err(|fault| grant.clean(fault))),
                Run::Broken(reason) => return Err(reason),
                Run::Starved(session) if progress.used.requests > 0 => {
                    // What has begun is not turned away: it would be unknown what it has done.
                    tokio::time::sleep(HUNGER).await;
                    journal = session.journal;
                    continue;
                }
                Run::TurnedAway | Run::Starved(_) => return Ok(Err(turned_away(progress))),
                Run::Waits(request, session) => (request, session),
            };
            progress.used.requests += 1;
            if progress.used.requests > self.limits.requests {
                return Err("the plugin made more requests than allowed".to_owned());
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
                Run::Waits(request.expect("just seen"), Box::new(state.session))
            }
            Err(_) if state.memory.starved => Run::Starved(Box::new(state.session)),
            Err(error) => {
                // What it says as it panics. A register's words may be about somebody.
                let level = match plugin.manifest.kind {
                    Kind::Country => tracing::Level::DEBUG,
                    Kind::Provider | Kind::Sms => tracing::Level::WARN,
                };
                let wrote = log_output(&mut state, level);
                // Where a script answers, it is for the author, and about nobody.
                let wrote = if self.breakers.is_none() { wrote } else { String::new() };
                Run::Broken(after_last_words(&wrote, why(&error, &state)))
            }
        }
    }

    /// A place among the plugin's instances and one among the host's. `None`: the call has not begun, and too many wait already, or it
    /// has waited for so long that it might not end in time.
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

    /// The same engine, whose requests are answered by a script and whose calls are counted by themselves.
    pub fn scripted(
        &self,
        script: impl Fn(&Outgoing) -> Result<egress::Answer, EgressError> + Send + Sync + 'static,
    ) -> Calls {
        self.scripted_at(self.clock.clone(), self.random.clone(), script)
    }

    /// The same with time and randomness of its own.
    pub fn scripted_at(
        &self,
        clock: Clock,
        random: Random,
        script: impl Fn(&Outgoing) -> Result<egress::Answer, EgressError> + Send + Sync + 'static,
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

    /// Instantiates a component once, for admission. It waits for a slot like a call, but for as long as it takes: that this
    /// host is busy says nothing about the component.
    pub async fn try_out(&self, plugin: &Plugin) -> Result<(), String> {
        let _slot = self.slots.take(false).await.ok_or("the engine is closed")?;
        let starting = self.start_once(&plugin.guest, plugin.label.clone());
        let started = tokio::time::timeout(self.limits.wall_clock, starting).await;
        started.unwrap_or_else(|_| Err("the component takes too long to start".to_owned()))
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

    /// Machine code for a component, from the cache on disk when it was compiled before by the same engine.
    pub async fn compile(&self, digest: &str, wasm: &Arc<Vec<u8>>) -> Result<Component, String> {
        super::compile::component(&self.engine, &self.limits, &self.compiling, digest, wasm).await
    }
}

/// What of the plugin's answer is certain: what was refused was not done; what was sent and not clearly answered is unknown,
/// whatever the plugin says of it.
fn judge<T>(result: Result<Result<T, Fault>, String>, progress: &Progress) -> Result<T, CallError> {
    let fault = match result {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(fault)) => fault,
        Err(reason) => Fault::new(FaultCategory::Other, Fault::BROKE, reason),
    };
    let certainty = match fault.category {
        _ if progress.unanswered => Certainty::Unknown,
        FaultCategory::Unavailable | FaultCategory::Other if progress.sent => Certainty::Unknown,
        _ => Certainty::NotDone,
    };
    let Progress { timed_out, retry_after_s, .. } = *progress;
    Err(CallError { fault, certainty, timed_out, retry_after_s })
}

/// Until somebody may have given memory back.
const HUNGER: Duration = Duration::from_millis(20);
const TOO_MANY: &str = "too many calls of it are under way";
const BUSY_S: u32 = 1;
const QUARANTINED_S: u32 = 60;
const CLOSED_S: u32 = 60;

/// Nobody but the host has said no, and it is worth trying again.
fn turned_away(progress: &mut Progress) -> Fault {
    (progress.retry_after_s, progress.turned_away) = (Some(BUSY_S), true);
    Fault::new(FaultCategory::Unavailable, "busy", TOO_MANY)
}

/// A call that was turned away at the door.
fn not_asked(code: &str, message: &str, retry_after_s: u32) -> CallError {
    let fault = Fault::new(FaultCategory::Unavailable, code, message);
    let certainty = Certainty::NotDone;
    CallError { fault, certainty, timed_out: false, retry_after_s: Some(retry_after_s) }
}

fn measured<T>(
    result: &Result<T, CallError>,
    progress: &Progress,
    duration: Duration,
) -> CallMeasured {
    let outcome = outcome(result);
    let unknown = result.as_ref().is_err_and(|error| error.certainty == Certainty::Unknown);
    let Usage { cpu, peak_bytes: peak_memory_bytes, runs, .. } = progress.used;
    CallMeasured { outcome, unknown, duration, cpu, peak_memory_bytes, runs }
}

/// As metrics name it.
pub fn outcome<T>(result: &Result<T, CallError>) -> CallOutcome {
    match result {
        Ok(_) => CallOutcome::Ok,
        Err(error) if error.timed_out => CallOutcome::TimedOut,
        Err(error) => match error.fault.category {
            FaultCategory::Invalid => CallOutcome::Invalid,
            FaultCategory::Refused => CallOutcome::Refused,
            FaultCategory::NotFound => CallOutcome::NotFound,
            FaultCategory::Unavailable => CallOutcome::Unavailable,
            FaultCategory::Misconfigured => CallOutcome::Misconfigured,
            FaultCategory::Other => CallOutcome::Other,
        },
    }
}

fn why(error: &wasmtime::Error, state: &State) -> String {
    if let Some(exhausted) = error.downcast_ref::<CpuExhausted>() {
        exhausted.to_string()
    } else if let Some(ended) = error.downcast_ref::<Ended>() {
        ended.to_string()
    } else if state.memory.refused {
        "the plugin asked for more memory than allowed".to_owned()
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        format!("the plugin trapped: {trap}{}", way_there(error))
    } else {
        format!("the plugin failed: {}{}", error.root_cause(), way_there(error))
    }
}

/// The functions that it was in, the innermost first.
fn way_there(error: &wasmtime::Error) -> String {
    let frames = error.downcast_ref::<WasmBacktrace>().map_or(&[][..], WasmBacktrace::frames);
    let named = frames.iter().map(|frame| match frame.func_name() {
        Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
        None => format!("function {}", frame.func_index()),
    });
    let way: Vec<String> = named.take(MOST_FRAMES).collect();
    if way.is_empty() { String::new() } else { format!(" in {}", way.join(" < ")) }
}

/// Logs what the guest wrote to its standard output and error, and answers it.
fn log_output(state: &mut State, level: tracing::Level) -> String {
    let output = String::from_utf8_lossy(&state.output.contents()).into_owned();
    if !output.is_empty() {
        state.session.log(level, &output);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_follows_from_what_left() {
        use FaultCategory::*;
        for (category, sent, unanswered, certainty) in [
            (Refused, true, false, Certainty::NotDone),
            (Invalid, true, false, Certainty::NotDone),
            (NotFound, true, false, Certainty::NotDone),
            (Misconfigured, true, false, Certainty::NotDone),
            (Refused, true, true, Certainty::Unknown),
            (Invalid, true, true, Certainty::Unknown),
            (NotFound, true, true, Certainty::Unknown),
            (Misconfigured, true, true, Certainty::Unknown),
            (Unavailable, false, false, Certainty::NotDone),
            (Unavailable, true, false, Certainty::Unknown),
            (Other, true, false, Certainty::Unknown),
        ] {
            let progress = Progress { sent, unanswered, ..Progress::default() };
            let judged = judge::<()>(Ok(Err(Fault::new(category, "", ""))), &progress);
            let seen = judged.unwrap_err().certainty;
            assert_eq!(seen, certainty, "{category:?}, sent: {sent}, unanswered: {unanswered}");
        }
        let progress = Progress { sent: true, ..Progress::default() };
        let broke = judge::<()>(Err("trap".to_owned()), &progress);
        assert_eq!(broke.unwrap_err().certainty, Certainty::Unknown);
    }
}
