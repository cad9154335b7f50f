//! Randomness, injected: identifiers, keys, placeholders and jitter all come from here.

use std::sync::{Arc, Mutex, PoisonError};

use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};

use crate::clock::Timestamp;

/// A cryptographic generator. Cheap to clone; the clones share one stream.
#[derive(Clone)]
pub struct Random(Arc<Mutex<StdRng>>);

impl Random {
    /// Seeded by the operating system.
    #[must_use]
    pub fn system() -> Random {
        Random(Arc::new(Mutex::new(rand::make_rng())))
    }

    /// The same every time, for tests and simulations.
    #[must_use]
    pub fn seeded(seed: u64) -> Random {
        Random(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        bytes
    }

    /// A whole number from 0 to `most`, both included.
    #[must_use]
    pub fn up_to(&self, most: i64) -> i64 {
        self.with(|rng| rng.random_range(0..=most.max(0)))
    }

    /// An internal record id: 4 bytes of Unix seconds and 8 random bytes as 24 lower-case hex characters.
    #[must_use]
    pub fn id(&self, now: Timestamp) -> String {
        first_id(now) + &hex::encode(self.bytes::<8>())
    }

    /// `prefix` and 160 random bits: for what must not be guessed.
    #[must_use]
    pub fn token(&self, prefix: &str) -> String {
        prefix.to_owned() + &hex::encode(self.bytes::<20>())
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A text that sorts before every id of this second and of later ones, and after those of earlier ones.
#[must_use]
pub fn first_id(now: Timestamp) -> String {
    let seconds = u32::try_from(now.unix_seconds()).unwrap_or(u32::MAX);
    hex::encode(seconds.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_second_and_are_24_hex_characters() {
        let random = Random::seeded(1);
        let (early, late) = (random.id(Timestamp(1_000_000)), random.id(Timestamp(2_000_000)));
        assert!(early < late);
        let first = first_id(Timestamp(2_000_000));
        assert!(early < first && first < late);
        assert!(early.len() == 24 && early.bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
