//! Exponentially weighted sums.

use tollhouse_platform::clock::Timestamp;

/// A sum of values and of their weights. Both halve in each half-life.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    half_life_ms: f64,
    sum: f64,
    weight: f64,
    as_of: Timestamp,
}

impl Window {
    pub const fn with_half_life(seconds: i32) -> Window {
        Window {
            half_life_ms: seconds as f64 * 1_000.0,
            sum: 0.0,
            weight: 0.0,
            as_of: Timestamp(0),
        }
    }

    /// Adds a value that was observed at `at`, perhaps before others that were added already.
    pub fn add(&mut self, value: f64, weight: f64, at: Timestamp) {
        let latest = self.as_of.max(at);
        let (sum, sum_of_weights) = self.at(latest);
        let share = self.decay(at, latest);
        self.sum = sum + value * share;
        self.weight = sum_of_weights + weight * share;
        self.as_of = latest;
    }

    /// Returns the sums of values and weights as they are at `now`.
    pub fn at(&self, now: Timestamp) -> (f64, f64) {
        let share = self.decay(self.as_of, now);
        (self.sum * share, self.weight * share)
    }

    /// Returns the mean; `None` without observations.
    pub fn mean(&self, now: Timestamp) -> Option<f64> {
        let (sum, weight) = self.at(now);
        (weight > 0.0).then(|| sum / weight)
    }

    /// Returns the mean, in which the assumed value counts as a number of observations.
    pub fn rate(&self, (assumed, observations): (f64, f64), now: Timestamp) -> f64 {
        let (sum, weight) = self.at(now);
        (sum + assumed * observations) / (weight + observations)
    }

    #[expect(clippy::cast_precision_loss, reason = "durations are far below 2^53 ms")]
    fn decay(&self, from: Timestamp, to: Timestamp) -> f64 {
        let elapsed = (to.0 - from.0).max(0) as f64;
        (-elapsed / self.half_life_ms).exp2()
    }
}
