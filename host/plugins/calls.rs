//! Runs calls: a fresh instance per run, ended at `http.send`, run again with the answer.

use std::{
    future::{Future, poll_fn},
    marker::PhantomData,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Instrument;
use url::Url;
use wasmtime::{
    Engine, Store, Trap,
    component::{Component, Instance, Linker},
};

use super::{
    CallError, Certainty, Fault, FaultCategory, Kind, Plugin,
    cache::Cache,
    engine::{self, CpuExhausted, Limits, State},
    session::{
        Ended, Entry, Grant, HttpRequest, HttpResponse, Journal, MOST_REQUEST_BYTES, Session,
    },
    v1::{self, Answer},
    vault::Placeholders,
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
    pub slots: Arc<Semaphore>,
    pub metrics: PluginMetrics,
    egress: Egress,
    cache: Arc<Cache>,
    clock: Clock,
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

/// What a call took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// One, and one for each request.
    pub runs: u32,
    pub requests: usize,
    /// Processor time of all runs, in `engine::TICK`s: most calls end within the first.
    pub ticks: u32,
    /// How long the guest ran, over all runs.
    pub cpu: Duration,
    /// The most memory that an instance had at once.
    pub peak_bytes: usize,
}

/// How far a call has got.
#[derive(Default)]
struct Progress {
    used: Usage,
    /// Bytes of a request may have reached an upstream.
    sent: bool,
    /// One that may have changed something got no answer.
    unanswered: bool,
    timed_out: bool,
}

enum Run<T> {
    Done(Result<T, Fault>),
    Waits(HttpRequest, Box<Session>),
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
            slots: Arc::new(Semaphore::new(limits.instances as usize)),
            engine,
            limits,
            egress,
            cache: Arc::new(Cache::new(metrics.clone())),
            metrics,
            clock,
            random,
        })
    }

    /// One call and what it took: as many runs as it has requests, and one more.
    pub async fn call<'f, T>(
        &self,
        plugin: &Plugin,
        function: &'static str,
        grant: Arc<Grant>,
        invoke: &Invoke<'f, T>,
    ) -> (Result<T, CallError>, Usage) {
        let began = Instant::now();
        let mut progress = Progress::default();
        let span =
            spans::plugin_call(&plugin.name, plugin.meter.version(), &plugin.digest, function);
        let work = self.run_to_the_end(plugin, grant, invoke, &mut progress);
        let work = work.instrument(span.clone());
        let result = match tokio::time::timeout(self.limits.wall_clock, work).await {
            Ok(result) => result,
            Err(_) => {
                progress.timed_out = true;
                Err("the call took longer than allowed".to_owned())
            }
        };
        let result = judge(result, &progress);
        let measured = measured(&result, &progress, began.elapsed());
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
        (result, progress.used)
    }

    /// `Err` when the plugin broke, with the reason for operators.
    async fn run_to_the_end<'f, T>(
        &self,
        plugin: &Plugin,
        grant: Arc<Grant>,
        invoke: &Invoke<'f, T>,
        progress: &mut Progress,
    ) -> Result<Result<T, Fault>, String> {
        let deadline = Instant::now() + self.limits.wall_clock;
        let seed = u64::from_le_bytes(self.random.bytes());
        let mut journal = Journal::new(seed, self.clock.now());
        loop {
            let label = plugin.label.clone();
            let session = Session::new(journal, grant.clone(), label, self.cache.clone());
            let (request, session) = match self.run(plugin, session, invoke, progress).await {
                // A plugin has seen what a notification carried; faults are logged.
                Run::Done(answer) => return Ok(answer.map_err(|fault| grant.clean(fault))),
                Run::Broken(reason) => return Err(reason),
                Run::Waits(request, session) => (request, session),
            };
            progress.used.requests += 1;
            if progress.used.requests > self.limits.requests {
                return Err("the plugin made more requests than allowed".to_owned());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self.send(plugin, &request, &session, left, progress).await;
            journal = session.journal;
            journal.entries.push(Entry::Http(request, answer));
        }
    }

    async fn run<'f, T>(
        &self,
        plugin: &Plugin,
        session: Session,
        invoke: &Invoke<'f, T>,
        progress: &mut Progress,
    ) -> Run<T> {
        let Some(_slot) = self.slot().await else {
            return Run::Broken("the engine is closed".to_owned());
        };
        let used = &mut progress.used;
        used.runs += 1;
        let mut store = engine::store(&self.engine, &self.limits, session, used.ticks);
        let run = async {
            let instance = plugin.guest.pre.instantiate_async(&mut store).await?;
            let arguments = PhantomData;
            invoke(Running { store: &mut store, instance: &instance, arguments }).await
        };
        let result = timed(run, &mut used.cpu).await;
        let mut state = store.into_data();
        used.ticks = state.cpu.ticks;
        used.peak_bytes = used.peak_bytes.max(state.memory.peak_bytes);
        match result {
            Ok(answer) => {
                log_output(&mut state);
                Run::Done(answer)
            }
            Err(_) if state.session.waiting_for.is_some() => {
                let request = state.session.waiting_for.take();
                Run::Waits(request.expect("just seen"), Box::new(state.session))
            }
            Err(error) => {
                log_output(&mut state);
                Run::Broken(why(&error, &state))
            }
        }
    }

    /// `None` when the engine is closed.
    async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(slot) = self.slots.try_acquire() {
            return Some(slot);
        }
        let began = Instant::now();
        let slot = self.slots.acquire().await.ok()?;
        self.metrics.waited(began.elapsed());
        Some(slot)
    }

    /// Puts the secrets in, sends, and takes the secrets out of what comes back.
    async fn send(
        &self,
        plugin: &Plugin,
        request: &HttpRequest,
        session: &Session,
        left: Duration,
        progress: &mut Progress,
    ) -> Result<HttpResponse, Fault> {
        check_grant(&session.grant, &request.url)?;
        let Some((headers, body)) = fill(request, &session.placeholders) else {
            return Err(HttpRequest::too_large());
        };
        let wanted = request.timeout_ms.map(|ms| Duration::from_millis(u64::from(ms)));
        let outgoing = Outgoing {
            sender: plugin.name.clone(),
            method: request.method.clone(),
            url: request.url.clone(),
            headers,
            body,
            timeout: wanted.unwrap_or(left).min(left),
            most_response_bytes: self.limits.response_bytes,
        };
        // Until the answer is here, whatever ends this call must find that bytes may have left.
        let sent_before = std::mem::replace(&mut progress.sent, true);
        let answer = self.egress.send(outgoing).await;
        progress.timed_out = matches!(answer, Err(EgressError::Timeout(_)));
        match &answer {
            Err(error) if !error.sent() => progress.sent = sent_before,
            Err(_) => progress.unanswered |= !["GET", "HEAD"].contains(&&*request.method),
            Ok(_) => {}
        }
        let answer = answer.map_err(fault_of)?;
        let secrets = session.grant.secrets.redactor(&session.placeholders);
        let clean = |(name, value): (String, String)| (name, secrets.clean_text(&value));
        Ok(HttpResponse {
            status: answer.status,
            headers: answer.headers.into_iter().map(clean).collect(),
            body: secrets.clean(&answer.body),
        })
    }

    /// The same engine, whose requests are answered by a script and whose calls are counted by themselves.
    pub fn scripted(
        &self,
        script: impl Fn(&Outgoing) -> Result<egress::Answer, EgressError> + Send + Sync + 'static,
    ) -> Calls {
        let metrics = PluginMetrics::default();
        Calls {
            engine: self.engine.clone(),
            linker: self.linker.clone(),
            limits: self.limits.clone(),
            slots: self.slots.clone(),
            egress: Egress::scripted(Arc::new(script)),
            cache: Arc::new(Cache::new(metrics.clone())),
            metrics,
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    /// Instantiates a component once, for admission. It waits for a slot like a call, but for as long as it takes: that this
    /// host is busy says nothing about the component.
    pub async fn try_out(&self, plugin: &Plugin) -> Result<(), String> {
        let _slot = self.slots.acquire().await.map_err(|_| "the engine is closed")?;
        let starting = self.start_once(&plugin.guest, plugin.label.clone());
        let started = tokio::time::timeout(self.limits.wall_clock, starting).await;
        started.unwrap_or_else(|_| Err("the component takes too long to start".to_owned()))
    }

    async fn start_once(&self, guest: &v1::Guest, label: Arc<str>) -> Result<(), String> {
        let journal = Journal::new(0, self.clock.now());
        let session = Session::new(journal, Arc::default(), label, self.cache.clone());
        let mut store = engine::store(&self.engine, &self.limits, session, 0);
        let instance = guest.pre.instantiate_async(&mut store).await;
        let instance =
            instance.map_err(|error| format!("the component does not start: {error}"))?;
        guest.check(&mut store, &instance)
    }

    /// Machine code for a component, from the cache on disk when it was compiled before by the same engine.
    pub async fn compile(&self, digest: &str, wasm: &Arc<Vec<u8>>) -> Result<Component, String> {
        super::compile::component(&self.engine, &self.limits, digest, wasm).await
    }
}

/// What of the plugin's answer is certain: what was refused was not done; what was sent and not clearly answered is unknown,
/// whatever the plugin says of it.
fn judge<T>(result: Result<Result<T, Fault>, String>, progress: &Progress) -> Result<T, CallError> {
    let fault = match result {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(fault)) => fault,
        Err(reason) => Fault::new(FaultCategory::Other, "plugin-broke", reason),
    };
    let certainty = match fault.category {
        _ if progress.unanswered => Certainty::Unknown,
        FaultCategory::Unavailable | FaultCategory::Other if progress.sent => Certainty::Unknown,
        _ => Certainty::NotDone,
    };
    Err(CallError { fault, certainty, timed_out: progress.timed_out })
}

