//! The search for the highest sustainable rate: grows until a rate is not sustained, then narrows
//! the range.

const GROWTH: f64 = 1.5;
/// The search ends when the lowest failed rate is at most this multiple of the highest sustained
/// one.
const RESOLUTION: f64 = 1.1;
/// Below this rate per second, a host is considered to sustain nothing.
const LEAST: f64 = 1.0;

pub struct Search {
    rate: f64,
    sustained: Option<f64>,
    failed: Option<f64>,
}

impl Search {
    pub fn starting_at(rate: f64) -> Search {
        Search { rate, sustained: None, failed: None }
    }

    /// Takes the result of the current rate, and returns the next one to try.
    pub fn next(&mut self, sustained: bool) -> Option<f64> {
        match sustained {
            true => self.sustained = Some(self.rate),
            false => self.failed = Some(self.rate),
        }
        self.rate = match (self.sustained, self.failed) {
            (Some(sustained), Some(failed)) if failed <= sustained * RESOLUTION => return None,
            // The geometric mean halves the ratio of the two.
            (Some(sustained), Some(failed)) => (sustained * failed).sqrt(),
            (Some(sustained), None) => sustained * GROWTH,
            (None, Some(failed)) => failed / 2.0,
            (None, None) => return None,
        };
        (self.rate >= LEAST).then_some(self.rate)
    }

    pub fn greatest(&self) -> Option<f64> {
        self.sustained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a host that sustains up to `capacity`. Returns the result and the number of steps.
    fn search(first: f64, capacity: f64) -> (Option<f64>, u32) {
        let (mut search, mut rate, mut steps) = (Search::starting_at(first), first, 0);
        loop {
            steps += 1;
            match search.next(rate <= capacity) {
                Some(next) => rate = next,
                None => return (search.greatest(), steps),
            }
        }
    }

    #[test]
    fn the_result_is_at_most_a_tenth_below_the_capacity() {
        for first in [1.0, 50.0, 730.0, 5_000.0] {
            for capacity in [3.0, 99.0, 731.0, 12_345.0] {
                let (found, steps) = search(first, capacity);
                let found = found.unwrap();
                assert!(found <= capacity && capacity <= found * RESOLUTION, "{capacity}: {found}");
                assert!(steps < 40, "{capacity} from {first} took {steps} steps");
            }
        }
    }

    #[test]
    fn the_search_ends_without_a_result_if_nothing_is_sustained() {
        assert_eq!(search(50.0, 0.0).0, None);
    }
}
