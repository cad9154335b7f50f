//! Simulators of the upstreams, over real HTTP: the counterpart of the plugins in development and
//! tests.
//!
//! Each provider has a module that implements its documented protocol. All share the merchants'
//! accounts, scripted [`faults`], the outbox of webhooks, the hosted checkout page, the pages of
//! phones with M-Pesa's prompts, the receiver of Tollhouse's own [`events`] and the [`mailbox`],
//! which a mail server (SMTP) and the SMS gateways fill. The identity registers share fictitious
//! people. All state is in memory; the time comes only from the injected clock.

mod africastalking;
mod checkout;
mod env;
pub mod events;
pub mod faults;
mod fields;
pub mod flutterwave;
mod in_flight;
pub mod jenga;
mod keyed_hash;
mod listing;
pub mod mailbox;
pub mod momo;
mod money;
pub mod monnify;
pub mod mpesa;
mod outbox;
mod pages;
pub mod paystack;
mod provider;
mod random;
mod registers;
mod request_log;
mod server;
mod settlements;
mod sms;
mod smtp;
mod termii;
#[cfg(test)]
mod testing;
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
pub use faults::{DeclineReason, Fault, FaultKind, Faults};
pub use flutterwave::Flutterwave;
pub use jenga::Jenga;
pub use listing::{ListedKind, ListedLine, ListingChange};
pub use mailbox::{Mailbox, Message};
pub use momo::Momo;
pub use monnify::Monnify;
pub use mpesa::Mpesa;
pub use paystack::Paystack;

use env::Env;
use events::EventReceiver;
use provider::PaymentSimulator;

/// Polling interval for changes that are due by the clock; any other change wakes the task
/// immediately.
const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// All simulators, served on one HTTP and one SMTP listener. Cheap to clone; clones share their
/// state.
#[derive(Clone)]
pub struct Simulators(Arc<Inner>);

/// A command to try.
#[derive(Clone, Debug)]
pub struct Hint {
    /// A description of the command, without a full stop.
    pub what: String,
    pub command: String,
}

/// A link on the front page.
#[derive(Clone, Debug)]
pub struct Link {
    /// A description of the page.
    pub what: String,
    pub url: String,
}

struct Inner {
    env: Arc<Env>,
    smtp_addr: SocketAddr,
    paystack: Paystack,
    flutterwave: Flutterwave,
    monnify: Monnify,
    momo: Momo,
    mpesa: Mpesa,
    jenga: Jenga,
    events: EventReceiver,
    hints: Mutex<Vec<Hint>>,
    links: Mutex<Vec<Link>>,
}

impl Simulators {
    /// Serves on the listeners in background tasks, with system randomness.
    ///
    /// # Panics
    /// Outside a Tokio runtime, or if a listener has no local address.
    #[must_use]
    pub fn start(http: TcpListener, smtp: TcpListener, clock: Clock) -> Simulators {
        Simulators::start_seeded(http, smtp, clock, random::system_seed())
    }

    /// Like [`Simulators::start`]; the same seed and requests produce the same ids and codes.
    ///
    /// # Panics
    /// Like [`Simulators::start`].
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
            momo: Momo::new(env.clone()),
            mpesa: Mpesa::new(env.clone()),
            jenga: Jenga::new(env.clone()),
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

    /// Returns the base URL, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.env.url.clone()
    }

    /// Returns the address of the mail server, which accepts connections without TLS, with or
    /// without credentials.
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
    pub fn momo(&self) -> &Momo {
        &self.0.momo
    }

    #[must_use]
    pub fn mpesa(&self) -> &Mpesa {
        &self.0.mpesa
    }

    #[must_use]
    pub fn jenga(&self) -> &Jenga {
        &self.0.jenga
    }

    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.0.env.faults
    }

    /// Returns the messages delivered through SMTP and the SMS gateways.
    #[must_use]
    pub fn mailbox(&self) -> &Mailbox {
        &self.0.env.mailbox
    }

    /// Returns Tollhouse's events received at `/events`, newest first.
    #[must_use]
    pub fn events(&self) -> Vec<ReceivedEvent> {
        self.0.events.list()
    }

    /// Registers the secret (`whsec_...`) that signs a company's events.
    pub fn set_event_secret(&self, company_id: &str, secret: &str) {
        self.0.events.set_secret(company_id, secret);
    }

    /// Sets the hints that the front page shows under "What to try".
    pub fn set_hints(&self, hints: Vec<Hint>) {
        *locked(&self.0.hints) = hints;
    }

    /// Sets the links on the front page.
    pub fn set_links(&self, links: Vec<Link>) {
        *locked(&self.0.links) = links;
    }

    /// Sends the webhooks held by `hold` and `reorder` faults. Returns their number.
    pub fn release(&self) -> usize {
        self.0.env.outbox.release(self.0.env.clock.now())
    }

    /// Processes everything that is due by the clock, and waits for everything in flight, including
    /// messages to the mailbox.
    ///
    /// Returns the number of changes since the last call (also those of the background task); 0
    /// means idle.
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

    /// Processes everything that is due now, once.
    fn run_due(&self) {
        for upstream in self.payment_simulators() {
            upstream.run_due();
        }
        self.0.env.outbox.dispatch_due(self.0.env.clock.now());
    }

    /// Returns the payment providers.
    fn payment_simulators(&self) -> [&dyn PaymentSimulator; 6] {
        [
            self.0.paystack.as_simulator(),
            self.0.flutterwave.as_simulator(),
            self.0.monnify.as_simulator(),
            self.0.momo.as_simulator(),
            self.0.mpesa.as_simulator(),
            self.0.jenga.as_simulator(),
        ]
    }
}

async fn run_in_background(simulators: Simulators) {
    loop {
        simulators.run_due();
        // Elapsed or woken: both trigger another round.
        let _ = tokio::time::timeout(CLOCK_POLL_INTERVAL, simulators.0.env.outbox.wait_for_work())
            .await;
    }
}

/// Locks a mutex. Poisoning is ignored, because no lock is held across a panic that would leave a
/// partial change.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
