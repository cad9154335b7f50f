//! The injected source of randomness for identifiers, keys, placeholders and jitter.

use std::sync::{Arc, Mutex, PoisonError};

use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};

use crate::clock::Timestamp;

/// A cryptographically secure generator. Cheap to clone; all clones share one stream.
#[derive(Clone)]
pub struct Random(Arc<Mutex<StdRng>>);

impl Random {
    /// Creates a generator seeded by the operating system.
    pub fn system() -> Random {
        Random(Arc::new(Mutex::new(rand::make_rng())))
    }

    /// Creates a reproducible generator for tests and simulations.
    pub fn seeded(seed: u64) -> Random {
        Random(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// Restarts the stream of this seed for all clones, to repeat a run exactly.
    pub fn reseed(&self, seed: u64) {
        self.with(|rng| *rng = StdRng::seed_from_u64(seed));
    }

    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        bytes
    }

    /// Returns a uniform integer from 0 to `most`, both included.
    pub fn up_to(&self, most: i64) -> i64 {
        self.with(|rng| rng.random_range(0..=most.max(0)))
    }

    /// Returns `count` uniform decimal digits, at most 18.
    pub fn digits(&self, count: usize) -> String {
        let most = 10_i64.pow(u32::try_from(count.min(18)).unwrap_or(18)) - 1;
        format!("{:0count$}", self.up_to(most))
    }

    /// Returns an internal record id: 4 bytes of Unix seconds and 8 random bytes, in hexadecimal.
    pub fn id(&self, now: Timestamp) -> String {
        id_lower_bound(now) + &hex::encode(self.bytes::<8>())
    }

    /// Returns `prefix` and 160 random bits in hexadecimal, for values that must be unguessable.
    pub fn token(&self, prefix: &str) -> String {
        prefix.to_owned() + &hex::encode(self.bytes::<20>())
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns a text that sorts before all ids of this second and later, and after all earlier ones.
pub fn id_lower_bound(now: Timestamp) -> String {
    let seconds = u32::try_from(now.unix_seconds()).unwrap_or(u32::MAX);
    hex::encode(seconds.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-squared per position: with 9 degrees of freedom, one draw in a million exceeds 45.
    #[test]
    fn digits_are_uniform_and_leading_zeros_stay() {
        let random = Random::seeded(1);
        for count in 4..=8 {
            let drawn: Vec<String> = (0..20_000).map(|_| random.digits(count)).collect();
            assert!(drawn.iter().all(|text| text.len() == count));
            for place in 0..count {
                let mut seen = [0_f64; 10];
                for text in &drawn {
                    seen[usize::from(text.as_bytes()[place] - b'0')] += 1.0;
                }
                let chi: f64 = seen.iter().map(|n| (n - 2_000.0).powi(2) / 2_000.0).sum();
                assert!(chi < 45.0, "{count} digits, place {place}: {seen:?}");
            }
        }
    }

    #[test]
    fn ids_sort_by_second_and_are_24_hex_characters() {
        let random = Random::seeded(1);
        let (early, late) = (random.id(Timestamp(1_000_000)), random.id(Timestamp(2_000_000)));
        assert!(early < late);
        let first = id_lower_bound(Timestamp(2_000_000));
        assert!(early < first && first < late);
        assert!(early.len() == 24 && early.bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
