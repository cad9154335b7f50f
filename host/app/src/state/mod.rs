//! The application state that requests and jobs use.

pub mod config;
pub mod logs;
pub mod metrics;
pub mod prelude;
pub mod settings;
pub mod storage;
pub mod totals;

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    num::NonZeroU32,
    ops::Deref,
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;

pub use self::settings::Settings;
use self::{config::Config, metrics::Metrics};
use tollhouse_http::Server;
use tollhouse_platform::{
    background::{
        jobs::{self, Workers},
        tasks::Tasks,
    },
    clock::{Clock, Timestamp},
    crypto::seal::{SealedColumn, Sealer},
    error::Result,
    limits::rate::Limiter,
    outbound::{egress::EgressByPurpose, files::Files, smtp::Mailer},
    random::Random,
    store::{self, Store, Tx},
    values::id::CompanyId,
};
use tollhouse_plugins::Plugins;

/// The application on one host. Cheap to clone.
#[derive(Clone)]
pub struct App {
    parts: Arc<Parts>,
    pub plugins: Plugins,
}

pub struct Parts {
    pub store: Store,
    pub clock: Clock,
    pub random: Random,
    pub sealer: Sealer,
    pub egress: EgressByPurpose,
    pub files: Files,
    /// `None`: no mail server is configured.
    pub mailer: Option<Mailer>,
    pub settings: Settings,
    pub workers: Workers<App>,
    pub rate_limits: RateLimits,
    pub tasks: Tasks,
    pub metrics: Metrics,
    pub server: Server,
    pub tables: Tables,
    pub slots: Slots,
}

/// Deletes expired rows or files, and returns how many.
pub type Sweep = fn(App) -> BoxFuture<'static, Result<u64>>;

/// A hook with the id of a company and its new event URL.
pub type EventUrlHook =
    for<'t> fn(&'t mut Tx, &'t CompanyId, &'t str) -> BoxFuture<'t, store::Result<()>>;

/// Returns whether a provider account, by its id, has virtual accounts.
pub type VirtualAccountsHook =
    for<'t> fn(&'t mut Tx, &'t str) -> BoxFuture<'t, store::Result<bool>>;

/// Tables over all areas.
#[derive(Clone, Copy)]
pub struct Tables {
    /// Each runs once a minute.
    pub sweeps: &'static [Sweep],
    /// Every column with sealed values.
    pub sealed: &'static [&'static [SealedColumn]],
    /// Called when the event URL of a company is set, in the same transaction.
    pub on_event_url_set: EventUrlHook,
    /// The subjects of provider references, and the jobs that a provider webhook enqueues.
    pub webhook_subjects: &'static [(&'static str, &'static str)],
    pub has_virtual_accounts: VirtualAccountsHook,
    /// The job for a webhook of a payment without an order. Its subject names provider account and
    /// reference.
    pub transfer_job: &'static str,
    /// The job for a webhook about a dispute of a charge.
    pub dispute_job: &'static str,
}

/// Burst of sign-in attempts from one address; then one every two seconds.
const SIGN_IN_BURST: NonZeroU32 = NonZeroU32::new(30).expect("not zero");

/// Burst of invitations of one company; then one every minute.
const INVITATION_BURST: NonZeroU32 = NonZeroU32::new(20).expect("not zero");

pub struct RateLimits {
    /// Requests, by API key id.
    pub keys: Limiter<String>,
    /// Requests, by operator id.
    pub operators: Limiter<String>,
    /// Attempts of operators to sign in, by address.
    pub sign_ins: Limiter<String>,
    /// Attempts of members to sign in, by address.
    pub member_sign_ins: Limiter<String>,
    /// Invitations of members, by company.
    pub invitations: Limiter<CompanyId>,
    /// Updates of the last use, by the id of a key or token.
    pub key_uses: Limiter<String>,
}

impl RateLimits {
    pub fn new(config: &Config, clock: &Clock) -> RateLimits {
        let (rate, burst) = (config.requests.rate_per_s, config.requests.rate_burst);
        RateLimits {
            keys: Limiter::per_second(rate, burst, clock.clone()),
            operators: Limiter::per_second(rate, burst, clock.clone()),
            sign_ins: Limiter::new(Duration::from_secs(2), SIGN_IN_BURST, clock.clone()),
            member_sign_ins: Limiter::new(Duration::from_secs(2), SIGN_IN_BURST, clock.clone()),
            invitations: Limiter::new(Duration::from_secs(60), INVITATION_BURST, clock.clone()),
            key_uses: Limiter::new(Duration::from_secs(60), NonZeroU32::MIN, clock.clone()),
        }
    }

    pub fn prune(&self) {
        self.keys.prune();
        self.operators.prune();
        self.sign_ins.prune();
        self.member_sign_ins.prune();
        self.invitations.prune();
        self.key_uses.prune();
    }
}

/// Per-slice state: one value of each type, set when the application starts.
#[derive(Default)]
pub struct Slots(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Slots {
    /// Adds the value of a type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Slots {
        self.0.insert(TypeId::of::<T>(), Box::new(value));
        self
    }
}

impl App {
    pub fn new(parts: Parts, plugins: Plugins) -> App {
        App { parts: Arc::new(parts), plugins }
    }

    /// Returns the host for one operation, a request or one run of a job: each plugin stays at the
    /// version that the operation called first, even if another one is activated.
    pub fn for_operation(&self) -> App {
        App { parts: self.parts.clone(), plugins: self.plugins.for_operation() }
    }

    /// Records the use of a key or token in the background by `write`, at most once a minute.
    pub fn record_use(
        &self,
        id: &String,
        last_used_at: Option<Timestamp>,
        write: impl Future<Output = store::Result<()>> + Send + 'static,
    ) {
        const MINUTE_MS: i64 = 60_000;
        let now = self.clock.now();
        let lately = last_used_at.is_some_and(|at| now.0 - at.0 < MINUTE_MS);
        if lately || self.rate_limits.key_uses.check(id).is_err() {
            return;
        }
        self.tasks.spawn(async move {
            if let Err(error) = write.await {
                tracing::warn!(%error, "last use of a key or token could not be recorded");
            }
        });
    }

    pub fn new_id(&self) -> String {
        self.random.id(self.clock.now())
    }

    /// Returns the state of a slice. Panics if `wiring` did not fill its slot.
    pub fn slot<T: Any>(&self) -> &T {
        let value = self.slots.0.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref());
        value.unwrap_or_else(|| panic!("wiring did not fill the slot of {}", type_name::<T>()))
    }
}

impl jobs::JobHost for App {
    fn workers(&self) -> &Workers<App> {
        &self.parts.workers
    }

    fn for_operation(&self) -> App {
        App::for_operation(self)
    }
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}
