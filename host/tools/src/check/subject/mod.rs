//! The component under inspection, and its calls with all visible effects.

mod log_capture;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracing::{Dispatch, instrument::WithSubscriber};

use self::log_capture::LogCapture;
use super::upstream::{FailurePlan, ObservedRequest, ScriptedUpstream};
use crate::prelude::*;
use tollhouse_plugins::ExampleCase;

/// Start of all calls, fixed so that reports are reproducible: 2026-11-21T09:00:00Z.
const CALL_START_TIME: Timestamp = Timestamp(1_795_251_600_000);
const SEED: u64 = 1;
/// One call at a time, and the trial instantiation.
const INSTANCES: u32 = 2;

pub struct CheckSubject {
    pub plugin: PluginHandle,
    pub limits: Limits,
    upstream: Arc<ScriptedUpstream>,
    clock: Clock,
    random: Random,
    usage: watch::Receiver<Usage>,
    lines: LogCapture,
    dispatch: Dispatch,
    accounts: AtomicU64,
}

pub struct ObservedCall {
    pub reply: Result<PluginReply, CallError>,
    pub requests: Vec<ObservedRequest>,
    pub usage: Usage,
    pub lines: Vec<String>,
}

impl CheckSubject {
    /// Admits the component into a new engine; `None`: rejected. `Err` concerns this machine.
    pub async fn load(
        wasm: Vec<u8>,
        limits: Limits,
    ) -> Result<(Vec<AdmissionCheck>, Option<CheckSubject>), String> {
        let manifest = Manifest::read(&wasm).ok();
        let examples = manifest.map(|manifest| manifest.examples).unwrap_or_default();
        let upstream = Arc::new(ScriptedUpstream::new(&examples));
        let script = upstream.clone();
        let egress = Egress::scripted(Arc::new(move |request| script.respond(request)));
        let (clock, random) = (Clock::frozen_at(CALL_START_TIME), Random::seeded(SEED));
        let limits = Limits { instances: limits.instances.min(INSTANCES), ..limits };
        let plugins = engine(limits.clone(), egress, clock.clone(), random.clone())?;
        let (checks, admitted) = plugins.inspect(wasm).await;
        let subject = admitted.map(|plugin| {
            let (plugin, usage) = watch_usage(plugin);
            let lines = LogCapture::default();
            let (dispatch, accounts) = (lines.dispatch(), AtomicU64::default());
            CheckSubject {
                plugin,
                limits,
                upstream,
                clock,
                random,
                usage,
                lines,
                dispatch,
                accounts,
            }
        });
        Ok((checks, subject))
    }

    /// Makes a call with an empty cache and always the same randomness.
    pub async fn run(&self, call: &Call, plan: Option<FailurePlan>) -> ObservedCall {
        self.random.reseed(SEED);
        self.make_call(&self.account(), call, plan).await
    }

    /// Makes a call of a case, with its responses.
    pub async fn run_case(&self, call: &Call, case: &ExampleCase) -> ObservedCall {
        let examples = &self.plugin.manifest().examples;
        self.upstream.use_examples(&examples.with_case(case));
        let ran = self.run(call, None).await;
        self.upstream.use_examples(examples);
        ran
    }

    /// Makes a call for this account, whose cache keeps the values of earlier calls.
    pub async fn run_for(&self, account: &Credentials, call: &Call) -> ObservedCall {
        self.random.reseed(SEED);
        self.make_call(account, call, None).await
    }

    /// Makes a call an hour later, with other randomness.
    pub async fn run_later(&self, call: &Call) -> ObservedCall {
        self.random.reseed(SEED + 1);
        self.clock.advance_to(self.clock.now().plus_seconds(3600));
        self.make_call(&self.account(), call, None).await
    }

    async fn make_call(
        &self,
        account: &Credentials,
        call: &Call,
        plan: Option<FailurePlan>,
    ) -> ObservedCall {
        self.upstream.plan(plan);
        let execution = self.plugin.execute(account, call).with_subscriber(self.dispatch.clone());
        ObservedCall {
            reply: execution.await,
            requests: self.upstream.take_requests(),
            usage: *self.usage.borrow(),
            lines: self.lines.take(),
        }
    }

    /// Returns an account without earlier calls.
    pub fn account(&self) -> Credentials {
        let id = self.accounts.fetch_add(1, Relaxed).to_string();
        Credentials { id, ..Credentials::example(self.plugin.manifest()) }
    }
}
