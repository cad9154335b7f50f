//! The dependencies that all simulators share: address, clock, randomness, faults, outbox and
//! mailbox.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use tollhouse_platform::clock::Clock;

use crate::{
    faults::Faults, in_flight::InFlightCounter, mailbox::Mailbox, outbox::Outbox, random::Random,
};

/// Ids exceed 32 bits, so that a client that stores them in an `i32` or `u32` fails here and not in
/// production.
const FIRST_ID: u64 = 5_000_000_000;

pub(crate) struct Env {
    pub url: String,
    pub clock: Clock,
    pub random: Random,
    pub faults: Faults,
    pub outbox: Arc<Outbox>,
    pub mailbox: Mailbox,
    /// Messages on their way to the mailbox.
    pub in_flight: InFlightCounter,
    next_id: AtomicU64,
}

impl Env {
    pub(crate) fn new(url: String, clock: Clock, seed: u64) -> Env {
        let random = Random::seeded(seed);
        let faults = Faults::default();
        Env {
            url,
            clock,
            next_id: AtomicU64::new(FIRST_ID + random.below(1_000_000_000)),
            random,
            outbox: Arc::new(Outbox::new(faults.clone())),
            mailbox: Mailbox::default(),
            in_flight: InFlightCounter::default(),
            faults,
        }
    }

    /// Returns a new id; ids increase.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1 + self.random.below(5), SeqCst)
    }
}
