//! The only source of randomness, with a seed.

use std::sync::Mutex;

use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::locked;

const CODE_ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

pub(crate) struct Random(Mutex<StdRng>);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// Returns random lower-case letters and digits.
    pub(crate) fn code(&self, length: usize) -> String {
        let mut rng = locked(&self.0);
        (0..length)
            .map(|_| char::from(CODE_ALPHABET[rng.random_range(0..CODE_ALPHABET.len())]))
            .collect()
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        locked(&self.0).random_range(0..end)
    }
}

pub(crate) fn system_seed() -> u64 {
    rand::make_rng::<StdRng>().random()
}
