//! Stand-ins for the upstream providers, over real HTTP: what the plugins talk to in development and tests.
//!
//! Each provider is a folder that speaks that provider's documented protocol. Around them stand the parts that all
//! of them share: merchants' accounts, scripted [`faults`], the outbox of notifications, the hosted checkout page, the
//! receiver of Tollhouse's own [`events`] and the [`mailbox`], which a mail server (SMTP) and the SMS gateways fill. The
//! identity registers share made-up people. All state is in memory; time comes from the injected clock only.

mod africastalking;
mod checkout;
mod env;
pub mod events;
pub mod faults;
mod fields;
pub mod flutterwave;
mod in_flight;
mod keyed_hash;
pub mod mailbox;
mod money;
pub mod monnify;
mod outbox;
mod pages;
pub mod paystack;
mod provider;
mod random;
mod registers;
mod request_log;
mod server;
mod sms;
mod smtp;
mod termii;
mod timer_queue;
mod twilio;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::net::TcpListener;
use tollhouse_platform::clock::Clock;

pub use checkout::Outcome;
pub use events::ReceivedEvent;
pub use faults::{Fault, FaultKind, Faults};
pub use flutterwave::Flutterwave;
pub use mailbox::{Mailbox, Message};
pub use monnify::Monnify;
pub use paystack::Paystack;

use env::Env;
use events::EventReceiver;
use provider::PaymentSimulator;

/// How often what falls due by the clock is looked for; every other change wakes the task at once.
const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// All stand-ins, served on one listener for HTTP and one for SMTP. Cheap to clone; every clone is the same stand-ins.
#[derive(Clone)]
pub struct Simulators(Arc<Inner>);

/// Something to try.
#[derive(Clone, Debug)]
pub struct Hint {
    /// What it does, as a sentence without its end.
    pub what: String,
    pub command: String,
}

/// Another page that a developer may want.
#[derive(Clone, Debug)]
pub struct Link {
    /// What it shows.
    pub what: String,
    pub url: String,
}

struct Inner {
    env: Arc<Env>,
    smtp_addr: SocketAddr,
    paystack: Paystack,
    flutterwave: Flutterwave,
    monnify: Monnify,
    events: EventReceiver,
    hints: Mutex<Vec<Hint>>,
    links: Mutex<Vec<Link>>,
}

impl Simulators {
    /// Serves on the listeners in background tasks, with randomness of the system.
    ///
    /// # Panics
    /// Outside a tokio runtime, or when a listener has no local address.
    #[must_use]
    pub fn start(http: TcpListener, smtp: TcpListener, clock: Clock) -> Simulators {
        Simulators::start_seeded(http, smtp, clock, random::system_seed())
    }

    /// As [`Standins::start`]; the same seed and requests give the same ids and codes.
    ///
    /// # Panics
    /// As [`Standins::start`].
    #[must_use]
    pub fn start_seeded(
        http: TcpListener,
        smtp: TcpListener,
        clock: Clock,
        seed: u64,
    ) -> Simulators {
        let address = |listener: &TcpListener| {
            listener.local_addr().expect("a bound listener has an address")
        };
        let (port, smtp_addr) = (address(&http).port(), address(&smtp));
        let env = Arc::new(Env::new(format!("http://127.0.0.1:{port}"), clock, seed));
        let simulators = Simulators(Arc::new(Inner {
            paystack: Paystack::new(env.clone()),
            flutterwave: Flutterwave::new(env.clone()),
            monnify: Monnify::new(env.clone()),
            env: env.clone(),
            smtp_addr,
            events: EventReceiver::default(),
            hints: Mutex::default(),
            links: Mutex::default(),
        }));
        let router = server::router(simulators.clone());
        tokio::spawn(server::accept(http, move |stream| {
            server::serve_http(stream, router.clone())
        }));
        tokio::spawn(server::accept(smtp, move |stream| smtp::serve(stream, env.clone())));
        tokio::spawn(run_in_background(simulators.clone()));
        simulators
    }

    /// The base of every address here, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.env.url.clone()
    }

    /// Where the mail server listens: without TLS, with any credentials or none.
    #[must_use]
    pub fn smtp_addr(&self) -> SocketAddr {
        self.0.smtp_addr
    }

    #[must_use]
    pub fn paystack(&self) -> &Paystack {
        &self.0.paystack
    }

    #[must_use]
    pub fn flutterwave(&self) -> &Flutterwave {
        &self.0.flutterwave
    }

    #[must_use]
    pub fn monnify(&self) -> &Monnify {
        &self.0.monnify
    }

    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.0.env.faults
    }

    /// What SMTP and the SMS gateways would have delivered.
    #[must_use]
    pub fn mailbox(&self) -> &Mailbox {
        &self.0.env.mailbox
    }

    /// Tollhouse's events that arrived at `/events`, newest first.
    #[must_use]
    pub fn events(&self) -> Vec<ReceivedEvent> {
        self.0.events.list()
    }

    /// Tells the event receiver the secret (`whsec_...`) that a company's events are signed with.
    pub fn set_event_secret(&self, company_id: &str, secret: &str) {
        self.0.events.set_secret(company_id, secret);
    }

    /// What the front page shows under "What to try".
    pub fn set_hints(&self, hints: Vec<Hint>) {
        *locked(&self.0.hints) = hints;
    }

    /// Where the front page leads to.
    pub fn set_links(&self, links: Vec<Link>) {
        *locked(&self.0.links) = links;
    }

    /// Sends the notifications kept by `hold` and `reorder` faults; answers how many.
    pub fn release(&self) -> usize {
        self.0.env.outbox.release(self.0.env.clock.now())
    }

    /// Does everything that is due by the clock and waits for all that is in flight, messages to the mailbox included.
    ///
    /// Answers how many things were done since it was last called (also by the background task); 0 means quiet.
    pub async fn run_until_idle(&self) -> usize {
        let outbox = &self.0.env.outbox;
        loop {
            self.run_due();
            outbox.wait_until_idle().await;
            self.0.env.in_flight.wait_until_idle().await;
            let has_due = self.payment_simulators().iter().any(|upstream| upstream.has_due());
            if !has_due && !outbox.has_due(self.0.env.clock.now()) {
                return outbox.take_done();
            }
        }
    }

    /// One round of what is due now.
    fn run_due(&self) {
        for upstream in self.payment_simulators() {
            upstream.run_due();
        }
        self.0.env.outbox.dispatch_due(self.0.env.clock.now());
    }

    /// The payment providers.
    fn payment_simulators(&self) -> [&dyn PaymentSimulator; 3] {
        [
            self.0.paystack.as_simulator(),
            self.0.flutterwave.as_simulator(),
            self.0.monnify.as_simulator(),
        ]
    }
}

async fn run_in_background(simulators: Simulators) {
    loop {
        simulators.run_due();
        // Elapsed or woken: both mean another look.
        let _ = tokio::time::timeout(CLOCK_POLL_INTERVAL, simulators.0.env.outbox.wait_for_work())
            .await;
    }
}

/// No lock here is held over a panic that would leave half a change, so a poisoned one is as good as any.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