/// Adds the time that a future is polled to `spent`: a guest runs in its polls and never waits.
async fn timed<F: Future>(future: F, spent: &mut Duration) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let began = Instant::now();
        let polled = future.as_mut().poll(context);
        *spent += began.elapsed();
        polled
    })
    .await
}

fn measured<T>(
    result: &Result<T, CallError>,
    progress: &Progress,
    duration: Duration,
) -> CallMeasured {
    let outcome = match result {
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
    };
    let unknown = result.as_ref().is_err_and(|error| error.certainty == Certainty::Unknown);
    let Usage { cpu, peak_bytes: peak_memory_bytes, runs, .. } = progress.used;
    CallMeasured { outcome, unknown, duration, cpu, peak_memory_bytes, runs }
}

type Filled = (Vec<(String, String)>, Option<Bytes>);

/// Headers and body with the secrets in them; `None` when that makes them too large.
fn fill(request: &HttpRequest, placeholders: &Placeholders) -> Option<Filled> {
    let mut left = MOST_REQUEST_BYTES;
    let mut fill = |text: &[u8]| {
        let filled = placeholders.fill(text, left)?;
        left -= filled.len();
        Some(filled)
    };
    let mut headers = Vec::with_capacity(request.headers.len());
    for (name, value) in &request.headers {
        let value = fill(value.as_bytes())?;
        headers.push((name.clone(), String::from_utf8_lossy(&value).into_owned()));
    }
    let body = match &request.body {
        Some(body) => Some(Bytes::from(fill(body)?)),
        None => None,
    };
    Some((headers, body))
}

