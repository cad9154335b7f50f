//! Pseudo-random values derived from an identifier, so that every query returns the same record.

use sha2::{Digest, Sha256};

pub(super) struct SeededValues(String);

impl SeededValues {
    pub(super) fn new(seed: &str) -> SeededValues {
        SeededValues(seed.to_owned())
    }

    /// Returns a number below `end`. Each name is an independent draw, so adding one does not
    /// change the others.
    pub(super) fn below(&self, name: &str, end: u64) -> u64 {
        let digest = Sha256::digest(format!("{}\n{name}", self.0));
        let head = digest.iter().take(8).fold(0, |head, byte| head << 8 | u64::from(*byte));
        head % end
    }

    pub(super) fn pick<T: Copy>(&self, name: &str, from: &[T]) -> T {
        from[usize::try_from(self.below(name, from.len() as u64)).unwrap_or(0)]
    }

    /// Returns this many digits, without a leading 0.
    pub(super) fn digits(&self, name: &str, count: u32) -> String {
        let first = 10_u64.pow(count - 1);
        (first + self.below(name, 9 * first)).to_string()
    }
}
