//! The amounts that a provider accepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cause, Fault, FaultCategory, Manifest};
use tollhouse_platform::values::money::{Currency, Minor, Money};

/// Limits in one currency, in its minor unit.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
// An unknown key could be a limit that this host would ignore.
#[serde(deny_unknown_fields)]
#[schemars(rename = "AmountLimits")]
pub struct AmountLimits {
    /// Amounts must be multiples of this value, for example 100 for whole shillings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    minimum: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maximum: Option<u64>,
}

/// A limit that an amount violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub cause: Cause,
    pub limit: Minor,
}

impl Violation {
    /// Returns the fault that a plugin would return if it checked the amount itself.
    #[must_use]
    pub fn to_fault(self, currency: &Currency) -> Fault {
        let limit = Money { minor: self.limit, currency: currency.clone() }.to_iso_minor();
        let mut fault = Fault::new(FaultCategory::Invalid, "", "the amount violates a limit");
        let cause: &'static str = self.cause.into();
        fault.details.push(("cause".to_owned(), cause.to_owned()));
        fault.details.push(("limit".to_owned(), limit.to_string()));
        fault
    }
}

impl Manifest {
    /// Checks an amount against the decimals of its currency and the provider's limits.
    pub fn check_amount(&self, amount: &Money) -> Result<(), Violation> {
        let limits = self.amounts.get(&*amount.currency);
        let limit = |of: fn(&AmountLimits) -> Option<u64>| {
            let money = Money::from_iso_minor(of(limits?)?, amount.currency.clone())?;
            Some(money.minor).filter(|limit| *limit > Minor(0))
        };
        let violates = |cause, limit| Err(Violation { cause, limit });
        let unit = amount.currency.unit();
        let step = limit(|limits| limits.step).unwrap_or(unit);
        if amount.minor.0 % step.0 != 0 {
            return violates(Cause::AmountStep, step);
        }
        match (limit(|limits| limits.minimum), limit(|limits| limits.maximum)) {
            (Some(minimum), _) if amount.minor < minimum => violates(Cause::BelowMinimum, minimum),
            (_, Some(maximum)) if amount.minor > maximum => violates(Cause::AboveMaximum, maximum),
            _ => Ok(()),
        }
    }

    /// Rejects, with a reason for the operator, currencies with more than two decimals and limits
    /// that are out of range.
    pub(super) fn check_amounts(&self) -> Result<(), String> {
        let decimals = |code: &&String| Currency::from(code.as_str()).decimals();
        if let Some(code) = self.currencies.iter().find(|code| decimals(code) > Some(2)) {
            return Err(format!(
                "the manifest's currency {code:?} has more than two decimals, which this host does not support"
            ));
        }
        for (code, AmountLimits { step, minimum, maximum }) in &self.amounts {
            if !self.currencies.contains(code) {
                return Err(format!(
                    "the manifest's amounts name {code:?}, which is not one of its currencies"
                ));
            }
            let is_valid = |limit: &u64| {
                *limit > 0 && Money::from_iso_minor(*limit, code.as_str().into()).is_some()
            };
            if ![step, minimum, maximum].into_iter().flatten().all(is_valid) {
                return Err(format!(
                    "the manifest's amounts of {code} must be greater than 0 and at most 10^13 in the major unit"
                ));
            }
            if minimum.zip(*maximum).is_some_and(|(minimum, maximum)| minimum > maximum) {
                return Err(format!("the manifest's minimum of {code} is above the maximum"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn manifest(currencies: &[&str], amounts: Value) -> Result<Manifest, String> {
        let json = json!({
            "kind": "provider", "name": "acme", "version": "1.0.0", "display_name": "Acme",
            "currencies": currencies, "amounts": amounts,
        });
        Manifest::from_json(json.to_string().as_bytes())
    }

    #[test]
    fn amounts_obey_the_currency_and_the_limits() {
        let limits = json!({
            "KES": { "step": 100, "minimum": 1_000, "maximum": 25_000_000 },
            "XOF": { "step": 5, "minimum": 100 },
        });
        let manifest = manifest(&["NGN", "KES", "XOF", "UGX"], limits).unwrap();
        let ok = Ok(());
        let violates = |cause, limit| Err(Violation { cause, limit: Minor(limit) });
        for (currency, hundredths, expected) in [
            ("NGN", 1, ok),
            ("KES", 250_000, ok),
            ("KES", 250_050, violates(Cause::AmountStep, 100)),
            ("KES", 900, violates(Cause::BelowMinimum, 1_000)),
            ("KES", 1_000, ok),
            ("KES", 25_000_000, ok),
            ("KES", 25_000_100, violates(Cause::AboveMaximum, 25_000_000)),
            ("UGX", 250_000, ok),
            ("UGX", 250_050, violates(Cause::AmountStep, 100)),
            ("XOF", 10_100, violates(Cause::AmountStep, 500)),
            ("XOF", 9_500, violates(Cause::BelowMinimum, 10_000)),
            ("XOF", 10_500, ok),
        ] {
            let amount = Money { minor: Minor(hundredths), currency: currency.into() };
            assert_eq!(manifest.check_amount(&amount), expected, "{hundredths} {currency}");
        }
    }

    #[test]
    fn limits_out_of_range_are_rejected() {
        for (currencies, amounts, reason) in [
            (&["KWD"][..], json!({}), "more than two decimals"),
            (&["KES"], json!({ "NGN": {} }), "not one of its currencies"),
            (&["KES"], json!({ "KES": { "step": 0 } }), "greater than 0"),
            (&["KES"], json!({ "KES": { "minimum": 2, "maximum": 1 } }), "above the maximum"),
            (
                &["KES"],
                json!({ "KES": { "maximum": 10_000_000_000_000_000_u64 } }),
                "at most 10^13",
            ),
            (&["KES"], json!({ "KES": { "min": 1 } }), "unknown field"),
        ] {
            let refused = manifest(currencies, amounts.clone()).unwrap_err();
            assert!(refused.contains(reason), "{amounts}: {refused}");
        }
    }
}