/// Refuses what goes elsewhere than to an origin that the operator granted.
fn check_grant(grant: &Grant, url: &str) -> Result<(), Fault> {
    let message = match Url::parse(url).map(|url| url.origin().ascii_serialization()) {
        Ok(origin) if grant.origins.contains(&origin) => return Ok(()),
        Ok(origin) => format!("the request goes to {origin}, which was not granted"),
        Err(_) => "the request goes to what is no URL".to_owned(),
    };
    Err(Fault::new(FaultCategory::Misconfigured, "not-granted", message))
}

fn fault_of(error: EgressError) -> Fault {
    let (category, code) = match &error {
        EgressError::Forbidden(_) => (FaultCategory::Misconfigured, "forbidden"),
        EgressError::Connect(_) => (FaultCategory::Unavailable, "connect"),
        EgressError::Timeout(_) => (FaultCategory::Unavailable, "timeout"),
        EgressError::Cut(_) | EgressError::TooLarge(_) => (FaultCategory::Unavailable, "cut"),
    };
    Fault::new(category, code, error.to_string())
}

fn why(error: &wasmtime::Error, state: &State) -> String {
    if error.downcast_ref::<CpuExhausted>().is_some() {
        "the plugin used up its processor time".to_owned()
    } else if let Some(ended) = error.downcast_ref::<Ended>() {
        ended.to_string()
    } else if state.memory.refused {
        "the plugin asked for more memory than allowed".to_owned()
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        format!("the plugin trapped: {trap}")
    } else {
        format!("the plugin failed: {error}")
    }
}

/// What the guest wrote to its standard output and error.
fn log_output(state: &mut State) {
    let output = state.output.contents();
    if !output.is_empty() {
        state.session.log(tracing::Level::DEBUG, &String::from_utf8_lossy(&output));
    }
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
