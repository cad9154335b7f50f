//! Choices that follow from an identifier, so that it tells the same whenever and by whomever it is asked for.

use sha2::{Digest, Sha256};

pub(super) struct SeededValues(String);

impl SeededValues {
    pub(super) fn new(seed: &str) -> SeededValues {
        SeededValues(seed.to_owned())
    }

    /// Below `end`. Each name is a draw of its own: one more of them leaves all others as they are.
    pub(super) fn below(&self, name: &str, end: u64) -> u64 {
        let digest = Sha256::digest(format!("{}\n{name}", self.0));
        let head = digest.iter().take(8).fold(0, |head, byte| head << 8 | u64::from(*byte));
        head % end
    }

    pub(super) fn pick<T: Copy>(&self, name: &str, from: &[T]) -> T {
        from[usize::try_from(self.below(name, from.len() as u64)).unwrap_or(0)]
    }

    /// This many digits, of which the first is not 0.
    pub(super) fn digits(&self, name: &str, count: u32) -> String {
        let first = 10_u64.pow(count - 1);
        (first + self.below(name, 9 * first)).to_string()
    }
}
