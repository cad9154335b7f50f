//! The choice of operations by weights.

use std::{fmt, str::FromStr};

use rand::{RngExt, rngs::StdRng};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// An operation of the platform's clients. Some have several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Operation {
    /// Initialize a payment, pay it at the provider's simulator, await its event.
    Payment,
    /// Initialize a payment that is never paid.
    Initialize,
    /// Send a one-time password by e-mail, and verify it.
    Otp,
    /// Look up an identity by number.
    Lookup,
    /// Create a user, and fetch it.
    User,
    /// Fetch a recent payment by its reference.
    Fetch,
    /// List payments, or users.
    List,
    /// Charge a saved card for a loan, and await the event.
    Repayment,
    /// Record a repayment in cash, and await the event.
    Record,
}

/// Operations and their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Vec<(Operation, u32)>);

impl Default for Mix {
    fn default() -> Mix {
        Mix(vec![
            (Operation::Payment, 20),
            (Operation::Initialize, 5),
            (Operation::Otp, 15),
            (Operation::Lookup, 5),
            (Operation::User, 10),
            (Operation::Fetch, 25),
            (Operation::List, 5),
            (Operation::Repayment, 10),
            (Operation::Record, 5),
        ])
    }
}

impl Mix {
    pub(crate) fn only(operation: Operation) -> Mix {
        Mix(vec![(operation, 1)])
    }

    pub(crate) fn has(&self, operations: &[Operation]) -> bool {
        self.0.iter().any(|(operation, _)| operations.contains(operation))
    }

    pub(crate) fn draw(&self, random: &mut StdRng) -> Operation {
        let sum = self.0.iter().map(|(_, weight)| weight).sum();
        let mut rest = random.random_range(0..sum);
        for (operation, weight) in &self.0 {
            match rest.checked_sub(*weight) {
                None => return *operation,
                Some(less) => rest = less,
            }
        }
        unreachable!("less than the sum of the weights")
    }
}

impl FromStr for Mix {
    type Err = String;

    /// Parses `payment=20,otp=15`.
    fn from_str(text: &str) -> Result<Mix, String> {
        let mut weights: Vec<(Operation, u32)> = Vec::new();
        for part in text.split(',') {
            let (name, weight) =
                part.split_once('=').ok_or(format!("{part:?} must be operation=weight"))?;
            let operation = name.trim().parse().map_err(|_| {
                format!("{name:?} must be one of {}", Operation::VARIANTS.join(", "))
            })?;
            let weight = weight.trim().parse();
            let weight = weight.map_err(|_| format!("the weight of {name} must be a number"))?;
            if weights.iter().any(|(known, _)| *known == operation) {
                return Err(format!("{name} occurs twice"));
            }
            weights.push((operation, weight));
        }
        weights.retain(|(_, weight)| *weight > 0);
        let sum = weights.iter().try_fold(0_u32, |sum, (_, weight)| sum.checked_add(*weight));
        match sum {
            None => Err("the weights are too great".to_owned()),
            Some(0) => Err("a weight must be greater than 0".to_owned()),
            Some(_) => Ok(Mix(weights)),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (operation, weight)) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}{}={weight}", <&str>::from(operation))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn operations_are_drawn_by_their_weights() {
        let mix: Mix = "payment=6,otp=3,list=1,user=0".parse().unwrap();
        let draw = |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            (0..10_000).map(|_| mix.draw(&mut random)).collect::<Vec<_>>()
        };
        let drawn = draw(1);
        for (operation, share) in [
            (Operation::Payment, 0.6),
            (Operation::Otp, 0.3),
            (Operation::List, 0.1),
            (Operation::User, 0.0),
        ] {
            let count = drawn.iter().filter(|drawn| **drawn == operation).count();
            let seen = count as f64 / 10_000.0;
            assert!((seen - share).abs() < 0.02, "{operation:?}: {seen}");
        }
        assert_eq!(drawn, draw(1), "the seed determines the sequence");
        assert_ne!(drawn, draw(2));
    }

    #[test]
    fn the_text_of_a_mix_parses_to_the_same_mix() {
        let mix = Mix::default();
        assert_eq!(mix.to_string().parse(), Ok(mix));
    }

    #[test]
    fn an_invalid_mix_is_rejected_with_the_reason() {
        for (text, reason) in [
            ("payment", "must be operation=weight"),
            ("payment=many", "the weight of payment must be a number"),
            ("pay=1", "must be one of payment, initialize, otp"),
            ("otp=1,otp=2", "otp occurs twice"),
            ("otp=0", "must be greater than 0"),
            ("otp=4294967295,user=1", "too great"),
        ] {
            let error = text.parse::<Mix>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
