//! The component under examination, and a call of it with all that can be seen from outside.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use tracing::{Dispatch, instrument::WithSubscriber};

use super::{
    lines::Lines,
    upstream::{Plan, Seen, Upstream},
};
use crate::{
    clock::{Clock, Timestamp},
    egress::Egress,
    plugins::{
        Call, CallError, Callable, Check, Credentials, Limits, Manifest, Plugins, Reply, Usage,
    },
    random::Random,
};

/// When all calls begin, so that a report is the same every time: 2026-11-21T09:00:00Z.
const BEGINNING: Timestamp = Timestamp(1_795_251_600_000);
const SEED: u64 = 1;
/// One at a time, and a trial at admission.
const INSTANCES: u32 = 2;

pub struct Subject {
    pub plugin: Callable,
    pub limits: Limits,
    upstream: Upstream,
    clock: Clock,
    random: Random,
    used: Arc<Mutex<Usage>>,
    lines: Lines,
    dispatch: Dispatch,
    accounts: AtomicU64,
}

/// A call that was made.
pub struct Ran {
    pub reply: Result<Reply, CallError>,
    pub requests: Vec<Seen>,
    pub used: Usage,
    /// What the plugin said into the log.
    pub lines: Vec<String>,
}

impl Subject {
    /// Admits the component into an engine of its own; `None` when it is not admitted. `Err` is about this machine.
    pub async fn load(
        wasm: Vec<u8>,
        limits: Limits,
    ) -> Result<(Vec<Check>, Option<Subject>), String> {
        let manifest = Manifest::read(&wasm).ok();
        let examples = manifest.map(|manifest| manifest.examples).unwrap_or_default();
        let upstream = Upstream::new(&examples);
        let (clock, random) = (Clock::frozen_at(BEGINNING), Random::seeded(SEED));
        let limits = Limits { instances: limits.instances.min(INSTANCES), ..limits };
        let egress = Egress::scripted(upstream.script());
        let plugins = Plugins::new(limits.clone(), egress, clock.clone(), random.clone());
        let plugins = plugins.map_err(|error| format!("no engine: {error:#}"))?;
        let (checks, admitted) = plugins.inspect(wasm).await;
        let subject = admitted.map(|plugin| {
            let used = Arc::<Mutex<Usage>>::default();
            let latest = used.clone();
            let plugin = plugin.watched(Arc::new(move |usage| {
                *latest.lock().unwrap_or_else(PoisonError::into_inner) = usage;
            }));
            let lines = Lines::default();
            let (dispatch, accounts) = (lines.dispatch(), AtomicU64::default());
            Subject { plugin, limits, upstream, clock, random, used, lines, dispatch, accounts }
        });
        Ok((checks, subject))
    }

    /// Calls as if nobody had called before: with the same randomness and an empty cache.
    pub async fn run(&self, call: &Call, plan: Plan) -> Ran {
        let account = self.account();
        self.run_for(&account, call, plan).await
    }

    /// The same for an account that may have called before, whose cache is as it left it.
    pub async fn run_for(&self, account: &Credentials, call: &Call, plan: Plan) -> Ran {
        self.random.rewind(SEED);
        self.made(account, call, plan).await
    }

    /// An hour later, with other randomness.
    pub async fn run_later(&self, call: &Call, plan: Plan) -> Ran {
        self.random.rewind(SEED + 1);
        self.clock.advance_to(self.clock.now().plus_seconds(3600));
        let account = self.account();
        self.made(&account, call, plan).await
    }

    async fn made(&self, account: &Credentials, call: &Call, plan: Plan) -> Ran {
        self.upstream.plan(plan);
        let asked = self.plugin.ask(account, call).with_subscriber(self.dispatch.clone());
        let reply = asked.await;
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        Ran { reply, requests: self.upstream.seen(), used, lines: self.lines.take() }
    }

    /// One that has not called yet.
    pub fn account(&self) -> Credentials {
        let id = self.accounts.fetch_add(1, Relaxed).to_string();
        Credentials { id, ..Credentials::example(self.plugin.manifest()) }
    }
}
