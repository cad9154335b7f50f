//! Everything that a request or a job may use, and the one table of background work.

use std::{
    error::Error, num::NonZeroU32, ops::Deref, sync::Arc, sync::atomic::AtomicBool, time::Duration,
};

use futures::future::BoxFuture;

use crate::{
    cards,
    clock::{Clock, Timestamp},
    companies,
    config::{Config, ConfigError},
    egress::EgressByPurpose,
    events,
    files::Files,
    http, idempotency, identity,
    jobs::{Handler, Workers},
    loans, mandates, messages,
    money::Minor,
    operator_events, otp, payments,
    plugins::Plugins,
    providers,
    random::Random,
    rate::Limiter,
    recollections, recordings,
    seal::{SealedColumn, Sealer},
    smtp::Mailer,
    store::Store,
    tasks::Tasks,
    telemetry::Telemetry,
    users,
};

/// Every kind of job and who runs it.
const JOBS: &[(&str, Handler)] = &[
    (payments::SETTLE_JOB, payments::settle_job),
    (events::DELIVER_JOB, events::deliver_job),
    (messages::EMAIL_JOB, messages::deliver_job),
    (messages::SMS_JOB, messages::deliver_job),
    (otp::WATCH_JOB, otp::watch_job),
    (users::REMOVE_JOB, users::remove_job),
    (cards::CONFIRM_JOB, cards::confirm_job),
    (cards::REFUND_JOB, cards::refund_job),
    (cards::REVOKE_JOB, cards::revoke_job),
    (loans::COLLECT_JOB, recollections::collect_job),
    (recollections::SETTLE_JOB, recollections::settle_job),
];

/// What is out of date is thrown away by these, now and then.
pub const SWEEPS: &[Sweep] = &[
    cards::sweep,
    idempotency::sweep,
    identity::sweep,
    messages::sweep,
    operator_events::sweep,
    otp::sweep,
    recordings::sweep,
    users::sweep,
];

pub type Sweep = fn(App) -> BoxFuture<'static, crate::error::Result<u64>>;

/// Every column that holds sealed texts.
pub const SEALED: &[&[SealedColumn]] = &[
    &cards::SEALED,
    &companies::SEALED,
    &idempotency::SEALED,
    &identity::SEALED,
    &mandates::SEALED,
    &messages::SEALED,
    &providers::SEALED,
    &recordings::SEALED,
];

/// What a provider's reference may belong to, and the job that a notification about it wakes.
pub const NOTIFIED: &[(&str, &str)] = &[
    (cards::SUBJECT, cards::CONFIRM_JOB),
    (payments::SUBJECT, payments::SETTLE_JOB),
    (recollections::SUBJECT, recollections::SETTLE_JOB),
];

/// Cheap to clone.
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
    /// None when the operator has named no mail server.
    pub mailer: Option<Mailer>,
    pub settings: Settings,
    pub gateways: messages::Gateways,
    pub images: identity::Images,
    /// Calls of plugins that wait to be written down.
    pub recordings: recordings::Waiting,
    pub workers: Workers,
    pub accepted_keys: companies::AcceptedKeys,
    pub rates: Rates,
    pub tasks: Tasks,
    /// No more requests are wanted: the host is about to stop.
    pub stopping: AtomicBool,
    pub readiness: http::Readiness,
    pub telemetry: Telemetry,
    /// What else lives by this clock: the stand-ins of a development environment.
    pub companion: Option<Companion>,
}

/// Does what is due beside the host's own jobs; answers how much that was.
pub type Companion = Box<dyn Fn() -> BoxFuture<'static, usize> + Send + Sync>;

#[derive(Clone)]
pub struct Settings {
    /// What events call this service.
    pub service: String,
    /// Where providers reach this host: the base of notification URLs.
    pub public_url: String,
    /// The provider of companies that have chosen none.
    pub default_provider: String,
    pub operator_token: String,
    /// Operators are told when a charge takes a wallet below it, unless the company has its own. 0: never.
    pub low_balance: Minor,
    /// What verifying a card charges.
    pub card_charges: cards::Charges,
    /// For how long messages that have ended, and what operators were told, are kept.
    pub history_days: i64,
    /// For how long calls of plugins are kept; 0: none is.
    pub recording_hours: i64,
    /// Opens what only development may do, such as moving the clock.
    pub development: bool,
    pub http: http::Limits,
    pub otp: otp::Limits,
    /// The countries, as ISO 3166 codes, whose numbers text messages may go to, for companies that name none.
    pub sms_countries: Vec<String>,
    pub exports: users::ExportLimits,
}

