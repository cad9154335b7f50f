//! The intended starts of operations, which depend on nothing but rate and seed.

use std::time::Duration;

use clap::ValueEnum;
use rand::{RngExt, SeedableRng, rngs::StdRng};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// Independent of each other, as from many clients
    Poisson,
    /// At equal intervals
    Constant,
}

/// An endless, ordered sequence of offsets from the beginning.
pub struct Schedule {
    arrivals: Arrivals,
    rate_per_s: f64,
    random: StdRng,
    seconds: f64,
    count: u64,
}

impl Schedule {
    pub fn new(arrivals: Arrivals, rate_per_s: f64, seed: u64) -> Schedule {
        let random = StdRng::seed_from_u64(seed);
        Schedule { arrivals, rate_per_s, random, seconds: 0.0, count: 0 }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.seconds = match self.arrivals {
            // Not a sum, which would accumulate rounding errors.
            Arrivals::Constant => self.count as f64 / self.rate_per_s,
            Arrivals::Poisson => {
                let uniform: f64 = self.random.random();
                self.seconds - (1.0 - uniform).ln() / self.rate_per_s
            }
        };
        self.count += 1;
        Some(Duration::from_secs_f64(self.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(arrivals: Arrivals, rate: f64, seed: u64, seconds: u64) -> Vec<f64> {
        let until = Duration::from_secs(seconds);
        let schedule = Schedule::new(arrivals, rate, seed);
        schedule.take_while(|at| *at < until).map(|at| at.as_secs_f64()).collect()
    }

    #[test]
    fn constant_starts_have_equal_distances() {
        let starts = starts(Arrivals::Constant, 8.0, 1, 100);
        assert_eq!(starts.len(), 800);
        assert_eq!(starts[..3], [0.0, 0.125, 0.25]);
        assert_eq!(starts[799], 99.875);
    }

    #[test]
    fn a_seed_determines_poisson_starts() {
        let of = |seed| starts(Arrivals::Poisson, 100.0, seed, 10);
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        assert!(of(7).is_sorted());
    }

    /// The intervals of a Poisson process are exponential: their standard deviation equals their
    /// mean, and 1 - 1/e of them are below it.
    #[test]
    fn poisson_starts_have_exponential_distances() {
        let starts = starts(Arrivals::Poisson, 1_000.0, 1, 100);
        let rate = starts.len() as f64 / 100.0;
        assert!((990.0..1_010.0).contains(&rate), "{rate} per second");
        let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let deviation = variance.sqrt() / mean;
        assert!((0.98..1.02).contains(&deviation), "deviation {deviation} of the mean");
        let short = gaps.iter().filter(|gap| **gap < mean).count() as f64 / gaps.len() as f64;
        assert!((0.622..0.642).contains(&short), "{short} below the mean");
    }
}