impl Settings {
    fn new(config: &Config) -> Result<Settings, ConfigError> {
        Ok(Settings {
            service: config.service.service.clone(),
            public_url: config.listeners.public_url(),
            default_provider: config.service.default_provider.clone(),
            operator_token: config.operator_token.read()?,
            low_balance: config.service.low_balance,
            card_charges: cards::Charges {
                ngn: config.service.card_charge_ngn,
                usd: config.service.card_charge_usd,
            },
            history_days: config.service.history_days.into(),
            recording_hours: config.plugins.plugin_recording_hours.into(),
            development: config.service.development,
            http: config.requests.limits(),
            otp: config.otp.limits(),
            sms_countries: config.otp.sms_countries.clone(),
            exports: config.service.exports(),
        })
    }

    /// What ended before is forgotten.
    #[must_use]
    pub fn history_begins(&self, now: Timestamp) -> Timestamp {
        now.plus_seconds(-24 * 3600 * self.history_days)
    }
}

/// How much who may ask of this host.
pub struct Rates {
    /// Requests, by the key's id.
    pub keys: Limiter<String>,
    pub operators: Limiter<()>,
    /// Notes of a key's last use, by its id.
    pub uses: Limiter<String>,
}

impl Rates {
    fn new(config: &Config, clock: &Clock) -> Rates {
        const MINUTE: Duration = Duration::from_secs(60);
        let (rate, burst) = (config.requests.rate_per_s, config.requests.rate_burst);
        Rates {
            keys: Limiter::per_second(rate, burst, clock.clone()),
            operators: Limiter::per_second(rate, burst, clock.clone()),
            uses: Limiter::new(MINUTE, NonZeroU32::MIN, clock.clone()),
        }
    }

    /// Forgets those that have not asked for a while.
    pub fn prune(&self) {
        self.keys.prune();
        self.operators.prune();
        self.uses.prune();
    }
}

impl App {
    /// Opens the database, takes over the installed plugins, and is ready to serve.
    pub async fn open(
        config: &Config,
        clock: Clock,
        random: Random,
        companion: Option<Companion>,
    ) -> Result<App, Box<dyn Error + Send + Sync>> {
        let settings = Settings::new(config)?;
        let sealer = Sealer::new(&config.master_key.read()?, random.clone())?;
        let no_jobs = config.service.no_jobs;
        let egress = EgressByPurpose::new(no_jobs, |purpose| config.service.egress(purpose))?;
        let mailer = config.email.mailer()?;
        let files = Files::new(&config.service.files)?;
        let (limits, to_upstreams) = (config.plugins.limits_of_host(&sealer), &egress.plugins);
        let plugins = Plugins::new(limits, to_upstreams.clone(), clock.clone(), random.clone())?;
        let (recorder, recordings) = recordings::recorder();
        if settings.recording_hours > 0 {
            plugins.recorded_by(recorder);
        }
        let (url, limits) = (config.database.url()?, config.database.limits());
        // Where nobody else looks after the tables, the host does.
        let store = match settings.development {
            true => Store::open(url.expose(), limits, random.clone()).await?,
            false => {
                let role = config.database.role();
                Store::open_migrated(url.expose(), limits, random.clone(), role).await?
            }
        };
        plugins.follow(&store).await?;
        let gateways = messages::Gateways::new(config.otp.sms_gateways.clone(), clock.clone());
        let workers = Workers::new(JOBS);
        let workers = if no_jobs { workers.disabled() } else { workers };
        let accepted_keys = companies::AcceptedKeys::load(&store, clock.now()).await?;
        let (rates, tasks) = (Rates::new(config, &clock), Tasks::default());
        let telemetry = Telemetry::new(clock.now())
            .with(|registry| store.register(registry))
            .with(|registry| plugins.register(registry))
            .with(|registry| egress.plugins.metrics.register(registry))
            .with(|registry| workers.metrics.register(registry))
            .with(|registry| tasks.metrics.register(registry))
            .with(|registry| recordings.register(registry));
        let parts = Parts {
            store,
            clock,
            random,
            sealer,
            egress,
            files,
            mailer,
            settings,
            gateways,
            images: identity::Images::default(),
            recordings,
            workers,
            accepted_keys,
            rates,
            tasks,
            stopping: AtomicBool::new(false),
            readiness: http::Readiness::default(),
            telemetry,
            companion,
        };
        Ok(App { parts: Arc::new(parts), plugins })
    }

    /// The same host for one operation, a request or one run of a job: each plugin that it calls stays the version that it first
    /// called, whatever is activated meanwhile.
    #[must_use]
    pub fn for_operation(&self) -> App {
        App { parts: self.parts.clone(), plugins: self.plugins.for_operation() }
    }

    #[must_use]
    pub fn new_id(&self) -> String {
        self.random.id(self.clock.now())
    }
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}
